"""Draws of what clipping took from the table, and how far each moves an answer.

Rows beyond the region are few, so that what they took is no normal law. It is simulated, with a fixed seed:
the same release always gives the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpcov.arrays import Array
from dpcov.linear.responses import Response
from dpcov.losses import LossLaw, kept_square, lost_to_means

ANGLES = 257
"""For so many ratios of clipping to noise `LossDraws.plain_quantiles` finds quantiles."""

_DRAWS_A_LAW = 4
_SEED = 0
_BISECTIONS = 36
_TINY = float(np.finfo(np.float64).tiny)


class LossDraws:
    """Draws of what clipping took from the table, beyond what the method has restored.

    A row beyond the radius, white and with direction u, took ``w |z|^2 u^T Q u`` from an answer, where w is
    the share of its square that was cut. Along a heavy direction v that is ``w |z|^2 v^T Q v``, and a tilt
    of v adds what lies beside it. Elsewhere nearly all Q have rank 2 at most, so the first two coordinates
    of u suffice: each draw is a handful of sums over its rows.

    Parameters
    ----------
    laws : sequence of LossLaw
        The likely laws of the rows beyond: for no direction of its own, one for each table.
    n_rows : int
        The public number of rows, which the second moment is a mean over.
    has_constant : bool
        Whether the constant is among the columns.
    """

    def __init__(self, laws: Sequence[LossLaw], n_rows: int, *, has_constant: bool) -> None:
        rng = np.random.default_rng(_SEED)
        draws = _DRAWS_A_LAW * max(len(law.rows) for law in laws)
        self._first, self._second, self._constant, self._cross = np.zeros((4, draws))
        along, beside, across = [], [], []
        for law in laws:
            if law.along is None:
                sums = _even_losses(rng, law, draws, has_constant=has_constant) / n_rows
                if self._first.any():
                    # Of a table of its own: its laws come in the order of a grid, and tell nothing of others.
                    sums = rng.permutation(sums, axis=1)
                self._first = self._first + sums[0] - law.restored
                self._second = self._second + sums[1] - law.restored
                self._constant = self._constant + sums[2] - law.restored_constant
                self._cross = self._cross + sums[3]
            else:
                lost, lopsided = _losses_along(rng, law, draws) / n_rows
                along.append(lost - law.restored)
                beside.append(2 * law.tilt * lost * rng.standard_normal(draws))
                across.append(2 * lopsided)
        # Directions whose losses are those of no other law.
        self._apart = np.array([law.directions > 0 for law in laws if law.along is not None], dtype=np.bool_)
        self._along, self._beside, self._across = (
            np.reshape(rows, (-1, draws)) for rows in (along, beside, across)
        )

    def missing(self, response: Response) -> Array:
        """Return what each answer is too small by, one column a draw."""
        trace, squares = _elsewhere(response, self._apart)
        # The eigenvalues of a Q of rank 2, from its trace and norm.
        gap = np.sqrt(np.maximum(2 * squares - trace**2, 0.0))[:, None]
        own = (trace[:, None] + gap) / 2 * self._first + (trace[:, None] - gap) / 2 * self._second
        if response.along is not None and response.beside is not None:
            own = own + response.beside @ self._beside
            own = own + (response.along @ self._along if response.moved is None else response.moved)
        if response.across is not None and response.moved is None:
            own = own + response.across @ self._across
        return np.asarray(
            own
            + response.constant[:, None] * self._constant
            + 2 * np.sqrt(response.cross)[:, None] * self._cross
        )

    @property
    def located(self) -> tuple[Array, Array]:
        """What was lost of squares and of lengths along each heavy direction, one column a draw."""
        return self._along, self._across / 2

    def plain_quantiles(
        self, response: Response, deviations: Array, probabilities: tuple[float, float]
    ) -> Array:
        """Return quantiles of errors without a trace, as of correlations and directions.

        Up to their size their laws differ in one number only, the ratio of clipping to noise. So quantiles
        are found for some ratios and interpolated. What heavy directions add is taken as normal.
        """
        from scipy.interpolate import PchipInterpolator  # noqa: PLC0415  (takes long, is rarely needed)

        draws = self._first - self._second
        scale = math.sqrt(np.square(draws).mean()) or 1.0
        angles = np.linspace(0.0, math.pi / 2, ANGLES)
        shifts = np.outer(np.sin(angles), draws / scale)
        lost = np.sqrt(_elsewhere(response, self._apart)[1] / 2) * scale
        centre = np.zeros_like(lost)
        if response.along is not None and response.beside is not None:
            centre = response.along @ self._along.mean(axis=1)
            variance = response.along**2 @ self._along.var(axis=1)
            variance += response.beside**2 @ self._beside.var(axis=1)
            deviations = np.sqrt(deviations**2 + variance)
        size, angle = np.hypot(lost, deviations), np.arctan2(lost, deviations)
        return np.array(
            [
                centre + size * PchipInterpolator(angles, mixture_quantile(shifts, np.cos(angles), p))(angle)
                for p in probabilities
            ]
        )


def _even_losses(rng: np.random.Generator, law: LossLaw, draws: int, *, has_constant: bool) -> Array:
    """Return sums over rows in all directions: along two of them, of the constant, and across.

    Across, rows may lean to one side by any part of their length: those of skewed columns do.
    """
    sums = np.zeros((4, draws))
    for draw, count in enumerate(rng.poisson(np.resize(law.rows, draws))):
        norms = law.norms(1 - rng.random(count), draw % len(law.rows))
        cut = 1 - kept_square(norms, measured=law.measured) * norms**-2.0
        cut_of_means = lost_to_means(norms, measured=law.measured) / norms
        squares = np.maximum((law.radius * norms) ** 2 - has_constant, 0.0)
        first, second, other = _directions(rng, count, law.directions)
        lost, lengths = cut * squares, cut_of_means * np.sqrt(squares)
        leaning = rng.random() * rng.standard_normal() / math.sqrt(law.directions)
        across = lengths @ other + leaning * lengths.sum()
        sums[:, draw] = lost @ first**2, lost @ second**2, cut.sum(), across
    if law.directions > 1:
        shares = rng.gamma(law.evenness, 1 / law.evenness, (3, draws))
        sums[[0, 1, 3]] *= shares[0], shares[1], np.sqrt(shares[2])
    return sums


def _losses_along(rng: np.random.Generator, law: LossLaw, draws: int) -> Array:
    """Return sums over rows that lie along one direction: of their squares, and across to the constant.

    They may all lie on one side, whichever: those of skewed columns do.
    """
    sums = np.zeros((2, draws))
    for draw, count in enumerate(rng.poisson(np.resize(law.rows, draws))):
        norms = law.norms(1 - rng.random(count), draw % len(law.rows))
        side = rng.choice([-1.0, 1.0])
        sums[0, draw] = law.radius**2 * np.sum(norms**2 - kept_square(norms, measured=law.measured))
        sums[1, draw] = side * law.radius * np.sum(lost_to_means(norms, measured=law.measured))
    # Laws come in the order of a grid. Shuffled, those of one direction tell nothing of another's.
    return rng.permutation(sums, axis=1)


def _elsewhere(response: Response, apart: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the trace and the squared norm of Q among directions that are not heavy.

    `apart` tells which of the located directions are.
    """
    if response.along is None or response.beside is None:
        return response.trace, response.own
    along, beside = response.along[..., apart], response.beside[..., apart]
    squares = np.square(along) + 2 * np.square(beside)
    return (
        response.trace - along.sum(axis=-1),
        np.maximum(response.own - squares.sum(axis=-1), 0.0),
    )


