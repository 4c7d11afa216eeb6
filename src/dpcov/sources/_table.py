"""What all tables share: a public shape, column names, a scan over streams of pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.core import ArgumentError, HeldRows, Report, RowTask, Source, SourceError
from dpcov.sources._held import CopyRows, HeldTable
from dpcov.sources._scan import Stream, available_threads, scan_streams
from dpcov.sources.encoding import Encoding


class EncodedSource(Source, Protocol):
    """A source that says how its rows come from the cells of a table."""

    @property
    def encoding(self) -> Encoding:
        """Which columns are read, and the numbers that a row of them becomes."""


class Table(ABC):
    """A table that threads of this process read.

    Parameters
    ----------
    n_rows : int
        The public number of rows.
    encoding : Encoding
        Which columns are read, and the numbers that a row of them becomes.
    threads : int, optional
        Worker threads; all cores by default.
    check_unchanged : callable, optional
        Raises `SourceChangedError` if the table is not the one that was opened.
    """

    def __init__(
        self,
        n_rows: int,
        encoding: Encoding,
        *,
        threads: int | None = None,
        check_unchanged: Callable[[], None] | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be at least 1, got {threads}.")
        check_shape(n_rows, encoding)
        self._n_rows = n_rows
        self._encoding = encoding
        self._threads = available_threads() if threads is None else threads
        self._check_unchanged = check_unchanged or (lambda: None)
        self.keeps: object = None
        """What must not be removed while the table is read, such as a temporary file."""

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units."""
        return self._n_rows

    @property
    def encoding(self) -> Encoding:
        """Which columns are read, and the numbers that a row of them becomes."""
        return self._encoding

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several; not unless a source says so."""
        return False

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""
        return self._encoding.columns

    @property
    def bounds(self) -> Array:
        """The public lower and upper ends of the columns, which every row keeps."""
        return self._encoding.bounds

    @property
    def in_memory(self) -> bool:
        """False: rows may come in another order each time, and how they are cut may depend on them."""
        return False

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over all rows, and stop if the table is not the one that was opened.

        Rows are reported if they are in memory: a cut into files, batches or lines may depend on rows.
        """
        self._check_unchanged()
        told = report if self.in_memory else None
        try:
            streams = self._streams(task)
            total = scan_streams(
                task, streams, self._n_rows, self._encoding, threads=self._threads, report=told
            )
        except SourceError:
            # A file that was replaced meanwhile may well be unreadable: say so first.
            self._check_unchanged()
            raise
        self._check_unchanged()
        return total

    def hold(self, positions: NDArray[np.int64], report: Report | None = None) -> HeldRows:
        """Keep the rows at these positions in the memory of this process, in this order."""
        if self.grouped:
            raise ArgumentError("units of several rows cannot be held.")
        copied = CopyRows(positions, self._n_rows, len(self.columns))
        self.scan(copied, report)
        return HeldTable(copied.rows, self._threads)

    @property
    def threads(self) -> int:
        """How many worker threads it has."""
        return self._threads

    def streams(self, task: RowTask | None) -> Sequence[Stream]:
        """Return the parts of the table, in order, for a table that is made of this one."""
        return self._streams(task)

    @abstractmethod
    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        """Return the parts of the table, in order; a `task` may wish for a cut that suits it."""


def check_shape(n_rows: int, encoding: Encoding) -> None:
    """Raise an `ArgumentError` if the table has no rows or no columns."""
    if n_rows < 1:
        raise ArgumentError("data has no rows.")
    if not encoding.columns:
        raise ArgumentError("data has no columns.")
