"""The same kind of question about each of several columns on its own, in one scan.

The table of a column has that column, and the constant beside it if there is one. Mapped by itself, each
would take the steps of ``core/lattice.py`` in calls too short for what a call costs. So the tables of a few
columns take each step together. From there on every table has its own worker, which clips, counts and adds
up its rows as if there were no other. The proof note is ``columns.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Query
from dpcov.core.lattice import ENTRY_NORM_LOG2, IMAGE_NORM_LOG2, LEAST_EXPONENT, LatticeMap
from dpcov.core.passes import Block, round_rows
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.histogram import LogNormTask
from dpcov.core.queries.joint import JointTask, MappedWorker
from dpcov.core.queries.sample import sampled_rows
from dpcov.core.query import Table, check_query, whole_number
from dpcov.core.tasks import RowTask, RowWorker
from dpcov.core.units import Units

A = TypeVar("A")

# So many rows of tables take a step together: more would cost more for fresh memory than they save in calls.
_ROWS_TOGETHER = 98_280
_LEAST_MAGNITUDE = 2.0**LEAST_EXPONENT
_SCRATCH = 4  # numbers for each row, beside its own


@dataclass(frozen=True, eq=False)
class PerColumn(Generic[A]):
    """Ask a question about each of several columns alone, the constant beside it; a tuple of answers.

    Parameters
    ----------
    columns : tuple of int
        Which columns, none of them the constant.
    queries : tuple of Query
        One for each: about a table of that column alone, and the constant if the table has one.
    purpose : str
        What it pays for, for the receipt.
    every : int, default 1
        Look at one row in so many only, chosen at random without a look at them.
    alone : bool, default False
        Leave out the constant.

    Notes
    -----
    *Formal guarantee.* The sum of the queries' costs: a row of the table that is replaced replaces one row of
    each table of a column, and the queries compose (``columns.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, LogNormGrid, NormHistogram, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.methods.whitening.queries.columns import PerColumn
    >>> from dpcov.sources import ArraySource
    >>> source = ArraySource(np.tile([1.0, 5.0], (500, 1)))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(source, Budget(resolve_budget(rho=1)), seeded)
    >>> norms = NormHistogram(identity_map(1), LogNormGrid(-1, 3, 1), rho=0.5, purpose="norms")
    >>> short, long = curator.ask(PerColumn((0, 1), (norms, norms), "norms of columns", alone=True))
    >>> int(short.counts.argmax()), int(long.counts.argmax())
    (3, 7)
    """

    columns: tuple[int, ...]
    queries: tuple[Query[A], ...]
    purpose: str
    every: int = 1
    alone: bool = False

    takes_units: ClassVar[bool] = True

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs, as one line of the receipt."""
        costs = [charge.cost for query in self.queries for charge in query.charges]
        return (Charge(self.purpose, sum(costs[1:], costs[0])),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a column that the table does not have."""
        own = table.n_columns - table.constant
        if len(self.columns) != len(self.queries) or not self.columns:
            raise ArgumentError("columns and queries must be as many, and at least one.")
        if not all(0 <= column < own for column in self.columns):
            raise ArgumentError(f"columns must be numbers from 0 to {own - 1}.")
        whole_number(self.every, "every")
        part = self._part(table)
        for query in self.queries:
            if getattr(query, "every", 1) != 1:
                raise ArgumentError("a query of one column takes no sample of its own: give every to all.")
            check_query(query, part)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact totals of all columns' questions, one after another."""
        part = self._part(table)
        tasks = tuple(query.task(part, bits) for query in self.queries)
        if all(map(_can_be_stacked, tasks)):
            return StackedTask(tasks, self.columns, part.constant)
        return JointTask(tuple(map(ColumnTask, tasks, self.columns)))

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> tuple[A, ...]:
        """Add each question's own noise to its own total."""
        part = self._part(table)
        shapes = [query.task(part, bits).shape for query in self.queries]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        totals = np.split(exact, ends[:-1])
        return tuple(
            query.answer(total.reshape(shape), part, bits)
            for query, total, shape in zip(self.queries, totals, shapes, strict=True)
        )

    def _part(self, table: Table) -> Table:
        """Return what is public of the table of one column, of the rows that are read."""
        constant = table.constant and not self.alone
        return table.part(sampled_rows(table.n_rows, self.every), 1 + constant, constant=constant)


@dataclass(frozen=True, eq=False)
class ColumnTask:
    """A task over one column of the table."""

    inner: RowTask
    column: int

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return self.inner.block_rows

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return self.inner.shape

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _ColumnWorker(self.inner.worker(), self.column)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return what the inner task knows about these positions."""
        return self.inner.notes(first_row, n_rows)

    def with_notes(self, notes: NDArray[np.int64]) -> ColumnTask:
        """Return the task for some rows alone."""
        return ColumnTask(self.inner.with_notes(notes), self.column)


class _ColumnWorker:
    def __init__(self, inner: RowWorker, column: int) -> None:
        self._inner, self._column = inner, column

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        column = self._column
        self._inner.add(block[column : column + 1], first_row, units)

    def total(self) -> NDArray[np.int64]:
        return self._inner.total()


def _can_be_stacked(task: RowTask) -> bool:
    """Whether a task of one column may be part of a `StackedTask`, which follows from public facts."""
    if isinstance(task, LogNormTask):
        return _scales_nothing_up(task.lattice_map)
    return isinstance(task, GramTask) and _scales_nothing_up(task.clipping.lattice_map)


def _scales_nothing_up(lattice_map: LatticeMap) -> bool:
    """Whether rows count as zero below the magnitude that is the least of any map."""
    return bool(lattice_map.column_exponents.max() <= 0)


@dataclass(frozen=True, eq=False)
class StackedTask(RowTask):
    """The totals of one task for each of several columns, one after another.

    Attributes
    ----------
    tasks : tuple of RowTask
        Counts of norms or Gram matrices, each of the table of one column, by a map that scales no column up.
    columns : tuple of int
        The column of each.
    constant : bool
        Whether each table has the constant as well.
    """

    tasks: tuple[RowTask, ...]
    columns: tuple[int, ...]
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker of every task takes."""
        return JointTask(self.tasks).block_rows

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return JointTask(self.tasks).shape

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _StackedWorker(self)


class _StackedWorker:
    def __init__(self, task: StackedTask) -> None:
        self._workers = [part.worker() for part in task.tasks]
        mapped = [worker for worker in self._workers if isinstance(worker, MappedWorker)]
        together = max(1, _ROWS_TOGETHER // task.block_rows)
        cuts = [slice(first, first + together) for first in range(0, len(mapped), together)]
        self._stacks = [_Stack(task.columns[cut], mapped[cut], constant=task.constant) for cut in cuts]
        self._storage = np.empty(0)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        del first_row
        length = max(stack.room(len(block[0])) for stack in self._stacks)
        if len(self._storage) < length:
            self._storage = np.empty(length)
        # Warnings would tell about rows.
        with np.errstate(all="ignore"):
            for stack in self._stacks:
                stack.load(block, self._storage)
                for worker in stack.workers:
                    worker.add_mapped(units)

    def total(self) -> NDArray[np.int64]:
        return np.concatenate([worker.total().ravel() for worker in self._workers])


class _Stack:
    """The tables of a few columns, and the workers that take their mapped rows."""

    def __init__(self, columns: Sequence[int], workers: Sequence[MappedWorker], *, constant: bool) -> None:
        self._columns, self.workers, self._constant = columns, workers, constant
        maps = [worker.mapped.lattice_map for worker in workers]
        self._centres = [float(m.centres[0]) for m in maps]
        # A number for each table and all of its rows, for every column (and every row of the maps).
        self._scale = np.ldexp(1.0, np.array([m.column_exponents for m in maps]).T)[..., None]
        self._coefficients = np.array([m.coefficients for m in maps]).transpose(1, 2, 0)[..., None]

    def room(self, rows: int) -> int:
        """Return how long a storage must be for blocks of so many rows."""
        return (1 + self._constant + _SCRATCH) * len(self._columns) * rows

    def load(self, block: Block, storage: NDArray[np.float64]) -> None:
        """Leave the rows of a block with the workers, as `MappedRows.load` would map them for each."""
        rows, d, tables = len(block[0]), 1 + self._constant, len(self._columns)
        values = storage[: tables * d * rows].reshape(tables, d, rows)
        scratch = storage[tables * d * rows : self.room(rows)].reshape(_SCRATCH, tables, rows)
        first, second, factor, squares = scratch
        # As the core has it: columns first, then rows, here of one table after another.
        x = values.transpose(1, 0, 2)
        for target, column, centre in zip(x[0], self._columns, self._centres, strict=True):
            # Other types become float64 first, and a centre of 0 leaves a number as it is.
            np.subtract(block[column], centre, target, dtype=np.float64, casting="unsafe")
        x[1:] = 1.0
        x *= self._scale
        shift = round_rows(x, ENTRY_NORM_LOG2, _LEAST_MAGNITUDE, (first, factor))
        self._apply_maps(x, factor)
        shift += round_rows(x, IMAGE_NORM_LOG2, 1.0, (second, factor))
        np.einsum("itr,itr->tr", x, x, out=squares)
        for worker, own, own_shift, own_squares in zip(self.workers, values, shift, squares, strict=True):
            mapped = worker.mapped
            mapped.values, mapped.shift, mapped.squares = own, own_shift, own_squares

    def _apply_maps(self, x: NDArray[np.float64], scratch: NDArray[np.float64]) -> None:
        """Multiply the rows of every table by its lower triangular map, from the last entry to the first."""
        for i in reversed(range(len(x))):
            x[i] *= self._coefficients[i, i]
            for j in range(i):
                x[i] += np.multiply(x[j], self._coefficients[i, j], out=scratch)
