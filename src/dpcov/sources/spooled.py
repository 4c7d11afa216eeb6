"""Tables that do not fit into memory, sorted by unit: DuckDB sorts out of core, into a private file.

The rows are read once, by the table's own reader, and become numbers as always; DuckDB sees these and ids.
The file and what DuckDB writes on the way lie in a folder that only this user can read, and are removed with
the table, at the latest when the process ends.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.arrays import Array
from dpcov.core import ArgumentError, Block, RowTask
from dpcov.sources._scan import Piece, Stream, quietly
from dpcov.sources._table import Table
from dpcov.sources.arrow import batch_rows, pieces_of
from dpcov.sources.encoding import Encoding, NumberKind
from dpcov.sources.encoding.ids import IdKind, find_ids, id_texts, without_id
from dpcov.sources.grouped import GroupedTable, check_units

_MEMORY = "400MB"
_ID, _FILE = "id", "sorted.arrow"


def spooled(inner: Table) -> GroupedTable:
    """Return a table whose encoding has ids, sorted by them; it is read once."""
    folder = Path(tempfile.mkdtemp(prefix="dpcov-"))
    place, kind = find_ids(inner.encoding) or (0, IdKind())
    numbers = without_id(inner.encoding)
    try:
        ends = quietly(lambda: _sort(inner, place, folder), _failed)
        check_units(len(ends))
        plain = Encoding(numbers.columns, (NumberKind(),) * len(numbers.columns))
        file = SortedFile(folder, int(ends[-1]), plain)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return GroupedTable(file, ends, even=kind.even, told=numbers)


def _failed(kind: str) -> ArgumentError:
    return ArgumentError(f"rows could not be sorted by privacy_unit ({kind}); is there room on the disk?")


class SortedFile(Table):
    """Numbers in a temporary Arrow file, which is removed with it.

    Parameters
    ----------
    folder : Path
        Holds the file, and nothing else.
    n_rows : int
        Its number of rows.
    encoding : Encoding
        Its columns.
    """

    def __init__(self, folder: Path, n_rows: int, encoding: Encoding) -> None:
        super().__init__(n_rows, encoding)
        self._path = folder / _FILE
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        del task
        names = [f"c{i}" for i in range(len(self.columns))]
        return [lambda: pieces_of(self._batches(), self._encoding, names=names)]

    def _batches(self) -> Iterator[Any]:
        arrow = require("pyarrow", "arrow")
        with arrow.OSFile(str(self._path)) as file:
            reader = arrow.ipc.open_file(file)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)


def _sort(inner: Table, place: int, folder: Path) -> NDArray[np.int64]:
    """Write the numbers of all rows that have an id, sorted by it, and return where units end."""
    arrow = require("pyarrow", "arrow")
    duckdb = require("duckdb", "units")
    names = [f"c{i}" for i in range(len(without_id(inner.encoding).columns))]
    numbers = arrow.schema([(name, arrow.float64()) for name in names])
    whole = numbers.insert(0, arrow.field(_ID, arrow.large_binary()))
    reader = arrow.RecordBatchReader.from_batches(whole, _batches(inner, place, whole))
    settings = {"memory_limit": _MEMORY, "temp_directory": str(folder), "threads": inner.threads}
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.register("rows", reader)
        relation = connection.sql("SELECT * FROM rows WHERE id IS NOT NULL ORDER BY id")
        found = relation.to_arrow_reader(batch_rows(len(names)))
        with arrow.OSFile(str(folder / _FILE), "wb") as file, arrow.ipc.new_file(file, numbers) as writer:
            return _write(found, writer, numbers)


def _batches(inner: Table, place: int, schema: Any) -> Iterator[Any]:
    """Yield the ids and numbers of all rows."""
    arrow = require("pyarrow", "arrow")
    for piece in _pieces(inner):
        cells = piece.cells()
        block: Block = inner.encoding.encode(cells)
        columns: list[Array] = [np.asarray(column, dtype=np.float64) for column in block]
        yield arrow.RecordBatch.from_arrays(
            [id_texts(cells[place]), *map(arrow.array, columns)], schema=schema
        )


def _pieces(inner: Table) -> Iterator[Piece]:
    for stream in inner.streams(None):
        yield from stream()


def _write(found: Any, writer: Any, schema: Any) -> NDArray[np.int64]:
    """Write sorted batches without their ids, and return where units end."""
    arrow, compute = require("pyarrow", "arrow"), require("pyarrow.compute", "arrow")
    before: Any = None
    ends: list[NDArray[np.int64]] = []
    n_rows = 0
    for batch in found:
        if batch.num_rows == 0:
            continue
        ids = batch.column(_ID)
        if before is not None and before != ids[0]:
            ends.append(np.array([n_rows], dtype=np.int64))
        differ = compute.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
        ends.append(np.flatnonzero(differ) + 1 + n_rows)
        before, n_rows = ids[len(ids) - 1], n_rows + batch.num_rows
        columns = [batch.column(name) for name in schema.names]
        writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))
    return np.concatenate([*ends, np.array([n_rows] if n_rows else [], dtype=np.int64)])
