"""From rows of float64 to bounded vectors of integers, exactly.

    x -> x - c                  public centres of the columns, if the table has a constant one
    x -> round(x * 2^s)         s from the row's own largest entry; |x|^2 <= 2^54
    y =  L x                    L a public lower triangular integer matrix, |L|_F <= 2^26
    y -> round(y * 2^t)         t from its own largest entry; |y|^2 <= 2^52, a sum without rounding
    z =  round(y * factor)      factor from |y|^2; a row with |z|^2 > B^2 becomes zero

Each step is either a sum of integers below 2^53, exact in any order, or one correctly rounded
operation on single numbers. So z is a function of the row alone, bit for bit, whatever block,
thread, memory order or machine it is computed in. The proof note is ``lattice.md``.

Public rule for hostile rows: a row that holds NaN or an infinity, or that overflows when its
columns are scaled, or whose largest scaled entry is below about 1e-289, is the zero row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpcov.core.compiled_passes import fastest_passes
from dpcov.core.errors import ArgumentError
from dpcov.core.exact_blas import LARGEST_EXACT, check_blas
from dpcov.core.passes import Block, Steps
from dpcov.core.units import Units

ENTRY_NORM_LOG2 = 27
IMAGE_NORM_LOG2 = 26
MAP_NORM_LOG2 = 26
_LARGEST_BOUND = 1 << 20
_COARSE_BOUND = (1 << 12) - 1
# What rounding takes off the radius on the coarse grid is a hundredth at most.
_COARSE_MARGIN = _COARSE_BOUND // 100
_SUM_LIMIT = 1 << 61
LEAST_EXPONENT = -960
GREATEST_COLUMN_EXPONENT = 900


@dataclass(frozen=True)
class Lattice:
    """The public grid that rows are rounded to.

    Attributes
    ----------
    bound : int
        B: every integer vector has a squared norm of at most B^2.
    clip : int
        What the clipping radius becomes on the grid: B less what rounding may add to a norm.
    exact_rows : int
        How many rows a float64 Gram matrix may hold and still be exact.
    """

    bound: int
    clip: int
    exact_rows: int

    @classmethod
    def for_table(cls, n_rows: int, n_columns: int, longest_unit: int = 1) -> Lattice:
        """Choose the grid from the public shape of the table: `n_rows` units of up to so many rows each.

        The finest for which a block of 2^13 rows is exact in float64 and the whole sum in int64.
        """
        bound = min(_LARGEST_BOUND, isqrt(_SUM_LIMIT // n_rows))
        clip = bound - isqrt(n_columns * longest_unit) // 2 - 2
        if clip < bound // 2:
            raise ArgumentError(f"{n_rows} rows of {n_columns} columns are too large for 64-bit sums.")
        return cls(bound, clip, LARGEST_EXACT // (bound * bound))

    def coarse(self) -> Lattice:
        """Return a grid whose integers have 12 bits, or this one if the table has too many columns for it."""
        margin = self.bound - self.clip
        if margin > _COARSE_MARGIN or self.bound <= _COARSE_BOUND:
            return self
        return Lattice(_COARSE_BOUND, _COARSE_BOUND - margin, LARGEST_EXACT // _COARSE_BOUND**2)


@dataclass(frozen=True, eq=False)
class LatticeMap:
    """A public linear map with integer coefficients.

    It stands for the matrix ``coefficients / scale @ diag(2^column_exponents) @ (I - centres e_d^T)``.

    Attributes
    ----------
    coefficients : ndarray of float64, shape (d, d), Fortran order
        Lower triangular integers with a Frobenius norm of at most 2^26.
    scale : float
        How many units of the integer map make one of the matrix.
    column_exponents : ndarray of int64, shape (d,)
        Columns are first multiplied by these powers of two.
    centres : ndarray of float64, shape (d,), optional
        And these are subtracted even before, from a table whose last column is the constant one; its own is
        0, as all are by default. The others are 0 or between 2^-900 and 2^900 in magnitude.
    """

    coefficients: NDArray[np.float64]
    scale: float
    column_exponents: NDArray[np.int64]
    centres: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        coefficients = np.array(self.coefficients, dtype=np.float64, order="F")
        exponents = np.array(self.column_exponents, dtype=np.int64)
        d = len(coefficients)
        if coefficients.shape != (d, d) or exponents.shape != (d,) or d == 0:
            raise ArgumentError("map must be square, with an exponent for each column.")
        if not (np.rint(coefficients) == coefficients).all() or np.triu(coefficients, 1).any():
            raise ArgumentError("map must have integer coefficients below and on its diagonal only.")
        if not _is_within(coefficients, 1 << (2 * MAP_NORM_LOG2)):
            raise ArgumentError("map must have a norm of at most 2^26; it may have too many columns.")
        if np.abs(exponents).max() > GREATEST_COLUMN_EXPONENT or not (0 < self.scale < math.inf):
            raise ArgumentError("map must scale columns by factors between 1e-270 and 1e270.")
        centres = np.array(self.centres if len(self.centres) else np.zeros(d), dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            moderate = (centres == 0) | (np.abs(np.log2(np.abs(centres))) <= GREATEST_COLUMN_EXPONENT)
        if centres.shape != (d,) or centres[-1] or not moderate.all():
            raise ArgumentError("map must have a moderate centre for each column, and 0 for the last.")
        for array in (coefficients, exponents, centres):
            array.setflags(write=False)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "column_exponents", exponents)
        object.__setattr__(self, "centres", centres)

    @property
    def integers(self) -> tuple[bytes, ...]:
        """What decides which integers a row becomes: the same for maps that differ in their scale alone."""
        return tuple(array.tobytes() for array in (self.coefficients, self.column_exponents, self.centres))

    @property
    def n_columns(self) -> int:
        """Number of columns of the table that the map takes."""
        return len(self.coefficients)

    def matrix(self) -> NDArray[np.float64]:
        """Return the matrix that this map stands for."""
        matrix: NDArray[np.float64] = np.ldexp(self.coefficients / self.scale, self.column_exponents)
        matrix[:, -1] -= matrix @ self.centres
        return matrix


def _is_within(coefficients: NDArray[np.float64], limit: int) -> bool:
    """Whether the sum of squares is at most `limit`, in integers: all exactness rests on it."""
    if not np.abs(coefficients).max() <= 1 << MAP_NORM_LOG2:
        return False
    squares = coefficients.astype(np.int64) ** 2
    high, low = int((squares >> 26).sum()), int((squares & ((1 << 26) - 1)).sum())
    return (high << 26) + low <= limit


def times_power(length: float, exponent: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ``length 2^exponent``; where float64 has no such number, about the least or the greatest."""
    mantissa, own = math.frexp(length)
    return mantissa * ((exponent + (own + 1023)).clip(1, 2046) << 52).view(np.float64)


