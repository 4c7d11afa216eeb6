"""CSV files under a public rule that no value can break: every line is a row.

A reader that infers types, skips odd lines or stops at a bad value tells about rows: which
ones, or at least that there are some. Here

- the first line names the columns, and every other line, blank ones too, is one row;
- a line with too few or too many fields, an unclosed quote or a stray carriage return is a row
  of missing values;
- a field that is not a number is a missing value.

So the number of rows is the number of lines, and a row is a function of its line alone.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.arrays import Array
from dpcov.core import ArgumentError, Block, RowTask
from dpcov.sources._scan import Piece, Stream
from dpcov.sources._table import Table, chosen_columns

_BLOCK_BYTES = 1 << 22
_NEWLINE, _RETURN, _QUOTE, _COMMA = b"\n"[0], b"\r"[0], b'"'[0], b","[0]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvSource(Table):
    """CSV files with a header line, separated by commas, in UTF-8.

    Parameters
    ----------
    paths : sequence of str
        Files with the same header.
    check_unchanged : callable
        Raises `SourceChangedError` if a file is not the one that was opened.
    columns : sequence of str
        Which columns to use. A CSV file does not say which of them hold numbers.
    """

    def __init__(
        self, paths: Sequence[str], check_unchanged: Callable[[], None], columns: Sequence[str] | None = None
    ) -> None:
        self._csv = require("pyarrow.csv", "arrow")
        headers = [_header(path) for path in paths]
        for path, header in zip(paths, headers, strict=True):
            if header != headers[0]:
                raise ArgumentError(f"{path} has another header than {paths[0]}.")
        if columns is None:
            raise ArgumentError(
                "a CSV file does not say which of its columns hold numbers; "
                f"choose columns among: {', '.join(headers[0])}."
            )
        self._header = headers[0]
        wanted = chosen_columns(columns, self._header, self._header)
        self._files: list[tuple[str, int]] = []
        n_rows = 0
        for path in paths:
            self._files.append((path, n_rows))
            n_rows += sum(_count_lines(block) for block in _blocks(path))
        super().__init__(n_rows, wanted, check_unchanged=check_unchanged)

    def _streams(self, task: RowTask) -> Sequence[Stream]:
        del task
        return [partial(self._stream, path, first) for path, first in self._files]

    def _stream(self, path: str, first_row: int) -> Iterator[Piece]:
        for block in _blocks(path):
            n_rows = _count_lines(block)
            yield Piece(first_row, n_rows, partial(self._numbers, block))
            first_row += n_rows

    def _numbers(self, block: bytes) -> Block:
        tidy = tidy_lines(block, len(self._header))
        try:
            batch = self._read(tidy, "float64")
        except require("pyarrow", "arrow").ArrowInvalid:
            texts = self._read(tidy, "string")
            return [_parse(texts.column(name)) for name in self._columns]
        return [batch.column(name).to_numpy() for name in self._columns]

    def _read(self, block: bytes, dtype: str) -> Any:
        arrow = require("pyarrow", "arrow")
        return self._csv.read_csv(
            arrow.py_buffer(block),
            read_options=self._csv.ReadOptions(
                column_names=self._header, use_threads=False, block_size=len(block) + 1
            ),
            parse_options=self._csv.ParseOptions(ignore_empty_lines=False),
            convert_options=self._csv.ConvertOptions(
                column_types=dict.fromkeys(self._columns, dtype),
                include_columns=list(self._columns),
                check_utf8=False,
            ),
        )


def _header(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            line = file.readline().removeprefix(_BYTE_ORDER_MARK).decode().rstrip("\r\n")
        names = next(csv.reader([line], strict=True), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"{path} cannot be read ({type(error).__name__}).") from None
    if not names:
        raise ArgumentError(f"{path} has no header: its first line must name the columns.")
    return names


def _blocks(path: str) -> Iterator[bytes]:
    """Yield the lines after the header in blocks of whole lines."""
    with Path(path).open("rb") as file:
        file.readline()
        rest: list[bytes] = []
        while block := file.read(_BLOCK_BYTES):
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*rest, block[:end]])
                rest = [block[end:]] if end < len(block) else []
            else:
                rest.append(block)
        if rest:
            yield b"".join([*rest, b"\n"])


def _count_lines(block: bytes) -> int:
    return block.count(b"\n")


def tidy_lines(block: bytes, n_fields: int) -> bytes:
    """Return the block with every line that is not made of `n_fields` fields replaced by an empty one.

    Parameters
    ----------
    block : bytes
        Whole lines.
    n_fields : int
        How many fields the header has.
    """
    text = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    commas = np.flatnonzero(text == _COMMA)
    bad = np.zeros(len(ends), dtype=np.bool_)
    if b"\r" in block:
        stray = np.flatnonzero(text == _RETURN)
        bad[np.searchsorted(ends, stray[text[stray + 1] != _NEWLINE])] = True
    if _BYTE_ORDER_MARK in block:
        # Arrow passes over the mark where a block begins, but not elsewhere.
        starts = np.concatenate([[0], ends[:-1] + 1])
        bad |= np.array([block.startswith(_BYTE_ORDER_MARK, start) for start in starts.tolist()])
    if b'"' in block:
        commas = commas[~_inside_quotes(text, ends, commas, bad)]
    fields = np.bincount(np.searchsorted(ends, commas), minlength=len(ends)) + 1
    bad |= fields != n_fields
    if not bad.any():
        return block
    return _replace_lines(block, ends, bad, b"," * (n_fields - 1) + b"\n")


def _inside_quotes(
    text: NDArray[np.uint8], ends: NDArray[np.int64], commas: NDArray[np.int64], bad: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which commas are quoted, and mark lines whose quotes do not open and close whole fields."""
    quotes = np.flatnonzero(text == _QUOTE)
    line = np.searchsorted(ends, quotes)
    before = np.searchsorted(quotes, np.concatenate([[0], ends[:-1] + 1]))
    opens = (np.arange(len(quotes)) - before[line]) % 2 == 0
    previous = np.where(quotes > 0, text[quotes - 1], _NEWLINE)
    following = text[quotes + 1]
    at_start = (previous == _COMMA) | (previous == _NEWLINE) | (previous == _QUOTE)
    at_end = (following == _COMMA) | (following == _NEWLINE) | (following == _RETURN) | (following == _QUOTE)
    bad[line[~np.where(opens, at_start, at_end)]] = True
    bad[np.bincount(line, minlength=len(ends)) % 2 == 1] = True
    quotes_before = np.searchsorted(quotes, commas) - before[np.searchsorted(ends, commas)]
    quoted: NDArray[np.bool_] = quotes_before % 2 == 1
    return quoted


def _replace_lines(block: bytes, ends: NDArray[np.int64], bad: NDArray[np.bool_], by: bytes) -> bytes:
    parts = []
    kept = 0
    for index in np.flatnonzero(bad).tolist():
        start = int(ends[index - 1]) + 1 if index else 0
        parts += [block[kept:start], by]
        kept = int(ends[index]) + 1
    return b"".join([*parts, block[kept:]])


def _parse(texts: Any) -> Array:
    """Parse a column with fields that Arrow's parser refuses; on all others `_number` agrees with it."""
    try:
        numbers: Array = texts.cast("float64").to_numpy()
    except require("pyarrow", "arrow").ArrowInvalid:
        numbers = np.array([_number(text) for text in texts.cast("binary").to_pylist()], dtype=np.float64)
    return numbers


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
