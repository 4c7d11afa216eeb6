"""Noisy counts of rows by their norm after a public map.

The proof note is ``histogram.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Number
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.lattice import LatticeMap, MappedRows
from dpcov.core.noise import rounded_gaussian, rounded_variance
from dpcov.core.queries.joint import MappedWorker
from dpcov.core.queries.sample import sampled_rows
from dpcov.core.query import GaussianQuery, Table, check_variance, whole_number
from dpcov.core.tasks import RowTask, RowWorker, block_length
from dpcov.core.units import Units

_MANTISSA = (1 << 52) - 1
_MOST_HALVES = 128  # so that int8 counts the edges within one


@dataclass(frozen=True)
class LogNormGrid:
    """Public bins for the norm of a row: half-open, each doubling cut into equal parts of its logarithm.

    Bin 0 holds what is below ``2^lowest``, zero rows among it, and the last bin what is not below
    ``2^highest``. Between them each doubling has ``2 * halves`` bins; the last `doublings` have one each.
    """

    lowest: int
    highest: int
    halves: int
    doublings: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(n, int) for n in (self.lowest, self.highest, self.halves, self.doublings)):
            raise ArgumentError("grid must be made of whole numbers.")
        if not 0 <= self.doublings < self.highest - self.lowest or not 1 <= self.halves <= _MOST_HALVES:
            raise ArgumentError("grid must have more doublings than wide ones, and 1 to 128 halves.")

    @property
    def n_bins(self) -> int:
        """Number of bins, the two open ones included."""
        return 2 * self.halves * (self.highest - self.doublings - self.lowest) + self.doublings + 2

    def edges(self) -> NDArray[np.float64]:
        """Return the ``n_bins - 1`` finite edges, as norms."""
        steps = np.arange(self.n_bins - 1) / (2 * self.halves)
        steps[-1 - self.doublings :] = np.arange(-self.doublings, 1) + self.highest - self.lowest
        with np.errstate(over="ignore", under="ignore"):
            edges: NDArray[np.float64] = np.exp2(self.lowest + steps)
        return edges

    def locate(self, squares: NDArray[np.float64], exponent: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bin of the norm ``sqrt(squares * 4^exponent)``, from comparisons alone."""
        # The bits of a positive float64: its doubling, and where it lies within that.
        bits = squares.view(np.int64)
        index = (bits >> 52) + 2 * exponent
        index *= self.halves
        index += 1 - self.halves * (1023 + 2 * self.lowest)
        if self.halves > 1:
            fraction, passed = bits & _MANTISSA, np.zeros(len(bits), dtype=np.int8)
            for edge in np.exp2(np.arange(1, self.halves) / self.halves - 1).view(np.int64) & _MANTISSA:
                passed += (fraction >= edge).view(np.int8)
            index += passed
        if self.doublings:
            beyond = np.maximum(index - (self.n_bins - self.doublings - 1), 0)
            index += beyond // (2 * self.halves) - beyond
        index.clip(0, self.n_bins - 1, out=index)
        if squares.min(initial=1.0) <= 0:
            index[squares <= 0] = 0
        return index


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """A histogram of the rows' norms, with rounded Gaussian noise.

    Attributes
    ----------
    counts : ndarray of int64, shape (grid.n_bins,)
        May be negative.
    variance : Fraction
        Of the noise of each count.
    grid : LogNormGrid
        The public bins.
    n_rows : int
        The number of rows that were read.
    """

    counts: NDArray[np.int64]
    variance: Fraction
    grid: LogNormGrid
    n_rows: int


