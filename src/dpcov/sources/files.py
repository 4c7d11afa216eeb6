"""Files on disk: which ones are meant, whether they stay the same, and how Parquet and Arrow are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpcov._extras import require
from dpcov.core import ArgumentError, RowTask, SourceChangedError
from dpcov.sources._scan import Piece, Stream
from dpcov.sources._table import EncodedSource, Table
from dpcov.sources.arrow import arrow_encoding, arrow_type, batch_rows, check_type, opening, pieces_of
from dpcov.sources.csv_files import CsvSource, csv_names
from dpcov.sources.encoding import Columns, ColumnType, Encoding

_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_CSV = (".csv",)
_READ_BUFFER = 1 << 18

_NOT_READ = {
    ".xlsx": "an Excel workbook; save the sheet as CSV, or give what pandas.read_excel returns",
    ".xls": "an Excel workbook; save the sheet as CSV, or give what pandas.read_excel returns",
    ".tsv": "a file of tab-separated values; convert it to CSV or Parquet",
    ".tab": "a file of tab-separated values; convert it to CSV or Parquet",
    ".txt": "a text file; if it holds comma-separated values, call it .csv",
    ".json": "a JSON file; convert it to CSV or Parquet",
    ".gz": "a compressed file; unpack it first",
    ".zip": "a compressed file; unpack it first",
    ".dpcov": "a release already; read it with dpcov.load",
}
"""Files that people try, by their suffix: what they are, and what to do."""

PathLike = str | os.PathLike[str]


def is_paths(data: Any) -> bool:
    """Whether `data` names files: a path, a pattern, or a list of them."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(path, str | os.PathLike) for path in data)
    return isinstance(data, str | os.PathLike)


def open_files(data: PathLike | Sequence[PathLike], columns: Columns) -> EncodedSource:
    """Return the source that reads files of one format, in the order of the list or of their names."""
    paths = find_files(data)
    suffixes = {Path(path).suffix.lower() for path in paths}
    stamp = FileStamp(paths)
    if suffixes <= set(_PARQUET):
        return ParquetSource(paths, stamp, columns)
    if suffixes <= set(_ARROW):
        return ArrowFileSource(paths, stamp, columns)
    if suffixes <= set(_CSV):
        return CsvSource(paths, stamp.check, columns)
    raise _not_read(paths)


def find_files(data: PathLike | Sequence[PathLike]) -> list[str]:
    """Return the files that a path, a pattern or a list of them stands for."""
    given = [data] if isinstance(data, str | os.PathLike) else data
    paths = [found for path in given for found in _expand(os.fspath(path))]
    seen: set[tuple[int, int]] = set()
    for path in paths:
        status = opening(str(path), path.stat)
        # Links of both kinds lead to one file.
        if (status.st_dev, status.st_ino) in seen:
            raise ArgumentError(f"{path} is given twice; its rows would count twice.")
        seen.add((status.st_dev, status.st_ino))
    return [str(path) for path in paths]


def _expand(given: str) -> list[Path]:
    if "://" in given:
        raise ArgumentError(f"{given} is not a local file; open it as a pyarrow.dataset and give that.")
    path = Path(given).expanduser()
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; give a pattern such as {path / '*.parquet'}.")
    if path.exists():
        return [path]
    if not any(sign in given for sign in "*?["):
        raise ArgumentError(f"{path} does not exist.")
    start = Path(path.anchor)
    found = sorted(name for name in start.glob(str(path.relative_to(start))) if name.is_file())
    if not found:
        raise ArgumentError(f"no file matches {path}.")
    return found