def _directions(rng: np.random.Generator, count: int, size: int) -> tuple[Array, Array, Array]:
    """Return the first two coordinates of directions in `size` dimensions, and one of another direction."""
    normal = rng.standard_normal((3, count))
    if size == 1:
        return np.ones(count), np.zeros(count), np.sign(normal[2])
    rest = rng.chisquare(size - 2, count) if size > 2 else np.zeros(count)
    length = np.sqrt(normal[0] ** 2 + normal[1] ** 2 + rest)
    return normal[0] / length, normal[1] / length, normal[2] / math.sqrt(size)


def mixture_quantile(shifts: Array, deviations: Array, probability: float) -> Array:
    """Quantiles of equal mixtures of normal laws around each row of shifts, by bisection."""
    spread = np.where(deviations > 0, deviations, _TINY)
    low, high = shifts.min(axis=1) - 9 * spread, shifts.max(axis=1) + 9 * spread
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = mixture_below(middle, shifts, deviations) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def mixture_below(points: Array, shifts: Array, deviations: Array) -> Array:
    """Return the probability that each mixture gives to what lies below its point."""
    spread = np.where(deviations > 0, deviations, np.where(np.isnan(deviations), math.nan, _TINY))
    # Where there is no noise at all, a shift is infinitely many deviations away.
    with np.errstate(over="ignore"):
        return np.asarray(ndtr((points[:, None] - shifts) / spread[:, None]).mean(axis=1))
