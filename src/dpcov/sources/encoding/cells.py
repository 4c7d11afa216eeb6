"""Cells of a column as a source reads them, before anybody says what they mean.

Numbers and booleans come as numpy arrays, where a missing one is NaN. Text, dates and times come as Arrow
arrays. Whatever else there is, is missing. No conversion here fails, warns or counts: what a cell becomes is
a function of that cell and of the column's type.
"""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Iterable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require

Cells = NDArray[np.generic] | Any
"""A numpy array of real numbers, or an Arrow array of text, dates or times."""

_EXACT = 1 << 53


def arrow_cells(column: Any) -> Cells:
    """Return the cells of an Arrow array, numbers in place if none of them is missing."""
    arrow = require("pyarrow", "arrow")
    types, dtype = arrow.types, column.type
    if types.is_dictionary(dtype):
        return arrow_cells(column.dictionary_decode())
    if is_number(dtype) or types.is_boolean(dtype):
        return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    if is_text(dtype):
        return _as_text(column)
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return column
    return np.full(len(column), np.nan)


def series_cells(series: nw.Series[Any]) -> Cells:
    """Return the cells of a column of a dataframe in memory."""
    if isinstance(series.dtype, nw.Boolean | nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    if series.dtype.is_numeric():
        return series.to_numpy()
    if getattr(nw.to_native(series), "dtype", None) == np.dtype(object):
        return _object_cells(nw.to_native(series))
    column = series.to_arrow()
    return arrow_cells(column.combine_chunks() if hasattr(column, "combine_chunks") else column)


def is_number(dtype: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    types = require("pyarrow", "arrow").types
    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))


def is_text(dtype: Any) -> bool:
    """Whether an Arrow type is one of text, or of bytes that may be text."""
    types = require("pyarrow", "arrow").types
    checks = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(check(dtype) for check in checks) or _is_view(dtype)


def _is_view(dtype: Any) -> bool:
    types = require("pyarrow", "arrow").types
    names = ("is_string_view", "is_binary_view")
    return any(hasattr(types, name) and getattr(types, name)(dtype) for name in names)


def _as_text(column: Any) -> Any:
    """Return text or bytes as text, in place; whether bytes are valid UTF-8 is not looked at."""
    types = require("pyarrow", "arrow").types
    if _is_view(column.type):
        column = column.cast("large_binary")
    if types.is_binary(column.type):
        return column.view("string")
    return column.view("large_string") if types.is_large_binary(column.type) else column


def _object_cells(cells: Iterable[Any]) -> Any:
    """Return cells of any Python types as text; what has no text is missing."""
    arrow = require("pyarrow", "arrow")
    return arrow.array([_text(cell) for cell in cells], arrow.large_binary()).view("large_string")


def _text(cell: Any) -> bytes | None:  # noqa: PLR0911
    """Return the text that a cell of a file would have."""
    try:
        if isinstance(cell, str):
            return cell.encode()
        if isinstance(cell, bytes):
            return cell
        if isinstance(cell, bool | np.bool_):
            return b"true" if cell else b"false"
        if isinstance(cell, dt.date):
            return cell.isoformat().encode()
        if isinstance(cell, numbers.Real):
            value = float(cell)
            whole = value.is_integer() and abs(value) < _EXACT
            return (str(int(value)) if whole else repr(value)).encode()
        return str(cell).encode() if isinstance(cell, numbers.Number) else None
    except Exception:  # noqa: BLE001  (whatever a cell does when it is asked, it is missing then)
        return None
