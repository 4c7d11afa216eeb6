"""Tables in memory: numpy arrays and dataframes, read in place, block by block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dtypes import DType
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.core import ArgumentError, RowTask
from dpcov.sources._scan import Stream, spans
from dpcov.sources._table import Table
from dpcov.sources.encoding import Cells, Columns, ColumnType, Encoding, declared, resolve
from dpcov.sources.encoding.cells import series_cells


class _InMemory(Table):
    """Splits a table in memory into spans of rows."""

    @property
    def in_memory(self) -> bool:
        """True: rows keep their places between scans, and are cut by the public number of rows."""
        return True

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        return spans(self._n_rows, self._threads, task, self._rows)

    @abstractmethod
    def _rows(self, first: int, last: int) -> Sequence[Cells]:
        """Return some rows, one column after another."""


class ArraySource(_InMemory):
    """A two-dimensional numpy array of numbers.

    Parameters
    ----------
    array : ndarray, shape (n_rows, n_columns)
        Any real dtype and memory order; it is read in place.
    columns : sequence of str or mapping, optional
        A name for each column, and its kind if it is a mapping; x0, x1, ... by default.
    threads : int, optional
        Worker threads; all cores by default.
    """

    def __init__(
        self, array: NDArray[np.generic], columns: Columns = None, *, threads: int | None = None
    ) -> None:
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError("data is a masked array; fill the masked entries with NaN first.")
        array = np.asarray(array)
        check_array(array.ndim, array.dtype)
        encoding = array_encoding(columns, array.shape[1], array.dtype)
        super().__init__(array.shape[0], encoding, threads=threads)
        self._array = array

    def _rows(self, first: int, last: int) -> Sequence[Cells]:
        return self._array[first:last].T  # type: ignore[return-value]


class FrameSource(_InMemory):
    """A dataframe in memory that narwhals reads: pandas, polars, pyarrow and others.

    Parameters
    ----------
    frame : narwhals.DataFrame
        Missing values count as NaN.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    threads : int, optional
        Worker threads; all cores by default.
    """

    def __init__(
        self, frame: nw.DataFrame[Any], columns: Columns = None, *, threads: int | None = None
    ) -> None:
        encoding = frame_encoding(frame.schema, columns, nw.to_native(frame))
        super().__init__(len(frame), encoding, threads=threads)
        self._series = [frame.get_column(name) for name in encoding.raw]

    def _rows(self, first: int, last: int) -> Sequence[Cells]:
        return [series_cells(series[first:last]) for series in self._series]


def check_array(dimensions: int, dtype: np.dtype[Any]) -> None:
    """Raise an `ArgumentError` unless an array is two-dimensional and holds real numbers."""
    if dimensions != 2:
        raise ArgumentError(f"data must have two dimensions (rows and columns), got {dimensions}.")
    if dtype.kind not in "biuf":
        raise ArgumentError(f"data must hold real numbers, got dtype {dtype}.")


def array_encoding(columns: Columns, n_columns: int, dtype: np.dtype[Any]) -> Encoding:
    """Return how to read an array, whose columns are called x0, x1, ... by default."""
    if isinstance(columns, Encoding):
        return columns
    schema = declared(columns)
    names = tuple(f"x{i}" for i in range(n_columns)) if schema.names is None else schema.names
    if len(names) != n_columns:
        raise ArgumentError(
            f"columns must name each of the {n_columns} columns of data, got {len(names)} names."
        )
    found = ColumnType("flag" if dtype.kind == "b" else "number")
    return resolve(schema, [(name, found) for name in names])


def frame_encoding(schema: Mapping[str, DType], columns: Columns, native: Any = None) -> Encoding:
    """Return how to read a dataframe; a `native` one of pandas tells the levels of its categories."""
    if not all(isinstance(name, str) for name in schema):
        raise ArgumentError("data has column names that are not strings; rename its columns first.")
    types = [(name, _column_type(name, dtype, native)) for name, dtype in schema.items()]
    return resolve(columns, [(name, replace(found, gaps=_has_room(name, native))) for name, found in types])


def _has_room(name: str, native: Any) -> bool:
    """Whether a column has room for missing values: all but those of which a schema of Arrow denies it.

    Numpy's integers have no room either. But pandas turns a column of them into floats for a single gap, so
    that its type would tell of one row whether a value is missing.
    """
    fields: Any = getattr(native, "schema", None)
    return not hasattr(fields, "metadata") or arrow_field_has_room(fields.field(name))


def arrow_field_has_room(field: Any) -> bool:
    """Whether a field of Arrow has room for missing values; a float always has: NaN."""
    types = require("pyarrow", "arrow").types
    exact = types.is_integer(field.type) or types.is_boolean(field.type) or types.is_decimal(field.type)
    return bool(field.nullable or not exact)


def _column_type(name: str, dtype: DType, native: Any) -> ColumnType:
    if isinstance(dtype, nw.Boolean):
        return ColumnType("flag")
    if dtype.is_numeric():
        return ColumnType("number")
    if isinstance(dtype, nw.Date | nw.Datetime):
        return ColumnType("date")
    if isinstance(dtype, nw.Enum):
        return ColumnType("text", tuple(dtype.categories))
    if isinstance(dtype, nw.Categorical) and hasattr(native, "dtypes"):
        levels = getattr(native.dtypes[name], "categories", None)
        return ColumnType("text", None if levels is None else tuple(levels.tolist()))
    # Whether pandas has text or objects in a column, narwhals finds out from values: both are one here.
    return ColumnType("text" if isinstance(dtype, nw.String | nw.Categorical | nw.Object) else "else")
