"""The noisy Gram matrix of mapped and clipped rows.

The proof note is ``gram.md``.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Number
from dpcov.core.compiled_passes import fastest_passes
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError, ExactnessError
from dpcov.core.exact_blas import LARGEST_EXACT
from dpcov.core.lattice import Lattice, LatticeMap, MappedRows, times_power
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries.joint import MappedWorker
from dpcov.core.queries.sample import sampled_rows
from dpcov.core.query import GaussianQuery, Table, check_variance, whole_number
from dpcov.core.tasks import RowTask, RowWorker, block_length
from dpcov.core.units import Units

_LARGEST_RADIUS = 1e140
# Rounding is hidden if it adds less than this part of the noise's standard deviation to a variance.
_HIDDEN = Fraction(1, 100)


class Rule(enum.Enum):
    """What becomes of a row after the map."""

    SHRINK = "shrink"
    """Rows longer than the radius shrink to it."""
    DROP = "drop"
    """Rows longer than the radius count as zero."""
    DIRECTION = "direction"
    """Every row takes the length of the radius: its direction alone counts."""
    TAIL = "tail"
    """Rows longer than the radius shrink to it, all others count as zero."""


@dataclass(frozen=True, eq=False)
class Clipping:
    """How rows are mapped and brought into the ball of a Gram matrix.

    Attributes
    ----------
    lattice_map : LatticeMap
        The public map.
    radius : float
        No row is longer than this in the end.
    rule : Rule
        How that is brought about.
    """

    lattice_map: LatticeMap
    radius: float
    rule: Rule = Rule.SHRINK

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise ArgumentError(f"rule must be a Rule, got {self.rule!r}.")
        object.__setattr__(self, "radius", float(self.radius))

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` if it does not fit the table."""
        table.check_map(self.lattice_map)
        if not 1 / _LARGEST_RADIUS <= self.radius <= _LARGEST_RADIUS:
            raise ArgumentError(f"radius must lie between 1e-140 and 1e140, got {self.radius:g}.")

    def unit(self, lattice: Lattice) -> float:
        """Return what one unit of an integer Gram matrix stands for in the sum of ``y y^T`` over the rows."""
        return (self.radius / lattice.clip) ** 2


