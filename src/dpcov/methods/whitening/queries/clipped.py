"""The noisy Gram matrix of clipped rows, how many were clipped, and what that took from the sums of the rows.

All for the price of the matrix alone. The proof note is ``clipped.md``.
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
    """How rows beyond the radius are drawn in, further than to it, so that more can be asked about them.

    Attributes
    ----------
    far : float
        Rows of more than so many radii lie far beyond; above 1.
    kept_near, kept_far : Fraction
        Which part of the squared radius rows beyond it are left with, and those far beyond, for being
        counted: from 1/2 to 1, without the latter.
    kept_losing : Fraction, optional
        With it, what clipping takes from the sum of the rows is added up as well: in full from rows that do
        not lie far beyond, and from all others as much as from one of `far` radii. These are left with this
        part: from 1/2 to `kept_far`, without the latter. Nearer ones are left with what their loss needs.
    """

    far: float
    kept_near: Fraction
    kept_far: Fraction
    kept_losing: Fraction | None = None

    def __post_init__(self) -> None:
        if not 1 < self.far < math.inf:
            raise ArgumentError(f"far must be a number above 1, got {self.far}.")
        if not all(Fraction(1, 2) <= kept < 1 for kept in self.kept):
            raise ArgumentError("kept_near and kept_far must be at least 1/2 and below 1.")
        if self.kept_losing is not None and not Fraction(1, 2) <= self.kept_losing < self.kept_far:
            raise ArgumentError("kept_losing must be at least 1/2 and below kept_far.")

    @property
    def kept(self) -> tuple[Fraction, Fraction]:
        """Which part each kind is left with for being counted, that of the nearer rows first."""
        return self.kept_near, self.kept_far

    @property
    def strength(self) -> float:
        """By what the loss of a row is multiplied, over B, when losses are added up."""
        if self.kept_losing is None:
            return 0.0
        shrunk = float(self.kept_losing) / (self.far * self.far)
        return math.sqrt(2 * float(self.kept_far - self.kept_losing) / (1 / shrunk - 2 + shrunk))

    def rooms(self, lattice: Lattice) -> tuple[int, int]:
        """Return which part of ``2 (B^2 - p)`` goes into the count of a row of each kind, p its square."""
        near, far = (2 * (lattice.bound**2 - math.floor(kept * lattice.bound**2)) for kept in self.kept)
        return near, far

    def least_squares(self, lattice: Lattice) -> tuple[int, int]:
        """Return the least square of a row of each kind that counts: what is left of any, rounding aside."""
        margin, least = lattice.bound - lattice.clip, self.kept
        if self.kept_losing is not None:
            # Of two in a kind, the longer is left with less.
            shrunk = shrunk_squares(self, np.array([self.far * self.far]), np.array([float(self.kept_near)]))
            least = Fraction(float(shrunk[0]) * (self.far * self.far)), self.kept_losing
        roots = (math.isqrt(math.floor(kept * lattice.bound**2)) for kept in least)
        near, far = (max(root - 2 * margin, 0) ** 2 for root in roots)
        return near, far

    def weights(self, lattice: Lattice) -> tuple[int, int]:
        """Return by what each kind is counted: the root of its room times the least square, rounded down."""
        both = zip(self.rooms(lattice), self.least_squares(lattice), strict=True)
        near, far = (math.isqrt(room * least) for room, least in both)
        return near, far

    def lengths(self, lattice: Lattice) -> tuple[float, float]:
        """Return how long rows of each kind are left, in units of the radius: a little less than was asked.

        They stay as far within their own bound as others do within theirs, so that rounding takes no row
        across. With `kept_losing`, they are left shorter still, the longer they were.
        """
        margin = lattice.bound - lattice.clip
        near, far = (
            (math.isqrt(lattice.bound**2 - room // 2) - margin) / lattice.clip for room in self.rooms(lattice)
        )
        return near, far

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` if rounding could take rows out of the range in which they count."""
        if 2 * min(self.least_squares(table.lattice)) < table.lattice.bound**2:
            raise ArgumentError(
                "rows are left with too little to be counted: raise kept_near, or the others."
            )
        if self.kept_losing is not None and table.grouped:
            raise ArgumentError("kept_losing must be None where rows are grouped: units have no proof.")


