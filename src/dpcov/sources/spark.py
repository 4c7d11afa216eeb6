"""Spark dataframes: every partition becomes integers by `mapInArrow`, and Spark adds them up.

A scan is one query: rows of a partition to the entries of its total, then a sum over partitions of
every entry. The driver sees one matrix. Spark lets the result of one attempt of a task count,
however many were started; the rows of each partition are counted along and compared. Noise is
drawn by the caller, never in the job.

Rows have no order in Spark: here a row's position is its place within its partition, after the
rows of all partitions before. ``core/order.md`` says why privacy does not depend on it.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.arrays import Array
from dpcov.core import ArgumentError, Report, RowTask, SourceChangedError, SourceError
from dpcov.sources import _remote
from dpcov.sources._held import NONE_CHOSEN, Chosen, CopyRows, HeldPart, choose
from dpcov.sources._scan import quietly, scan_streams
from dpcov.sources._table import check_shape
from dpcov.sources.arrays import frame_encoding
from dpcov.sources.arrow import opening, pieces_of
from dpcov.sources.encoding import Columns, Encoding
from dpcov.sources.encoding.ids import find_ids
from dpcov.sources.grouped import check_units

_SENT_AT_ONCE = 1 << 16
_CHANGED = -1
_HELD_COLUMNS = ("places", "numbers", "word")
_WORD_BITS = 40  # so few that words of 2^23 records of a part add up within 63
_HELD_TOGETHER = 1 << 14
_HELD_PARTS = 8  # so few that starting tasks takes little longer than their rows do
_HINT = "is the session running, and dpcov installed on the workers?"


class SparkSource:
    """A Spark dataframe, classic or Connect.

    Parameters
    ----------
    data : pyspark.sql.DataFrame
        Computed anew for each scan, unless it is cached.
    columns : sequence of str or mapping, optional
        Which columns to use, and their kinds if it is a mapping; all of them by default.
        Where one tells whose a row is, rows are repartitioned so that each unit lies in one partition, which
        must fit into the memory of a worker.
    """

    def __init__(self, data: Any, columns: Columns = None) -> None:
        require("pyspark", "spark")
        require("pyarrow", "spark")
        if not hasattr(data, "toArrow"):
            raise ArgumentError("a Spark dataframe needs Spark 4.0 or newer.")
        if data.isStreaming:
            raise ArgumentError("data is a stream of Spark that never ends; give a table.")
        if len(set(data.columns)) != len(data.columns):
            raise ArgumentError("data has two columns of the same name; rename one first.")
        schema = opening("data", lambda: nw.from_native(data).collect_schema(), _HINT)
        self._encoding = frame_encoding(schema, columns)
        # Plain names: Spark itself stumbles over a dot in a column's name.
        self._names = tuple(f"x{i}" for i in range(len(self._encoding.raw)))
        self._data = data.select(
            *(_column(data, old).alias(new) for old, new in zip(self._encoding.raw, self._names, strict=True))
        )
        ids = find_ids(self._encoding)
        if ids is not None:
            # A number of partitions that is asked for is one that Spark keeps.
            parts = int(data.sparkSession.conf.get("spark.sql.shuffle.partitions"))
            self._data = self._data.repartition(parts, self._names[ids[0]])
        self._lengths = self._count()
        if ids is not None:
            check_units(self.n_rows)
        check_shape(self.n_rows, self._encoding)

    def _count(self) -> dict[int, int]:
        names, encoding = self._names, self._encoding

        def count(batches: Iterator[Any]) -> Iterator[Any]:
            return _count(batches, names, encoding)

        counted = self._data.mapInArrow(count, "partition bigint, rows bigint")
        found = opening("data", counted.toArrow, _HINT).sort_by("partition").to_pydict()
        return dict(zip(found["partition"], found["rows"], strict=True))

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units."""
        return sum(self._lengths.values())

    @property
    def encoding(self) -> Encoding:
        """Which columns are read, and the numbers that a row of them becomes."""
        return self._encoding

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several."""
        return find_ids(self._encoding) is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""
        return self._encoding.columns

    @property
    def bounds(self) -> Array:
        """The public lower and upper ends of the columns, which every row keeps."""
        return self._encoding.bounds

    @property
    def in_memory(self) -> bool:
        """False: rows may come in another order each time, and how they are cut may depend on them."""
        return False

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over all partitions and add up their totals on the cluster; nothing is reported."""
        del report
        counts, total = _add_up(self._data, self._runner(task), task)
        if counts != {_Part(index).count_cell: rows for index, rows in self._lengths.items()}:
            raise _changed()
        return total

    def hold(self, positions: NDArray[np.int64], report: Report | None = None) -> SparkHeldRows:
        """Keep the rows at these positions on the executors, where nothing computes them again."""
        del report
        names, encoding = self._names, self._encoding
        parts = dict(zip(self._lengths, choose(positions, list(self._lengths.values())), strict=True))
        lengths = self._lengths

        def hold(batches: Iterator[Any]) -> Iterator[Any]:
            index = _partition()
            return _hold(batches, names, encoding, lengths.get(index, 0), parts.get(index, NONE_CHOSEN))

        held = self._data.mapInArrow(hold, "places binary, numbers binary, word bigint")
        return SparkHeldRows(quietly(held.localCheckpoint, _failed))

    def _runner(self, task: RowTask) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Return the function that Spark sends to its workers, with all that it needs."""
        names, encoding, packed = self._names, self._encoding, _remote.pack(task)
        first_rows = [0, *accumulate(self._lengths.values())][:-1]
        parts = {
            index: _Part(index, length, task.notes(first, length))
            for (index, length), first in zip(self._lengths.items(), first_rows, strict=True)
        }

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            index = _partition()
            return _run(batches, names, encoding, parts.get(index) or _Part(index), packed)

        return run


class SparkHeldRows:
    """Rows that executors keep.

    Spark cuts them off from what they were computed from, so that a part that is lost is not computed again.
    But two attempts at one part may both be kept, from rows in different orders. Each has a random word, and
    a scan that meets other words than the first one is refused.

    Parameters
    ----------
    held : pyspark.sql.DataFrame
        Records of places, rows of numbers, and a word.
    """

    def __init__(self, held: Any) -> None:
        self._held = held.coalesce(_HELD_PARTS)
        self._words: int | None = None

    def scan(self, task: RowTask, n_rows: int, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over the first `n_rows` rows and add up the totals; nothing is reported."""
        del report
        packed = _remote.pack(task)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            return _run_held(batches, n_rows, packed)

        # As few totals as these reach the driver in one job; adding them up on the cluster takes another.
        job = self._held.mapInArrow(run, "rows bigint, words bigint, total binary")
        found = quietly(job.toArrow, _failed).to_pydict()
        if sum(found["rows"]) != n_rows:
            raise _changed()
        words = sum(found["words"])
        if self._words not in (None, words):
            raise SourceChangedError("Spark kept rows twice, and read them in two orders.")
        self._words = words
        total = task.worker().total()
        for part in found["total"]:
            total += np.frombuffer(part, dtype=np.int64).reshape(total.shape)
        return total


