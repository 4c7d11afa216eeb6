"""Encodings: from the columns that a table has to the numbers that a release is about, row by row.

The proof note is ``encoding.md``.
"""

from dpcov.sources.encoding.categories import CategoryKind, category
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.dates import DateKind, date
from dpcov.sources.encoding.encoding import COMPLETE, PAIRWISE, Encoding
from dpcov.sources.encoding.files import (
    encoding_from_plain,
    encoding_to_plain,
    read_schema,
    schema_template,
)
from dpcov.sources.encoding.ids import IdKind
from dpcov.sources.encoding.kinds import FlagKind, Kind, NumberKind, flag, number
from dpcov.sources.encoding.schema import Bounds, Columns, ColumnType, Schema, declared, resolve

__all__ = [
    "COMPLETE", "PAIRWISE", "Bounds", "CategoryKind", "Cells", "ColumnType", "Columns", "DateKind",
    "Encoding", "FlagKind", "IdKind", "Kind", "NumberKind", "Schema", "category", "date", "declared",
    "encoding_from_plain", "encoding_to_plain", "flag", "number", "read_schema", "resolve", "schema_template",
]  # fmt: skip
