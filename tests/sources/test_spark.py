from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers.held_rows import check_held
from helpers.replay import chain, compare
from helpers.typed_tables import gram
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import SparkSession

import dpcov
from dpcov.core import ArgumentError, Clipping, RowTask, SourceChangedError, SourceError
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.sample import SampledTask
from dpcov.core.query import Table
from dpcov.maps import identity_map
from dpcov.sources import Grouping, open_source
from dpcov.sources.encoding import declared
from dpcov.sources.spark import SparkHeldRows, SparkSource

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

NAMES = ["a", "b", "c"]
SCHEMA = "text string, a double, b double, c double"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folders = [Path(dpcov.__file__).parents[1], Path(__file__).parents[1]]
    # One worker that tries a task twice.
    builder = SparkSession.builder.master("local[1,2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, folders)),
        "spark.python.daemon.module": "helpers.spark_daemon",
        # Jobs are so small that compiling them takes longer than they do.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def frame(spark: SparkSession, table: NDArray[np.float64], partitions: int) -> Any:
    """The table row by row in order, cut into so many partitions, whatever order Spark prefers."""

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = table[batch.column(0).to_numpy()]
            yield pa.record_batch([pa.array(["x"] * len(chosen)), *chosen.T], names=["text", *NAMES])

    return spark.range(0, len(table), numPartitions=partitions).mapInArrow(fill, SCHEMA)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_release_gives_the_same_bits_as_the_array(
    spark: SparkSession, table: NDArray[np.float64], tasks: dict[str, RowTask], partitions: int
) -> None:
    data = frame(spark, table, partitions)
    assert data.rdd.getNumPartitions() == partitions
    source = open_source(data, NAMES)
    assert (source.n_rows, source.columns) == (5000, ("a", "b", "c"))
    # All tasks in one scan.
    assert (source.scan(tasks["joint"]) == open_source(table).scan(tasks["joint"])).all()
    if partitions > 1:
        check_held(source, table, tasks["all"])
    # The default method would scan the table many times, each time alike.
    options: dict[str, Any] = {"rho": 1, "columns": NAMES, "method": "gaussian", "radius": 50.0}
    expected = dpcov.release(table, rng=np.random.default_rng(5), **options)
    found = dpcov.release(data, rng=np.random.default_rng(5), **options)
    assert (found.second_moment().values == expected.second_moment().values).all()
    assert str(found.receipt) == str(expected.receipt)


def count_collected(patch: pytest.MonkeyPatch, source: SparkSource) -> list[int]:
    """Return what tells how many records reached the driver, job by job."""
    kind = type(source._data)
    collect = kind.toArrow
    collected: list[int] = []

    def counting(self: Any) -> pa.Table:
        found = collect(self)
        collected.append(found.num_rows)
        return found

    patch.setattr(kind, "toArrow", counting)
    return collected


def test_the_entries_of_every_partition_are_added_on_the_cluster(
    spark: SparkSession,
    table: NDArray[np.float64],
    tasks: dict[str, RowTask],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = open_source(frame(spark, table, 5), NAMES)
    assert isinstance(source, SparkSource)
    collected = count_collected(monkeypatch, source)
    source.scan(tasks["all"])
    # One 4 by 4 matrix, and the five numbers of rows.
    assert collected == [16 + 5]


def test_rows_that_are_held_stay_on_the_cluster(
    spark: SparkSession,
    table: NDArray[np.float64],
    tasks: dict[str, RowTask],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = open_source(frame(spark, table, 5), NAMES)
    assert isinstance(source, SparkSource)
    collected = count_collected(monkeypatch, source)
    held = source.hold(np.arange(0, 5000, 7))
    assert collected == []
    held.scan(tasks["all"], 600)
    # From each part one record, which holds its total.
    assert collected == [5]


def test_a_partition_that_lost_rows_is_not_held(
    spark: SparkSession,
    table: NDArray[np.float64],
    tasks: dict[str, RowTask],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = open_source(frame(spark, table, 2), NAMES)
    assert isinstance(source, SparkSource)
    monkeypatch.setattr(source, "_lengths", {0: 2500, 1: 2501})
    # Even if none of its rows are wanted.
    for held in (source.hold(np.arange(0, 5000, 7)), source.hold(np.arange(700))):
        with pytest.raises(SourceChangedError, match="number of rows"):
            held.scan(tasks["all"], 600)


def test_rows_that_were_kept_by_another_attempt_are_refused(
    spark: SparkSession, table: NDArray[np.float64], tasks: dict[str, RowTask]
) -> None:
    source = open_source(frame(spark, table, 2), NAMES)
    one, other = (source.hold(np.arange(0, 5000, 7)) for _ in range(2))
    assert isinstance(one, SparkHeldRows)
    assert isinstance(other, SparkHeldRows)
    assert (one.scan(tasks["all"], 600) == one.scan(tasks["all"], 600)).all()
    # The same rows from another computation, as if Spark had kept both.
    one._held = other._held
    with pytest.raises(SourceChangedError, match="kept rows twice"):
        one.scan(tasks["all"], 600)


def test_a_task_that_fails_once_changes_no_bit_and_no_charge(
    spark: SparkSession, table: NDArray[np.float64], tmp_path: Path
) -> None:
    failures = tmp_path / "failures"

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for i, batch in enumerate(batches):
            yield batch
            context = TaskContext.get()
            if i == 0 and context.partitionId() == 1 and context.attemptNumber() == 0:
                with failures.open("a") as file:
                    file.write(".")
                raise OSError("out of order")

    data = frame(spark, table, 3).mapInArrow(fail_once, SCHEMA)
    arguments: dict[str, Any] = {"rho": 1, "columns": NAMES, "method": "gaussian", "radius": 50.0}
    expected = dpcov.release(table, rng=np.random.default_rng(5), **arguments)
    found = dpcov.release(data, rng=np.random.default_rng(5), **arguments)
    # Once when rows were counted, once in the scan.
    assert failures.read_text() == ".."
    assert (found.second_moment().values == expected.second_moment().values).all()
    assert str(found.receipt) == str(expected.receipt)
    assert len(found.receipt.charges) == 1


def test_a_partition_of_another_length_stops_the_scan(
    spark: SparkSession, table: NDArray[np.float64], tasks: dict[str, RowTask], tmp_path: Path
) -> None:
    shorter = tmp_path / "shorter"

    def vanish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch[1:] if shorter.exists() else batch

    source = open_source(frame(spark, table, 2).mapInArrow(vanish, SCHEMA), NAMES)
    shorter.touch()
    with pytest.raises(SourceChangedError, match="another number of rows than when the table was opened"):
        source.scan(tasks["all"])


def test_no_cut_of_a_table_shows(spark: SparkSession) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 3))
    other = rows * np.where(np.arange(400) == 7, -1.0, 1.0)[:, None]

    def released(table: NDArray[np.float64]) -> Callable[[], Any]:
        data = frame(spark, table, 2)
        # Rows lie where a private column says.
        cut = data.withColumn("key", data["a"] > 0).repartition(3, "key")
        return lambda: repr(dpcov.release(cut, rho=1, columns=NAMES, method="gaussian", radius=1.0))

    assert compare(released(rows), released(other)) == []


def test_errors_come_before_the_budget_and_without_values(
    spark: SparkSession, table: NDArray[np.float64], tasks: dict[str, RowTask], tmp_path: Path
) -> None:
    failing = tmp_path / "failing"

    def spoil(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if failing.exists():
                raise ValueError("could not read 'secret'")
            yield batch

    good = frame(spark, table, 2)
    spoilt = good.mapInArrow(spoil, SCHEMA)
    source = open_source(spoilt, NAMES)
    failing.touch()
    with pytest.raises(SourceError, match=r"the Spark job failed \(\w+\); is the session running") as caught:
        source.scan(tasks["all"])
    assert "secret" not in str(caught.value)
    assert list(chain(caught.value)) == [caught.value]
    with pytest.raises(ArgumentError, match=r"data cannot be read \(\w+\); is the session running"):
        open_source(spoilt, NAMES)
    with pytest.raises(ArgumentError, match="not numeric: text"):
        open_source(good)
    with pytest.raises(ArgumentError, match="not in data: z"):
        open_source(good, ["z"])
    with pytest.raises(ArgumentError, match="same name"):
        open_source(good.select("a", "a"))
    with pytest.raises(ArgumentError, match="no rows"):
        open_source(good.limit(0), NAMES)
    with pytest.raises(ArgumentError, match="never ends"):
        open_source(spark.readStream.format("rate").load())


def test_all_numeric_types_and_missing_values_are_read(spark: SparkSession) -> None:
    data = spark.sql(
        "select * from values (1, 2L, 3.5D, 4.25, true), (5, null, 6.5D, 7.75, false) "
        "as (`a.b`, long, double, decimal, boolean)"
    )
    expected = np.array([[1, 2, 3.5, 4.25, 1], [5, np.nan, 6.5, 7.75, 0]])
    arguments: dict[str, Any] = {"rho": 1e9, "method": "gaussian", "radius": 9.0}
    found = dpcov.release(data, rng=np.random.default_rng(0), **arguments)
    same = dpcov.release(expected, rng=np.random.default_rng(0), **arguments)
    assert found.columns == ("a.b", "long", "double", "decimal", "boolean")
    assert (found.second_moment().values == same.second_moment().values).all()


CONNECT = """
import numpy as np, pyarrow as pa, dpcov
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
table = np.random.default_rng(0).normal(size=(1000, 3))
data = spark.createDataFrame(pa.table(dict(zip("abc", table.T))))
arguments = dict(rho=1, columns=list("abc"), method="gaussian", radius=3.0)
found = dpcov.release(data, rng=np.random.default_rng(1), **arguments)
expected = dpcov.release(table, rng=np.random.default_rng(1), **arguments)
assert "connect" in type(data).__module__
assert (found.second_moment().values == expected.second_moment().values).all()
print("the same bits")
"""


@pytest.mark.audit
def test_spark_connect_gives_the_same_bits() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(dpcov.__file__).parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CONNECT], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout.strip().endswith("the same bits"), done.stderr[-2000:]


def test_units_are_those_of_a_table_in_memory(spark: SparkSession) -> None:
    """Rows of a person come from any partition, and persons go to any of three."""
    ids = np.repeat(np.arange(40), np.arange(40) % 7 + 1)
    rows = np.random.default_rng(0).normal(size=(len(ids), 2))
    order = np.random.default_rng(1).permutation(len(ids))
    whole = pa.table({"a": rows[order, 0], "b.c": rows[order, 1], "who": [f"p{i}" for i in ids[order]]})
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        source = open_source(spark.createDataFrame(whole).repartition(2), None, Grouping("who"))
        lattice = Table.of_size(40, 2, constant=False, grouped=True).lattice
        task = GramTask(Clipping(identity_map(2), 3.0), lattice, constant=False)
        assert (source.n_rows, source.columns, source.grouped) == (40, ("a", "b.c"), True)
        expected = open_source(whole, None, Grouping("who")).scan(task)
        assert (source.scan(task) == expected).all()
        every = SampledTask(task, np.arange(40))
        assert (source.scan(every) == expected).all()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")


def test_kinds_give_the_same_bits_as_elsewhere(spark: SparkSession) -> None:
    good = {
        "region": "north",
        "late": "yes",
        "day": dt.date(2024, 2, 29),
        "visit": dt.datetime(2024, 2, 29, 18, 30, tzinfo=dt.UTC),
        "wage": "1.5",
        "code": 1,
    }
    odd: dict[str, list[Any]] = {
        "region": ["east", " south", None],
        "late": ["perhaps", "f", None],
        "day": [dt.date(1969, 12, 31), dt.date(2024, 3, 1), None],
        "visit": [dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC), dt.datetime(2024, 3, 1, tzinfo=dt.UTC), None],
        "wage": ["about 7", "NA", "-2"],
        "code": [2, 3, None],
    }
    # One odd cell a row, as a missing one blanks the whole row.
    rows = [good] + [{**good, name: cell} for name, cells in odd.items() for cell in cells]
    columns = {name: [row[name] for row in rows] for name in good}
    schema = "region string, late string, day date, visit timestamp, wage string, code int"
    data = spark.createDataFrame([tuple(row.values()) for row in rows], schema).repartition(2)
    kinds = {
        "region": dpcov.category(["north", "south"]),
        "late": dpcov.flag(),
        "day": dpcov.date(since="2024-01-01"),
        "visit": dpcov.date(parts=["hour", "weekday"]),
        "wage": dpcov.number(0, 9),
        "code": dpcov.category([1, 2, 3], other=False),
    }
    told = declared(kinds, terms=["wage^2", "log(wage)"])
    assert (gram(data, told) == gram(pa.table(columns), told)).all()
    assert open_source(data.limit(1), told).columns == open_source(pa.table(columns), told).columns
