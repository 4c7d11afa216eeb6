"""A region that the user vouches for: the table is (m, alpha, beta)-subsamplable.

Let A be the second moment in the last frame, P the rows of leverage at most ``m (1 + alpha)``, R the radius,
and ``L = R^2 / (m (1 + alpha))``. If ``A <= L I``, no row of P is longer than R, and what noise N leaves is

    (1 - g) S_P <= S~ <= (1 + g) S,    g = |N| / ((1 - alpha) lambda_min(A)),

as ``S_P >= (1 - alpha) A``: the paper's Lemma 3.8, for a beta of at most `Told.largest_beta`.

*Given the definition, a clipped matrix shows that.* Suppose that A has an eigenvalue ``l > L`` with direction
v. A row of P has at most the length ``sqrt(l m (1 + alpha))``, so clipping leaves it at least ``k L / l`` of
its square, where k is about `_KEPT`, and the clipped rows have at least ``(k L / l) (1 - alpha) l``, which is
``k (1 - alpha) L``, along v. So a clipped second moment below that shows that ``A <= L I``. In a frame of
unit u the radius is chosen for ``(1 - alpha) L = 1.6 u^2``.

*It is no evidence for the definition itself.* For that, rows beyond R are counted: a table that keeps to it
has no more of them than its tail has rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import number, share
from dpcov.core import ArgumentError, LogNormGrid, RowsBeyond
from dpcov.laws import noise_norm
from dpcov.losses import FAR
from dpcov.methods.estimate import Estimate
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.queries.clipped import Pull, lengths_left
from dpcov.methods.whitening.release import find_and_release, release
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White
from dpcov.methods.whitening.wrap import Region

_ALPHA = 0.5
_ROOM = 1.6
# What is left of the squares of rows beyond the radius, so that they can be counted at no cost.
_KEPT = Fraction(49, 50)
_PULL = Pull(FAR, _KEPT, _KEPT)
_FAILURE = 0.05
# A count of rows beyond refutes m by chance once in 1,000 releases.
_SURE = 3.09


@dataclass(frozen=True)
class Told:
    """What the user says: m or more random rows keep the second moment up to 1 +- alpha, but for beta."""

    m: float
    alpha: float
    beta: float | None

    @classmethod
    def checked(cls, m: float | None, alpha: float | None, beta: float | None) -> Told | None:
        """Return what was told, None if nothing was, or raise an `ArgumentError`."""
        if m is None:
            if alpha is not None or beta is not None:
                raise ArgumentError("alpha and beta need m as well.")
            return None
        return cls(
            number(m, "m", at_least=1),
            _ALPHA if alpha is None else number(alpha, "alpha", above=0, at_most=0.5),
            None if beta is None else share(beta, "beta"),
        )

    def largest_beta(self, n_rows: int) -> float:
        """Return the largest beta for which removing the tail costs at most alpha of any direction.

        Lemma 3.8 of the paper, repaired, for a leverage of at most `n_rows`, which none exceeds.
        """
        ratio = n_rows / ((1 + self.alpha) * self.m)
        if ratio <= 1:
            return 1.0
        return -math.expm1(-self.alpha / ((1 + self.alpha) * (1 + 1 / self.m + math.log(ratio))))

    def tail_share(self, n_rows: int) -> float:
        """Return the largest share of rows in the tail: Claim 3.7 of the paper, for any beta."""
        beta = self.largest_beta(n_rows) if self.beta is None else self.beta
        if beta == 1:
            return 0.0
        return min(1.0, max(beta + beta * beta, -math.log1p(-beta)) / self.m)

    def squared_radius(self) -> float:
        """Return R^2 in units of the mean square of a white coordinate."""
        return _ROOM * self.m * (1 + self.alpha) / (1 - self.alpha)


def release_told(run: Run, white: White, told: Told) -> Estimate:
    """Release within the radius that was told; if the count of rows beyond refutes it, as without it."""
    region = Region(math.sqrt(told.squared_radius()) * white.unit)
    allowed = told.tail_share(run.n) * run.n
    counted = run.curator.ask(_count_beyond(run, white.rows, region.radius))
    beyond, spread = float(counted.count), math.sqrt(float(counted.variance))
    if beyond - _SURE * spread > allowed:
        words = (
            f"None: about {beyond:,.0f} rows lie beyond the radius for m={told.m:g} and "
            f"alpha={told.alpha:g}, more than the {allowed:,.0f} that such a table may have. m is too small, "
            "and the release was made without it."
        )
        return _with(find_and_release(run, white), math.inf, words)
    estimate = release(run, white, region, _PULL)
    error, words = _promise(run, white, region, told, estimate)
    # Rows of the tail may have been clipped; as many as were told, or counted.
    least = float(np.linalg.eigvalsh(white.rows @ estimate.second_moment @ white.rows.T)[0])
    clipped = min(max(beyond, 0.0) + spread, allowed) * region.radius**2 / run.n
    facts = {
        "tail_share_at_most": told.tail_share(run.n),
        "predicted_error": estimate.diagnostics["predicted_error"] + (clipped / least if least > 0 else 1.0),
    }
    return _with(replace(estimate, diagnostics={**estimate.diagnostics, **facts}), error, words)


def _count_beyond(run: Run, forms: Matrix, radius: float) -> RowsBeyond:
    """Return the query for the number of rows beyond a ball."""
    # In units of the radius, edges are 1, sqrt 2 and 2. Edge k has bins k + 1 and later beyond it.
    grid = LogNormGrid(lowest=0, highest=1, halves=1)
    first = int(np.searchsorted(grid.edges(), 1.0, side="right"))
    mapped = run.map(forms)
    lattice_map = replace(mapped, scale=mapped.scale * radius)
    rho = run.part(min(run.look_of(c.COUNT_SHARE), run.left / 8))
    return RowsBeyond(lattice_map, grid, first, rho, "rows beyond the region")


def _with(estimate: Estimate, error: float, words: str) -> Estimate:
    facts = {"guaranteed_error": error, "guarantee_fails": _FAILURE, "guarantee": words}
    return replace(estimate, diagnostics={**estimate.diagnostics, **facts})


def _promise(run: Run, white: White, region: Region, told: Told, estimate: Estimate) -> tuple[float, str]:
    """Return g and what it rests on, or infinity and why."""
    largest = told.largest_beta(run.n)
    if told.beta is not None and told.beta > largest:
        return (
            math.inf,
            f"None: beta={told.beta:g} is larger than {largest:.3g}, so the tail may carry too much.",
        )
    if run.contamination:
        return math.inf, "None: it is about all rows, and rows beyond the region were dropped."
    facts = estimate.diagnostics
    # Of the noise before it was shrunk. It is that of the region with room for the constant: back in white
    # coordinates, which are shorter, there is no more of it.
    sigma = math.inf if estimate.noise is None else estimate.noise.sigma
    # The noise itself, in all but `_FAILURE` of releases; shrinking moves no direction by more than its norm.
    noise = sigma * (math.sqrt(2 * run.d) + math.sqrt(2 * math.log(2 / _FAILURE)))
    off = noise + (noise_norm(run.d, sigma) if facts["shrinkage"] else 0.0)
    values = np.linalg.eigvalsh(white.rows @ estimate.second_moment @ white.rows.T)
    level = region.radius**2 / (told.m * (1 + told.alpha))
    least = float(values[0]) - off
    if least <= 0:
        return math.inf, "None: in some direction there is no more than noise."
    kept = min(lengths_left(_PULL, run.curator)) ** 2
    if float(values[-1]) + off >= kept * (1 - told.alpha) * level:
        return math.inf, "None: the rows are not white enough in the last coordinates to tell."
    error = off / ((1 - told.alpha) * least)
    beta = largest if told.beta is None else told.beta
    return error, (
        f"With probability {1 - _FAILURE:g} the result is at least {max(1 - error, 0):.4g} times the second "
        f"moment without the tail, in every direction, and at most {1 + error:.4g} times that of all rows: "
        f"if the table is ({told.m:g}, {told.alpha:g}, {beta:.3g})-subsamplable."
    )
