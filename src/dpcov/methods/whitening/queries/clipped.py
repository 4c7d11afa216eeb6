"""The noisy Gram matrix of clipped rows, and how many were clipped, for the price of the matrix alone.

The proof note is ``clipped.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Clipping, Curator, Gram, NoisyGram, Rule
from dpcov.core.budget import Number
from dpcov.core.lattice import Lattice, MappedRows
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries.gram import GramSum, LatticeRows
from dpcov.core.queries.joint import MappedWorker
from dpcov.core.query import GaussianQuery, Table
from dpcov.core.tasks import RowTask, RowWorker, block_length
from dpcov.core.units import Units

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pull:
    """How rows beyond the radius are drawn in, further than to it, so that they can be counted.

    Attributes
    ----------
    far : float
        Rows of more than so many radii lie far beyond; above 1.
    kept_near, kept_far : Fraction
        Which part of the squared radius rows beyond it are left with, and those far beyond: from 1/2 to 1,
        without the latter.
    """

    far: float
    kept_near: Fraction
    kept_far: Fraction

    def __post_init__(self) -> None:
        if not 1 < self.far < math.inf:
            raise ArgumentError(f"far must be a number above 1, got {self.far}.")
        if not all(Fraction(1, 2) <= kept < 1 for kept in self.kept):
            raise ArgumentError("kept_near and kept_far must be at least 1/2 and below 1.")

    @property
    def kept(self) -> tuple[Fraction, Fraction]:
        """Both parts, that of the nearer rows first."""
        return self.kept_near, self.kept_far

    def squares(self, lattice: Lattice) -> tuple[int, int]:
        """Return Q for each kind: a row counts if its squared norm lies between ``B^2 - Q`` and Q."""
        near, far = (math.floor(kept * lattice.bound**2) for kept in self.kept)
        return near, far

    def weights(self, lattice: Lattice) -> tuple[int, int]:
        """Return by what each kind is counted: the root of ``2 Q (B^2 - Q)``, rounded down."""
        near, far = (math.isqrt(2 * q * (lattice.bound**2 - q)) for q in self.squares(lattice))
        return near, far

    def lengths(self, lattice: Lattice) -> tuple[float, float]:
        """Return how long rows of each kind are left, in units of the radius: a little less than was asked.

        They stay as far within their own bound as others do within theirs, so that rounding takes no row
        across.
        """
        margin = lattice.bound - lattice.clip
        near, far = ((math.isqrt(q) - margin) / lattice.clip for q in self.squares(lattice))
        return near, far

    def check(self, lattice: Lattice) -> None:
        """Raise an `ArgumentError` if rounding could take rows out of the range in which they count."""
        margin = lattice.bound - lattice.clip
        if any((math.isqrt(q) - 2 * margin) ** 2 < lattice.bound**2 - q for q in self.squares(lattice)):
            raise ArgumentError("kept_near and kept_far are too small for rows to be counted: raise them.")


def lengths_left(pull: Pull, curator: Curator) -> tuple[float, float]:
    """Return `Pull.lengths` for the table of a curator, whose size is public."""
    table = Table.of_size(
        curator.n_rows, curator.n_columns, constant=curator.has_constant, grouped=curator.grouped
    )
    return pull.lengths(table.lattice)


@dataclass(frozen=True, eq=False)
class NoisyClippedGram:
    """The Gram matrix of clipped rows, and the numbers of those that were clipped, each with noise.

    Attributes
    ----------
    gram : NoisyGram
        The matrix and its trace.
    counts : ndarray of int64, shape (2,)
        How many rows lay beyond the radius but not far, and far beyond, times `weights`. Their noise has the
        variance ``gram.variance``.
    weights : tuple of int
        What one row of each kind counts.
    """

    gram: NoisyGram
    counts: NDArray[np.int64]
    weights: tuple[int, int]

    @property
    def rows(self) -> Floats:
        """The numbers of rows beyond but not far, and far beyond; they may be negative."""
        return np.asarray(self.counts / np.array(self.weights, dtype=np.float64))

    @property
    def spreads(self) -> Floats:
        """Standard deviations of the noise of `rows`."""
        return math.sqrt(float(self.gram.variance)) / np.array(self.weights, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ClippedGram(GaussianQuery):
    """Ask for the Gram matrix of clipped rows and for how many were clipped: a `NoisyClippedGram`.

    Parameters
    ----------
    clipping : Clipping
        The public map and the radius; rows beyond must shrink.
    pull : Pull
        How far they do.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: matrix, trace and weighted counts together move by
    at most ``sqrt(2) B^2`` in l2 norm, as the matrix alone does, and get the noise of `Gram`
    (``clipped.md``).

    Examples
    --------
    >>> from fractions import Fraction
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.methods.whitening.queries.clipped import ClippedGram, Pull
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 5.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> pull = Pull(far=2.0, kept_near=Fraction(19, 20), kept_far=Fraction(17, 20))
    >>> answer = curator.ask(ClippedGram(Clipping(identity_map(2), radius=2.0), pull, 1, "second moment"))
    >>> np.allclose(answer.rows, [0, 500], atol=10)
    True
    >>> np.allclose(answer.gram.mean(), [[0.5, 0.0], [0.0, 0.85 * 2.0]], atol=0.1)
    True
    """

    takes_units: ClassVar[bool] = True
    clipping: Clipping
    pull: Pull
    rho: Number
    purpose: str

    @property
    def _gram(self) -> Gram:
        """The matrix alone, which has the same noise."""
        return Gram(self.clipping, self.rho, self.purpose)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a clipping that does not fit, or noise that does not."""
        if self.clipping.rule is not Rule.SHRINK:
            raise ArgumentError("rule must be Rule.SHRINK: rows that are counted shrink.")
        self._gram.check(table)
        self.pull.check(table.lattice)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix and counts of all rows."""
        del bits
        return _ClippedTask(self.clipping, self.pull, table.lattice, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyClippedGram:
        """Add noise to the matrix and its trace, and to the weighted counts."""
        d = table.n_columns
        gram = self._gram.answer(exact[:-2].reshape(d, d), table, bits)
        weights = self.pull.weights(table.lattice)
        noise = rounded_gaussian(bits, gram.variance, 2)
        return NoisyClippedGram(gram, exact[-2:] * np.array(weights, dtype=np.int64) + noise, weights)


@dataclass(frozen=True, eq=False)
class _ClippedTask(RowTask):
    """The exact Gram matrix of clipped rows in lattice units, and the two counts after it."""

    clipping: Clipping
    pull: Pull
    lattice: Lattice
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.clipping.lattice_map.n_columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (self.clipping.lattice_map.n_columns**2 + 2,)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _ClippedWorker(self)


class _ClippedWorker(MappedWorker):
    overwrites = True

    def __init__(self, task: _ClippedTask) -> None:
        super().__init__(MappedRows(task.clipping.lattice_map, task.block_rows), constant=task.constant)
        self._rows = _PulledRows(task.clipping, task.pull, task.lattice)
        self._sum = GramSum(task.clipping.lattice_map.n_columns, task.lattice.exact_rows)
        self._bound = task.lattice.bound**2
        self._most = task.pull.squares(task.lattice)
        self._counts = np.zeros(2, dtype=np.int64)

    def add_mapped(self, units: Units | None) -> None:
        values, squares = self._rows.clip(self.mapped, units=units)
        for place, most in enumerate(self._most):
            # The proof rests on this test of exact integers, and on kinds that exclude each other. How rows
            # were drawn in does not matter.
            counted = (squares >= float(self._bound - most)) & (squares <= float(most))
            self._counts[place] += np.count_nonzero(counted & (self._rows.kind == 1 + place))
        self._sum.add(values, squares, units)

    def total(self) -> NDArray[np.int64]:
        return np.concatenate([self._sum.total().ravel(), self._counts])


class _PulledRows(LatticeRows):
    """Clips rows, and draws those beyond the radius in a little further.

    Attributes
    ----------
    kind : ndarray of int8
        Of the last rows, or units: 1 if they were drawn in as those that lie beyond but not far, 2 as those
        that lie far beyond, and 0 otherwise.
    """

    def __init__(self, clipping: Clipping, pull: Pull, lattice: Lattice) -> None:
        super().__init__(clipping, lattice)
        self._far = pull.far
        self._lengths = np.array([1.0, *pull.lengths(lattice)])
        self.kind = np.zeros(0, dtype=np.int8)

    def kept(self, unclipped: Floats, whole: Floats) -> Floats:
        self.kind = (unclipped > whole).astype(np.int8) + (unclipped > self._far * whole)
        # The same steps for every row, whatever its kind.
        factor: Floats = np.minimum(unclipped, whole) * self._lengths[self.kind]
        return factor
