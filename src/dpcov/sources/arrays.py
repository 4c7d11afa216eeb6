"""Tables in memory: numpy arrays and dataframes, read in place, block by block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dtypes import DType
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Block, RowTask
from dpcov.sources._scan import Piece, Stream
from dpcov.sources._table import Table, array_columns, chosen_columns

_SPAN_ROWS = 1 << 16


class _InMemory(Table):
    """Splits a table in memory into spans of rows."""

    @property
    def in_memory(self) -> bool:
        """True: rows keep their places between scans, and are cut by the public number of rows."""
        return True

    def _streams(self, task: RowTask) -> Sequence[Stream]:
        share = -(-self._n_rows // self._threads)
        length = min(_SPAN_ROWS, -(-share // task.block_rows) * task.block_rows)

        def pieces() -> Iterator[Piece]:
            for first in range(0, self._n_rows, length):
                last = min(first + length, self._n_rows)
                yield Piece(first, last - first, partial(self._rows, first, last))

        return [pieces]

    @abstractmethod
    def _rows(self, first: int, last: int) -> Block:
        """Return some rows, one column after another."""


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
        check_array(array.ndim, array.dtype)
        super().__init__(array.shape[0], array_columns(columns, array.shape[1]), threads=threads)
        self._array = array

    def _rows(self, first: int, last: int) -> Block:
        return self._array[first:last].T  # type: ignore[return-value]


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
        wanted = frame_columns(frame.schema, columns)
        super().__init__(len(frame), wanted, threads=threads)
        self._series = [frame.get_column(name) for name in wanted]

    def _rows(self, first: int, last: int) -> Block:
        return [to_numbers(series[first:last]) for series in self._series]


def check_array(dimensions: int, dtype: np.dtype[Any]) -> None:
    """Raise an `ArgumentError` unless an array is two-dimensional and holds real numbers."""
    if dimensions != 2:
        raise ArgumentError(f"data must have two dimensions (rows and columns), got {dimensions}.")
    if dtype.kind not in "biuf":
        raise ArgumentError(f"data must hold real numbers, got dtype {dtype}.")


def frame_columns(schema: Mapping[str, DType], columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return which columns of a dataframe to use; each must be numeric."""
    if not all(isinstance(name, str) for name in schema):
        raise ArgumentError("data has column names that are no strings; rename its columns first.")
    numeric = [name for name, dtype in schema.items() if dtype.is_numeric() or isinstance(dtype, nw.Boolean)]
    return chosen_columns(columns, list(schema), numeric)


def to_numbers(series: nw.Series[Any]) -> NDArray[np.generic]:
    """Convert without an error that could depend on a value; missing becomes NaN."""
    if isinstance(series.dtype, nw.Boolean | nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    return series.to_numpy()
