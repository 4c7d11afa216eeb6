"""Ids: the column that says to whom a row belongs. It becomes no number, and is compared as text.

Files of one table may have a column in several types: one missing value turns whole numbers into floats. So
the text of an id is that of its value, whatever its type, and never that of another person by accident of
rounding: whole numbers keep all their digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcov._extras import require
from dpcov.arrays import Array
from dpcov.core import ArgumentError
from dpcov.sources.encoding.cells import Cells, is_number, is_text
from dpcov.sources.encoding.encoding import Encoding
from dpcov.sources.encoding.kinds import Ends, Kind
from dpcov.sources.encoding.schema import Columns, declared
from dpcov.sources.encoding.texts import MISSING

_EXACT = 1 << 53


@dataclass(frozen=True)
class IdKind(Kind):
    """Whose a row is: no column of numbers comes of it.

    With `even`, every person counts the same, not every row.
    """

    reads = frozenset({"number", "flag", "text", "date"})

    even: bool = False
    gaps: bool | None = None

    def names(self, column: str) -> tuple[str, ...]:
        """Return no name."""
        del column
        return ()

    def bounds(self) -> tuple[Ends, ...]:
        """Return no bounds."""
        return ()

    def encode(self, cells: Cells) -> list[Array]:
        """Return no numbers."""
        del cells
        return []


def with_ids(columns: Columns, own: str, *, even: bool) -> Columns:
    """Return what is told about columns, and that `own` says whose a row is."""
    if isinstance(columns, Encoding):
        return columns
    schema = declared(columns)
    if own in schema.kinds or (schema.names is not None and own in schema.names):
        raise ArgumentError(f"columns must not contain {own}, which is the privacy_unit.")
    names = None if schema.names is None else (*schema.names, own)
    return replace(schema, names=names, kinds={**schema.kinds, own: IdKind(even)})


def without_id(encoding: Encoding) -> Encoding:
    """Return the encoding of the numbers alone."""
    read = zip(encoding.raw, encoding.kinds, strict=True)
    kept = [(raw, kind) for raw, kind in read if not isinstance(kind, IdKind)]
    return replace(encoding, raw=tuple(raw for raw, _ in kept), kinds=tuple(kind for _, kind in kept))


def find_ids(encoding: Encoding) -> tuple[int, IdKind] | None:
    """Return which of the columns that are read says whose a row is, if one does."""
    found = ((place, kind) for place, kind in enumerate(encoding.kinds) if isinstance(kind, IdKind))
    return next(found, None)


def id_texts(column: Any) -> Any:
    """Return the ids of an Arrow array as text in bytes; null where there is none."""
    arrow = require("pyarrow", "arrow")
    types, dtype = arrow.types, column.type
    binary = arrow.large_binary()
    if types.is_dictionary(dtype):
        return id_texts(column.dictionary_decode())
    if types.is_integer(dtype) or types.is_boolean(dtype):
        return column.cast("large_string").cast(binary)
    if is_number(dtype):
        return _number_texts(column.cast("float64", safe=False))
    if is_text(dtype):
        texts = column.cast(binary)
        missing = arrow.array([word.encode() for word in MISSING], binary)
        compute = require("pyarrow.compute", "arrow")
        return compute.if_else(compute.is_in(texts, missing), arrow.scalar(None, binary), texts)
    if types.is_date(dtype) or types.is_timestamp(dtype):
        moments = column.cast(arrow.timestamp("us", getattr(dtype, "tz", None)), safe=False)
        return moments.cast("int64").cast("large_string").cast(binary)
    return arrow.nulls(len(column), binary)


def _number_texts(column: Any) -> Any:
    """Return floats as text: whole ones as whole numbers have it."""
    arrow = require("pyarrow", "arrow")
    compute = require("pyarrow.compute", "arrow")
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        whole = (np.rint(values) == values) & (np.abs(values) < _EXACT)
        integers = np.where(whole, values, 0.0).astype(np.int64)
    texts = compute.if_else(
        arrow.array(whole),
        arrow.array(integers).cast("large_string"),
        arrow.array(values).cast("large_string"),
    )
    known = arrow.array(values == values)  # noqa: PLR0124  (NaN is not equal to itself)
    return compute.if_else(known, texts, arrow.scalar(None, arrow.large_string())).cast(arrow.large_binary())
