"""Rows as scikit-learn hands them over: arrays, dataframes, lists.

What is wrong with a table is told from its shape and dtypes alone, which are public. scikit-learn's own
checks would report NaN, infinities and cells that are no numbers, which are not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from dpcov.arrays import Array
from dpcov.core import ArgumentError
from dpcov.sources.encoding.cells import series_cells

Rows = nw.DataFrame[Any] | NDArray[Any]

_LEAST_ROWS = 2


def read_rows(X: Any) -> Rows:
    """Return `X` as a dataframe or a two-dimensional array of numbers, unread.

    In a list, a cell that is no number counts as missing, and so does a row that is not as long as the first.
    """
    if issparse(X):
        raise ArgumentError("X is sparse, which is not supported; convert it with X.toarray().")
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return _check_width(_numeric_frame(frame))
    except DuplicateError:
        raise ArgumentError("X has two columns of the same name; rename one first.") from None
    rows = _as_array(X)
    if rows.ndim != 2:
        raise ArgumentError(
            f"Expected 2D array, got an array of {rows.ndim} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    _check_dtype(rows.dtype, "X")
    return _check_width(rows)


def to_matrix(rows: Rows) -> Array:
    """Return rows as one array of floats; a missing value is NaN."""
    if isinstance(rows, nw.DataFrame):
        columns = [series_cells(rows.get_column(name)) for name in rows.columns]
        return _floats(np.column_stack(columns))
    return _floats(rows)


def check_enough_rows(rows: Rows) -> None:
    """Raise an `ArgumentError` for fewer rows than a covariance needs."""
    if len(rows) < _LEAST_ROWS:
        raise ArgumentError(
            f"Found array with {len(rows)} sample(s) (shape={rows.shape}) while a minimum of "
            f"{_LEAST_ROWS} is required."
        )


def read_target(y: Any, n_rows: int) -> tuple[Array, str]:
    """Return the target as a vector of `n_rows` floats, and its name if it has one."""
    if y is None:
        raise ArgumentError("requires y to be passed, but the target y is None.")
    series = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    name = ""
    values: NDArray[Any]
    if isinstance(series, nw.DataFrame):
        frame = read_rows(series)
        name, values = names_of(frame)[0], to_matrix(frame)
    elif isinstance(series, nw.Series):
        name = series.name if isinstance(series.name, str) else ""
        if not (series.dtype.is_numeric() or isinstance(series.dtype, nw.Boolean)):
            raise ArgumentError(f"y must hold real numbers, got dtype {series.dtype}.")
        values = series_cells(series)
    else:
        values = _as_array(y)
        _check_dtype(values.dtype, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: y.ravel() is used.",
            DataConversionWarning,
            stacklevel=3,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ArgumentError(f"y must be one column of numbers, got shape {values.shape}.")
    if len(values) != n_rows:
        raise ArgumentError(
            f"X and y must have the same number of rows, got inconsistent numbers of samples: "
            f"[{n_rows}, {len(values)}]."
        )
    return _floats(values), name


def names_of(rows: Rows) -> tuple[str, ...]:
    """Return the columns' names; x0, x1, ... if they have none."""
    return tuple(rows.columns) if isinstance(rows, nw.DataFrame) else default_names(rows.shape[1])


def default_names(count: int) -> tuple[str, ...]:
    """Return the names that an array's columns get."""
    return tuple(f"x{i}" for i in range(count))


def with_target(rows: Rows, target: Array, name: str) -> tuple[Any, tuple[str, ...]]:
    """Return a table with the target as its last column, and the names of its columns."""
    names = (*names_of(rows), name)
    if isinstance(rows, nw.DataFrame):
        column = nw.new_series(name, target, backend=rows.implementation)
        return nw.to_native(rows.with_columns(column)), names
    return np.column_stack([rows, target]), names


def unused_name(wanted: str, taken: Sequence[str]) -> str:
    """Return a name for the target that no feature has."""
    name = wanted or "target"
    while name in taken:
        name += "_"
    return name


def _numeric_frame(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Return the frame with text as names, or say which of its columns are not numeric."""
    schema = frame.schema
    strange = [
        str(name)
        for name, dtype in schema.items()
        if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean))
    ]
    if strange:
        raise ArgumentError(
            f"X has columns that are not numeric: {', '.join(strange)}. Encode them or leave them out."
        )
    if all(isinstance(name, str) for name in schema):
        return frame
    return frame.rename(dict(zip(schema, default_names(len(schema)), strict=True)))


def _as_array(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        raise ArgumentError("a masked array is not supported; fill the masked entries with NaN first.")
    if not isinstance(data, list | tuple):
        return np.asarray(data)
    # The first entry shows the shape, which is public. Whether all others are alike is not told.
    if not data or not _is_list(data[0]):
        return np.array([_number(cell) for cell in data])
    if any(_is_list(cell) for cell in data[0]):
        raise ArgumentError("the lists are nested too deeply; give one list for each row of the table.")
    width = len(data[0])
    missing = [math.nan] * width
    rows = [
        [_number(cell) for cell in row] if _is_list(row) and len(row) == width else missing for row in data
    ]
    return np.array(rows).reshape(len(data), width)


def _is_list(entry: Any) -> bool:
    return isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim > 0)


def _floats(values: NDArray[Any]) -> Array:
    # A number beyond float64 becomes an infinity; a warning would tell that there is one.
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64)


def _number(cell: Any) -> float:
    # A list has no dtype: whether all of its cells are numbers is a fact about rows, and not told.
    if not isinstance(cell, Real):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind == "c":
        raise ArgumentError(f"Complex data not supported: {name} has dtype {dtype}.")
    if dtype.kind not in "biuf":
        raise ArgumentError(
            f"{name} must hold real numbers, got dtype {dtype}. Convert it first: whether every value can be "
            "converted is a fact about the rows, and must not be told by an error here."
        )


def _check_width(rows: Rows) -> Rows:
    if rows.shape[1] < 1:
        raise ArgumentError(
            f"Found array with 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required."
        )
    return rows