class MappedRows:
    """Workspace that maps one block of rows after another.

    Parameters
    ----------
    lattice_map : LatticeMap
        The public map.
    capacity : int
        Most rows of a block, unless a single unit has more.

    Attributes
    ----------
    values : ndarray of float64, shape (d, rows)
        After `load`: integers, the mapped rows in units of 2^shift / scale each.
    squares : ndarray of float64, shape (rows,)
        Exact squared norms of `values`.
    shift : ndarray of int, shape (rows,)
        Each row's own exponent.
    """

    def __init__(self, lattice_map: LatticeMap, capacity: int) -> None:
        check_blas()
        d = lattice_map.n_columns
        self.lattice_map = lattice_map
        exponents, centres = lattice_map.column_exponents, lattice_map.centres
        steps = Steps(
            lattice_map.coefficients,
            centres if centres.any() else None,
            np.ldexp(1.0, exponents) if exponents.any() else None,
            # Below this, a row is zero: entries that some machines flush to zero (subnormal ones)
            # are then too small to survive the rounding, so that flushing changes nothing.
            float(np.ldexp(1.0, LEAST_EXPONENT + max(0, int(exponents.max())))),
            (ENTRY_NORM_LOG2, IMAGE_NORM_LOG2),
        )
        self._storage = _aligned(d * capacity)
        self._passes = fastest_passes()
        self._map = self._passes.mapper(steps)

    def load(self, block: Block, *, constant: bool) -> None:
        """Map the rows of `block`, with a constant column of ones after its own if asked."""
        rows, d = len(block[0]), self.lattice_map.n_columns
        if len(block) + constant != d:
            raise ValueError("rows and map must have the same columns.")
        if d * rows > len(self._storage):
            # A unit that is longer than a block.
            self._storage = _aligned(d * rows)
        self.values = self._storage[: d * rows].reshape(d, rows)
        self.squares: NDArray[np.float64] = np.empty(rows)
        self.shift = self._map(block, self.values, self.squares)

    def round_to_lattice(
        self, factor: NDArray[np.float64], bound: int, units: Units | None = None
    ) -> NDArray[np.float64]:
        """Multiply every row by its factor, round, and zero what exceeds `bound`: rows, or whole units.

        Returns
        -------
        ndarray of float64, shape (rows,) or (units,)
            The exact squared norms of the integer rows that `values` then holds; of a unit, their sum.
        """
        squares = self._passes.scale_rows(self.values, factor)
        if units is None and squares.max(initial=0.0) <= float(bound * bound):
            return squares
        kept = squares <= float(bound * bound)
        if units is not None:
            sums = units.add_up(np.where(kept, squares, float(bound * bound + 1)).astype(np.int64))
            kept = (sums <= bound * bound) & ~units.too_long
            squares = sums.astype(np.float64)
        outside = np.flatnonzero(~kept)
        if len(outside):
            self.values[:, outside if units is None else np.flatnonzero(units.spread(~kept))] = 0.0
            squares[outside] = 0.0
        return squares


def _aligned(length: int) -> NDArray[np.float64]:
    """Return so many numbers from the beginning of a cache line on."""
    room = np.empty(length + 7)
    first = -(room.ctypes.data // room.itemsize) % 8
    return room[first : first + length]