@dataclass(frozen=True, eq=False)
class NoisyGram:
    """The Gram matrix of mapped and clipped rows and its trace, each with rounded Gaussian noise.

    Attributes
    ----------
    integers : ndarray of int64, shape (d, d)
        Symmetric. One unit stands for ``unit`` in the sum over rows of ``y y^T``.
    trace : int
        The sum of the rows' squared norms, with noise of its own.
    unit : float
        The grid: every released number is an integer multiple of it.
    variance : int
        Of the noise of the trace and on the diagonal, in squared units. Off the diagonal it is half of it.
    radius : float
        Every row's image lies in the ball of this radius.
    n_rows : int
        The number of rows that were read.
    lattice_map : LatticeMap
        The public map that was applied.
    """

    integers: NDArray[np.int64]
    trace: int
    unit: float
    variance: int
    radius: float
    n_rows: int
    lattice_map: LatticeMap

    def mean(self) -> NDArray[np.float64]:
        """Return the noisy second moment of the mapped rows: the sum divided by the rows read."""
        moment = self.integers.astype(np.float64)
        # The diagonal tells the trace with d times the variance: least squares takes both.
        moment.flat[:: len(moment) + 1] += (self.trace - int(self.integers.trace())) / (len(moment) + 1)
        return moment * (self.unit / self.n_rows)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on the diagonal before the trace helps; off it, over sqrt 2."""
        return float(np.sqrt(float(self.variance))) * self.unit / self.n_rows


@dataclass(frozen=True, eq=False)
class Gram(GaussianQuery):
    """Ask for the Gram matrix of the mapped and clipped rows and its trace; the answer is a `NoisyGram`.

    Parameters
    ----------
    clipping : Clipping
        The public map, the radius, and the rule that keeps rows within it.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.
    every : int, default 1
        Look at one row in so many only, chosen at random without a look at them.
    coarse : bool, default False
        Round rows to fewer bits where the noise hides that: such products take less time.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: the integer Gram matrix, its trace beside it, moves
    by at most ``sqrt(2) B^2`` in l2 norm, and gets rounded Gaussian noise of variance s2 on the trace and the
    diagonal and s2/2 off it, with ``s2 >= B^4 / rho`` (``gram.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, Gram, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 2.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> answer = curator.ask(Gram(Clipping(identity_map(2), radius=3.0), rho=0.5, purpose="second moment"))
    >>> answer.n_rows, round(answer.sigma, 3)
    (1000, 0.013)
    >>> np.allclose(answer.mean(), [[0.5, 0.0], [0.0, 2.0]], atol=0.1)
    True
    """

    takes_units: ClassVar[bool] = True
    clipping: Clipping
    rho: Number
    purpose: str
    every: int = 1
    coarse: bool = False

    def lattice(self, table: Table) -> Lattice:
        """Return the public grid that rows are rounded to: a coarse one adds a twelfth for each row."""
        coarse, rows = table.lattice.coarse(), sampled_rows(table.n_rows, self.every)
        hidden = Fraction(rows, 12) ** 2 * self.cost.rho <= _HIDDEN**2 * coarse.bound**4
        # The number of rows of units is not public.
        return coarse if self.coarse and hidden and not table.grouped else table.lattice

    def variance(self, lattice: Lattice) -> int:
        """Return s2, an even integer of at least ``B^4 / rho``."""
        return 2 * math.ceil(Fraction(lattice.bound**4, 2) / self.cost.rho)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a clipping that does not fit, or noise that does not."""
        self.clipping.check(table)
        whole_number(self.every, "every")
        check_variance(self.variance(self.lattice(table)), self.cost, "one Gram matrix")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix of the rows."""
        del bits
        return GramTask(self.clipping, self.lattice(table), table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyGram:
        """Add noise to the entries on and above the diagonal, which are mirrored, and to the trace."""
        lattice, d = self.lattice(table), table.n_columns
        variance = self.variance(lattice)
        diagonal = rounded_gaussian(bits, variance, d)
        upper = rounded_gaussian(bits, variance // 2, d * (d - 1) // 2)
        noise = np.zeros((d, d), dtype=np.int64)
        noise[np.triu_indices(d, 1)] = upper
        noise += noise.T
        noise[np.diag_indices(d)] = diagonal
        trace = int(exact.trace()) + int(rounded_gaussian(bits, variance, 1)[0])
        clipping, read = self.clipping, sampled_rows(table.n_rows, self.every)
        unit = clipping.unit(lattice)
        return NoisyGram(exact + noise, trace, unit, variance, clipping.radius, read, clipping.lattice_map)


@dataclass(frozen=True, eq=False)
class GramTask(RowTask):
    """The exact Gram matrix of mapped and clipped rows, in lattice units."""

    clipping: Clipping
    lattice: Lattice
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.clipping.lattice_map.n_columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        d = self.clipping.lattice_map.n_columns
        return (d, d)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _GramWorker(self)


class _GramWorker(MappedWorker):
    overwrites = True

    def __init__(self, task: GramTask) -> None:
        super().__init__(MappedRows(task.clipping.lattice_map, task.block_rows), constant=task.constant)
        self._rows = LatticeRows(task.clipping, task.lattice)
        self._sum = GramSum(task.clipping.lattice_map.n_columns, task.lattice.bound**2)

    def add_mapped(self, units: Units | None) -> None:
        self._sum.add(*self._rows.clip(self.mapped, units=units), units)

    def total(self) -> NDArray[np.int64]:
        return self._sum.total()


class LatticeRows:
    """Clips mapped rows and rounds them to the lattice."""

    def __init__(self, clipping: Clipping, lattice: Lattice) -> None:
        self._clipping, self._lattice = clipping, lattice

    def clip(
        self, rows: MappedRows, shrinking: NDArray[np.float64] | float = 1.0, units: Units | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the integer rows, shape (d, rows), and their exact squared norms; of units, these add up.

        Every row is multiplied by its `shrinking` before it is clipped, or by the weight of its unit.
        """
        clipping, lattice = self._clipping, self._lattice
        squares, exponent = rows.squares, rows.shift
        if units is not None:
            squares, exponent = units.joint(squares, exponent)
            shrinking = units.weights
        factor = whole = lattice.clip / np.sqrt(np.maximum(squares, 1.0))
        if clipping.rule is not Rule.DIRECTION:
            # Of the own map: rows may be those of another that differs in its scale.
            unclipped = times_power(lattice.clip / clipping.radius / clipping.lattice_map.scale, exponent)
            unclipped *= shrinking
            factor = self.kept(unclipped, whole)
        if units is not None:
            factor = units.row_factors(factor, rows.shift, exponent)
        return rows.values, rows.round_to_lattice(factor, lattice.bound, units)

    def kept(self, unclipped: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return factors of rows: `unclipped` if they lie within the radius, to which `whole` takes them."""
        if self._clipping.rule is Rule.SHRINK:
            return np.minimum(unclipped, whole)
        if self._clipping.rule is Rule.DROP:
            return np.where(unclipped <= whole, unclipped, 0.0)
        return np.where(unclipped > whole, whole, 0.0)


class GramSum:
    """The Gram matrix of blocks of integer rows: in float64 while that is exact, in int64 beyond."""

    def __init__(self, n_columns: int, largest_square: int) -> None:
        self._largest_square, self._passes = largest_square, fastest_passes()
        self._exact_rows = LARGEST_EXACT // largest_square
        self._total = np.zeros((n_columns, n_columns), dtype=np.int64)
        self._partial = np.zeros((n_columns, n_columns))
        self._trace, self._rows = 0.0, 0

    def add(
        self, values: NDArray[np.float64], squares: NDArray[np.float64], units: Units | None = None
    ) -> None:
        """Add integer rows, shape (d, rows), with these exact squared norms, of rows or of units."""
        ends = np.arange(1, len(squares) + 1) if units is None else units.ends
        row = 0
        for first in range(0, len(squares), self._exact_rows):
            part = squares[first : first + self._exact_rows]
            if self._rows + len(part) > self._exact_rows:
                self._move()
            start, row = row, int(ends[first + len(part) - 1])
            self._passes.add_gram(self._partial, values[:, start:row], self._largest_square)
            self._trace += float(part.sum())
            self._rows += len(part)

    def total(self) -> NDArray[np.int64]:
        """Return the sum so far."""
        self._move()
        return np.triu(self._total) + np.triu(self._total, 1).T

    def _move(self) -> None:
        # The trace of a Gram matrix is the sum of the squared norms: an inexact product would show in it.
        if float(np.trace(self._partial)) != self._trace:
            raise ExactnessError(
                "A matrix product was not exact. The BLAS that SciPy uses here does not compute in IEEE "
                "float64, which the privacy guarantee rests on; nothing was released."
            )
        self._total += self._partial.astype(np.int64)
        self._partial[:] = 0.0
        self._trace, self._rows = 0.0, 0
