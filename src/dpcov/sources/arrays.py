"""Tables in memory: numpy arrays and dataframes, read in place, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov.core import SAMPLE_CHUNK, ArgumentError, Block, RowTask, RowWorker
from dpcov.sources._threads import Span, available_threads, scan_spans

_SPAN_ROWS = 1 << 16


class _InMemory(ABC):
    """Splits a table into spans of rows and its spans into blocks."""

    def __init__(self, n_rows: int, columns: tuple[str, ...], threads: int | None) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be at least 1, got {threads}.")
        if n_rows < 1:
            raise ArgumentError("data has no rows.")
        if not columns:
            raise ArgumentError("data has no columns.")
        self._n_rows = n_rows
        self._columns = columns
        self._threads = available_threads() if threads is None else threads

    @property
    def n_rows(self) -> int:
        """The public number of rows."""
        return self._n_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""
        return self._columns

    @property
    def in_memory(self) -> bool:
        """True: rows keep their places between scans."""
        return True

    def scan(self, task: RowTask, *, every: int = 1) -> NDArray[np.int64]:
        """Run `task` over all rows, or over every `every`-th run of `SAMPLE_CHUNK` rows."""

        def feed(worker: RowWorker, span: Span) -> None:
            rows = self._rows(span)
            for first in range(0, span[1] - span[0], task.block_rows):
                last = min(first + task.block_rows, span[1] - span[0])
                worker.add(_cut(rows, first, last), span[0] + first)

        return scan_spans(task, self._spans(every, task.block_rows), feed, self._threads)

    def _spans(self, every: int, block_rows: int) -> list[Span]:
        if every > 1:
            length, step = SAMPLE_CHUNK, SAMPLE_CHUNK * every
        else:
            share = -(-self._n_rows // self._threads)
            length = step = min(_SPAN_ROWS, -(-share // block_rows) * block_rows)
        return [(first, min(first + length, self._n_rows)) for first in range(0, self._n_rows, step)]

    @abstractmethod
    def _rows(self, span: Span) -> Block:
        """Return some rows, one column after another."""


def _cut(block: Block, first: int, last: int) -> Block:
    if isinstance(block, np.ndarray):
        return block[:, first:last]
    return [column[first:last] for column in block]


class ArraySource(_InMemory):
    """A two-dimensional numpy array of numbers.

    Parameters
    ----------
    array : ndarray, shape (n_rows, n_columns)
        Any real dtype and memory order; it is read in place.
    columns : sequence of str, optional
        A name for each column; x0, x1, ... by default.
    threads : int, optional
        Worker threads; all cores by default.
    """

    def __init__(
        self, array: NDArray[np.generic], columns: Sequence[str] | None = None, *, threads: int | None = None
    ) -> None:
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError("data is a masked array; fill the masked entries with NaN first.")
        array = np.asarray(array)
        if array.ndim != 2:
            raise ArgumentError(f"data must have two dimensions (rows and columns), got {array.ndim}.")
        if array.dtype.kind not in "biuf":
            raise ArgumentError(f"data must hold real numbers, got dtype {array.dtype}.")
        names = tuple(f"x{i}" for i in range(array.shape[1])) if columns is None else _names(columns)
        if len(names) != array.shape[1]:
            raise ArgumentError(
                f"columns must name each of the {array.shape[1]} columns of data, got {len(names)} names."
            )
        if len(set(names)) != len(names):
            raise ArgumentError("columns must not repeat a name.")
        super().__init__(array.shape[0], names, threads)
        self._array = array

    def _rows(self, span: Span) -> Block:
        return self._array[span[0] : span[1]].T  # type: ignore[return-value]


class FrameSource(_InMemory):
    """A dataframe in memory that narwhals reads: pandas, polars, pyarrow and others.

    Parameters
    ----------
    frame : narwhals.DataFrame
        Missing values count as NaN.
    columns : sequence of str, optional
        Which columns to use; all of them by default.
    threads : int, optional
        Worker threads; all cores by default.
    """

    def __init__(
        self,
        frame: nw.DataFrame[Any],
        columns: Sequence[str] | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        if not all(isinstance(name, str) for name in frame.columns):
            raise ArgumentError("data has column names that are no strings; rename its columns first.")
        wanted = tuple(frame.columns) if columns is None else _names(columns)
        check_columns(wanted, frame.columns, _numeric_columns(frame))
        super().__init__(len(frame), wanted, threads)
        self._series = [frame.get_column(name) for name in wanted]

    def _rows(self, span: Span) -> Block:
        return [_to_numbers(series[span[0] : span[1]]) for series in self._series]


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(columns, Sequence) or isinstance(columns, str | bytes):
        raise ArgumentError("columns must be a list of column names.")
    if not all(isinstance(name, str) for name in columns):
        raise ArgumentError("columns must be a list of column names.")
    return tuple(columns)


def check_columns(wanted: Sequence[str], present: Sequence[str], numeric: Sequence[str]) -> None:
    """Raise an `ArgumentError` unless all `wanted` columns exist, once each, and are numeric."""
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ArgumentError(f"columns not in data: {', '.join(missing)}. It has: {', '.join(present)}.")
    if len(set(wanted)) != len(wanted):
        raise ArgumentError("columns must not repeat a name.")
    strange = [name for name in wanted if name not in numeric]
    if strange:
        raise ArgumentError(
            f"columns that are not numeric: {', '.join(strange)}. "
            f"Choose with columns=[...] among: {', '.join(numeric) or 'none are'}."
        )


def _numeric_columns(frame: nw.DataFrame[Any]) -> list[str]:
    return [
        name for name, dtype in frame.schema.items() if dtype.is_numeric() or isinstance(dtype, nw.Boolean)
    ]


def _to_numbers(series: nw.Series[Any]) -> NDArray[np.generic]:
    """Convert without an error that could depend on a value; missing becomes NaN."""
    if isinstance(series.dtype, nw.Boolean | nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    return series.to_numpy()
