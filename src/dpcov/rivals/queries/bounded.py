"""Products of columns that are clipped to public bounds, for regressors that are told these.

The proof note is ``bounded.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Block, RowTask, RowWorker
from dpcov.core.budget import Number
from dpcov.core.exact_blas import check_blas
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries.gram import GramSum
from dpcov.core.query import GaussianQuery, Table, check_variance
from dpcov.core.tasks import block_length
from dpcov.core.units import Units

SLOPE_UNITS = 1 << 20
"""Slopes are given in this part of one."""

_LARGEST_SLOPES = 1 << 40
_LARGEST_BOUND = 1e140


@dataclass(frozen=True, eq=False)
class Bounds:
    """Public bounds of every column of the table, and which of them is the target.

    Values are clipped to them, then brought to ``[-1, 1]``. A row that holds NaN or an infinity is a row of
    zeros, its constant included.

    Attributes
    ----------
    lower, upper : tuple of float
        One for each of the table's own columns.
    target : int
        The place of the column to explain; the others and the constant explain it.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    target: int

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middles between the bounds."""
        return np.asarray(self.lower) / 2 + np.asarray(self.upper) / 2

    @property
    def halves(self) -> NDArray[np.float64]:
        """Half the distances between the bounds."""
        return np.asarray(self.upper) / 2 - np.asarray(self.lower) / 2

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` if they do not fit the table."""
        own = table.n_columns - 1
        if not table.constant:
            raise ArgumentError("the table has no constant column, which regressors told bounds need.")
        if not len(self.lower) == len(self.upper) == own or not 0 <= self.target < own:
            raise ArgumentError(f"bounds must have a lower and an upper end for each of {own} columns.")
        sizes = np.abs([*self.lower, *self.upper])
        if not (sizes <= _LARGEST_BOUND).all() or not (self.halves > 1 / _LARGEST_BOUND).all():
            raise ArgumentError("bounds must be finite, and every lower end below its upper end.")