@dataclass(frozen=True, eq=False)
class NormHistogram(GaussianQuery):
    """Ask for the number of rows in every bin of their norm; the answer is a `NoisyCounts`.

    Parameters
    ----------
    lattice_map : LatticeMap
        The public map that is applied to the rows first.
    grid : LogNormGrid
        The public bins.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.
    every : int, default 1
        Look at one row in so many only, chosen at random without a look at them.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: it moves one count from a bin to another, sqrt 2 in
    l2 norm, and every bin gets rounded Gaussian noise of variance ``1 / rho`` (``histogram.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, LogNormGrid, NormHistogram, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 5.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> answer = curator.ask(NormHistogram(identity_map(2), LogNormGrid(-1, 3, 1), rho=1, purpose="norms"))
    >>> np.allclose(answer.counts, [0, 0, 0, 500, 0, 0, 0, 500, 0, 0], atol=10)
    True
    """

    takes_units: ClassVar[bool] = True
    lattice_map: LatticeMap
    grid: LogNormGrid
    rho: Number
    purpose: str
    every: int = 1

    @property
    def variance(self) -> Fraction:
        """Of the noise of each count, before it is rounded."""
        return 1 / self.cost.rho

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a map that does not fit, or noise that does not."""
        table.check_map(self.lattice_map)
        whole_number(self.every, "every")
        check_variance(self.variance, self.cost, "a histogram")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact counts of the rows."""
        del bits
        return LogNormTask(self.lattice_map, self.grid, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyCounts:
        """Add noise to every count, also to those of empty bins."""
        noise = rounded_gaussian(bits, self.variance, self.grid.n_bins)
        read = sampled_rows(table.n_rows, self.every)
        return NoisyCounts(exact + noise, rounded_variance(self.variance), self.grid, read)


@dataclass(frozen=True)
class NoisyCount:
    """A number of rows with noise of this variance; may be negative."""

    count: int
    variance: Fraction


@dataclass(frozen=True, eq=False)
class RowsBeyond(GaussianQuery):
    """Ask for the number of rows whose norm falls into bin `first_bin` or a later one: a `NoisyCount`.

    Parameters
    ----------
    lattice_map, grid, rho, purpose
        As in `NormHistogram`.
    first_bin : int
        The first bin that counts, up to ``grid.n_bins`` for none.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: the count moves by at most 1 and gets rounded
    Gaussian noise of variance ``1 / (2 rho)`` (``histogram.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, LogNormGrid, RowsBeyond, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.sources import ArraySource
    >>> source = ArraySource(np.tile([[1.0, 0.0], [0.0, 5.0]], (500, 1)))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(source, Budget(resolve_budget(rho=1)), seeded)
    >>> longer_than_2 = RowsBeyond(identity_map(2), LogNormGrid(-1, 3, 1), first_bin=5, rho=1, purpose="")
    >>> abs(curator.ask(longer_than_2).count - 500) < 10
    True
    """

    takes_units: ClassVar[bool] = True
    lattice_map: LatticeMap
    grid: LogNormGrid
    first_bin: int
    rho: Number
    purpose: str

    @property
    def variance(self) -> Fraction:
        """Of the noise, before it is rounded."""
        return 1 / (2 * self.cost.rho)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a map or a bin that does not fit, or noise that does not."""
        table.check_map(self.lattice_map)
        if whole_number(self.first_bin, "first_bin", least=0) > self.grid.n_bins:
            raise ArgumentError(f"first_bin must be at most {self.grid.n_bins}, got {self.first_bin}.")
        check_variance(self.variance, self.cost, "a count")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact counts of all bins, which serve every `first_bin`."""
        del bits
        return LogNormTask(self.lattice_map, self.grid, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyCount:
        """Add noise to the sum of the bins that count."""
        del table
        noise = int(rounded_gaussian(bits, self.variance, 1)[0])
        return NoisyCount(int(exact[self.first_bin :].sum()) + noise, rounded_variance(self.variance))


@dataclass(frozen=True)
class LogNormTask(RowTask):
    """Counts of rows by the logarithm of their norm after a map; equal for the same map object and grid."""

    lattice_map: LatticeMap
    grid: LogNormGrid
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.lattice_map.n_columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (self.grid.n_bins,)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _LogNormWorker(self)


class _LogNormWorker(MappedWorker):
    def __init__(self, task: LogNormTask) -> None:
        super().__init__(MappedRows(task.lattice_map, task.block_rows), constant=task.constant)
        self._grid = task.grid
        mantissa, self._exponent = np.frexp(1.0 / task.lattice_map.scale)
        self._unit_square = float(mantissa * mantissa)
        self._counts = np.zeros(task.grid.n_bins, dtype=np.int64)

    def add_mapped(self, units: Units | None) -> None:
        squares, exponent = self.mapped.squares, self.mapped.shift
        if units is not None:
            squares, exponent = units.joint(squares, exponent)
            squares = squares / np.maximum(units.counts, 1) if units.even else squares
        bins = self._grid.locate(squares * self._unit_square, exponent + self._exponent)
        self._counts += np.bincount(bins, minlength=self._grid.n_bins)

    def total(self) -> NDArray[np.int64]:
        return self._counts
