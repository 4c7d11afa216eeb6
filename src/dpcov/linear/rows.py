"""New rows for a map or a model: a table's columns are found by name, an array's by their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError


def read_rows(rows: Any, columns: Sequence[str], argument: str = "rows") -> Array:
    """Return new rows as an array with these columns, in this order.

    Parameters
    ----------
    rows : array, dataframe, series or mapping
        Named columns, and the names of a single row, may come in any order; each must be there, and no
        other. An array has one column for each name, in order; a vector is one row.
    columns : sequence of str
        The names that the rows must have.
    argument : str
        What the rows are called in errors.

    Examples
    --------
    >>> from dpcov.linear.rows import read_rows
    >>> read_rows({"weight": [62.0, 70.0], "height": [170.0, 180.0]}, ["height", "weight"])
    array([[170.,  62.],
           [180.,  70.]])
    >>> read_rows([170.0, 62.0], ["height", "weight"])
    array([[170.,  62.]])
    """
    named = _named(rows, columns)
    if named is not None:
        # Names first: a column that is not wanted may well hold text.
        _check_names(list(named), columns, argument)
        values_of = {name: np.atleast_1d(_numbers(named[name], argument)) for name in columns}
        if len({len(values) for values in values_of.values()}) > 1:
            raise ArgumentError(f"{argument} must have the same number of values in every column.")
        return np.column_stack([values_of[name] for name in columns])
    values = _numbers(rows, argument)
    if values.ndim == 1 and (len(values) == len(columns) or not values.size):
        values = values.reshape(-1, len(columns))
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise ArgumentError(
            f"{argument} must have {len(columns)} column{'' if len(columns) == 1 else 's'} "
            f"({', '.join(columns)}), got shape {values.shape}."
        )
    return values


def _named(rows: Any, columns: Sequence[str]) -> dict[str, Any] | None:
    """Return columns by name; None if `rows` has no names."""
    if isinstance(rows, Mapping):
        return {str(name): values for name, values in rows.items()}
    if isinstance(rows, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v2 as nw  # noqa: PLC0415  (takes long, and arrays do without)

    found = nw.from_native(rows, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.DataFrame):
        # Names of a frame need not be text: those of pandas may be numbers, which no column here has.
        return {str(name): found.get_column(name).to_numpy() for name in found.columns}
    if not isinstance(found, nw.Series):
        return None
    index = getattr(rows, "index", None)
    if index is not None and set(map(str, index)) & set(columns):
        return {str(name): [value] for name, value in zip(index, rows, strict=True)}
    return {str(found.name): found.to_numpy()}


def _numbers(values: Any, argument: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{argument} must hold numbers only.") from None


def _check_names(given: Sequence[str], columns: Sequence[str], argument: str) -> None:
    missing = [name for name in columns if name not in given]
    unknown = [name for name in given if name not in columns]
    if not (missing or unknown):
        return
    parts = [f"{_are(missing)} missing"] if missing else []
    if unknown:
        parts.append(f"{_are(unknown)} not part of it")
    hint = did_you_mean(unknown, missing) if missing else ""
    wanted = ", ".join(repr(name) for name in columns)
    sentences = [f"{argument}: {', and '.join(parts)}.", hint, f"Give exactly [{wanted}]."]
    raise ArgumentError(" ".join(filter(None, sentences)))


def _are(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
