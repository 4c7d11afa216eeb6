"""Row tasks: what a source runs over the rows, and all that comes back.

A task is a small picklable description. Its worker takes blocks of rows and adds up an array
of int64 numbers; the totals of several workers simply add up. What a row contributes depends on
that row alone (for groups and samples, also on its position), so every split of the table into
blocks, threads and machines gives the same bits. ``order.md`` says why privacy asks no more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcov.core.passes import Block
from dpcov.core.units import Units

Report = Callable[[int], None]
"""Called with the number of rows just read, by a source in memory: others may be cut by private values."""

# 7 MB: a step over a block takes far longer than threads take to hand over the interpreter, and no longer for
# an entry than over 2 MB. No powers of two: columns that far apart compete for cache lines.
_BLOCK_ENTRIES = 840_000
_SHORTEST_BLOCK = 488
_LONGEST_BLOCK = 32_760


class RowWorker(Protocol):
    """Adds up what blocks of rows contribute."""

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        """Add a block of at most ``task.block_rows`` rows; `first_row` is its place in the table.

        Where several rows make a unit, the block consists of whole `units`, places count units, and a unit
        that is longer than a block comes alone.
        """

    def total(self) -> NDArray[np.int64]:
        """Return the sum so far."""


class RowTask(Protocol):
    """A picklable description of what to add up over the rows."""

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return what the task knows about these positions, such as their groups; empty if nothing."""
        return np.empty(0, dtype=np.int64)

    def with_notes(self, notes: NDArray[np.int64]) -> RowTask:  # noqa: ARG002
        """Return the task for some rows alone, numbered from 0; without notes, what all machines share."""
        return self


class HeldRows(Protocol):
    """Some rows of a source, in an order of their own, which stay where its rows are."""

    def scan(self, task: RowTask, n_rows: int, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task`, which must not look at positions, over the first `n_rows` of them; return the total."""


class Source(Protocol):
    """A table whose rows stay where they are.

    A source moves blocks of rows to a task's workers and adds up their totals. It knows nothing
    about privacy, and must treat every row alike.
    """

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units."""

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several, whose number of rows is not public."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The public lower and upper ends of the columns, shape (columns, 2), which every row keeps."""

    @property
    def in_memory(self) -> bool:
        """Whether rows lie in this process: they keep their places, and are cut by public numbers alone."""

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over all rows or units, each once and under a position of its own; return the total."""

    def hold(self, positions: NDArray[np.int64], report: Report | None = None) -> HeldRows:
        """Keep the rows at these positions in one scan, in this order: later scans of them read the same."""


def block_length(n_columns: int) -> int:
    """Return a block length that suits caches and threads."""
    fitting = _BLOCK_ENTRIES // n_columns // 24 * 24
    return min(max(fitting, _SHORTEST_BLOCK), _LONGEST_BLOCK)
