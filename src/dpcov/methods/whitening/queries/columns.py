"""The same kind of question about each of several columns on its own, in one scan.

The proof note is ``columns.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Query
from dpcov.core.lattice import Block
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import sample_task, sampled_rows
from dpcov.core.query import Table, check_query, whole_number
from dpcov.core.tasks import RowTask, RowWorker
from dpcov.core.units import Units

A = TypeVar("A")


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
        for query in self.queries:
            if getattr(query, "every", 1) != 1:
                raise ArgumentError("a query of one column takes no sample of its own: give every to all.")
            check_query(query, self._part(table))

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact totals of all columns' questions, one after another."""
        part = self._part(table)
        tasks = tuple(
            ColumnTask(query.task(part, bits), column)
            for column, query in zip(self.columns, self.queries, strict=True)
        )
        return sample_task(JointTask(tasks), table.n_rows, self.every, bits)

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
