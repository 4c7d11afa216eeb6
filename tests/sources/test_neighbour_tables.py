"""How a table is cut may depend on its rows: nothing that can be seen may depend on the cut."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isabstract
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.cut_tables import NAMES, OTHER, ROWS, TABLES, Rows
from helpers.replay import Tape, compare, observe

import dpcov
from dpcov.core import Source
from dpcov.methods.whitening import constants
from dpcov.sources import ArraySource, FrameSource, csv_records, open_source
from dpcov.sources._table import Table
from dpcov.sources.dask import DaskSource
from dpcov.sources.grouped import GroupedTable
from dpcov.sources.spooled import SortedFile


def kinds(of: type) -> set[type]:
    """Return a class and all that dpcov derives from it, without abstract ones."""
    children: list[type] = type.__subclasses__(of)
    found = {kind for child in children for kind in kinds(child)}
    return found if isabstract(of) or not of.__module__.startswith("dpcov.") else {of, *found}


def test_every_kind_of_table_is_covered() -> None:
    # Spark has a test beside the others that need a session. Rows grouped by unit are opened another way.
    assert set(TABLES) == kinds(Table) - {SortedFile, GroupedTable} | {DaskSource}


@pytest.mark.parametrize("kind", TABLES)
def test_no_cut_of_a_table_shows(kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 1000)

    def released(rows: Rows, folder: Path) -> Callable[[], Any]:
        folder.mkdir()
        data = TABLES[kind](rows, folder)
        columns = NAMES
        source: Source = open_source(data, columns)
        assert (type(source), source.n_rows) == (kind, 400)
        return lambda: repr(dpcov.release(data, rho=1, columns=columns, method="gaussian", radius=1.0))

    with dask.config.set(scheduler="synchronous"):
        assert compare(released(ROWS, tmp_path / "one"), released(OTHER, tmp_path / "other")) == []


@pytest.mark.parametrize("kind", TABLES)
def test_no_cut_of_a_table_shows_where_a_sample_is_held(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 1000)
    for name, rows in (("STEERING_ROWS", 200), ("QUICK_ROWS", 150), ("SAMPLED_ROWS", 100)):
        monkeypatch.setattr(constants, name, rows)

    def released(rows: Rows, folder: Path) -> Callable[[], Any]:
        folder.mkdir()
        data = TABLES[kind](rows, folder)
        return lambda: repr(dpcov.release(data, rho=10, columns=NAMES))

    with dask.config.set(scheduler="synchronous"):
        one, other = released(ROWS, tmp_path / "one"), released(OTHER, tmp_path / "other")
        assert "a sample of the rows: None" in observe(one, Tape())["progress"] or kind in (
            ArraySource,
            FrameSource,
        )
        assert compare(one, other) == []


def visits(own: int) -> pd.DataFrame:
    """Return the rows of 100 persons in no order, one of whom has as many as are said."""
    counts = np.full(100, 4)
    counts[17] = own
    ids = np.random.default_rng(1).permutation(np.repeat(np.arange(100), counts))
    return pd.DataFrame(np.random.default_rng(2).normal(size=(len(ids), 2)), columns=["a", "b"]).assign(
        id=ids
    )


def _written(name: str) -> Callable[[pd.DataFrame, Path], Any]:
    def write(table: pd.DataFrame, folder: Path) -> Any:
        path = folder / name
        table.to_csv(path, index=False) if name.endswith("csv") else table.to_parquet(path, row_group_size=50)
        return path

    return write


GROUPED: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "frame": lambda table, _: table,
    "lazy": lambda table, _: pl.from_pandas(table).lazy(),
    "csv": _written("t.csv"),
    "parquet": _written("t.parquet"),
    "dask": lambda table, _: dask.dataframe.from_pandas(table, npartitions=3),
}


@pytest.mark.parametrize("kind", GROUPED)
@pytest.mark.parametrize("own", [1, 40])
def test_nothing_shows_how_many_rows_a_person_has(kind: str, own: int, tmp_path: Path) -> None:
    def released(table: pd.DataFrame, folder: Path) -> Callable[[], Any]:
        folder.mkdir()
        data = GROUPED[kind](table, folder)
        return lambda: repr(
            dpcov.release(
                data, rho=1, columns=["a", "b"], method="gaussian", radius=1.0, privacy_unit="id", force=True
            )
        )

    with dask.config.set(scheduler="synchronous"):
        one, other = released(visits(4), tmp_path / "one"), released(visits(own), tmp_path / "other")
        assert compare(one, other) == []
