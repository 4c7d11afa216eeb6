from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.feather as pa_feather
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
import pytest
from helpers.held_rows import check_held
from helpers.replay import chain
from numpy.typing import NDArray

import dpcov
from dpcov.core import (
    ArgumentError,
    Block,
    Budget,
    Clipping,
    Curator,
    Gram,
    MissingExtraError,
    OSEntropy,
    PrivacyCost,
    SourceChangedError,
    SourceError,
)
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.core.tasks import RowTask
from dpcov.maps import identity_map
from dpcov.sources import arrow, open_source

Rows = NDArray[np.float64]
Tasks = dict[str, RowTask]

NAMES = ["a", "b", "c"]
N_ROWS = 5000


def arrow_table(table: NDArray[np.float64]) -> pa.Table:
    columns = {name: table[:, i] for i, name in enumerate(NAMES)}
    return pa.table({"text": ["x"] * len(table), **columns})


def parts(table: pa.Table) -> list[pa.Table]:
    return [table[:1], table[1:2000], table[2000:2000], table[2000:]]


def parquet_files(table: pa.Table, folder: Path) -> str:
    for i, part in enumerate(parts(table)):
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=317)
    return str(folder / "*.parquet")


def one_row_group(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "all.pq")
    return folder / "all.pq"


def ipc_files(table: pa.Table, folder: Path) -> list[Path]:
    paths = []
    for i, part in enumerate(parts(table)):
        paths.append(folder / f"{i}.arrow")
        with pa_ipc.new_file(paths[-1], part.schema) as writer:
            writer.write_table(part, max_chunksize=991)
    return paths


def feather_file(table: pa.Table, folder: Path) -> Path:
    pa_feather.write_feather(table, folder / "all.feather", compression="lz4")
    return folder / "all.feather"


def csv_files(table: pa.Table, folder: Path) -> list[str]:
    for i, part in enumerate(parts(table)):
        pa_csv.write_csv(part, folder / f"{i}.csv")
    return [str(folder / f"{i}.csv") for i in range(4)]


def dataset(table: pa.Table, folder: Path) -> pa_dataset.Dataset:
    return pa_dataset.dataset(sorted(Path(parquet_files(table, folder)).parent.glob("*.parquet")))


def union(table: pa.Table, folder: Path) -> pa_dataset.Dataset:
    one = pa_dataset.dataset(one_row_group(table[:3000], folder))
    return pa_dataset.dataset([one, pa_dataset.dataset(table[3000:])])


