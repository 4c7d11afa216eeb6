"""Some rows of a table, read in one scan and kept in the memory of the process that has read them.

On a cluster that is the process of a worker: a part of the sample lies there, and each of its rows knows its
place in the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.core import Block, Report, RowTask
from dpcov.core.queries.sample import copy_rows
from dpcov.core.units import Units
from dpcov.sources._scan import scan_streams, spans
from dpcov.sources.encoding import Cells, Encoding, NumberKind

_COPIED_TOGETHER = 1 << 15
# With more rows for each that is kept, a place for all would take longer than sorting those that are.
_MANY_TIMES = 8


class HeldTable:
    """Rows of numbers in memory, in an order of their own.

    Parameters
    ----------
    rows : ndarray, shape (n_rows, n_columns)
        What rows of a table have become.
    threads : int
        Worker threads.
    """

    def __init__(self, rows: Array, threads: int) -> None:
        self._rows, self._threads = rows, threads
        names = tuple(f"x{i}" for i in range(rows.shape[1]))
        self._encoding = Encoding(names, (NumberKind(),) * len(names))

    def scan(self, task: RowTask, n_rows: int, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over the first `n_rows` rows; return the total."""
        streams = spans(n_rows, self._threads, task, self._some)
        return scan_streams(task, streams, n_rows, self._encoding, threads=self._threads, report=report)

    def _some(self, first: int, last: int) -> Sequence[Cells]:
        return self._rows[first:last].T  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class HeldPart:
    """A part of the rows that are kept, on a worker of a cluster.

    Attributes
    ----------
    rows : ndarray, shape (k, n_columns)
        What rows of a table have become.
    places : ndarray of int64, shape (k,)
        Their places among all that are kept, in ascending order.
    """

    rows: Array = field(repr=False)
    places: NDArray[np.int64] = field(repr=False)

    def scan(self, task: RowTask, n_rows: int) -> tuple[int, NDArray[np.int64]]:
        """Run `task` over those of the first `n_rows` that are here; return how many, and the total."""
        own = int(np.searchsorted(self.places, n_rows))
        return own, HeldTable(self.rows, threads=1).scan(task, own)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Which rows of a partition are kept, and their places among all that are, in ascending order."""

    rows: NDArray[np.int64] = field(repr=False)
    places: NDArray[np.int64] = field(repr=False)


NONE_CHOSEN = Chosen(*[np.empty(0, dtype=np.int64)] * 2)


def choose(positions: NDArray[np.int64], lengths: Sequence[int]) -> list[Chosen]:
    """Return what is kept of each of several partitions, which follow each other."""
    order = np.argsort(positions)
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts = np.searchsorted(positions[order], ends[:-1])
    found = []
    for some, end, length in zip(np.split(order, cuts), ends, lengths, strict=True):
        places = np.sort(some)
        found.append(Chosen(positions[places] - (end - length), places))
    return found


class CopyRows(RowTask):
    """Copies the rows at some positions: a task of sources, whose total is nothing.

    Workers of one process write to the same array, each to places of its own.

    Parameters
    ----------
    positions : ndarray of int64
        Which rows, in the order in which they are kept.
    n_rows : int
        How many rows the table has.
    n_columns : int
        How many columns.
    """

    def __init__(self, positions: NDArray[np.int64], n_rows: int, n_columns: int) -> None:
        self.rows = np.empty((len(positions), n_columns))
        self.chosen = _finder(positions, n_rows)

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return _COPIED_TOGETHER

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (0,)

    def worker(self) -> _CopyWorker:
        """Return a new worker."""
        return _CopyWorker(self)


class _CopyWorker:
    def __init__(self, task: CopyRows) -> None:
        self._chosen = task.chosen
        self._copied = np.empty((_COPIED_TOGETHER, task.rows.shape[1]))
        self._rows, self._copies = _whole(task.rows), _whole(self._copied)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        del units
        chosen, places = self._chosen(first_row, first_row + len(block[0]))
        copy_rows(block, chosen, self._copied[: len(chosen)].T)
        self._rows[places] = self._copies[: len(chosen)]

    def total(self) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)


def _whole(rows: Array) -> NDArray[np.void]:
    """Return the same memory, each row as one item: numpy moves items faster than rows of numbers."""
    items: NDArray[np.void] = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return items


Finder = Callable[[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Returns which of the rows between two positions are kept, counted from the first, and at which places."""


def _finder(positions: NDArray[np.int64], n_rows: int) -> Finder:
    if n_rows <= _MANY_TIMES * len(positions):
        places = np.full(n_rows, -1, dtype=np.int64)
        places[positions] = np.arange(len(positions))

        def find(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            chosen = np.flatnonzero(places[first:last] >= 0)
            return chosen, places[first + chosen]

        return find
    order = np.argsort(positions)
    ordered = positions[order]

    def search(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        begin, end = np.searchsorted(ordered, [first, last])
        return ordered[begin:end] - first, order[begin:end]

    return search
