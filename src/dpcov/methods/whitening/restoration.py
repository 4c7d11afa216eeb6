"""Giving back what clipping took away, in expectation.

A row beyond the region was shrunk to it. Its histogram tells how much second moment that cost: along
each heavy direction, and evenly in all others. The constant of a row shrinks with it, but it is long because
of its columns, so the constant loses next to nothing. What means lose is measured (``means.py``), and so is
what columns lose that own the rows (``exposed.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Matrix
from dpcov.losses import FAR, LossLaw
from dpcov.methods.whitening.heavy import HeavyDirection
from dpcov.methods.whitening.queries.clipped import NoisyClippedGram
from dpcov.methods.whitening.tail import (
    VAGUE,
    expected_loss,
    fit_tail,
    largest_loss,
    law_of_counts,
    loss_quantile,
    restored_quantile,
)
from dpcov.methods.whitening.wrap import Region, Tail

_CONFIDENCE = 0.95
# Where a 95% interval ends.
_UPPER_END = 0.975
_NO_FOURTH_MOMENT = 0.25
_TINY = float(np.finfo(np.float64).tiny)
# The shape of a gamma law for the share of a direction, at most.
_MOST_EVEN = 8.0
# The sum of two squared normal variables that is exceeded 1 time in 20: counts contradict a law.
_CONTRADICTION = 6.0
# How many times each law of a tail is paired with one of every other tail.
_PAIRINGS = 32


@dataclass(frozen=True)
class Counted:
    """Noisy numbers of the rows beyond the region, near and far, and the standard deviations of their noise.

    The noises of the two are independent.
    """

    near: float
    far: float
    near_spread: float
    far_spread: float

    @classmethod
    def of(cls, answer: NoisyClippedGram) -> Counted:
        """Take the counts that came with a Gram matrix."""
        return cls(*answer.rows.tolist(), *answer.spreads.tolist())

    @property
    def rows(self) -> float:
        """How many there are in all."""
        return self.near + self.far

    @property
    def spread(self) -> float:
        """Standard deviation of the noise of `rows`."""
        return math.hypot(self.near_spread, self.far_spread)


@dataclass(frozen=True, eq=False)
class Restoration:
    """What to give back, in the coordinates that were clipped.

    Attributes
    ----------
    region : Region
        Where rows were clipped.
    factors : tuple of float
        By what to multiply the second moment, for each tail of the region: the first is that of
        all directions that no other is for.
    constant : float
        The same for the constant.
    units : tuple of float
        Root mean square of a coordinate, for each tail.
    laws : tuple of (LossLaw or None)
        How certain that is; None where no law fits.
    at_most : tuple of float
        The factors that 19 of 20 of each tail's laws stay below; 1 where no law fits.
    far_expected : float
        How many rows the laws of histograms put far beyond the region, in the median; 0 if they contradict
        the counts.
    worst : float
        What clipping may have taken from the second moment in one direction, as a part of what it left: about
        what the laws allow for 39 of 40 times.
    """

    region: Region
    factors: tuple[float, ...]
    constant: float
    units: tuple[float, ...]
    laws: tuple[LossLaw | None, ...]
    at_most: tuple[float, ...]
    far_expected: float = 0.0
    worst: float = 0.0

    @property
    def factor(self) -> float:
        """What most directions are multiplied by."""
        return self.factors[0] if self.factors else 1.0

    def beyond_most(self, d: int) -> Matrix:
        """Return what to add to ``sqrt(factor) I`` for the map that restores, in the frame's coordinates."""
        extra = np.zeros((d, d))
        for tail, factor in zip(self.region.tails, self.factors, strict=True):
            if tail.direction is not None:
                vector = tail.direction.vector
                extra += (math.sqrt(factor) - math.sqrt(self.factor)) * np.outer(vector, vector)
        return extra

    def located_laws(self, back: Matrix, n_columns: int) -> tuple[LossLaw, ...]:
        """Return the laws, their directions in the table's columns.

        Parameters
        ----------
        back : ndarray, shape (d, d)
            The map from clipped coordinates to the table's.
        n_columns : int
            Columns of the table but the constant.
        """
        stretches = iter(self.region.stretches)
        located = []
        for tail, unit, law in zip(self.region.tails, self.units, self.laws, strict=True):
            along, tilt = None, 0.0
            if tail.direction is not None:
                along = (unit / next(stretches) * back @ tail.direction.vector)[:n_columns]
                tilt = tail.direction.tilt
            if law is not None:
                located.append(replace(law, along=along, tilt=tilt))
        return tuple(located)