def _add_up(
    data: Any, run: Callable[[Iterator[Any]], Iterator[Any]], task: RowTask
) -> tuple[dict[int, int], NDArray[np.int64]]:
    """Return how many rows there were, by the cells that count them, and the total of all partitions."""
    functions = require("pyspark.sql.functions", "spark")
    job = data.mapInArrow(run, "cell bigint, value bigint")
    sums = job.groupBy("cell").agg(functions.sum("value").alias("value"))
    found = quietly(sums.toArrow, _failed)
    cells, values = found["cell"].to_numpy(), found["value"].to_numpy()
    total = np.zeros_like(task.with_notes(np.empty(0, dtype=np.int64)).worker().total())
    total.flat[cells[cells >= 0]] = values[cells >= 0]
    return dict(zip(cells[cells < 0].tolist(), values[cells < 0].tolist(), strict=True)), total


def _failed(kind: str) -> SourceError:
    return SourceError(f"the Spark job failed ({kind}); {_HINT}")


def _changed() -> SourceChangedError:
    return SourceChangedError(
        "a partition has another number of rows than when the table was opened. Cache the "
        "table, or write it to files, if it is not computed the same way every time."
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """What is known about a partition."""

    index: int
    n_rows: int = 0
    notes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    @property
    def count_cell(self) -> int:
        """The cell that holds its number of rows: below those of the total."""
        return -1 - self.index


def _column(data: Any, name: str) -> Any:
    return data["`" + name.replace("`", "``") + "`"]


def _partition() -> int:
    context = require("pyspark", "spark").TaskContext.get()
    return int(context.partitionId())


def _batch(**columns: Any) -> Any:
    arrow = require("pyarrow", "spark")
    arrays = [arrow.array(values, arrow.int64()) for values in columns.values()]
    return arrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _table(batches: Iterator[Any], names: Sequence[str], encoding: Encoding) -> Any:
    """Return a whole partition, its columns under their own names."""
    arrow = require("pyarrow", "spark")
    found = list(batches)
    if not found:
        return arrow.table({raw: arrow.nulls(0) for raw in encoding.raw})
    return arrow.Table.from_batches(found).select(list(names)).rename_columns(list(encoding.raw))


def _count(batches: Iterator[Any], names: Sequence[str], encoding: Encoding) -> Iterator[Any]:
    if find_ids(encoding) is not None:
        n_rows = quietly(
            lambda: _remote.count_units(_table(batches, names, encoding), encoding),
            lambda kind: SourceError(f"a partition could not be read ({kind})."),
        )
    else:
        n_rows = sum(batch.num_rows for batch in batches)
    yield _batch(partition=[_partition()], rows=[n_rows])


def _run(
    batches: Iterator[Any], names: Sequence[str], encoding: Encoding, part: _Part, packed: bytes
) -> Iterator[Any]:
    """Run a task over one partition; an error is told by its type, and Spark may try again."""

    def total_of_rows() -> NDArray[np.int64]:
        task: RowTask = pickle.loads(packed).with_notes(part.notes)  # noqa: S301  (packed by `pack`)
        if find_ids(encoding) is not None:
            whole = _table(batches, names, encoding)
            total = _remote.run_units(whole, encoding, task, part.n_rows)
            if total is None:
                raise SourceChangedError(
                    "a partition has another number of units than when the table was opened."
                )
            return total
        streams = [lambda: pieces_of(batches, encoding, names=names)]
        return scan_streams(task, streams, part.n_rows, encoding, threads=1)

    try:
        total = quietly(total_of_rows, lambda kind: SourceError(f"a partition could not be read ({kind})."))
    except SourceChangedError:
        yield _batch(cell=[part.count_cell], value=[_CHANGED])
        return
    yield from _entries(part, total)


def _entries(part: _Part, total: NDArray[np.int64]) -> Iterator[Any]:
    """Return the number of rows of a partition and its total, cell by cell."""
    yield _batch(cell=[part.count_cell], value=[part.n_rows])
    values = total.ravel()
    for first in range(0, len(values), _SENT_AT_ONCE):
        some = values[first : first + _SENT_AT_ONCE]
        yield _batch(cell=np.arange(first, first + len(some)), value=some)


def _hold(
    batches: Iterator[Any], names: Sequence[str], encoding: Encoding, n_rows: int, chosen: Chosen
) -> Iterator[Any]:
    """Return some rows of one partition as bytes, with a word: none if it has not as many rows as it had."""
    copied = CopyRows(chosen.rows, n_rows, len(encoding.columns))
    streams = [lambda: pieces_of(batches, encoding, names=names)]
    try:
        quietly(
            lambda: scan_streams(copied, streams, n_rows, encoding, threads=1),
            lambda kind: SourceError(f"a partition could not be read ({kind})."),
        )
        word = secrets.randbits(_WORD_BITS)
    except SourceChangedError:
        word = _CHANGED
    arrow = require("pyarrow", "spark")
    # At least one record, so that a partition that has changed tells so.
    for first in range(0, max(len(chosen.places), 1), _HELD_TOGETHER):
        some = slice(first, first + _HELD_TOGETHER)
        packed = [chosen.places[some].tobytes(), copied.rows[some].tobytes()]
        arrays = [arrow.array([one], arrow.binary()) for one in packed]
        arrays.append(arrow.array([word], arrow.int64()))
        yield arrow.RecordBatch.from_arrays(arrays, names=list(_HELD_COLUMNS))


def _run_held(batches: Iterator[Any], n_rows: int, packed: bytes) -> Iterator[Any]:
    """Run a task over the rows that are kept in one partition; return their number, words and total."""

    def total_of_rows() -> tuple[int, int, NDArray[np.int64]]:
        task: RowTask = pickle.loads(packed)  # noqa: S301  (packed by `pack`)
        count, words, total = 0, 0, task.worker().total()
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in _HELD_COLUMNS]
            for places, numbers, word in zip(*columns, strict=True):
                own = np.frombuffer(places, dtype=np.int64)
                if word == _CHANGED:
                    # No number of rows that is asked for.
                    count -= 1 << _WORD_BITS
                elif len(own):
                    part = HeldPart(np.frombuffer(numbers).reshape(len(own), -1), own)
                    found, some = part.scan(task, n_rows)
                    count, total = count + found, total + some
                words += word
        return count, words, total

    count, words, total = quietly(
        total_of_rows, lambda kind: SourceError(f"a part of the sample could not be read ({kind}).")
    )
    arrow = require("pyarrow", "spark")
    arrays = [arrow.array([number], arrow.int64()) for number in (count, words)]
    arrays.append(arrow.array([total.tobytes()], arrow.binary()))
    yield arrow.RecordBatch.from_arrays(arrays, names=["rows", "words", "total"])