class FileStamp:
    """Size and time of modification of files as they were when they were opened."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._stamps = [_stamp(path) for path in paths]

    def check(self) -> None:
        """Raise `SourceChangedError` if a file was replaced, changed or removed."""
        for path, before in zip(self._paths, self._stamps, strict=True):
            now = _stamp(path)
            if now is None:
                raise SourceChangedError(f"{path} is no longer there.")
            if now != before:
                raise SourceChangedError(f"{path} has changed since it was opened.")


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


@dataclass(frozen=True)
class _RowGroup:
    path: str
    metadata: Any
    index: int
    first_row: int


class ParquetSource(Table):
    """Parquet files: every thread decodes row groups of its own, a few megabytes at a time.

    Parameters
    ----------
    paths : sequence of str
        Files with the same columns; their types may differ.
    stamp : FileStamp
        Notices changes.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    """

    def __init__(self, paths: Sequence[str], stamp: FileStamp, columns: Columns = None) -> None:
        self._parquet = require("pyarrow.parquet", "arrow")
        self._groups: list[_RowGroup] = []
        schemas = []
        n_rows = 0
        for path in paths:
            metadata = opening(path, partial(self._parquet.read_metadata, path))
            schemas.append(opening(path, metadata.schema.to_arrow_schema))
            for index in range(metadata.num_row_groups):
                self._groups.append(_RowGroup(path, metadata, index, n_rows))
                n_rows += metadata.row_group(index).num_rows
        encoding = common_encoding(paths, schemas, columns)
        super().__init__(n_rows, encoding, check_unchanged=stamp.check)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task
        return [partial(self._stream, group) for group in self._groups]

    def _stream(self, group: _RowGroup) -> Iterator[Piece]:
        # Buffered column by column: otherwise a whole row group is held in memory.
        with self._parquet.ParquetFile(
            group.path, metadata=group.metadata, buffer_size=_READ_BUFFER, pre_buffer=False
        ) as file:
            batches = file.iter_batches(
                batch_rows(len(self._encoding.raw)),
                row_groups=[group.index],
                columns=list(self._encoding.raw),
                use_threads=False,
            )
            yield from pieces_of(batches, self._encoding, group.first_row)


class ArrowFileSource(Table):
    """Files in the Arrow IPC format (Feather 2), read one record batch at a time.

    Parameters
    ----------
    paths : sequence of str
        Files with the same columns; their types may differ.
    stamp : FileStamp
        Notices changes.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    """

    def __init__(self, paths: Sequence[str], stamp: FileStamp, columns: Columns = None) -> None:
        self._arrow = require("pyarrow", "arrow")
        schemas = [opening(path, partial(arrow_schema, path)) for path in paths]
        encoding = common_encoding(paths, schemas, columns)
        self._parts: list[tuple[str, list[int], int]] = []
        n_rows = 0
        for path, schema in zip(paths, schemas, strict=True):
            fields = [schema.get_field_index(name) for name in encoding.raw]
            self._parts.append((path, fields, n_rows))
            n_rows += opening(path, partial(self._count, path, fields[:1]))
        super().__init__(n_rows, encoding, check_unchanged=stamp.check)

    def _count(self, path: str, fields: list[int]) -> int:
        return sum(batch.num_rows for batch in self._batches(path, fields))

    def _batches(self, path: str, fields: list[int]) -> Iterator[Any]:
        options = self._arrow.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with self._arrow.OSFile(path) as file:
            reader = self._arrow.ipc.open_file(file, options=options)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task
        return [partial(self._stream, *part) for part in self._parts]

    def _stream(self, path: str, fields: list[int], first_row: int) -> Iterator[Piece]:
        return pieces_of(self._batches(path, fields), self._encoding, first_row)


def arrow_schema(path: str) -> Any:
    """Return the columns and types of a file in the Arrow IPC format."""
    arrow = require("pyarrow", "arrow")
    with arrow.OSFile(path) as file:
        return arrow.ipc.open_file(file).schema


def common_encoding(paths: Sequence[str], schemas: Sequence[Any], columns: Columns) -> Encoding:
    """Return how to read files; every file must have the columns, each in types that its kind reads.

    One missing value turns a column of whole numbers into floats, and a file of missing values alone has no
    type: what a file's type is may depend on rows, and numbers of all types are read as float64.
    """
    encoding = arrow_encoding(schemas, columns)
    for path, schema in zip(paths, schemas, strict=True):
        for name, kind in zip(encoding.raw, encoding.kinds, strict=True):
            index = schema.get_field_index(name)
            if index < 0:
                raise ArgumentError(f"column {name} is missing in {path}; it must be in every file.")
            check_type(path, name, kind, schema.field(index).type)
    return encoding


def column_types(
    data: PathLike | Sequence[PathLike], *, header: bool = False
) -> list[tuple[str, ColumnType, str]]:
    """Return the name, meaning and type of each column of files; no row is looked at.

    Of a CSV file only if someone has said that its first line is a `header`.
    """
    path = find_files(data)[0]
    suffix = Path(path).suffix.lower()
    if suffix in _CSV:
        if not header:
            raise ArgumentError(
                f"{path} cannot say whether its first line is a header or a person's record. Look at it: if "
                "it names the columns, say --header."
            )
        return [(name, ColumnType("unsaid"), "a CSV file tells no types") for name in csv_names(path)]
    if suffix in _PARQUET:
        schema = opening(path, partial(require("pyarrow.parquet", "arrow").read_schema, path))
    elif suffix in _ARROW:
        schema = opening(path, partial(arrow_schema, path))
    else:
        raise _not_read([path])
    return [(field.name, arrow_type(field.type), str(field.type)) for field in schema]


def _not_read(paths: Sequence[str]) -> ArgumentError:
    known = ", ".join((*_PARQUET, *_ARROW, *_CSV))
    for path in paths:
        told = _NOT_READ.get(Path(path).suffix.lower())
        if told:
            return ArgumentError(f"{path} is {told}. Files that can be read: {known}.")
    suffixes = sorted({Path(path).suffix.lower() for path in paths})
    return ArgumentError(f"files must all be of one kind ({known}), got {', '.join(suffixes)}.")
