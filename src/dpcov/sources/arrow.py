"""Arrow data that is streamed: datasets, lazy polars frames, and whatever gives an Arrow stream anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw

from dpcov._extras import require
from dpcov.core import ArgumentError, RowTask, SourceChangedError
from dpcov.sources._scan import Piece, Stream, quietly
from dpcov.sources._table import Table
from dpcov.sources.arrays import arrow_field_has_room, frame_encoding
from dpcov.sources.encoding import Cells, Columns, ColumnType, Encoding, IdKind, Kind, resolve
from dpcov.sources.encoding.cells import arrow_cells, is_number, is_text, series_cells
from dpcov.sources.encoding.ids import id_texts

_BATCH_ENTRIES = 1 << 21
_SHORTEST_BATCH = 1024
_READABLE = ("parquet", "ipc", "feather", "orc")


def batch_rows(n_columns: int) -> int:
    """Return how many rows to decode at a time: few megabytes, whatever the number of columns."""
    return max(_SHORTEST_BATCH, _BATCH_ENTRIES // n_columns)


def arrow_encoding(schemas: Sequence[Any], columns: Columns) -> Encoding:
    """Return how to read columns of the first schema; a column without type has that of the others."""
    found: dict[str, ColumnType] = {}
    for field in (field for schema in schemas for field in schema):
        own = replace(arrow_type(field.type), gaps=arrow_field_has_room(field))
        first = found.setdefault(field.name, own)
        gaps = first.gaps or own.gaps
        # Numbers may be booleans in some files, and missing values have no type.
        if first.holds == "nothing" or (first.holds, own.holds) == ("flag", "number"):
            first = own
        found[field.name] = replace(first, gaps=gaps)
    return resolve(columns, [(name, found[name]) for name in schemas[0].names])


def arrow_type(dtype: Any) -> ColumnType:
    """Return what an Arrow type stands for."""
    types = require("pyarrow", "arrow").types
    if types.is_dictionary(dtype):
        return arrow_type(dtype.value_type)
    if types.is_null(dtype):
        return ColumnType("nothing")
    if types.is_boolean(dtype):
        return ColumnType("flag")
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return ColumnType("date")
    if is_text(dtype):
        return ColumnType("text")
    return ColumnType("number" if is_number(dtype) else "else")


def batch_cells(batch: Any, encoding: Encoding, names: Sequence[str]) -> Sequence[Cells]:
    """Return the columns of a record batch that an encoding reads, which have these names there."""
    return [
        id_texts(batch.column(name)) if isinstance(kind, IdKind) else arrow_cells(batch.column(name))
        for name, kind in zip(names, encoding.kinds, strict=True)
    ]


def pieces_of(
    batches: Iterator[Any], encoding: Encoding, first_row: int = 0, names: Sequence[str] | None = None
) -> Iterator[Piece]:
    """Give the rows of record batches their positions, and cut long batches.

    Columns may have other `names` there than the encoding has for them.
    """
    names = encoding.raw if names is None else names
    longest = batch_rows(len(names))
    for batch in batches:
        for first in range(0, batch.num_rows, longest):
            part = batch.slice(first, longest)
            yield Piece(first_row + first, part.num_rows, partial(batch_cells, part, encoding, names))
        first_row += batch.num_rows


class DatasetSource(Table):
    """A ``pyarrow.dataset.Dataset`` of Parquet, Arrow or ORC files, or in memory.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        It may have partition columns and a filter.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    """

    def __init__(self, dataset: Any, columns: Columns = None) -> None:
        schemas = _file_schemas(dataset)
        encoding = arrow_encoding([dataset.schema, *schemas.values()], columns)
        self._dataset = dataset
        self._filter = _filter_of(dataset)
        self._files: list[Any] = []
        if _types_differ(dataset.schema, schemas, encoding, filtered=self._filter is not None):
            # Arrow would convert to the dataset's types, which may fail on a value: each file keeps its own.
            self._files = list(_files_of(dataset))
        stamp = DatasetStamp(dataset)
        n_rows = opening("data", self._count)
        super().__init__(n_rows, encoding, check_unchanged=stamp.check)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task
        return [lambda: pieces_of(self._batches(), self._encoding)]

    def _count(self) -> int:
        if not self._files:
            return int(self._dataset.count_rows())
        return sum(int(file.scanner(**self._options_of(file)).count_rows()) for file in self._files)

    def _batches(self) -> Iterator[Any]:
        arrow_dataset = require("pyarrow.dataset", "arrow")
        options: dict[str, Any] = {
            "columns": list(self._encoding.raw),
            "batch_size": batch_rows(len(self._encoding.raw)),
            "batch_readahead": 4,
        }
        if "parquet" in {form for form, _ in _file_sets(self._dataset)}:
            # Without these a scan holds whole row groups of several files.
            options["fragment_scan_options"] = arrow_dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, pre_buffer=False
            )
        if not self._files:
            yield from self._dataset.to_batches(fragment_readahead=1, **options)
        for file in self._files:
            yield from file.to_batches(**self._options_of(file), **options)

    def _options_of(self, file: Any) -> dict[str, Any]:
        """Return the types that a file has, or the dataset where it lacks a column, and the filter."""
        own, common = file.physical_schema, self._dataset.schema
        fields = [(own if name in own.names else common).field(name) for name in common.names]
        return {"schema": require("pyarrow", "arrow").schema(fields), "filter": self._filter}


class DatasetStamp:
    """The files of a dataset as they were when it was opened."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._files = self._read()

    def _read(self) -> list[tuple[str, int | None, int | None]]:
        found = []
        for _, part in _file_sets(self._dataset):
            infos = part.filesystem.get_file_info(part.files)
            found += [(info.path, info.size, info.mtime_ns) for info in infos]
        return found

    def check(self) -> None:
        """Raise `SourceChangedError` if a file was replaced, changed or removed."""
        for before, now in zip(self._files, self._read(), strict=True):
            if before != now:
                raise SourceChangedError(f"{now[0]} has changed since it was opened.")