def restore_shrunk(
    region: Region,
    n_rows: int,
    white: Matrix,
    counted: Counted,
    *,
    has_constant: bool,
    measured: bool = False,
) -> Restoration:
    """Return what shrinking rows to the region is expected to have taken.

    Parameters
    ----------
    region : Region
        Where.
    n_rows : int
        Rows of the table.
    white : ndarray, shape (d, d)
        The noisy second moment of the shrunk rows, in the frame's coordinates: about white.
    counted : Counted
        How many rows lie beyond.
    has_constant : bool
        Whether the constant is among the columns.
    measured : bool
        Whether the means are given back what they lost.
    """
    units = _units(region, white)
    fitted = [
        fit_tail(tail.histogram, tail.radius) if unit > 0 else None
        for tail, unit in zip(region.tails, units, strict=True)
    ]
    shared = [
        None
        if law is None
        else replace(law, radius=tail.radius / unit, evenness=_evenness(region), measured=measured)
        for law, tail, unit in zip(fitted, region.tails, units, strict=True)
    ]
    agreeing = _that_agree_with(counted, shared)
    likely = _by_counts(counted, region, units, measured=measured) if agreeing is None else agreeing
    laws = tuple(
        None
        if law is None
        else _with_expectation(law, tail, n_rows, has_constant=has_constant, guessed=agreeing is None)
        for law, tail in zip(likely, region.tails, strict=True)
    )
    factors = tuple(
        tail.histogram.correction(tail.radius) if law is None else 1 + law.restored
        for tail, law in zip(region.tails, laws, strict=True)
    )
    constant = 1.0 if not laws or laws[0] is None else 1 + laws[0].restored_constant
    at_most = tuple(
        1.0
        if law is None
        else 1 + loss_quantile(law, n_rows, _CONFIDENCE, has_constant=has_constant and tail.direction is None)
        for tail, law in zip(region.tails, laws, strict=True)
    )
    expected = _far_expected(shared if agreeing else ())
    losses = [_worst(law, n_rows, region.agreement.about) for law in laws if law is not None]
    return Restoration(region, factors, constant, units, laws, at_most, expected, max(losses, default=0.0))


def _worst(law: LossLaw, n_rows: int, agreeing: float) -> float:
    """Return what clipping may have taken in one direction (`Restoration.worst`).

    Of a law without a fourth moment the sum of squares has no variance: its upper end counts. That of others
    is about twice the median.
    """
    rows = max(float(law.rows.sum()), _TINY)
    heavy = float(law.rows @ law.shape) / rows >= _NO_FOURTH_MOMENT
    lost = largest_loss(law, n_rows, _UPPER_END) if heavy else 2 * largest_loss(law, n_rows, 0.5)
    return agreeing * lost


def _far_expected(laws: Sequence[LossLaw | None]) -> float:
    return sum(float(np.median(law.rows * law.beyond(FAR))) for law in laws if law is not None)


def restore_dropped(region: Region, rows_beyond: float) -> Restoration:
    """Return what dropping rows beyond a ball is expected to have taken from the bulk.

    `rows_beyond` is how many rows the radius was chosen by.
    """
    factors = tuple(tail.histogram.dropping_correction(tail.radius, rows_beyond) for tail in region.tails)
    nothing = (None,) * len(factors)
    constant = factors[0] if factors else 1.0
    return Restoration(region, factors, constant, (0.0,) * len(factors), nothing, (1.0,) * len(factors))


def restore_columns(matrix: Matrix, laws: Sequence[LossLaw]) -> Matrix:
    """Return a second moment with what columns have lost added along the directions of their rows.

    Parameters
    ----------
    matrix : ndarray, shape (d, d)
        Its last column belongs to the constant.
    laws : sequence of LossLaw
        What is given back of each direction.
    """
    for law in laws:
        if law.along is not None:
            along = np.append(law.along, 0.0)
            matrix = matrix + law.restored * np.outer(along, along)
    return matrix


def raise_beside_constant(matrix: Matrix, raising: Matrix, constant: float) -> Matrix:
    """Return T so that ``T matrix T^T`` has its covariance raised by a map and its constant by a factor.

    Parameters
    ----------
    matrix : ndarray, shape (d, d)
        A second moment; its last column belongs to the constant.
    raising : ndarray, shape (d, d)
        What to apply to centred rows; it leaves their constant at 0.
    constant : float
        A factor.
    """
    share = matrix[-1, -1]
    mean = np.append(matrix[:-1, -1] / share if share > 0 else np.zeros(len(matrix) - 1), 1.0)
    result = raising.copy()
    result[:, -1] += math.sqrt(constant) * mean - raising @ mean
    return result