class Again:
    """Gives an Arrow stream each time it is asked."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": parquet_files,
    "one-row-group": one_row_group,
    "arrow": ipc_files,
    "feather": feather_file,
    "csv": csv_files,
    "dataset": dataset,
    "union": union,
    "stream": lambda table, _: Again(table),
    "lazy-memory": lambda table, _: pl.DataFrame(table).lazy(),
    "lazy-parquet": lambda table, folder: pl.scan_parquet(parquet_files(table, folder)),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_bits_as_the_array(
    table: Rows,
    tasks: Tasks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[pa.Table, Path], Any],
) -> None:
    monkeypatch.setattr(arrow, "_BATCH_ENTRIES", 300)
    monkeypatch.setattr(arrow, "_SHORTEST_BATCH", 100)
    expected = open_source(table)
    source = open_source(make(arrow_table(table), tmp_path), NAMES)
    assert source.n_rows == N_ROWS
    for task in tasks.values():
        assert (source.scan(task) == expected.scan(task)).all()
    check_held(source, table, tasks["all"])
    swapped = open_source(make(arrow_table(table), tmp_path), ["c", "a", "b"])
    whole = tasks["all"]
    assert (swapped.scan(whole) == open_source(table[:, [2, 0, 1]]).scan(whole)).all()


def test_numbers_of_every_type_and_missing_ones_are_read(tmp_path: Path) -> None:
    types = [pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.decimal128(22, 3)]
    columns = {str(kind): pa.array([1, 0, None, 1, 1, 0]).cast(kind) for kind in types}
    columns["large"] = pa.array([2**63 - 1, None, -(2**63), 3, 4, 5])
    table = pa.table(columns)
    pq.write_table(table.drop_columns("halffloat"), tmp_path / "t.parquet")
    with pa_ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    for path in (tmp_path / "t.parquet", tmp_path / "t.arrow"):
        source = open_source(path)
        d = len(source.columns)
        expected = np.full((6, d), np.nan)
        for j, name in enumerate(source.columns):
            expected[:, j] = [np.nan if v is None else float(v) for v in table[name].to_pylist()]
        task = GramTask(Clipping(identity_map(d), 1e19), Lattice.for_table(6, d), constant=False)
        assert (source.scan(task) == open_source(expected).scan(task)).all()


@pytest.mark.parametrize("change", ["append", "touch", "remove", "rewrite"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "dataset"])
def test_a_table_that_changes_between_scans_stops_the_release(
    table: Rows, tasks: Tasks, tmp_path: Path, kind: str, change: str
) -> None:
    data = SOURCES[kind](arrow_table(table), tmp_path)
    source = open_source(data, NAMES)
    source.scan(tasks["all"])
    victim = next(path for path in tmp_path.iterdir() if path.name.startswith("1."))
    if change == "append":
        victim.write_bytes(victim.read_bytes() + b"1\n")
    elif change == "touch":
        os.utime(victim, ns=(1, 1))
    elif change == "remove":
        victim.unlink()
    else:
        content = victim.read_bytes()
        victim.unlink()
        victim.write_bytes(content)
    with pytest.raises(SourceChangedError, match=r"changed since it was opened|no longer there"):
        source.scan(tasks["all"])


def test_a_change_between_queries_stops_the_second_and_its_charge_stays(table: Rows, tmp_path: Path) -> None:
    path = one_row_group(arrow_table(table), tmp_path)

    @contextmanager
    def change_meanwhile(purpose: str, n_rows: int | None) -> Iterator[None]:
        yield
        assert n_rows is None
        os.utime(path, ns=(1, len(purpose)))

    curator = Curator(
        open_source(path, NAMES), Budget(PrivacyCost(Fraction(1))), OSEntropy(), progress=change_meanwhile
    )
    clipping = Clipping(identity_map(3), 1.0)
    curator.ask(Gram(clipping, Fraction(1, 4), purpose="first"))
    with pytest.raises(SourceChangedError, match=r"all\.pq has changed"):
        curator.ask(Gram(clipping, Fraction(1, 4), purpose="second"))
    assert [charge.purpose for charge in curator.receipt().charges] == ["first", "second"]


def test_streams_that_lose_rows_are_noticed(table: Rows, tasks: Tasks) -> None:
    class Shrinking(Again):
        asked = 0

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            Shrinking.asked += 1
            return self._table[: N_ROWS - max(0, Shrinking.asked - 2)].__arrow_c_stream__(requested_schema)

    source = open_source(Shrinking(arrow_table(table)), NAMES)
    with pytest.raises(SourceChangedError, match="had 5000 rows when it was opened, now it has 4999"):
        source.scan(tasks["all"])


def test_streams_that_change_their_types_are_noticed(table: Rows, tasks: Tasks) -> None:
    data = Again(arrow_table(table))
    source = open_source(data, NAMES)
    data._table = data._table.rename_columns(["text", "a", "c", "b"])
    with pytest.raises(SourceChangedError, match="columns or types"):
        source.scan(tasks["all"])


def test_a_damaged_file_is_told_without_its_content(table: Rows, tasks: Tasks, tmp_path: Path) -> None:
    path = one_row_group(arrow_table(table), tmp_path)
    content = bytearray(path.read_bytes())
    content[4:60000] = b"secret" * 9999
    path.write_bytes(bytes(content))
    with pytest.raises(SourceError, match=r"^the rows could not be read \(\w+\)\.$") as caught:
        open_source(path, NAMES).scan(tasks["all"])
    assert list(chain(caught.value)) == [caught.value]


TYPES: dict[str, pa.Array] = {
    "int64": pa.array([2**60 + 1, 3]),
    "double": pa.array([1.5, None]),
    "null": pa.nulls(2),
    "float": pa.array([0.5, 2.0], pa.float32()),
    "bool": pa.array([True, None]),
    "decimal": pa.array([Decimal("1.25"), Decimal(7)]),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
}


def mixed_files(folder: Path, kind: str, types: list[str]) -> Any:
    """Files whose first column has another type in each."""
    paths = []
    for i, name in enumerate(types):
        table = pa.table({"a": TYPES[name], "b": [1.0, 2.0]})
        paths.append(str(folder / f"{i}.{'arrow' if kind == 'arrow' else 'parquet'}"))
        if kind == "arrow":
            with pa_ipc.new_file(paths[-1], table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, paths[-1])
    return pa_dataset.dataset(paths) if kind == "dataset" else paths


@pytest.mark.parametrize("kind", ["parquet", "arrow", "dataset"])
@pytest.mark.parametrize("first", TYPES)
def test_files_may_differ_in_their_types_of_numbers(tmp_path: Path, kind: str, first: str) -> None:
    # One missing value makes whole numbers floats, and missing values alone have no type.
    types = [first, *(name for name in TYPES if name != first)]
    values = [value for name in types for value in TYPES[name].to_pylist()]
    a = [np.nan if value is None else float(value) for value in values]
    expected = np.column_stack([a, np.tile([1.0, 2.0], len(types))])
    task = GramTask(Clipping(identity_map(2), 1e19), Lattice.for_table(len(a), 2), constant=False)
    source = open_source(mixed_files(tmp_path, kind, types), ["a", "b"])
    assert (source.scan(task) == open_source(expected).scan(task)).all()


def test_files_whose_columns_hold_no_numbers_are_refused(table: Rows, tmp_path: Path) -> None:
    one, two, three = (str(tmp_path / f"{i}.parquet") for i in range(3))
    pq.write_table(arrow_table(table), one)
    pq.write_table(arrow_table(table).drop_columns("a"), two)
    days = pa.array([0] * N_ROWS, pa.int32()).view("date32")
    pq.write_table(arrow_table(table).set_column(1, "a", days), three)
    with pytest.raises(ArgumentError, match=r"column a is missing in .*1.parquet; it must be in every file"):
        open_source([one, two], NAMES)
    with pytest.raises(ArgumentError, match=r"column a is date32.* in .*2.parquet; it must be of one kind"):
        open_source([one, three], NAMES)
    with pytest.raises(ArgumentError, match=r"column a is date32.* in .*2.parquet; it must be of one kind"):
        open_source(pa_dataset.dataset([one, three]), NAMES)
    pq.write_table(pa.table({"a": pa.nulls(2)}), two)
    with pytest.raises(ArgumentError, match="not numeric: a"):
        open_source(two, ["a"])


def test_partition_columns_and_types_of_each_file_go_together(tmp_path: Path) -> None:
    for key, values in ((1, [2**60, 3]), (2, [1.5, None])):
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(pa.table({"a": values}), tmp_path / f"k={key}" / "t.parquet")
    data = pa_dataset.dataset(tmp_path, partitioning="hive")
    expected = np.array([[2.0**60, 1], [3, 1], [1.5, 2], [np.nan, 2]])
    task = GramTask(Clipping(identity_map(2), 1e18), Lattice.for_table(4, 2), constant=False)
    assert (open_source(data, ["a", "k"]).scan(task) == open_source(expected).scan(task)).all()


@pytest.mark.parametrize("columns", [["a", "b"], ["b"]])
@pytest.mark.parametrize(
    ("kept", "places"),
    [
        (pa_dataset.field("k") > 1, [2, 3, 4]),
        # By a column whose type differs: 1.5 is no whole number, and 2**60 + 1 is no float.
        (pa_dataset.field("a") > 1, [0, 1, 2, 4]),
        ((pa_dataset.field("a") > 1) & (pa_dataset.field("b") < 5), [0, 1, 2]),
    ],
)
def test_a_filter_and_types_of_each_file_go_together(
    tmp_path: Path, columns: list[str], kept: Any, places: list[int]
) -> None:
    parts = ((1, [2**60 + 1, 3], [1, 2]), (2, [1.5, None, 4.5], [3, 4, 5]))
    for key, a, b in parts:
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(pa.table({"a": a, "b": b}), tmp_path / f"k={key}" / "t.parquet")
    data = pa_dataset.dataset(tmp_path, partitioning="hive").filter(kept)
    whole = np.array([[2.0**60, 1], [3, 2], [1.5, 3], [np.nan, 4], [4.5, 5]])
    expected = whole[places][:, [("a", "b").index(name) for name in columns]]
    d = len(columns)
    task = GramTask(Clipping(identity_map(d), 1e18), Lattice.for_table(5, d), constant=False)
    found = open_source(data, columns)
    assert found.n_rows == len(places)
    assert (found.scan(task) == open_source(expected).scan(task)).all()


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_under_two_names_is_refused(
    table: Rows, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    path = one_row_group(arrow_table(table), tmp_path)
    link(path, tmp_path / "again.parquet")
    with pytest.raises(ArgumentError, match="given twice"):
        open_source([path, tmp_path / "again.parquet"], NAMES)


def test_what_cannot_be_opened_is_refused_in_words(table: Rows, tmp_path: Path) -> None:
    good = one_row_group(arrow_table(table), tmp_path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 secret")
    empty = tmp_path / "empty.parquet"
    pq.write_table(arrow_table(table)[:0], empty)
    (tmp_path / "x.sav").write_bytes(b"")
    cases: dict[str, Any] = {
        "does not exist": tmp_path / "nowhere.parquet",
        "no file matches": str(tmp_path / "*.nothing"),
        "is a folder; give a pattern": tmp_path,
        "given twice": [good, str(tmp_path / "*.pq")],
        "not a local file": "s3://bucket/table.parquet",
        "must all be of one kind": tmp_path / "x.sav",
        r"broken.parquet cannot be read \(ArrowInvalid\)\.$": broken,
        "data has no rows": empty,
        "read only once": arrow_table(table).to_reader(),
        "no types of its own": pa_dataset.dataset(csv_files(arrow_table(table), tmp_path)[3], format="csv"),
        "cannot be read": [1, 2],
    }
    for message, data in cases.items():
        with pytest.raises(ArgumentError, match=message):
            open_source(data, NAMES)
    with pytest.raises(ArgumentError, match=r"not numeric: text\. .* Or choose columns among: a, b, c"):
        open_source(good)
    with pytest.raises(ArgumentError, match="not in data: z"):
        open_source(good, ["z"])


def test_filters_of_a_dataset_hold(table: Rows, tasks: Tasks, tmp_path: Path) -> None:
    filtered = dataset(arrow_table(table), tmp_path).filter(pa_dataset.field("a") > 0)
    source = open_source(filtered, NAMES)
    kept = table[table[:, 0] > 0]
    assert source.n_rows == len(kept)
    assert (source.scan(tasks["all"]) == open_source(kept).scan(tasks["all"])).all()


def test_a_release_of_files_is_the_release_of_the_array(table: Rows, tmp_path: Path) -> None:
    expected = dpcov.release(table, rho=1, columns=NAMES, rng=np.random.default_rng(5))
    for make in SOURCES.values():
        data = make(arrow_table(table), tmp_path)
        found = dpcov.release(data, rho=1, columns=NAMES, rng=np.random.default_rng(5))
        assert (found.second_moment().values == expected.second_moment().values).all()
        assert str(found.receipt) == str(expected.receipt)


def test_frames_in_memory_agree_too(table: Rows, tasks: Tasks) -> None:
    frame = pd.DataFrame(table, columns=NAMES)
    expected = open_source(table).scan(tasks["groups"])
    assert (open_source(frame).scan(tasks["groups"]) == expected).all()


@pytest.mark.parametrize(("name", "module"), [("t.parquet", "pyarrow.parquet"), ("t.csv", "pyarrow.csv")])
def test_without_pyarrow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    (tmp_path / name).write_text("a\n1\n")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"Run: pip install 'dpcov\[arrow\]'"):
        dpcov.release(tmp_path / name, rho=1, columns=["a"])


def test_a_scan_holds_a_few_batches_of_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_BATCH_ENTRIES", 1 << 16)
    rows = np.random.default_rng(0).normal(size=(500_000, 4))
    columns = {f"x{i}": rows[:, i] for i in range(4)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", use_dictionary=False)
    source = open_source(tmp_path / "t.parquet")
    task = GramTask(Clipping(identity_map(4), 1.0), Lattice.for_table(len(rows), 4), constant=False)
    held: list[int] = []
    before = pa.total_allocated_bytes()
    worker: Any = type(task.worker())
    add = worker.add

    def watched(self: Any, block: Block, first_row: int) -> None:
        held.append(pa.total_allocated_bytes() - before)
        add(self, block, first_row)

    monkeypatch.setattr(worker, "add", watched)
    source.scan(task)
    assert len(held) > 20
    assert max(held) < rows.nbytes / 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("table.xlsx", "an Excel workbook"),
        ("table.TSV", "tab-separated values"),
        ("table.csv.gz", "a compressed file"),
        ("table.dpcov", "a release already"),
    ],
)
def test_files_that_are_not_read_are_named_as_what_they_are(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_text("a\tb\n1\t2\n")
    with pytest.raises(ArgumentError, match=kind):
        open_source(tmp_path / name)


@pytest.mark.parametrize("series", [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])])
def test_a_single_column_is_no_table(series: object) -> None:
    with pytest.raises(ArgumentError, match=r"a single column, not a table; give data\.to_frame\(\)"):
        open_source(series)