def shrunk_squares(pull: Pull, squared: Floats, counted: Floats) -> Floats:
    """Return by what rows are shrunk, squared, where losses are asked.

    A row of v radii that is shrunk by s is left with the part ``k = s^2 v^2`` of the squared radius. Being
    counted takes a room of w, and its loss ``(1/s - s) z`` one of ``b^2 (1/s - s)^2``, together
    ``2 (1 - k)``. So ``q = s^2`` is the larger root of

        q^2 (v^2 + b^2 / 2) - q (1 - w / 2 + b^2) + b^2 / 2 = 0.

    Parameters
    ----------
    pull : Pull
        Its `strength` is b.
    squared : ndarray
        v^2, up to that of `far`.
    counted : ndarray
        ``1 - w / 2``: what rows would be left with for being counted alone.
    """
    half = pull.strength * pull.strength / 2
    linear, leading = counted + 2 * half, squared + half
    root = np.sqrt(np.maximum(linear * linear - 4 * half * leading, 0.0))
    return np.asarray((linear + root) / (2 * leading))


def lengths_left(pull: Pull, curator: Curator) -> tuple[float, float]:
    """Return `Pull.lengths` for the table of a curator, whose size is public."""
    table = Table.of_size(
        curator.n_rows, curator.n_columns, constant=curator.has_constant, grouped=curator.grouped
    )
    return pull.lengths(table.lattice)


@dataclass(frozen=True, eq=False)
class NoisyClippedGram:
    """The Gram matrix of clipped rows and what is known of those that were clipped, each with noise.

    All noise but that of the matrix has the variance ``gram.variance``.

    Attributes
    ----------
    gram : NoisyGram
        The matrix and its trace.
    counts : ndarray of int64, shape (2,)
        How many rows lay beyond the radius but not far, and far beyond, times `weights`.
    weights : tuple of int
        What one row of each kind counts.
    losses : ndarray of int64, shape (d,), optional
        The sum of ``(1/s - s) z`` over rows that were shrunk by s to z, times `loss_weight`; None if that was
        not asked.
    loss_weight : float
        What 1 counts in `losses`.
    """

    gram: NoisyGram
    counts: NDArray[np.int64]
    weights: tuple[int, int]
    losses: NDArray[np.int64] | None = None
    loss_weight: float = 1.0

    @property
    def rows(self) -> Floats:
        """The numbers of rows beyond but not far, and far beyond; they may be negative."""
        return np.asarray(self.counts / np.array(self.weights, dtype=np.float64))

    @property
    def spreads(self) -> Floats:
        """Standard deviations of the noise of `rows`."""
        return math.sqrt(float(self.gram.variance)) / np.array(self.weights, dtype=np.float64)

    @property
    def lost(self) -> Floats | None:
        """What clipping took from the mean of a row times its constant, in mapped coordinates.

        A complete row y has the constant 1. Shrunk to ``z = s y`` it adds ``s^2 y`` instead of y, and
        ``(1/s - s) z`` is what it lost.
        """
        if self.losses is None:
            return None
        unit = math.sqrt(self.gram.unit) / self.gram.n_rows
        return np.asarray(self.losses * (unit / self.loss_weight))

    @property
    def lost_spread(self) -> float:
        """Standard deviation of the noise in every coordinate of `lost`."""
        return math.sqrt(float(self.gram.variance) * self.gram.unit) / self.gram.n_rows / self.loss_weight