def grid_size(table: Table) -> int:
    """Return what a bound becomes on the grid: Q, with ``d Q^2 <= B^2`` for d columns."""
    return math.isqrt(table.lattice.bound**2 // table.n_columns)


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Mean products over the rows with noise, columns brought to ``[-1, 1]`` by their bounds.

    Attributes
    ----------
    values : ndarray of float64
        Of predictors with each other, shape (d, d), or with a residual, shape (d,); the constant is the last.
    sigma : float
        Standard deviation of the noise; of a matrix that on the diagonal, and off it ``sigma / sqrt(2)``.
    """

    values: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True, eq=False)
class BoundedGram(GaussianQuery):
    """Ask for the second moment of predictors within bounds, and the constant: a `NoisyMoments`.

    Parameters
    ----------
    bounds : Bounds
        Of all columns.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: integer rows have squared norms of at most ``d
    Q^2``, and the Gram matrix gets the noise of `dpcov.core.Gram` for that length (``bounded.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, SeededBits, resolve_budget
    >>> from dpcov.rivals.queries import BoundedGram, Bounds
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[10.0, 0.0], [30.0, 1.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded, constant=True)
    >>> told = Bounds((0.0, 0.0), (20.0, 1.0), target=1)
    >>> answer = curator.ask(BoundedGram(told, rho=1, purpose="predictors"))
    >>> np.allclose(answer.values, [[0.5, 0.5], [0.5, 1.0]], atol=0.02)  # 10 is the middle, 30 is clipped
    True
    """

    bounds: Bounds
    rho: Number
    purpose: str

    def variance(self, table: Table) -> int:
        """Return s2, an even integer of at least ``(d Q^2)^2 / rho``."""
        square = table.n_columns - 1
        square *= grid_size(table) ** 2
        return 2 * math.ceil(Fraction(square**2, 2) / self.cost.rho)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for bounds that do not fit, or noise that does not."""
        self.bounds.check(table)
        check_variance(self.variance(table), self.cost, "one Gram matrix")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix of predictors and constant."""
        del bits
        return _GramTask(self.bounds, grid_size(table))

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyMoments:
        """Add noise to the entries on and above the diagonal, and mirror them."""
        variance, d = self.variance(table), len(exact)
        noise = np.zeros((d, d), dtype=np.int64)
        noise[np.triu_indices(d, 1)] = rounded_gaussian(bits, variance // 2, d * (d - 1) // 2)
        noise += noise.T
        noise[np.diag_indices(d)] = rounded_gaussian(bits, variance, d)
        unit = 1 / (grid_size(table) ** 2 * table.n_rows)
        return NoisyMoments((exact + noise).astype(np.float64) * unit, math.sqrt(variance) * unit)


@dataclass(frozen=True, eq=False)
class BoundedProducts(GaussianQuery):
    """Ask for the mean of predictors times the clipped residual of a public fit: a `NoisyMoments`.

    Parameters
    ----------
    bounds : Bounds
        Of all columns.
    slopes : sequence of int
        Of the fit, for columns brought to ``[-1, 1]``, the constant's last, in units of 1 / `SLOPE_UNITS`.
    clip : float
        Residuals are clipped to this share of half the distance of the target's bounds; at most 1.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: an integer row of norm at most ``sqrt(d) Q`` times
    an integer residual of at most t moves the sum by at most ``2 sqrt(d) Q t``, and every entry gets rounded
    Gaussian noise of variance ``2 d Q^2 t^2 / rho`` (``bounded.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, SeededBits, resolve_budget
    >>> from dpcov.rivals.queries import BoundedProducts, Bounds
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[-1.0, 0.2], [1.0, 0.8]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded, constant=True)
    >>> told = Bounds((-1.0, 0.0), (1.0, 1.0), target=1)
    >>> nothing = BoundedProducts(told, [0, 0], clip=1.0, rho=1, purpose="with the target")
    >>> np.allclose(curator.ask(nothing).values, [0.6, 0.0], atol=0.02)  # 0.2 and 0.8 become -0.6 and 0.6
    True
    """

    bounds: Bounds
    slopes: Sequence[int]
    clip: float
    rho: Number
    purpose: str

    def most(self, table: Table) -> int:
        """Return t, what a residual is clipped to on the grid."""
        return max(1, math.floor(self.clip * grid_size(table)))

    def variance(self, table: Table) -> Fraction:
        """Parameter of the noise of each entry."""
        square = table.n_columns - 1
        square *= grid_size(table) ** 2
        return Fraction(2 * square * self.most(table) ** 2) / self.cost.rho

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for bounds or slopes that do not fit, or noise that does not."""
        self.bounds.check(table)
        if not 0 < self.clip <= 1:
            raise ArgumentError(f"clip must be greater than 0 and at most 1, got {self.clip}.")
        if len(self.slopes) != table.n_columns - 1:
            raise ArgumentError(f"slopes must be {table.n_columns - 1} whole numbers.")
        if sum(abs(int(slope)) for slope in self.slopes) > _LARGEST_SLOPES:
            raise ArgumentError("slopes are too large for 64-bit sums.")
        check_variance(self.variance(table), self.cost, "one vector")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact sums of products."""
        del bits
        slopes = tuple(int(slope) for slope in self.slopes)
        return _ProductsTask(self.bounds, grid_size(table), slopes, self.most(table))

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyMoments:
        """Add noise to every entry."""
        variance = self.variance(table)
        noisy = exact + rounded_gaussian(bits, variance, len(exact))
        unit = 1 / (grid_size(table) ** 2 * table.n_rows)
        return NoisyMoments(noisy.astype(np.float64) * unit, math.sqrt(variance) * unit)


@dataclass(frozen=True, eq=False)
class _GramTask(RowTask):
    bounds: Bounds
    size: int

    @property
    def block_rows(self) -> int:
        return block_length(len(self.bounds.lower) + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        # The target leaves, the constant joins.
        d = len(self.bounds.lower)
        return (d, d)

    def worker(self) -> RowWorker:
        return _GramWorker(self)


class _GramWorker:
    def __init__(self, task: _GramTask) -> None:
        check_blas()
        self._task = task
        self._sum = GramSum(task.shape[0], task.shape[0] * task.size**2)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        Units.refuse(units)
        del first_row
        predictors, _ = _to_grid(block, self._task.bounds, self._task.size)
        self._sum.add(predictors, np.einsum("ij,ij->j", predictors, predictors))

    def total(self) -> NDArray[np.int64]:
        return self._sum.total()


@dataclass(frozen=True, eq=False)
class _ProductsTask(RowTask):
    bounds: Bounds
    size: int
    slopes: tuple[int, ...]
    most: int

    @property
    def block_rows(self) -> int:
        return block_length(len(self.bounds.lower) + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bounds.lower),)

    def worker(self) -> RowWorker:
        return _ProductsWorker(self)


class _ProductsWorker:
    def __init__(self, task: _ProductsTask) -> None:
        self._task = task
        self._slopes = np.array(task.slopes, dtype=np.int64)
        self._total = np.zeros(task.shape, dtype=np.int64)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        Units.refuse(units)
        del first_row
        task = self._task
        predictors, target = _to_grid(block, task.bounds, task.size)
        whole = predictors.astype(np.int64)
        # Integers throughout: at most 2^40 Q + 2^20 Q, below 2^61. The shift rounds towards minus infinity.
        residual = (target.astype(np.int64) * SLOPE_UNITS - self._slopes @ whole) // SLOPE_UNITS
        self._total += whole @ np.clip(residual, -task.most, task.most)

    def total(self) -> NDArray[np.int64]:
        return self._total


def _to_grid(block: Block, bounds: Bounds, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return predictors with the constant, shape (d, rows), and the target: integers of at most `size`.

    Every entry comes from single operations on one number of the row and public ones, so that it is the same
    in every block, thread and machine.
    """
    grid = np.empty((len(bounds.lower) + 1, len(block[0])))
    # Warnings would tell about rows.
    with np.errstate(all="ignore"):
        for place, column in enumerate(block):
            np.copyto(grid[place], column, casting="unsafe")
        grid[-1] = size
        hostile = ~np.isfinite(grid).all(axis=0)
        grid[:, hostile] = 0.0
        own = grid[:-1]
        np.clip(own, np.array(bounds.lower)[:, None], np.array(bounds.upper)[:, None], out=own)
        own -= bounds.centres[:, None]
        own /= bounds.halves[:, None]
        own *= size
        np.rint(own, out=own)
        np.clip(own, -size, size, out=own)
        grid[:, hostile] = 0.0
    return np.delete(grid, bounds.target, axis=0), grid[bounds.target].copy()