def _units(region: Region, white: Matrix) -> tuple[float, ...]:
    """Return the root mean square of a coordinate for each tail; a heavy direction has its own."""

    def along(direction: HeavyDirection) -> float:
        return float(direction.vector @ white @ direction.vector)

    rest = float(np.trace(white)) - sum(map(along, region.heavy))
    squares = (rest / tail.rank if tail.direction is None else along(tail.direction) for tail in region.tails)
    return tuple(math.sqrt(max(square, 0.0)) for square in squares)


def _that_agree_with(counted: Counted, laws: Sequence[LossLaw | None]) -> Sequence[LossLaw] | None:
    """Return the laws in proportion to how likely they make the counts; None if they all contradict them.

    Tails are fitted to rows inside the region for the most part. What lies beyond may be another matter, and
    then its numbers tell.
    """
    fitted = [law for law in laws if law is not None]
    if len(fitted) < len(laws):
        return None
    if not fitted:
        return []
    # Laws come in the order of a grid, and those of one tail tell nothing of another's: sequences of
    # irrational steps pair them as if at random.
    steps = np.exp(np.arange(1, len(fitted) + 1))
    size = len(fitted[0].rows)
    places = (np.outer(steps, np.arange(_PAIRINGS * size) + 0.5) % 1.0 * size).astype(np.intp)
    pairs = list(zip(fitted, places, strict=True))
    total = np.sum([law.rows[place] for law, place in pairs], axis=0)
    far = np.sum([(law.rows * law.beyond(FAR))[place] for law, place in pairs], axis=0)
    # Rows beyond vary as Poisson counts do, on top of the noise.
    near = total - far
    near_off = (counted.near - near) / np.sqrt(counted.near_spread**2 + near)
    far_off = (counted.far - far) / np.sqrt(counted.far_spread**2 + far)
    squares = near_off**2 + far_off**2
    if squares.min() > _CONTRADICTION:
        return None
    weights = np.exp(-squares / 2)
    wanted = (np.arange(size) + 0.5) / size
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), wanted).clip(0, len(total) - 1)
    return [
        replace(law, rows=law.rows[kept], shape=law.shape[kept], spread=law.spread[kept])
        for law, kept in ((law, place[chosen]) for law, place in pairs)
    ]


def _by_counts(
    counted: Counted, region: Region, units: Sequence[float], *, measured: bool
) -> Sequence[LossLaw | None]:
    """Return laws of the rows beyond that follow from their numbers alone, where no histogram tells more.

    Each law has them all in one place: along a heavy direction as often as far rows are there, or elsewhere.
    """
    shares = [0.0 if tail.direction is None else tail.direction.share for tail in region.tails]
    shares[0] = max(1 - sum(shares), 0.0)
    guessed = law_of_counts(counted.near, counted.far, (counted.near_spread, counted.far_spread), FAR)
    ends = np.cumsum(shares) / sum(shares)
    drawn = np.searchsorted(ends, np.arange(1, len(guessed.rows) + 1) * math.pi % 1.0)
    return [
        replace(
            guessed,
            radius=tail.radius / unit,
            rows=np.where(drawn == place, guessed.rows, 0.0),
            evenness=_evenness(region),
            measured=measured,
        )
        if unit > 0
        else None
        for place, (tail, unit) in enumerate(zip(region.tails, units, strict=True))
    ]


def _evenness(region: Region) -> float:
    """Return how evenly the loss is spread over directions that are not heavy (`LossLaw.evenness`).

    The direction with most of it has so many times the mean as the rows agree. If as few directions as that
    takes had all of it, the variance of a share would be ``most - 1``; if all were alike, 0. It is taken
    halfway. All rows may lie along one direction where nothing is known of their agreement, as beside heavy
    directions: others may then have rows of their own below the noise.
    """
    most = region.agreement.about * region.tails[0].rank
    return min(2 / max(most - 1, 1e-3), _MOST_EVEN)


def _with_expectation(law: LossLaw, tail: Tail, n_rows: int, *, has_constant: bool, guessed: bool) -> LossLaw:
    if guessed or tail.direction is not None:
        # A guess makes intervals wider, and gives nothing back: raising single directions rounds, and where
        # others are amplified a millionfold, rounding would look like variance. Along a heavy direction rows
        # were clipped further out than its histogram tells, where little was lost and how much is vague.
        law = expected_loss(
            law, n_rows, tail.rank, VAGUE, has_constant=has_constant and tail.direction is None
        )
        return replace(law, restored=0.0, restored_constant=0.0)
    return expected_loss(law, n_rows, tail.rank, restored_quantile(tail.histogram), has_constant=has_constant)
