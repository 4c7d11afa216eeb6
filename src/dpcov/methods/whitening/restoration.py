"""Giving back what clipping took away, in expectation.

A row beyond the region was shrunk to it. Its histogram tells how much second moment that cost: along
each heavy direction, and evenly in all others. The constant of a row shrinks with it, but it is long because
of its columns, so the constant loses next to nothing, and the mean stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpcov.laws import LossLaw
from dpcov.methods.whitening.heavy import HeavyDirection, Region, Tail
from dpcov.methods.whitening.tail import VAGUE, expected_loss, fit_tail, restored_quantile

Matrix = NDArray[np.float64]


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
    """

    region: Region
    factors: tuple[float, ...]
    constant: float
    units: tuple[float, ...]
    laws: tuple[LossLaw | None, ...]

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


def restore_shrunk(region: Region, n_rows: int, white: Matrix, *, has_constant: bool) -> Restoration:
    """Return what shrinking rows to the region is expected to have taken.

    Parameters
    ----------
    region : Region
        Where.
    n_rows : int
        Rows of the table.
    white : ndarray, shape (d, d)
        The noisy second moment of the shrunk rows, in the frame's coordinates: about white.
    has_constant : bool
        Whether the constant is among the columns.
    """
    units = _units(region, white)
    laws = tuple(
        _law(tail, n_rows, unit, has_constant=has_constant)
        for tail, unit in zip(region.tails, units, strict=True)
    )
    factors = tuple(
        tail.histogram.correction(tail.radius) if law is None else 1 + law.restored
        for tail, law in zip(region.tails, laws, strict=True)
    )
    constant = 1.0 if not laws or laws[0] is None else 1 + laws[0].restored_constant
    return Restoration(region, factors, constant, units, laws)


def restore_dropped(region: Region, rows_beyond: float) -> Restoration:
    """Return what dropping rows beyond a ball is expected to have taken from the bulk.

    `rows_beyond` is how many rows the radius was chosen by.
    """
    factors = tuple(tail.histogram.dropping_correction(tail.radius, rows_beyond) for tail in region.tails)
    nothing = (None,) * len(factors)
    return Restoration(region, factors, factors[0] if factors else 1.0, (0.0,) * len(factors), nothing)


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


def _law(tail: Tail, n_rows: int, unit: float, *, has_constant: bool) -> LossLaw | None:
    law = fit_tail(tail.histogram, tail.radius) if unit > 0 else None
    if law is None:
        return None
    law = replace(law, radius=tail.radius / unit)
    if tail.direction is not None:
        # It was clipped further out than its histogram tells: how much was lost there is vague.
        return expected_loss(law, n_rows, tail.rank, VAGUE, has_constant=False)
    return expected_loss(law, n_rows, tail.rank, restored_quantile(tail.histogram), has_constant=has_constant)
