"""Columns that are mapped together have the totals of columns that are mapped one by one, bit for bit."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Block, Clipping, Gram, LatticeMap, LogNormGrid, NormHistogram, Query, Rule, SeededBits
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask, random_positions
from dpcov.core.query import Table
from dpcov.core.tasks import RowTask
from dpcov.core.units import Units
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening.queries import columns as module
from dpcov.methods.whitening.queries.columns import ColumnTask, PerColumn, StackedTask
from dpcov.sources import ArraySource

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

# Bins so narrow that hardly a row would stay in its own, were its length off by 1 part in 90.
GRID = LogNormGrid(-440, 440, 32)
HOSTILE = [
    math.nan, math.inf, -math.inf, 1e308, -1.7e308, 1e300, -1e300, 5e-324, -2e-310, 2.0**-1022, 2.0**-960,
    -(2.0**-961), 0.0, -0.0, 2.0**53 + 2, 1e-30, -1e30, 1.0, 2013.0,
]  # fmt: skip
ENTRIES = st.one_of(st.sampled_from(HOSTILE), st.floats(width=64), st.floats(-10, 10))
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 9)), elements=ENTRIES)
KINDS = ("alone", "about a centre", "unit rows", "shrunk rows", "all kinds", "unit rows, alone")


def centred_map(rng: np.random.Generator, *, norm_only: bool) -> LatticeMap:
    """Return a map of a column about a centre, of any scale, and the constant."""
    usual = [(0.0, 1.0), (rng.normal(), 10 ** rng.normal()), (2013.0, 3.0)]
    centre, scale = [*usual, (1e-90, 1e-91), (-1e90, 1e88), (0.0, 1e60)][rng.integers(6)]
    constant = [0.0, 0.0] if norm_only else [rng.normal(), 1.0]
    return integer_map([[1 / scale, -centre / scale], constant], [scale, 1.0], [centre, 0.0])


def a_query(kind: str, rng: np.random.Generator) -> Query[object]:
    if kind == "alone":
        return NormHistogram(identity_map(1), GRID, 1, "norms")
    if kind == "about a centre":
        return NormHistogram(centred_map(rng, norm_only=True), GRID, 1, "norms")
    if kind == "unit rows":
        return Gram(Clipping(centred_map(rng, norm_only=False), 1.0, Rule.DIRECTION), 1, "directions")
    if kind == "shrunk rows":
        rule = list(Rule)[rng.integers(len(Rule))]
        return Gram(Clipping(centred_map(rng, norm_only=False), 10 ** rng.normal(), rule), 1, "grams")
    if kind == "unit rows, alone":
        return Gram(Clipping(identity_map(1), 1.0, Rule.DIRECTION), 1, "rows that are not zero")
    return a_query(KINDS[rng.integers(1, 4)], rng)


def per_column(kind: str, n_columns: int, every: int = 1) -> PerColumn[object]:
    """Ask about the columns in another order, some of them twice and some not at all."""
    rng = np.random.default_rng([KINDS.index(kind), n_columns])
    places = tuple(rng.integers(n_columns, size=n_columns + 1).tolist())
    return PerColumn(
        places, tuple(a_query(kind, rng) for _ in places), "", every, alone=kind.endswith("alone")
    )


def a_table(n_rows: int, n_columns: int, *, grouped: bool = False) -> Table:
    return Table.of_size(n_rows, n_columns + 1, constant=True, in_memory=True, grouped=grouped)


def stacked(query: PerColumn[object], table: Table) -> StackedTask:
    task = query.task(table, SeededBits(np.random.default_rng(0)))
    assert isinstance(task, StackedTask)
    return task


def one_by_one(task: StackedTask) -> JointTask:
    return JointTask(tuple(ColumnTask(*pair) for pair in zip(task.tasks, task.columns, strict=True)))


def total(task: RowTask, blocks: Sequence[Block], units: Sequence[Units | None] = ()) -> Integers:
    worker = task.worker()
    # An error in place of a warning: neither may come of a row.
    with np.errstate(all="raise"):
        for place, block in enumerate(blocks):
            worker.add(block, 0, units[place] if units else None)
        return worker.total()


LAYOUTS: dict[str, Callable[[Matrix], Block]] = {
    "row by row": lambda rows: np.ascontiguousarray(rows).T,
    "column by column": lambda rows: np.asfortranarray(rows).T,
    "every other row": lambda rows: np.repeat(rows, 2, axis=0)[::2].T,
    "a list of columns": lambda rows: [column.copy() for column in rows.T],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@given(TABLES)
@settings(max_examples=25)
def test_hostile_rows_have_the_totals_of_single_columns(kind: str, layout: str, rows: Matrix) -> None:
    task = stacked(per_column(kind, rows.shape[1]), a_table(*rows.shape))
    block = LAYOUTS[layout](rows)
    np.testing.assert_array_equal(total(task, [block]), total(one_by_one(task), [block]))


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_each_hostile_number_beside_ordinary_ones(kind: str, hostile: float) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 3))
    rows[2, 1] = rows[3, 2] = rows[3, 0] = hostile
    task = stacked(per_column(kind, 3), a_table(*rows.shape))
    np.testing.assert_array_equal(total(task, [rows.T]), total(one_by_one(task), [rows.T]))
    alone = stacked(per_column(kind, 1), a_table(1, 1))
    number = np.array([[hostile]])
    np.testing.assert_array_equal(total(alone, [number]), total(one_by_one(alone), [number]))


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_many_ordinary_rows_have_the_totals_of_single_columns(kind: str) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 7)) * np.geomspace(1e-3, 1e5, 7) + [
        0,
        0,
        0,
        1,
        1,
        9,
        2013,
    ]
    task = stacked(per_column(kind, 7), a_table(*rows.shape))
    expected = total(one_by_one(task), [rows.T])
    np.testing.assert_array_equal(total(task, [rows.T]), expected)
    # Not all of them zero rows, and no column has the total of another.
    assert len(np.unique(expected)) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_any_length_add_up(kind: str) -> None:
    rows = np.random.default_rng(1).standard_cauchy(size=(900, 5))
    task = stacked(per_column(kind, 5), a_table(*rows.shape))
    blocks = [
        rows[first:last].T for first, last in ((0, 100), (100, 100), (100, 700), (700, 701), (701, 900))
    ]
    np.testing.assert_array_equal(total(task, blocks), total(one_by_one(task), [rows.T]))


@pytest.mark.parametrize("together", [1, 2, 3, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_matter_how_many_columns_are_mapped_together(
    kind: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(2).standard_cauchy(size=(300, 7))
    task = stacked(per_column(kind, 7), a_table(*rows.shape))
    monkeypatch.setattr(module, "_ROWS_TOGETHER", together * task.block_rows)
    np.testing.assert_array_equal(total(task, [rows.T]), total(one_by_one(task), [rows.T]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "float16", "float32", "longdouble"])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_other_types_become_float64_first(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    numbers = (rng.normal(size=(4, 500)) * 50).astype("int8" if dtype == "uint64" else dtype).astype(dtype)
    if dtype in ("uint64", "int64"):
        # Too long for float64: they are rounded once.
        numbers[:, ::3] += np.array(2**62 + 1, dtype=dtype)
    task = stacked(per_column(kind, 4), a_table(500, 4))
    expected = total(one_by_one(task), [numbers.astype(np.float64)])
    for block in (numbers, np.asfortranarray(numbers), list(numbers)):
        np.testing.assert_array_equal(total(task, [block]), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sample_has_the_totals_of_single_columns(kind: str, threads: int) -> None:
    rows = np.random.default_rng(4).standard_cauchy(size=(40_000, 5))
    rows[::9, 2] = math.nan
    bits = SeededBits(np.random.default_rng(0))
    task = per_column(kind, 5, every=3).task(a_table(*rows.shape), bits)
    assert isinstance(task, StackedTask)
    positions = random_positions(bits, len(rows), 13_334)
    sampled, apart = SampledTask(task, positions), SampledTask(one_by_one(task), positions)
    for table in (rows, np.asfortranarray(rows)):
        source = ArraySource(table, threads=threads)
        np.testing.assert_array_equal(source.scan(sampled), source.scan(apart))


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_units_have_the_totals_of_single_columns(kind: str, *, even: bool) -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 6, size=200)
    rows = rng.standard_cauchy(size=(int(counts.sum()), 3))
    rows[::11, 0] = math.inf
    units = Units(np.cumsum(counts), even)
    task = stacked(per_column(kind, 3), a_table(200, 3, grouped=True))
    found = total(task, [rows.T], [units])
    np.testing.assert_array_equal(found, total(one_by_one(task), [rows.T], [units]))
    assert not np.array_equal(found, total(task, [rows.T]))


def test_a_unit_that_is_longer_than_a_block_comes_alone() -> None:
    task = stacked(per_column("unit rows", 3), a_table(2, 3, grouped=True))
    rows = np.random.default_rng(6).standard_cauchy(size=(task.block_rows + 1000, 3))
    units = [Units(np.array([10])), Units(np.array([len(rows) - 10]))]
    blocks = [rows[:10].T, rows[10:].T]
    np.testing.assert_array_equal(total(task, blocks, units), total(one_by_one(task), blocks, units))


def test_a_map_that_scales_a_column_up_is_asked_column_by_column() -> None:
    """Rows below 2^-960 are zero beside others, but here those below 2^-860 are."""
    scaled = LatticeMap(np.eye(1) * 2.0**26, 1.0, np.array([100]))
    query = PerColumn((1, 0), (NormHistogram(scaled, LogNormGrid(-999, 9, 1), 1, ""),) * 2, "", alone=True)
    rows = np.ldexp(np.random.default_rng(7).normal(size=(200, 2)), -np.arange(760, 960)[:, None])
    task = query.task(a_table(*rows.shape), SeededBits(np.random.default_rng(0)))
    assert isinstance(task, JointTask)
    alone = [part.inner for part in task.tasks if isinstance(part, ColumnTask)]
    expected = [total(part, [rows[:, [place]].T]) for part, place in zip(alone, (1, 0), strict=True)]
    np.testing.assert_array_equal(total(task, [rows.T]), np.concatenate(expected))


def test_the_task_travels() -> None:
    rows = np.random.default_rng(8).normal(size=(100, 4))
    task = stacked(per_column("all kinds", 4), a_table(*rows.shape))
    assert task.block_rows == one_by_one(task).block_rows == min(part.block_rows for part in task.tasks)
    copy = pickle.loads(pickle.dumps(task.with_notes(task.notes(0, 100))))  # noqa: S301
    assert copy.shape == total(task, [rows.T]).shape
    np.testing.assert_array_equal(total(copy, [rows.T]), total(task, [rows.T]))