def _file_sets(dataset: Any) -> list[tuple[str, Any]]:
    """Return the datasets of files within a dataset, each with its format."""
    if hasattr(dataset, "children"):
        return [found for child in dataset.children for found in _file_sets(child)]
    if hasattr(dataset, "files"):
        return [(dataset.format.default_extname, dataset)]
    return []


def _filter_of(dataset: Any) -> Any:
    """Return the filter of a dataset, if it has one."""
    return getattr(dataset, "_scan_options", {}).get("filter")


def _files_of(dataset: Any) -> Iterator[Any]:
    """Return the files of a dataset, without its filter."""
    try:
        if _filter_of(dataset) is None:
            return iter(dataset.get_fragments())
        # With a filter it does not give them under their public name.
        return iter(dataset._get_fragments(None))  # noqa: SLF001
    except (AttributeError, ValueError):
        raise ArgumentError(
            "data has a filter, and files whose columns differ in their types; write the files alike."
        ) from None


def _file_schemas(dataset: Any) -> dict[str, Any]:
    """Return the columns and types of each file of a dataset."""
    schemas = {}
    for form, part in _file_sets(dataset):
        if form not in _READABLE:
            raise ArgumentError(
                f"a dataset of {form} files has no types of its own; give Parquet, or paths of CSV files."
            )
        for path in part.files:
            schemas[path] = opening(path, partial(part.format.inspect, path, part.filesystem))
    return schemas


def check_type(path: str, name: str, kind: Kind, dtype: Any) -> None:
    """Raise an `ArgumentError` if the type of a file's column is not one that its kind reads."""
    found = arrow_type(dtype).holds
    if found != "nothing" and found not in kind.reads:
        raise ArgumentError(f"column {name} is {dtype} in {path}; it must be of one kind in every file.")


