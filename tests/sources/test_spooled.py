"""Units of tables that are streamed, or live on a cluster: the same bits as those of a table in memory."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from dpcov.core import ArgumentError, Clipping
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask
from dpcov.core.query import Table
from dpcov.maps import identity_map
from dpcov.sources import Grouping, open_source
from dpcov.sources.encoding import category, number
from dpcov.sources.encoding.ids import id_texts

COUNTS = [1, 1, 2, 40, 3, 700, 1, 90, 5] * 3


def people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(COUNTS)), COUNTS)
    made = pd.DataFrame(np.random.default_rng(1).normal(size=(len(ids), 2)).round(6), columns=["a", "b"])
    made["kind"] = np.where(made["a"] > 0, "x", "y")
    made["who"] = [f"p{i}" for i in ids]
    made.loc[made.index[5], "b"] = np.nan
    made.loc[made.index[-4:], "who"] = None
    return made.iloc[rng.permutation(len(made))].reset_index(drop=True)


PEOPLE = people()


def columns() -> dict[str, Any]:
    return {"a": number(), "b": number(-5, 5), "kind": category(["x", "y"])}


def total(data: Any, *, even: bool = False) -> Any:
    source = open_source(data, columns(), Grouping("who", even=even))
    d = len(source.columns) + 1
    table = Table.of_size(source.n_rows, d, constant=True, grouped=True)
    whole = GramTask(Clipping(identity_map(d), 12.0), table.lattice, constant=True)
    every = SampledTask(whole, np.arange(source.n_rows))
    found = source.scan(JointTask((whole, every)))
    assert source.grouped
    assert (found[: d * d] == found[d * d :]).all()
    return source.n_rows, source.columns, source.bounds.tolist(), found.tolist()


def parquet(folder: Path, data: pd.DataFrame, parts: int = 1, **options: Any) -> list[str]:
    cuts = np.array_split(np.arange(len(data)), parts)
    paths = [str(folder / f"part{i}.parquet") for i in range(parts)]
    for path, cut in zip(paths, cuts, strict=True):
        pq.write_table(pa.Table.from_pandas(data.iloc[cut], preserve_index=False), path, **options)
    return paths


def csv(folder: Path) -> str:
    PEOPLE.to_csv(folder / "people.csv", index=False)
    return str(folder / "people.csv")


def feather(folder: Path) -> str:
    pf.write_feather(PEOPLE, folder / "people.arrow", chunksize=100)
    return str(folder / "people.arrow")


TABLES: dict[str, Callable[[Path], Any]] = {
    "Parquet": lambda folder: parquet(folder, PEOPLE),
    "Parquet, shuffled, row groups of 64": lambda folder: parquet(folder, people(3), row_group_size=64),
    "Parquet, 3 files": lambda folder: parquet(folder, people(4), 3),
    "Arrow": feather,
    "CSV": csv,
    "dataset": lambda folder: ds.dataset(parquet(folder, people(5), 2)),
    "lazy": lambda _: pl.from_pandas(PEOPLE).lazy(),
    "Dask, 1 partition": lambda _: dd.from_pandas(PEOPLE, npartitions=1),
    "Dask, 7 partitions": lambda _: dd.from_pandas(people(6), npartitions=7),
}


@pytest.fixture(scope="module")
def in_memory() -> dict[bool, Any]:
    return {even: total(PEOPLE, even=even) for even in (False, True)}


@pytest.mark.parametrize("name", TABLES)
def test_the_same_bits_from_every_table(name: str, tmp_path: Path, in_memory: dict[bool, Any]) -> None:
    data = TABLES[name](tmp_path)
    for even in (False, True) if name.startswith(("Parquet, 3", "Dask, 7")) else (False,):
        assert total(data, even=even) == in_memory[even]


def test_ids_are_equal_whatever_their_type() -> None:
    """One missing value makes floats of whole numbers, in one file of several: the person is the same."""
    texts = [
        id_texts(pa.array(values, type=kind)).to_pylist()
        for values, kind in [
            ([17, None], pa.int64()),
            ([17, None], pa.uint8()),
            ([17.0, None], pa.float64()),
            ([17.0, float("nan")], pa.float32()),
            (["17", ""], pa.string()),
            (["17", "NA"], pa.large_string()),
            ([b"17", None], pa.binary()),
        ]
    ]
    assert texts == [[b"17", None]] * len(texts)
    assert id_texts(pa.array([17, None]).cast(pa.decimal128(21, 2))).to_pylist() == [b"17", None]
    assert id_texts(pa.array(["u", None, "u"]).dictionary_encode()).to_pylist() == [b"u", None, b"u"]
    large = id_texts(pa.array([2**60, 2**60 + 1])).to_pylist()
    assert len(set(large)) == 2
    assert id_texts(pa.array([[1]])).to_pylist() == [None]


def test_a_person_in_files_of_different_types_is_one(tmp_path: Path) -> None:
    whole = pd.DataFrame({"a": [1.0, 2.0], "who": [1, 2]})
    floats = pd.DataFrame({"a": [3.0, 4.0, 5.0], "who": [1.0, 2.0, np.nan]})
    paths = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    for path, part in zip(paths, (whole, floats), strict=True):
        part.to_parquet(path)
    assert open_source(paths, None, Grouping("who")).n_rows == 2


def test_sorted_rows_do_not_outlive_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    source = open_source(parquet(tmp_path, PEOPLE), columns(), Grouping("who"))
    (folder,) = (tmp_path / "t").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    del source
    gc.collect()
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.parametrize(
    ("ids", "message"),
    [("whoo", "columns not in data: whoo"), (np.zeros(3), "unless data is a table in memory")],
)
def test_what_cannot_be_grouped_is_said(ids: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_source(parquet(tmp_path, PEOPLE), columns(), Grouping(ids))


def test_a_table_without_ids_is_refused(tmp_path: Path) -> None:
    nobody = PEOPLE.assign(who=pd.array([None] * len(PEOPLE), dtype="string"))
    for data in (parquet(tmp_path, nobody), dd.from_pandas(nobody, npartitions=2)):
        with pytest.raises(ArgumentError, match="privacy_unit is missing in every row"):
            open_source(data, columns(), Grouping("who"))
