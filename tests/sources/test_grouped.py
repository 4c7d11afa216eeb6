"""Rows grouped into units: the same units whatever the table is made of, in whatever order its rows come."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Rule
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.sample import SampledTask
from dpcov.core.query import Table
from dpcov.maps import identity_map
from dpcov.sources import ArraySource, Grouping, grouped, open_source
from dpcov.sources._scan import Piece, add_totals
from dpcov.sources.grouped import GroupedTable, sort_by_unit

NAMES = ["a", "b", "c"]
COUNTS = [0, 1, 1, 2, 40, 3, 700, 1, 9000, 5]
"""Rows of each person: some none, some more than a block."""


def table(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(COUNTS)), COUNTS)
    rows = rng.normal(size=(len(ids), 3)) * np.exp(2 * rng.normal(size=(len(ids), 1)))
    rows[7, 1] = np.nan
    order = rng.permutation(len(ids))
    return rows[order], ids[order]


ROWS, IDS = table()
N_UNITS = len(set(IDS.tolist()))


def gram_task(n_units: int = N_UNITS, rule: Rule = Rule.SHRINK) -> GramTask:
    lattice = Table.of_size(n_units, 4, constant=True, grouped=True).lattice
    return GramTask(Clipping(identity_map(4), 20.0, rule), lattice, constant=True)


def expected(task: GramTask, *, even: bool = False) -> NDArray[np.int64]:
    """Each person in a table of its own, added up."""
    parts = [ROWS[unit == IDS] for unit in sorted(set(IDS.tolist()))]
    totals = [GroupedTable(ArraySource(part), np.array([len(part)]), even=even).scan(task) for part in parts]
    return add_totals(totals)


def pandas_frame(ids: Any = IDS) -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=NAMES).assign(who=ids)


TABLES: dict[str, Callable[[], Any]] = {
    "array": lambda: np.column_stack([ROWS, IDS]),
    "array, column first": lambda: np.asfortranarray(np.column_stack([ROWS, IDS])),
    "pandas": pandas_frame,
    "pandas with an index of its own": lambda: pandas_frame().set_index(IDS[::-1]),
    "pandas text": lambda: pandas_frame([f"p{i}" for i in IDS]),
    "pandas categories": lambda: pandas_frame(pd.Categorical([f"p{i}" for i in IDS])),
    "pandas nullable": lambda: pandas_frame(pd.array(IDS, dtype="Int64")),
    "pandas objects": lambda: pandas_frame([uuid.UUID(int=int(i)) for i in IDS]),
    "polars": lambda: pl.from_pandas(pandas_frame()),
    "polars text": lambda: pl.from_pandas(pandas_frame([f"p{i}" for i in IDS])),
    "polars dates": lambda: pl.from_pandas(pandas_frame()).with_columns(
        who=pl.Series([dt.date(2020, 1, 1) + dt.timedelta(int(i)) for i in IDS])
    ),
    "pyarrow": lambda: pa.Table.from_pandas(pandas_frame()),
}


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_all_tables_have_the_same_units(name: str, *, even: bool) -> None:
    columns = [*NAMES, "who"] if name.startswith("array") else None
    source = open_source(TABLES[name](), columns, Grouping("who", even=even))
    assert (source.n_rows, source.columns, source.grouped, source.in_memory) == (
        N_UNITS,
        ("a", "b", "c"),
        True,
        False,
    )
    assert (source.scan(gram_task()) == expected(gram_task(), even=even)).all()


@pytest.mark.parametrize("ids", [IDS, IDS.astype(str), IDS.tolist(), pd.Series(IDS), pl.Series(IDS)])
def test_ids_may_be_given_beside_the_table(ids: Any) -> None:
    for data in (ROWS, pd.DataFrame(ROWS, columns=NAMES)):
        source = open_source(data, NAMES, Grouping(ids))
        assert (source.scan(gram_task()) == expected(gram_task())).all()


@pytest.mark.parametrize("rule", Rule)
def test_neither_order_nor_threads_matter(rule: Rule) -> None:
    totals = []
    for seed, threads in [(1, 1), (2, 2), (3, 5)]:
        order = np.random.default_rng(seed).permutation(len(IDS))
        places, ends = sort_by_unit(IDS[order])
        source = GroupedTable(ArraySource(ROWS[order][places], threads=threads), ends, even=False)
        totals.append(source.scan(gram_task(rule=rule)))
    assert all((total == expected(gram_task(rule=rule))).all() for total in totals)


def test_a_sample_is_one_of_units() -> None:
    places, ends = sort_by_unit(IDS)
    source = GroupedTable(ArraySource(ROWS[places]), ends, even=False)
    single = [source.scan(SampledTask(gram_task(), np.array([unit]))) for unit in range(N_UNITS)]
    assert (np.sum(single, axis=0) == expected(gram_task())).all()
    some = np.array([0, 3, 7])
    assert (source.scan(SampledTask(gram_task(), some)) == sum(single[i] for i in some)).all()


@pytest.mark.parametrize(
    "ids",
    [
        pd.array([1, None, 1, 2, None], dtype="Int64"),
        [1.0, np.nan, 1.0, 2.0, np.nan],
        ["x", None, "x", "y", None],
        np.array(["2020-01-01", "NaT", "2020-01-01", "2021-01-01", "NaT"], dtype="datetime64[ns]"),
        np.array(["x", ["no id"], "x", "y", {}], dtype=object),
        np.array([2**60, None, 2**60, 2**60 + 1, None], dtype=object),
    ],
)
def test_rows_without_an_id_are_left_out(ids: Any) -> None:
    frame = pd.DataFrame({"a": [1.0, 100.0, 2.0, 3.0, 100.0]}).assign(who=ids)
    source = open_source(frame, None, Grouping("who"))
    lattice = Table.of_size(2, 1, constant=False, grouped=True).lattice
    task = GramTask(Clipping(identity_map(1), 1000.0), lattice, constant=False)
    assert source.n_rows == 2
    assert float(source.scan(task)[0, 0]) * (1000 / lattice.clip) ** 2 == pytest.approx(14, rel=1e-3)


class Uncomparable:
    def __eq__(self, other: object) -> bool:
        raise ValueError("Ada earns 91234")

    def __hash__(self) -> int:
        raise ValueError("Ada earns 91234")


@pytest.mark.parametrize("odd", [Decimal("sNaN"), Decimal("NaN"), Uncomparable(), [1], pd.NA, pd.NaT])
@pytest.mark.parametrize("beside", [True, False])
def test_an_object_that_cannot_be_compared_is_no_id_and_no_error(odd: Any, *, beside: bool) -> None:
    ids = pd.Series(["p1", "p2", odd, "p1", "p3"], dtype=object)
    table = pd.DataFrame({"a": np.arange(5.0)})
    if beside:
        assert open_source(table, None, Grouping(ids)).n_rows == 3
    assert open_source(table.assign(who=ids), None, Grouping("who")).n_rows == 3


def test_large_whole_numbers_are_told_apart() -> None:
    frame = pd.DataFrame({"a": [1.0, 1.0], "who": [2**60, 2**60 + 1]})
    assert open_source(frame, None, Grouping("who")).n_rows == 2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_pieces_end_where_units_do(counts: list[int], span: int) -> None:
    """Whatever the cut of the inner table: no row is lost, doubled, or given to another unit."""
    rows = np.arange(1.0, sum(counts) + 1)[:, None]

    class Cut(ArraySource):
        def _streams(self, task: Any) -> Any:
            del task
            whole = self

            def pieces() -> Any:
                for first in range(0, whole.n_rows, span):
                    last = min(first + span, whole.n_rows)
                    yield Piece(first, last - first, partial(whole._rows, first, last))

            return [pieces]

    if not len(rows):
        return
    ends = np.cumsum(counts)
    source = GroupedTable(Cut(rows), ends, even=False)
    found: list[list[float]] = []
    (stream,) = source.streams(gram_task())
    for piece in stream():
        assert piece.units is not None
        assert piece.first_row == len(found)
        block = np.asarray(piece.cells())
        starts = piece.units.ends - piece.units.counts
        found += [block[0, a:b].tolist() for a, b in zip(starts, piece.units.ends, strict=True)]
    trailing = len(counts) - len(found)
    assert found == [part.ravel().tolist() for part in np.split(rows, ends[:-1])][: len(found)]
    assert not any(counts[len(counts) - trailing :])


def test_a_unit_that_is_too_long_is_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "longest_unit", lambda _columns: 500)
    places, ends = sort_by_unit(IDS)
    source = GroupedTable(ArraySource(ROWS[places]), ends, even=False)
    short = [ROWS[unit == IDS] for unit, count in enumerate(COUNTS) if 0 < count <= 500]
    totals = [GroupedTable(ArraySource(x), np.array([len(x)]), even=False).scan(gram_task()) for x in short]
    assert (source.scan(gram_task()) == np.sum(totals, axis=0)).all()
    assert source.n_rows == N_UNITS


@pytest.mark.parametrize(
    ("data", "columns", "ids", "message"),
    [
        (
            pandas_frame(),
            None,
            "whoo",
            "must be a column of data, got 'whoo'. Did you mean 'who'",
        ),
        (pandas_frame(), ["a", "who"], "who", "columns must not contain who, which is the privacy_unit"),
        (pandas_frame(), None, IDS[:-1], "one id for each row"),
        (ROWS, NAMES, ROWS, "the name of a column, or one id for each row"),
        (ROWS, NAMES, "d", "privacy_unit must be a column of data"),
        (pandas_frame([None] * len(IDS)), None, "who", "privacy_unit is missing in every row"),
        (
            pl.DataFrame({"a": [1.0], "who": [[1, 2]]}),
            None,
            "who",
            "column who has a type of values that no kind reads",
        ),
    ],
)
def test_what_cannot_be_grouped_is_said(data: Any, columns: Any, ids: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_source(data, columns, Grouping(ids))
