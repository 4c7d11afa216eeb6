from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Clipping,
)
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.maps import identity_map
from dpcov.sources import ArraySource, Grouping, open_source

NAMES = ["a", "b", "c"]


def rows() -> NDArray[np.float64]:
    table = np.random.default_rng(0).normal(size=(5000, 3)) * 10
    table[17, 1] = math.nan
    table[18, 2] = math.inf
    return table


def gram(data: Any, columns: list[str] | None = None) -> NDArray[np.int64]:
    source = open_source(data, columns)
    d = len(source.columns)
    task = GramTask(Clipping(identity_map(d), 20.0), Lattice.for_table(source.n_rows, d), constant=False)
    return source.scan(task)


FRAMES: dict[str, Callable[[dict[str, NDArray[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas-pyarrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars-chunked": lambda columns: pl.concat(
        [pl.DataFrame(columns)[:1234], pl.DataFrame(columns)[1234:]], rechunk=False
    ),
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_dataframe_gives_the_same_bits_as_the_array(make: Callable[[Any], Any]) -> None:
    table = rows()
    frame = make({name: table[:, i].copy() for i, name in enumerate(NAMES)})
    assert (gram(frame) == gram(table)).all()
    assert (gram(frame, ["c", "a"]) == gram(np.ascontiguousarray(table[:, [2, 0]]))).all()


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_whole_numbers_and_booleans_are_numbers(make: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(1)
    columns: dict[str, NDArray[Any]] = {
        "a": rng.integers(-(2**63), 2**63 - 1, size=500),
        "b": rng.integers(0, 255, size=500).astype(np.uint8),
        "c": rng.integers(0, 2, size=500).astype(bool),
    }
    expected = gram(np.column_stack([columns[name].astype(np.float64) for name in NAMES]))
    assert (gram(make(columns)) == expected).all()


def test_missing_values_are_zero_rows_in_every_library() -> None:
    full = np.arange(1.0, 13.0).reshape(4, 3)
    expected = full.copy()
    expected[[1, 3]] = math.nan
    values: dict[str, list[Any]] = {
        "a": [1, None, 7, 10],
        "b": [2.0, 5.0, 8.0, None],
        "c": [3, 6, 9, 12],
    }
    for frame in (pl.DataFrame(values), pa.table(values), pd.DataFrame(values).convert_dtypes()):
        assert (gram(frame) == gram(expected)).all()
    flags = {"a": [True, None, False, True]}
    assert (gram(pa.table(flags)) == gram(np.array([[1.0], [math.nan], [0.0], [1.0]]))).all()


def test_decimals_are_numbers() -> None:
    frame = pa.table({"a": pa.array([Decimal("1.5"), None, Decimal("-2.25")])})
    assert (gram(frame) == gram(np.array([[1.5], [math.nan], [-2.25]]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.bool_, ">f8"])
def test_every_real_dtype_is_read(dtype: Any) -> None:
    table = np.random.default_rng(0).integers(0, 2, size=(100, 3)).astype(dtype)
    assert (gram(table) == gram(table.astype(np.float64))).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "two dimensions"),
        (np.zeros((0, 3)), "no rows"),
        (np.zeros((3, 0)), "no columns"),
        (np.zeros((2, 2), dtype=complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1, None]], dtype=object), "real numbers"),
        (np.ma.masked_array(np.zeros((2, 2))), "masked"),
        ([[1.0, 2.0]], "cannot be read"),
        (
            pd.DataFrame({"a": [1.0], "b": ["x"]}),
            r'not numeric: b\. Say .* columns={"b": dpcov.category\(.*Or choose columns among: a\.',
        ),
        (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), "no rows"),
        (pl.DataFrame({"t": [None]}, schema={"t": pl.Date}), r'not numeric: t\. .*{"t": dpcov.date\(\)}'),
        (pd.DataFrame(np.zeros((2, 2))), "not strings"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), "same name"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_source(data)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "z"], "not in data: z"),
        (["a", "a"], "repeat"),
        ("a", "list"),
        ([], "no columns"),
        ([1], "list"),
    ],
)
def test_bad_columns_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_source(pl.DataFrame({"a": [1.0], "b": [2.0]}), columns)


def test_array_columns_must_name_all() -> None:
    assert ArraySource(rows(), NAMES).columns == ("a", "b", "c")
    with pytest.raises(ArgumentError, match="3 columns"):
        ArraySource(rows(), ["a"])
    with pytest.raises(ArgumentError, match="repeat"):
        ArraySource(rows(), ["a", "a", "b"])
    with pytest.raises(ArgumentError, match="list"):
        ArraySource(rows(), "abc")


def test_a_scan_does_not_copy_the_table() -> None:
    table = np.ones((400_000, 10))
    source = ArraySource(table, threads=1)
    task = GramTask(Clipping(identity_map(10), 20.0), Lattice.for_table(len(table), 10), constant=False)
    tracemalloc.start()
    source.scan(task)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < table.nbytes / 4


def test_the_table_is_left_as_it_was() -> None:
    table = rows()
    before = table.copy()
    gram(table)
    np.testing.assert_array_equal(table, before)


def test_a_misspelt_column_is_answered_with_the_nearest() -> None:
    table = pd.DataFrame({"dep_delay": [1.0], "distance": [2.0]})
    with pytest.raises(ArgumentError, match=r"not in data: dep_dely\. Did you mean 'dep_delay'\? It has"):
        open_source(table, ["dep_dely", "distance"])
    with pytest.raises(ArgumentError, match=r"not numeric: t\. .*\. No column is numeric"):
        open_source(pd.DataFrame({"t": ["x"]}))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_rows_are_held_by_several_threads(threads: int) -> None:
    rows = np.random.default_rng(0).normal(size=(120_000, 2))
    positions = np.random.default_rng(1).permutation(len(rows))[:100_000]
    task = GramTask(Clipping(identity_map(2), 3.0), Lattice.for_table(len(rows), 2), constant=False)
    read: list[int] = []
    held = ArraySource(rows, threads=threads).hold(positions, read.append)
    assert sum(read) == len(rows)
    for length in (100_000, 70_001):
        assert (held.scan(task, length) == ArraySource(rows[positions[:length]]).scan(task)).all()


def test_rows_are_held_without_a_warning_of_their_values() -> None:
    # Warnings are errors here.
    rows = np.array([[np.longdouble("1e400")], [np.longdouble(2)]])
    held = ArraySource(rows).hold(np.arange(2))
    task = GramTask(Clipping(identity_map(1), 3.0), Lattice.for_table(2, 1), constant=False)
    assert (held.scan(task, 2) == ArraySource(rows).scan(task)).all()


def test_units_cannot_be_held() -> None:
    grouped = open_source(np.zeros((4, 1)), None, Grouping(np.array([0, 0, 1, 1])))
    with pytest.raises(ArgumentError, match="units of several rows"):
        grouped.hold(np.arange(2))
