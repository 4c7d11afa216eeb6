"""CSV files under a public rule that no value can break: every record is a row.

A reader that infers types, skips odd lines or stops at a bad value tells about rows: which
ones, or at least that there are some. Here

- the first record names the columns, and every other record, blank lines too, is one row;
- a record with too few or too many fields, and a line that holds no record (``csv_records``), is a row of
  missing values;
- a field that is not a number is a missing value.

So the number of rows is the number of records, and a row is a function of its record alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dpcov._extras import require
from dpcov.core import ArgumentError, RowTask
from dpcov.sources._scan import Piece, Stream
from dpcov.sources._table import Table
from dpcov.sources.arrow import opening
from dpcov.sources.csv_records import Records, read_records
from dpcov.sources.encoding import Cells, Columns, ColumnType, Schema, resolve

HEADER_HIDDEN = (
    "What its first line says is not shown, as without a header that is a person's record: look at the file."
)
_NO_NAMES = ("na", "n/a", "nan", "null", "none", "inf", "infinity")


class CsvSource(Table):
    """CSV files with a header line, separated by commas, in UTF-8.

    Parameters
    ----------
    paths : sequence of str
        Files with the same header.
    check_unchanged : callable
        Raises `SourceChangedError` if a file is not the one that was opened.
    columns : sequence of str or mapping
        Which columns to use, and their kinds if it is a mapping. A CSV file does not say which of
        them hold numbers.
    """

    def __init__(
        self, paths: Sequence[str], check_unchanged: Callable[[], None], columns: Columns = None
    ) -> None:
        self._csv = require("pyarrow.csv", "arrow")
        headers = [opening(path, partial(_header, path)) for path in paths]
        self._header = headers[0]
        if isinstance(columns, Schema) and columns.names is None and not columns.kinds:
            columns = None
        if columns is None:
            raise ArgumentError(
                f"a CSV file does not say which of its columns hold numbers: choose columns. {HEADER_HIDDEN}"
            )
        present = [(name, ColumnType("unsaid")) for name in self._header]
        encoding = resolve(columns, present, hidden=HEADER_HIDDEN)
        for path, header in zip(paths, headers, strict=True):
            if header != headers[0]:
                raise ArgumentError(f"{path} has another header than {paths[0]}.")
        self._files: list[tuple[str, int]] = []
        n_rows = 0
        for path in paths:
            self._files.append((path, n_rows))
            n_rows += opening(path, partial(_count, path))
        super().__init__(n_rows, encoding, check_unchanged=check_unchanged)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task
        return [partial(self._stream, path, first) for path, first in self._files]

    def _stream(self, path: str, first_row: int) -> Iterator[Piece]:
        for records in _rows(path):
            yield Piece(first_row, len(records), partial(self._cells, records))
            first_row += len(records)

    def _cells(self, records: Records) -> Sequence[Cells]:
        texts = self._read(records.tidy(len(self._header)))
        return [texts.column(name).combine_chunks() for name in self._encoding.raw]

    def _read(self, text: bytes) -> Any:
        """Return the chosen columns as text."""
        arrow = require("pyarrow", "arrow")
        return self._csv.read_csv(
            arrow.py_buffer(text),
            read_options=self._csv.ReadOptions(
                column_names=self._header, use_threads=False, block_size=len(text) + 1
            ),
            parse_options=self._csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            convert_options=self._csv.ConvertOptions(
                column_types=dict.fromkeys(self._encoding.raw, "string"),
                include_columns=list(self._encoding.raw),
                check_utf8=False,
            ),
        )


def csv_names(path: str) -> list[str]:
    """Return the names of a file's columns, for someone who said that its first line has them."""
    require("pyarrow", "arrow")
    names: list[str] = opening(path, partial(_header, path))
    if not _look_like_names(names):
        raise ArgumentError(
            f"the first line of {path} does not look like names of columns: is there a header? Each column "
            "needs a name, also the index that pandas writes unless it is told index=False."
        )
    return names


def _header(path: str) -> list[str]:
    with Path(path).open("rb") as file:
        first = next(read_records(file), None)
    record = None if first is None else first.first()
    names = (
        None
        if record is None
        else next(csv.reader(io.StringIO(record.decode(), newline=""), strict=True), None)
    )
    if not names:
        raise ArgumentError(f"{path} has no header: its first line must name the columns.")
    return names


def _look_like_names(header: Sequence[str]) -> bool:
    """Whether a first record may be a header: a name begins with a letter, and no number or gap does."""
    starts = (name.strip().lstrip("_")[:1] for name in header)
    return all(map(str.isalpha, starts)) and not any(name.strip().lower() in _NO_NAMES for name in header)


def _rows(path: str) -> Iterator[Records]:
    """Yield the records after the header."""
    with Path(path).open("rb") as file:
        for index, records in enumerate(read_records(file)):
            rows = records if index else records.without_first()
            if len(rows):
                yield rows


def _count(path: str) -> int:
    return sum(len(records) for records in _rows(path))
