"""Step 2, whiten: Gram matrices of all rows that can be seen, each in coordinates that the last one led to.

In coordinates in which clipped rows have the second moment M, with a radius R, the last release will be off
by about (``docs/whitening.md``, Objective)

    R^2 sqrt(2 lambda_max(M^-1) tr(M^-1)) / (n sqrt(rho left)).

White coordinates have the least of it for a given ratio of R to a typical row. Each round asks how far the
rows reach, so that none that can be seen is clipped, and for their Gram matrix; all answers so far are
fused. What is visible becomes white. What is invisible is made as long as it may be: its furthest rows then
just fit into the region, so that small directions come into sight and rare ones stay there. A round is
worth its budget while the coordinates it led to promise a smaller error; the best ones are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.laws import noise_norm
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import beyond_reach, limit_gains
from dpcov.methods.whitening.fusion import Knowledge
from dpcov.methods.whitening.norms import NormLook
from dpcov.methods.whitening.run import Run


@dataclass(frozen=True, eq=False)
class White:
    """Coordinates in which the rows are about white.

    Attributes
    ----------
    rows : ndarray, shape (d, d)
        One linear form of the columns a row.
    look : NormLook
        How long the rows are there.
    """

    rows: Matrix
    look: NormLook

    @property
    def unit(self) -> float:
        """Root mean square of a white coordinate, about."""
        return self.look.typical / math.sqrt(len(self.rows))


@dataclass(frozen=True, eq=False)
class _Next:
    """The coordinates that an answer leads to.

    `unit` is the root mean square of a visible coordinate there, and `error` what the last release would
    have been off by in the coordinates before; infinite while directions are invisible.
    """

    rows: Matrix
    unit: float
    visible: int
    error: float


def whiten(run: Run, rows: Matrix) -> White | None:
    """Make the rows white, as far as that pays; None if all that can be seen of them is noise."""
    knowledge = Knowledge()
    best: White | None = None
    least, unit, visible, idle = math.inf, 0.0, 0, 0
    for attempt in range(c.MOST_ROUNDS + 1):
        look = run.look(rows, c.LOOK if attempt else c.CAREFUL_LOOK, "norms of the rows", every=run.every)
        if not look.found:
            return best
        here = White(rows, look)
        unit = unit if attempt else here.unit
        expected = run.noise(run.n, run.left) * (look.far / unit) ** 2
        seen_all = visible == run.d
        promising = best is None or not seen_all or expected < least
        finished = seen_all and expected > c.ENOUGH_GAIN * least
        spent_up = run.left < c.KEPT_FOR_RELEASE or idle == c.MOST_IDLE or attempt == c.MOST_ROUNDS
        if finished or spent_up:
            return here if promising else best
        least_share = c.LEAST_ROUND if seen_all else c.LEAST_ROUND_BLIND
        share = min(max((expected * run.every / c.AIM) ** 2, least_share), c.MOST_ROUND)
        answer = run.gram(rows, look.far, share, "whitening", rule=run.rule, every=run.every)
        knowledge.answers.append(answer)
        following = _follow(run, here, knowledge)
        run.note("whitening", share, following.visible)
        if following.error < least or following.visible < run.d:
            least, best = following.error, here
        idle = idle + 1 if following.visible <= visible < run.d else 0
        beyond = beyond_reach(following.rows)
        rows, unit, visible = limit_gains(following.rows), following.unit, following.visible
        if beyond:
            # Float64 rows tell no more about a direction that is so much smaller than others.
            return White(rows, run.look(rows, c.LOOK, "norms of the rows", every=run.every))
    return best


def _follow(run: Run, here: White, knowledge: Knowledge) -> _Next:
    fused = knowledge.in_coordinates(here.rows)
    values, vectors = np.linalg.eigh(fused.moment)
    visible = values > c.VISIBLE * noise_norm(run.d, 1.0)
    # In the scale of `here`: the largest visible direction stays as long as it is.
    scale = math.exp(float(np.mean(np.log(np.linalg.eigvalsh(fused.back)))))
    forms = scale * vectors.T @ np.linalg.inv(fused.back) @ here.rows
    largest = float(values[visible].max()) if visible.any() else 1.0
    level = np.where(visible, values / largest, 1.0)
    if not visible.all():
        hidden = run.look(
            forms[~visible], c.LOOK, "norms of what is invisible", frame=here.rows, every=run.every
        )
        # Where even its length is below the noise, it stays as it is.
        level[~visible] = min((hidden.far / here.look.far) ** 2, 1.0) if hidden.found else 1.0
    moment = fused.back @ fused.moment @ fused.back
    error = (
        _expected_error(run, here.look.far, np.asarray(np.linalg.eigvalsh(moment), np.float64))
        if visible.all()
        else math.inf
    )
    return _Next(forms / np.sqrt(level)[:, None], math.sqrt(largest) * scale, int(visible.sum()), error)


def _expected_error(run: Run, radius: float, values: Vector) -> float:
    """Return what the last release will be off by where the second moment has these eigenvalues."""
    if values[0] <= 0:
        return math.inf
    sigma = radius**2 / (run.n * math.sqrt(run.left * run.rho))
    return sigma * math.sqrt(2 * float((1 / values).max()) * float((1 / values).sum()))
