"""What all tables share: a public shape, column names, a scan over streams of pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError, Report, RowTask, SourceError
from dpcov.sources._scan import Stream, available_threads, scan_streams


class Table(ABC):
    """A table that threads of this process read.

    Parameters
    ----------
    n_rows : int
        The public number of rows.
    columns : tuple of str
        The public column names.
    threads : int, optional
        Worker threads; all cores by default.
    check_unchanged : callable, optional
        Raises `SourceChangedError` if the table is not the one that was opened.
    """

    def __init__(
        self,
        n_rows: int,
        columns: tuple[str, ...],
        *,
        threads: int | None = None,
        check_unchanged: Callable[[], None] | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be at least 1, got {threads}.")
        check_shape(n_rows, columns)
        self._n_rows = n_rows
        self._columns = columns
        self._threads = available_threads() if threads is None else threads
        self._check_unchanged = check_unchanged or (lambda: None)

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units."""
        return self._n_rows

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several; not unless a source says so."""
        return False

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""
        return self._columns

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
            total = scan_streams(task, self._streams(task), self._n_rows, self._threads, told)
        except SourceError:
            # A file that was replaced meanwhile may well be unreadable: say so first.
            self._check_unchanged()
            raise
        self._check_unchanged()
        return total

    @property
    def threads(self) -> int:
        """How many worker threads it has."""
        return self._threads

    def streams(self, task: RowTask) -> Sequence[Stream]:
        """Return the parts of the table, in order, for a table that is made of this one."""
        return self._streams(task)

    @abstractmethod
    def _streams(self, task: RowTask) -> Sequence[Stream]:
        """Return the parts of the table, in order."""


def check_shape(n_rows: int, columns: Sequence[str]) -> None:
    """Raise an `ArgumentError` if the table has no rows or no columns."""
    if n_rows < 1:
        raise ArgumentError("data has no rows.")
    if not columns:
        raise ArgumentError("data has no columns.")


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return `columns` as a tuple, or raise an `ArgumentError` if they are no list of names."""
    if not isinstance(columns, Sequence) or isinstance(columns, str | bytes):
        raise ArgumentError("columns must be a list of column names.")
    if not all(isinstance(name, str) for name in columns):
        raise ArgumentError("columns must be a list of column names.")
    return tuple(columns)


def array_columns(columns: Sequence[str] | None, n_columns: int) -> tuple[str, ...]:
    """Return a name for each column of an array: x0, x1, ... by default."""
    if columns is None:
        return tuple(f"x{i}" for i in range(n_columns))
    names = column_names(columns)
    if len(names) != n_columns:
        raise ArgumentError(
            f"columns must name each of the {n_columns} columns of data, got {len(names)} names."
        )
    if len(set(names)) != len(names):
        raise ArgumentError("columns must not repeat a name.")
    return names


def chosen_columns(
    columns: Sequence[str] | None, present: Sequence[str], numeric: Sequence[str], *, listed: bool = True
) -> tuple[str, ...]:
    """Return the columns to use, all by default; each must exist, once, and be numeric.

    An error lists those that are there, unless they are not to be `listed`.
    """
    if len(set(present)) != len(present):
        raise ArgumentError("data has two columns of the same name; rename one first.")
    wanted = tuple(present) if columns is None else column_names(columns)
    missing = [name for name in wanted if name not in present]
    if missing:
        there = " ".join([did_you_mean(missing, present), f"It has: {', '.join(present)}."]).strip()
        raise ArgumentError(
            f"columns not in data: {', '.join(missing)}. "
            + (there if listed else "Its first line does not look like names of columns: is there a header?")
        )
    if len(set(wanted)) != len(wanted):
        raise ArgumentError("columns must not repeat a name.")
    strange = [name for name in wanted if name not in numeric]
    if strange:
        raise ArgumentError(
            f"columns that are not numeric: {', '.join(strange)}. "
            + (f"Choose columns among: {', '.join(numeric)}." if numeric else "No column is numeric.")
        )
    return wanted
