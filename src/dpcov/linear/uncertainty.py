"""How far an answer may be from the one that the raw rows give.

The released matrix is ``S~ = S - D + E``, all of it relative to known laws:

- E, the privacy noise, is Gaussian with a law that is public;
- D, what shrinking long rows took away beyond what the method has restored, is a sum over few rows. How
  many and how long follows from private histograms (`LossLaw`): of lengths along directions in which many of
  them agree, and of the norms of the others, whose directions are taken to be spread evenly.

An answer f(S) with gradient G moves by ``<G, E - D>``. A `Response` holds the few numbers about G that its
law depends on, an `ErrorLaw` turns them into standard errors and intervals. ``docs/release.md`` derives both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpcov.arrays import Array
from dpcov.checks import share
from dpcov.laws import LossLaw, kept_square, lost_to_means

_DRAWS_A_LAW = 4
_SEED = 0
_BISECTIONS = 36
_CHUNK = 4096
_ANGLES = 257
_LEVEL = 0.95
# Where the law of what lies beyond was in doubt (7 of `real_tables.py`, seeds 6000 to 6099 of `world.py`),
# clipping moved 1% of the means below this part by more than half of their half interval, and 5 to 14% of
# those above.
_COUNTS_BESIDE = 0.5
ONE_SIGMA = 0.6826894921370859
_TINY = float(np.finfo(np.float64).tiny)

Index = NDArray[Any] | slice | tuple[NDArray[Any] | slice | int, ...]
"""Which of some answers: as numpy takes it."""


@dataclass(frozen=True, eq=False)
class Response:
    """How answers respond to a change of the second moment: sizes of their gradients.

    With G the gradient, Q is ``F^T G F`` for a factor ``F F^T`` of the second moment: G for white rows. Its
    parts belong to the table's own directions and to the constant. Arrays have the shape of the answer.

    Attributes
    ----------
    noise : ndarray
        ``|B^T G B|^2``, with B the map of the noise law.
    own : ndarray
        ``|Q|^2`` among the table's own directions.
    cross : ndarray
        ``|q|^2``, between them and the constant.
    trace : ndarray
        The trace of Q among the table's own directions.
    constant : ndarray
        The entry of Q that belongs to the constant.
    along : ndarray, shape (..., number of heavy directions), optional
        ``v^T Q v`` for each direction v in which many long rows agree; None if there is none.
    beside : ndarray, shape (..., number of heavy directions), optional
        ``|Q v - (v^T Q v) v|`` among the table's own directions.
    across : ndarray, shape (..., number of heavy directions), optional
        ``q^T v``; None if it is zero.
    """

    noise: Array
    own: Array
    cross: Array
    trace: Array
    constant: Array
    along: Array | None = None
    beside: Array | None = None
    across: Array | None = None

    def select(self, index: Index) -> Self:
        """Return the responses of some of the answers."""
        return self._each(lambda part: part[index])

    def flat(self) -> Self:
        """Return the responses with a single axis for the answers."""
        return self._each(lambda part: part.reshape(self.noise.size, *part.shape[self.noise.ndim :]))

    def times(self, factor: Array | float) -> Self:
        """Return the responses of the answers times a factor, one for all or one for each."""
        sizes = np.asarray(factor, dtype=np.float64)
        squared = {"noise", "own", "cross"}
        heavy = {"along", "beside", "across"}
        scaled = {}
        for name, part in self.parts().items():
            scale = np.square(sizes) if name in squared else sizes
            scaled[name] = part * (scale[..., None] if name in heavy and sizes.ndim else scale)
        return type(self)(**scaled)

    def parts(self) -> dict[str, Array]:
        """Return all arrays that there are, by name."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: part for name, part in given.items() if part is not None}

    def _each(self, change: Callable[[Array], Array]) -> Self:
        return type(self)(**{name: change(part) for name, part in self.parts().items()})


