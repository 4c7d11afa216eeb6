"""The exact Gram matrix of each of many random groups of rows: what every question about groups begins with.

The proof note is ``groups.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Block, Charge, Clipping, RowTask, RowWorker
from dpcov.core.budget import Number
from dpcov.core.lattice import Lattice, MappedRows
from dpcov.core.queries.gram import LatticeRows
from dpcov.core.query import Table, whole_number
from dpcov.core.tasks import block_length
from dpcov.core.units import Units
from dpcov.paper.queries.approximate import approximate_arguments, approximate_cost
from dpcov.paper.queries.groups import random_groups

_LARGEST_STATISTIC = 1 << 27


def most_groups(n_columns: int) -> int:
    """Return how many groups' matrices fit into 1 GB: more are refused."""
    return _LARGEST_STATISTIC // n_columns**2


def check_group_size(group_size: int, *, n_rows: int, n_columns: int) -> None:
    """Raise an `ArgumentError` if a table cannot be split into groups of this size."""
    n_groups = n_rows // whole_number(group_size, "group_size")
    if n_groups < 2:
        raise ArgumentError(f"group_size must leave at least two groups of {n_rows} rows, got {group_size}.")
    if n_groups > most_groups(n_columns):
        raise ArgumentError(
            f"{n_groups} groups of {n_columns} columns need more than 1 GB; use groups of at least "
            f"{n_rows // (most_groups(n_columns) + 1) + 1} rows."
        )


class GroupQuery:
    """What questions about random groups of rows have in common: a base of dataclasses."""

    clipping: Clipping
    group_size: int
    epsilon: Number
    delta: Number
    purpose: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What an (epsilon, delta)-DP query costs."""
        return (Charge(self.purpose, approximate_cost(*approximate_arguments(self.epsilon, self.delta))),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table."""
        approximate_arguments(self.epsilon, self.delta)
        self.clipping.check(table)
        check_group_size(self.group_size, n_rows=table.n_rows, n_columns=table.n_columns)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Draw the groups without a look at the rows, and return their Gram matrices."""
        groups, n_groups = random_groups(bits, table.n_rows, self.group_size)
        return GroupGramTask(self.clipping, table.lattice, table.constant, groups, n_groups)


@dataclass(frozen=True, eq=False)
class GroupGramTask:
    """The exact Gram matrix of each group of rows, in lattice units.

    Attributes
    ----------
    groups : ndarray of int64, shape (n_rows,)
        The group of each position of the table, or -1 for none: drawn without a look at the rows.
    """

    clipping: Clipping
    lattice: Lattice
    constant: bool
    groups: NDArray[np.int64]
    n_groups: int

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return min(block_length(self.clipping.lattice_map.n_columns), self.lattice.exact_rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        d = self.clipping.lattice_map.n_columns
        return (self.n_groups, d, d)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _GroupGramWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return the groups of these rows."""
        return self.groups[first_row : first_row + n_rows]

    def with_notes(self, notes: NDArray[np.int64]) -> GroupGramTask:
        """Return the task for rows of these groups."""
        return replace(self, groups=notes)


class _GroupGramWorker:
    def __init__(self, task: GroupGramTask) -> None:
        self._task = task
        self._mapped = MappedRows(task.clipping.lattice_map, task.block_rows)
        self._rows = LatticeRows(task.clipping, task.lattice)
        self._total = np.zeros(task.shape, dtype=np.int64)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        Units.refuse(units)
        # Warnings would tell about rows.
        with np.errstate(all="ignore"):
            self._mapped.load(block, constant=self._task.constant)
            values, squares = self._rows.clip(self._mapped)
        group = self._task.groups[first_row : first_row + len(squares)]
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        if not len(order):
            return
        present, starts = np.unique(group[order], return_index=True)
        ordered = values[:, order]
        # Integers of at most B^2, and sums of no more rows than are exact: no order of adding matters.
        for i, column in enumerate(ordered):
            for j, other in enumerate(ordered[: i + 1]):
                sums = np.add.reduceat(column * other, starts).astype(np.int64)
                self._total[present, i, j] += sums
                if i != j:
                    self._total[present, j, i] += sums

    def total(self) -> NDArray[np.int64]:
        return self._total