def _types_differ(common: Any, schemas: Mapping[str, Any], encoding: Encoding, *, filtered: bool) -> bool:
    """Whether a file has a column in another type than the dataset; its kind must read each of them.

    Where rows are `filtered`, that may be by any column.
    """
    others = set(common.names) - set(encoding.raw) if filtered else set()
    differ = False
    for path, schema in schemas.items():
        differ |= any(
            schema.field(name).type != common.field(name).type for name in others & set(schema.names)
        )
        for name, kind in zip(encoding.raw, encoding.kinds, strict=True):
            index = schema.get_field_index(name)
            if index < 0:
                continue
            found = schema.field(index).type
            check_type(path, name, kind, found)
            differ |= found != common.field(name).type
    return differ


class StreamSource(Table):
    """Anything with the Arrow stream interface that gives a new stream when asked again.

    Parameters
    ----------
    data : object
        Has ``__arrow_c_stream__``, and gives the same rows each time.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    """

    def __init__(self, data: Any, columns: Columns = None) -> None:
        self._readers = require("pyarrow", "arrow").RecordBatchReader
        self._data = data
        reader = opening("data", self._open)
        self._schema = reader.schema
        encoding = arrow_encoding([self._schema], columns)
        n_rows = opening("data", lambda: sum(batch.num_rows for batch in reader))
        if n_rows and not self._gives_rows_again():
            raise ArgumentError(
                "data is a stream that can be read only once, but a release reads it several times; "
                "give a table or files."
            )
        super().__init__(n_rows, encoding)

    def _open(self) -> Any:
        return self._readers.from_stream(self._data)

    def _gives_rows_again(self) -> bool:
        try:
            return any(batch.num_rows for batch in self._open())
        except Exception:  # noqa: BLE001  (any error: it cannot be read again)
            return False

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task

        def stream() -> Iterator[Piece]:
            reader = self._open()
            if reader.schema != self._schema:
                raise SourceChangedError("the columns or types of data have changed since it was opened.")
            return pieces_of(reader, self._encoding)

        return [stream]


class LazySource(Table):
    """A lazy polars frame, computed anew for each scan, batch by batch.

    Parameters
    ----------
    data : polars.LazyFrame
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
    """

    def __init__(self, data: Any, columns: Columns = None) -> None:
        if not hasattr(data, "collect_batches"):
            raise ArgumentError("lazy frames need polars 1.34 or newer; update it, or collect() the frame.")
        frame = nw.from_native(data)
        encoding = frame_encoding(opening("data", frame.collect_schema), columns)
        n_rows = opening("data", lambda: frame.select(nw.len()).collect().item())
        super().__init__(int(n_rows), encoding)
        self._data = data.select(encoding.raw)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task

        def stream() -> Iterator[Piece]:
            first_row = 0
            for batch in self._data.collect_batches(
                chunk_size=batch_rows(len(self._encoding.raw)), maintain_order=True, lazy=True
            ):
                frame = nw.from_native(batch, eager_only=True)
                yield Piece(first_row, len(frame), partial(self._cells, frame))
                first_row += len(frame)

        return [stream]

    def _cells(self, frame: nw.DataFrame[Any]) -> Sequence[Cells]:
        read = zip(self._encoding.raw, self._encoding.kinds, strict=True)
        return [
            id_texts(_one_array(frame.get_column(name).to_arrow()))
            if isinstance(kind, IdKind)
            else series_cells(frame.get_column(name))
            for name, kind in read
        ]


def _one_array(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def opening(what: str, action: Callable[[], Any], hint: str = "") -> Any:
    """Run a step of opening a table, and report an error by its type: a message may quote a value."""
    ending = f"; {hint}" if hint else "."
    return quietly(action, lambda kind: ArgumentError(f"{what} cannot be read ({kind}){ending}"))
