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
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Bools, Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.laws import noise_norm
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.align import align
from dpcov.methods.whitening.frames import are_visible, beyond_reach, in_frame, limit_gains
from dpcov.methods.whitening.fusion import Fused, Knowledge
from dpcov.methods.whitening.looks import NormLook
from dpcov.methods.whitening.reach import find_hidden, keep_within, never_seen
from dpcov.methods.whitening.run import Run

# A look sees k rows if k exceeds about 6 standard deviations of its noise, and k rows once more, but for one
# time in 1,000, if they exceed 9.
_SURELY = 1.5


@dataclass(frozen=True, eq=False)
class White:
    """Coordinates in which the rows are about white.

    Attributes
    ----------
    rows : ndarray, shape (d, d)
        One linear form of the columns a row.
    typical, far : float
        How long most rows are there, and the furthest that are seen.
    rank : int
        How many directions were visible; the others may be next to nothing.
    is_white : bool
        Whether they were made white, and not just scaled (``compress.py``).
    look : NormLook, optional
        What the lengths are from; None if they were inferred.
    """

    rows: Matrix
    typical: float
    far: float
    rank: int
    is_white: bool = True
    look: NormLook | None = None

    @classmethod
    def seen(cls, rows: Matrix, look: NormLook, rank: int) -> White:
        """Take the lengths from a look at the rows."""
        return cls(rows, look.typical, look.far, rank, look=look)

    @property
    def complete(self) -> bool:
        """Whether every direction was visible."""
        return self.rank == len(self.rows)

    @property
    def unit(self) -> float:
        """Root mean square of a white coordinate, about."""
        return self.typical / math.sqrt(max(self.rank, 1))

    @property
    def has_rare_rows(self) -> bool:
        """Whether some rows lie much further out than those of a dense table do."""
        return self.far > c.DENSE * self.typical


@dataclass(frozen=True, eq=False)
class _Next:
    """The coordinates that an answer leads to.

    Attributes
    ----------
    rows : ndarray, shape (d, d)
        The coordinates.
    visible : ndarray of bool, shape (d,)
        Which of them stood above the noise.
    small : bool
        Whether the rows' part along the others was much shorter than the region, before it was made to fit.
    unit : float
        The root mean square of a visible coordinate.
    error : float
        What the last release would have been off by in the coordinates before; infinite while directions are
        invisible.
    """

    rows: Matrix
    visible: Bools
    small: bool
    unit: float
    error: float

    def given_up(self) -> Matrix:
        """Return the coordinates with small directions left as small: they would only take room."""
        return self.rows / np.where(self.visible | (not self.small), 1.0, c.TUCKED_IN)[:, None]


def whiten(run: Run, rows: Matrix) -> White | None:
    """Make the rows white, as far as that pays; None if all that can be seen of them is noise.

    The first look reads all rows. If a quick look at a sample would show as much, samples are read from then
    on, as long as they show every direction: one that is out of sight may be that of a few rows.
    """
    knowledge = Knowledge()
    best: White | None = None
    least, unit, visible, idle = math.inf, 0.0, 0, 0
    sample, care = run.every, run.careful_look
    for attempt in range(c.MOST_ROUNDS + 1):
        in_the_dark = attempt > 0 and visible < run.d
        look = run.look(rows, care, "norms of the rows", every=run.every if in_the_dark else sample)
        if not look.found:
            return best
        if care > run.quick_look:
            sample, care = _care_for(run, look)
        # Rows that the look has seen reach no further than it says.
        rows, kept_short = keep_within(run, rows, look, never_seen(run) & (attempt > 0))
        here = White.seen(rows, look, visible)
        unit = unit if attempt else look.typical / math.sqrt(run.d)
        expected = run.noise(run.n, run.left) * (look.far / unit) ** 2
        promising = best is None or not here.complete or expected < c.SAME * least
        finished = here.complete and expected > c.ENOUGH_GAIN * least
        kept = c.KEPT_FOR_RELEASE if here.complete else c.KEPT_IN_THE_DARK
        spent_up = run.left < kept or attempt == c.MOST_ROUNDS
        if finished or spent_up:
            return here if promising else best
        share = _ask_gram(run, here, knowledge, expected, run.every if in_the_dark else sample)
        following = _follow(run, here, knowledge, care)
        before, visible = visible, int(following.visible.sum())
        run.note("whitening", share, visible)
        lost = not kept_short and has_lost_rows(knowledge.answers[-1], here, unit)
        if here.complete and (visible < run.d or lost):
            # Rows that carried a direction are out of sight of this look: they were in the region before.
            return here if best is None else best
        if following.error < least or visible < run.d:
            least, best = following.error, replace(here, rank=visible)
        idle = idle + 1 if visible <= before < run.d else 0
        if idle == c.MOST_IDLE or (visible <= before and beyond_reach(following.rows, constant=run.constant)):
            # No more of what is invisible can be told.
            rows = limit_gains(following.given_up(), constant=run.constant)
            look = run.look(rows, run.quick_look, "norms of the rows", every=run.every)
            rows, _ = keep_within(run, rows, look, never_seen(run))
            return White.seen(rows, look, visible)
        rows, unit = limit_gains(following.rows, constant=run.constant), following.unit
    return best