@dataclass(frozen=True, eq=False)
class ClippedGram(GaussianQuery):
    """Ask for the Gram matrix of clipped rows and what clipping did to them: a `NoisyClippedGram`.

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
    *Formal guarantee.* `rho`-zCDP for replacing one row: matrix, trace, weighted counts and weighted losses
    together move by at most ``sqrt(2) B^2`` in l2 norm, as the matrix alone does, and get the noise of `Gram`
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
        self.pull.check(table)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix, counts and losses of all rows."""
        del bits
        return _ClippedTask(self.clipping, self.pull, table.lattice, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyClippedGram:
        """Add noise to the matrix and its trace, to the weighted counts and to the weighted losses."""
        d, pull = table.n_columns, self.pull
        matrix, counts, losses = np.split(exact, [d * d, d * d + 2])
        gram = self._gram.answer(matrix.reshape(d, d), table, bits)
        weights = pull.weights(table.lattice)
        noise = rounded_gaussian(bits, gram.variance, 2)
        counts = counts * np.array(weights, dtype=np.int64) + noise
        if pull.kept_losing is None:
            return NoisyClippedGram(gram, counts, weights)
        losses = losses + rounded_gaussian(bits, gram.variance, d)
        return NoisyClippedGram(gram, counts, weights, losses, pull.strength * table.lattice.bound)


@dataclass(frozen=True, eq=False)
class _ClippedTask(RowTask):
    """The exact Gram matrix of clipped rows in lattice units, the two counts, and the losses if asked."""

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
        d = self.clipping.lattice_map.n_columns
        return (d * d + 2 + (0 if self.pull.kept_losing is None else d),)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _ClippedWorker(self)


class _ClippedWorker(MappedWorker):
    overwrites = True

    def __init__(self, task: _ClippedTask) -> None:
        d = task.clipping.lattice_map.n_columns
        super().__init__(MappedRows(task.clipping.lattice_map, task.block_rows), constant=task.constant)
        self._rows = _PulledRows(task.clipping, task.pull, task.lattice)
        self._sum = GramSum(d, task.lattice.bound**2)
        self._bound, self._exact_rows = task.lattice.bound**2, task.lattice.exact_rows
        self._least = np.array([0, *task.pull.least_squares(task.lattice)], dtype=np.float64)
        self._rooms = np.array([0, *task.pull.rooms(task.lattice)], dtype=np.float64)
        self._counts = np.zeros(2, dtype=np.int64)
        self._losses = None if task.pull.kept_losing is None else np.zeros(d, dtype=np.int64)

    def add_mapped(self, units: Units | None) -> None:
        values, squares = self._rows.clip(self.mapped, units=units)
        # The proof rests on these tests of exact integers, and on kinds that exclude each other. How rows
        # were drawn in does not matter.
        kind = self._rows.kind
        room = 2.0 * (self._bound - squares) - self._rooms[kind]
        counted = (kind > 0) & (squares >= self._least[kind]) & (room >= 0)
        self._counts += [np.count_nonzero(counted & (kind == 1)), np.count_nonzero(counted & (kind == 2))]
        if self._losses is not None:
            self._add_losses(values, np.where(counted, room, 0.0))
        self._sum.add(values, squares, units)

    def _add_losses(self, values: Floats, room: Floats) -> None:
        """Add rows times whole numbers whose squares are at most `room`, all of which are exact."""
        multiples = np.floor(np.minimum(self._rows.wanted, np.sqrt(room)))
        multiples = np.where((multiples >= 0) & (multiples * multiples <= room), multiples, 0.0)
        for first in range(0, len(multiples), self._exact_rows):
            part = slice(first, first + self._exact_rows)
            sums = np.einsum("ij,j->i", values[:, part], multiples[part])
            self._losses += sums.astype(np.int64)

    def total(self) -> NDArray[np.int64]:
        losses = np.zeros(0, dtype=np.int64) if self._losses is None else self._losses
        return np.concatenate([self._sum.total().ravel(), self._counts, losses])


class _PulledRows(LatticeRows):
    """Clips rows, and draws those beyond the radius in a little further.

    Attributes
    ----------
    kind : ndarray of int8
        Of the last rows, or units: 1 if they were drawn in as those that lie beyond but not far, 2 as those
        that lie far beyond, and 0 otherwise.
    wanted : ndarray of float64
        By what each of the last rows is to be multiplied to give its loss, up to that of a far one.
    """

    def __init__(self, clipping: Clipping, pull: Pull, lattice: Lattice) -> None:
        super().__init__(clipping, lattice)
        self._pull, self._lattice = pull, lattice
        self._lengths = np.array([1.0, *pull.lengths(lattice)])
        self._kept = np.array([1.0, *map(float, pull.kept)])
        self.kind = np.zeros(0, dtype=np.int8)
        self.wanted = np.zeros(0)

    def kept(self, unclipped: Floats, whole: Floats) -> Floats:
        pull, bound, clip = self._pull, self._lattice.bound, self._lattice.clip
        self.kind = (unclipped > whole).astype(np.int8) + (unclipped > pull.far * whole)
        # The same steps for every row, whatever its kind.
        inside: Floats = np.minimum(unclipped, whole)
        if pull.kept_losing is None:
            return np.asarray(inside * self._lengths[self.kind])
        ratio = np.clip(unclipped / whole, 1.0, pull.far)
        shrunk = np.sqrt(shrunk_squares(pull, np.square(ratio), self._kept[self.kind]))
        length = (shrunk * ratio * bound - (bound - clip)) / clip
        self.wanted = np.where(self.kind > 0, pull.strength * bound * (1 / shrunk - shrunk), 0.0)
        return np.asarray(inside * np.where(self.kind > 0, length, 1.0))
