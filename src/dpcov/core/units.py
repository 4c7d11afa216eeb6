"""Units: rows that belong together, such as all rows of one person, and are protected together.

A unit is to a mechanism what a row is otherwise: its rows share one factor, so that their joint length
``sqrt(sum |y_j|^2)`` is bounded. All that is computed here is a function of the unit's rows as a multiset,
bit for bit: sums of integers, maxima, single correctly rounded operations. The proof note is ``units.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core.errors import ArgumentError

Value = TypeVar("Value", bound=np.generic)

MOST_ROWS = 1 << 20
"""A unit with more rows counts as one without rows."""

_MOST_ENTRIES = 1 << 25
_HALF = 26
_LEAST_EXPONENT = -(1 << 30)
# Far too small to be seen beside the largest row, and far above what some machines flush to zero.
_SMALLEST_SHARE = -200


def longest_unit(n_columns: int) -> int:
    """Return how many rows a unit may have in a table of so many columns, for it to fit into memory."""
    return max(1, min(MOST_ROWS, _MOST_ENTRIES // n_columns))


@dataclass(frozen=True, eq=False)
class Units:
    """Which rows of a block make a unit: each has those from the end of the one before up to its own end.

    Attributes
    ----------
    ends : ndarray of int64, shape (units,)
        Ascending, the last one the number of rows. A unit may have no rows.
    even : bool
        Whether every unit counts the same: its k rows are multiplied by ``1 / sqrt(k)``. Otherwise every row
        counts the same.
    """

    ends: NDArray[np.int64] = field(repr=False)
    even: bool = False

    def __post_init__(self) -> None:
        if len(self.ends) == 0 or (self.counts < 0).any():
            raise ArgumentError("units must have ends in ascending order, and be at least one.")

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows each unit has."""
        return np.diff(self.ends, prepend=0)

    @property
    def too_long(self) -> NDArray[np.bool_]:
        """Which units have so many rows that they count as none."""
        return self.counts > MOST_ROWS

    @property
    def weights(self) -> NDArray[np.float64]:
        """What the rows of each unit are multiplied by before they are clipped."""
        return 1 / np.sqrt(np.maximum(self.counts, 1)) if self.even else np.ones(len(self.ends))

    def spread(self, values: NDArray[Value]) -> NDArray[Value]:
        """Return for every row the value of its unit."""
        return np.repeat(values, self.counts)

    def add_up(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the rows of each unit, exact if it fits into 64 bits."""
        # The running sum may wrap around: differences are right all the same.
        running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(integers)])
        return np.diff(running[self.ends], prepend=0)

    def joint(
        self, squares: NDArray[np.float64], shift: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return s and e for each unit: its joint squared length is s 4^e.

        Parameters
        ----------
        squares : ndarray of float64, shape (rows,)
            Integers of at most 2^52.
        shift : ndarray of int64, shape (rows,)
            A row has the squared length ``squares 4^shift``.
        """
        own = np.where(squares > 0, shift, _LEAST_EXPONENT)
        filled = self.counts > 0
        exponent = np.full(len(self.ends), _LEAST_EXPONENT)
        if filled.any():
            exponent[filled] = np.maximum.reduceat(own, (self.ends - self.counts)[filled])
        exponent[exponent == _LEAST_EXPONENT] = 0
        # Rounded up: a unit is never taken for shorter than it is.
        whole = np.ceil(np.ldexp(squares, 2 * self._below(shift, exponent))).astype(np.int64)
        high, low = self.add_up(whole >> _HALF), self.add_up(whole & ((1 << _HALF) - 1))
        joint = high.astype(np.float64) * float(1 << _HALF) + low.astype(np.float64)
        return np.where(self.too_long, 0.0, joint), exponent

    def row_factors(
        self, factor: NDArray[np.float64], shift: NDArray[np.int64], exponent: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return for every row the factor of its unit, for rows in units of their own exponents."""
        factors: NDArray[np.float64] = np.ldexp(self.spread(factor), self._below(shift, exponent))
        return factors

    def _below(self, shift: NDArray[np.int64], exponent: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return how far the exponent of each row is below that of its unit, for zero rows 0 or below."""
        below: NDArray[np.int32] = np.clip(shift - self.spread(exponent), _SMALLEST_SHARE, 0).astype(np.int32)
        return below

    def blocks(self, longest: int) -> Iterator[tuple[int, int, Units]]:
        """Cut into runs of whole units with at most `longest` rows each, and one unit at least.

        Yields
        ------
        first_row, first_unit : int
            Where the run begins.
        units : Units
            The run itself, numbered from 0.
        """
        first, start = 0, 0
        while first < len(self.ends):
            last = int(np.searchsorted(self.ends, start + longest, side="right"))
            last = min(max(last, first + 1), first + longest)
            yield start, first, Units(self.ends[first:last] - start, self.even)
            first, start = last, int(self.ends[last - 1])

    @staticmethod
    def refuse(units: Units | None) -> None:
        """Raise an error in a worker of single rows, whose query `Curator.ask` refuses before."""
        if units is not None:
            raise ArgumentError("this task takes single rows only, not units of several.")

    def choose(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], Units]:
        """Return the rows of some units, and these units, numbered from 0."""
        counts = self.counts[chosen]
        ends = np.cumsum(counts)
        first_rows = self.ends[chosen] - counts
        rows = np.arange(int(ends[-1])) + np.repeat(first_rows - (ends - counts), counts)
        return rows, Units(ends, self.even)