def has_lost_rows(answer: NoisyGram, here: White, unit: float) -> bool:
    """Whether a direction that was made white has clearly less than half its length: rows were clipped."""
    _, moment = in_frame(answer, here.rows)
    noise = c.VISIBLE * noise_norm(len(moment), answer.sigma)
    return float(np.linalg.eigvalsh(moment)[0]) + noise < (unit / c.APART) ** 2


def _care_for(run: Run, look: NormLook) -> tuple[int, float]:
    """Return which rows, one in so many, the next look has to read, and what it has to cost.

    Enough to see again what this one has seen. A sample has as much noise as all rows, and fewer rows in each
    bin.
    """
    quick = 1 / math.sqrt(run.look_share(run.quick_look) * run.rho)
    for every in (run.every_quick, run.every):
        if look.far_under(_SURELY * quick * every / run.every) > look.far / c.APART:
            return every, run.quick_look
    return run.every, run.careful_look


def _ask_gram(run: Run, here: White, knowledge: Knowledge, expected: float, sample: int) -> float:
    """Ask for the Gram matrix of a sample, or of all rows if it shows less; return what that cost.

    Parameters
    ----------
    run : Run
        The curator.
    here : White
        The coordinates to ask in.
    knowledge : Knowledge
        Takes the answers.
    expected : float
        What a release in these coordinates would be off by.
    sample : int
        One row in so many may be read, as far as that leaves the noise that is aimed at for the least price.
    """
    least_share = c.LEAST_ROUND if here.complete else c.LEAST_ROUND_BLIND
    spent = 0.0
    fewest = max(run.every, min(sample, int(c.AIM * math.sqrt(least_share) / expected)))
    for every in dict.fromkeys((fewest, run.every)):
        share = min(max(min(expected * every / c.AIM, 1.0) ** 2, least_share), c.MOST_ROUND)
        answer = run.gram(here.rows, here.far, share, "whitening", rule=run.rule, every=every)
        knowledge.answers.append(answer)
        spent += share
        if every > run.every and are_visible(knowledge.in_coordinates(here.rows).values, 1.0).all():
            break
    return spent


def _follow(run: Run, here: White, knowledge: Knowledge, care: float) -> _Next:
    fused = knowledge.in_coordinates(here.rows)
    values, vectors = np.linalg.eigh(fused.moment)
    visible = are_visible(values, 1.0)
    # If most directions are visible, columns lie near their span whether they are long or not.
    if here.has_rare_rows and 0 < visible.sum() <= run.d / 2:
        values, vectors = _aligned(fused, here, vectors[:, visible])
    ahead = np.linalg.inv(fused.back)
    forms, small = vectors.T @ ahead, False
    # In the scale of `here`: the largest visible direction stays as long as it is.
    seen = fused.back @ vectors[:, visible] * np.sqrt(values[visible])
    unit = float(np.linalg.norm(seen, 2)) if visible.any() else here.typical / math.sqrt(run.d)
    forms[visible] *= unit / np.sqrt(values[visible])[:, None]
    if not visible.all():
        forms[~visible] /= np.linalg.norm(forms[~visible], 2)
        hidden = look_at_hidden(run, here, forms[~visible] @ here.rows, care)
        # Where even its length is below the noise, it stays as it is.
        level = min(hidden.far / here.far, 1.0) if hidden.found else 1.0
        small = level < c.SMALL
        forms[~visible] /= level
    moment = fused.back @ fused.moment @ fused.back
    error = (
        _expected_error(run, here.far, np.asarray(np.linalg.eigvalsh(moment), np.float64))
        if visible.all()
        else math.inf
    )
    unseen = find_hidden(run, here.rows, fused.back, vectors[:, ~visible])
    rows, _ = keep_within(run, forms @ here.rows, here, unseen)
    return _Next(rows, visible, small, unit, error)


def look_at_hidden(run: Run, here: White, forms: Matrix, care: float) -> NormLook:
    """Ask how far rows reach along what is invisible: carefully before it is stretched a lot.

    Where some rows are rare, others may be too, and those that a quick look misses would be stretched out of
    sight.
    """
    for share in dict.fromkeys((care, run.careful_look)):
        hidden = run.look(forms, share, "norms of what is invisible", frame=here.rows, every=run.every)
        if not hidden.found or not here.has_rare_rows or c.DENSE * hidden.far > here.far:
            break
    return hidden


def _aligned(fused: Fused, here: White, found: Matrix) -> tuple[Vector, Matrix]:
    """Return variances and directions like those of an eigendecomposition, the visible ones put right.

    Far rows along a tilted direction would stick out of all others, which could then not be stretched.
    """
    columns: Matrix = np.linalg.inv(fused.back) @ here.rows
    visible = align(found, columns, fused.moment, noise_norm(len(columns), 1.0))
    beside = np.linalg.svd(visible).U[:, visible.shape[1] :]
    parts = [np.linalg.eigh(part.T @ fused.moment @ part) for part in (beside, visible)]
    return (
        np.concatenate([values for values, _ in parts]),
        np.column_stack([part @ turn for part, (_, turn) in zip((beside, visible), parts, strict=True)]),
    )


def _expected_error(run: Run, radius: float, values: Vector) -> float:
    """Return what the last release will be off by where the second moment has these eigenvalues."""
    if values[0] <= 0:
        return math.inf
    sigma = radius**2 / (run.n * math.sqrt(run.left * run.rho))
    return sigma * math.sqrt(2 * float((1 / values).max()) * float((1 / values).sum()))
