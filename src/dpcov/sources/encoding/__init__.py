"""Encodings: from the columns that a table has to the numbers that a release is about, row by row."""

from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.encoding import Encoding
from dpcov.sources.encoding.kinds import FlagKind, Kind, NumberKind, flag, number
from dpcov.sources.encoding.schema import Bounds, Columns, ColumnType, Schema, declared, resolve

__all__ = [
    "Bounds", "Cells", "ColumnType", "Columns", "Encoding", "FlagKind", "Kind", "NumberKind", "Schema",
    "declared", "flag", "number", "resolve",
]  # fmt: skip
