"""Row tasks: what a source runs over the rows, and all that comes back.

A task is a small picklable description. Its worker takes blocks of rows and adds up an array
of int64 numbers; the totals of several workers simply add up. What a row contributes depends on
that row alone (for groups, also on its public position), so every split of the table into
blocks, threads and machines gives the same bits.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcov.core.lattice import Block

SAMPLE_CHUNK = 1024
"""A scan of every k-th part of the rows takes every k-th run of this many rows."""

# No powers of two: columns that lie a power of two apart compete for the same cache lines.
_BLOCK_ENTRIES = 200_000
_SHORTEST_BLOCK = 488
_LONGEST_BLOCK = 8168


class RowWorker(Protocol):
    """Adds up what blocks of rows contribute."""

    def add(self, block: Block, first_row: int) -> None:
        """Add a block of at most ``task.block_rows`` rows; `first_row` is its place in the table."""

    def total(self) -> NDArray[np.int64]:
        """Return the sum so far."""


class RowTask(Protocol):
    """A picklable description of what to add up over the rows."""

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""


class Source(Protocol):
    """A table whose rows stay where they are.

    A source moves blocks of rows to a task's workers and adds up their totals. It knows nothing
    about privacy, and must treat every row alike.
    """

    @property
    def n_rows(self) -> int:
        """The public number of rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""

    @property
    def in_memory(self) -> bool:
        """Whether rows keep their places between scans, which run in threads of this process."""

    def scan(self, task: RowTask, *, every: int = 1) -> NDArray[np.int64]:
        """Run `task` over all rows, or over every `every`-th run of `SAMPLE_CHUNK` rows."""


def sampled_rows(n_rows: int, every: int) -> int:
    """Return how many rows a scan with this `every` reads."""
    chunks, rest = divmod(n_rows, SAMPLE_CHUNK)
    whole = -(-chunks // every)
    return whole * SAMPLE_CHUNK + (rest if chunks % every == 0 else 0)


def block_length(n_columns: int) -> int:
    """Return a block length that keeps a block in the cache."""
    fitting = _BLOCK_ENTRIES // n_columns // 8 * 8
    return min(max(fitting, _SHORTEST_BLOCK), _LONGEST_BLOCK)