class ErrorLaw:
    """The law of the error of answers, given their responses.

    Parameters
    ----------
    sigma : float
        Of the noise law; NaN if there is none.
    complete_rows : float
        How many complete rows there are, for sampling error.
    losses : LossDraws, optional
        Draws of what clipping took away.
    perhaps_unmoved : bool, default False
        Whether clipping may have moved nothing, so that intervals hold what noise alone allows as well.
    """

    def __init__(
        self,
        sigma: float,
        complete_rows: float,
        losses: LossDraws | None,
        *,
        perhaps_unmoved: bool = False,
    ) -> None:
        self._sigma = sigma
        self._complete_rows = complete_rows
        self._losses = losses
        self._perhaps_unmoved = perhaps_unmoved

    @property
    def normal(self) -> bool:
        """Whether errors are normal: nothing was lost to clipping as far as is known."""
        return self._losses is None

    def after_fitting(self, coefficients: int) -> ErrorLaw:
        """Return the law for so many coefficients of one regression: each takes a degree of freedom."""
        return self._with(max(self._complete_rows - coefficients, 1.0), self._losses)

    def without_sampling(self) -> ErrorLaw:
        """Return the law for answers that bring their own sampling error."""
        return self._with(math.inf, self._losses)

    def perhaps_unmoved(self) -> ErrorLaw:
        """Return the law for answers that clipping may have left as they are: rows may lie on one line."""
        return ErrorLaw(self._sigma, self._complete_rows, self._losses, perhaps_unmoved=True)

    def _with(self, complete_rows: float, losses: LossDraws | None) -> ErrorLaw:
        return ErrorLaw(self._sigma, complete_rows, losses, perhaps_unmoved=self._perhaps_unmoved)

    def standard_error(self, response: Response, *, sampling: bool) -> Array:
        """Return half the width of the central 68.3% of the error, which is its sd where it is normal."""
        if self._losses is None:
            return self._normal_deviation(response, sampling=sampling)
        lower, upper = self.interval(np.zeros_like(response.noise), response, ONE_SIGMA, sampling=sampling)
        width = (upper - lower) / 2
        # What is certain has an interval of a few of the smallest numbers.
        return np.asarray(np.where(width < _TINY * 100, 0.0, width))

    def interval(
        self, values: Array, response: Response, level: float, *, sampling: bool
    ) -> tuple[Array, Array]:
        """Return bounds that hold the answer of the raw rows with probability `level`.

        With `sampling`, the answer of the population that the rows are a sample of.
        """
        probabilities = _ends(level)
        deviation = self._normal_deviation(response, sampling=sampling)
        if self._losses is None:
            width = deviation * ndtri(probabilities[1])
            return values - width, values + width
        bounds = np.empty((2, values.size))
        flat, deviations = response.flat(), deviation.ravel()
        rest = np.arange(values.size)
        plain = (flat.trace == 0) & (flat.constant == 0) & (flat.cross == 0)
        if plain.sum() > _ANGLES:
            bounds[:, plain] = self._losses.plain_quantiles(
                flat.select(plain), deviations[plain], probabilities
            )
            rest = np.flatnonzero(~plain)
        for first in range(0, rest.size, _CHUNK):
            part = rest[first : first + _CHUNK]
            shifts = self._losses.missing(flat.select(part))
            for bound, probability in zip(bounds, probabilities, strict=True):
                bound[part] = _mixture_quantile(shifts, deviations[part], probability)
        if self._perhaps_unmoved:
            width = deviations * ndtri(probabilities[1])
            bounds = np.array([np.minimum(bounds[0], -width), np.maximum(bounds[1], width)])
        return values + bounds[0].reshape(values.shape), values + bounds[1].reshape(values.shape)

    def p_values(self, values: Array, response: Response, *, sampling: bool) -> Array:
        """Return how likely errors are that reach as far as from zero to an answer, on either side.

        `interval` leaves zero out where this is below one minus its level. NaN where there is no law.
        """
        deviation = self._normal_deviation(response, sampling=sampling).ravel()
        below = np.empty(values.size)
        flat, points = response.flat(), -values.ravel()
        for first in range(0, values.size, _CHUNK):
            part = slice(first, first + _CHUNK)
            shifts = np.zeros((len(points[part]), 1))
            if self._losses is not None:
                shifts = self._losses.missing(flat.select(part))
            below[part] = _mixture_below(points[part], shifts, deviation[part])
        likely = 2 * np.minimum(below, 1 - below)
        if self._perhaps_unmoved:
            unmoved = _mixture_below(points, np.zeros((len(points), 1)), deviation)
            likely = np.maximum(likely, 2 * np.minimum(unmoved, 1 - unmoved))
        return np.asarray(likely).reshape(values.shape)

    def ruled_by_clipping(self, response: Response, *, sampling: bool) -> NDArray[np.bool_]:
        """Return for which answers clipping counts beside noise: its 95% are half as far apart or further.

        All, if nothing is known of what it took. Others have about the interval that noise alone gives.
        """
        deviation = self._normal_deviation(response, sampling=sampling)
        if self._losses is None:
            return np.ones(deviation.shape, dtype=np.bool_)
        flat, apart = response.flat(), np.empty(deviation.size)
        probabilities = _ends(_LEVEL)
        for first in range(0, apart.size, _CHUNK):
            part = slice(first, first + _CHUNK)
            ends = np.quantile(self._losses.missing(flat.select(part)), probabilities, axis=1)
            apart[part] = ends[1] - ends[0]
        of_noise = 2 * ndtri(probabilities[1]) * deviation
        # What has no law is not a number.
        return np.asarray(~(apart.reshape(deviation.shape) <= _COUNTS_BESIDE * of_noise))

    def normal_covariance(self, noise: Array, own: Array, cross: Array, *, sampling: bool) -> Array:
        """Return the covariance of errors without what clipping took, from products of responses."""
        covariance = self._sigma**2 * noise
        if sampling:
            covariance = covariance + (2 * own + 4 * cross) / self._complete_rows
        return np.asarray(covariance)

    def _normal_deviation(self, response: Response, *, sampling: bool) -> Array:
        return np.sqrt(
            self.normal_covariance(response.noise, response.own, response.cross, sampling=sampling)
        )


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
            own = own + response.along @ self._along + response.beside @ self._beside
        if response.across is not None:
            own = own + response.across @ self._across
        return np.asarray(
            own
            + response.constant[:, None] * self._constant
            + 2 * np.sqrt(response.cross)[:, None] * self._cross
        )

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
        angles = np.linspace(0.0, math.pi / 2, _ANGLES)
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
                centre + size * PchipInterpolator(angles, _mixture_quantile(shifts, np.cos(angles), p))(angle)
                for p in probabilities
            ]
        )


def _ends(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of a central interval."""
    inside = share(level, "level")
    return (1 - inside) / 2, (1 + inside) / 2


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


def _mixture_quantile(shifts: Array, deviations: Array, probability: float) -> Array:
    """Quantiles of equal mixtures of normal laws around each row of shifts, by bisection."""
    spread = np.where(deviations > 0, deviations, _TINY)
    low, high = shifts.min(axis=1) - 9 * spread, shifts.max(axis=1) + 9 * spread
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = _mixture_below(middle, shifts, deviations) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def _mixture_below(points: Array, shifts: Array, deviations: Array) -> Array:
    """Return the probability that each mixture gives to what lies below its point."""
    spread = np.where(deviations > 0, deviations, np.where(np.isnan(deviations), math.nan, _TINY))
    # Where there is no noise at all, a shift is infinitely many deviations away.
    with np.errstate(over="ignore"):
        return np.asarray(ndtr((points[:, None] - shifts) / spread[:, None]).mean(axis=1))
