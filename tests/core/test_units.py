"""Units of several rows: each contributes a bounded function of its rows as a multiset, bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers import reference
from helpers.curators import identity
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    Clipping,
    Curator,
    Gram,
    LogNormGrid,
    NormHistogram,
    PrivacyCost,
    RowsBeyond,
    RowTask,
    Rule,
    SeededBits,
)
from dpcov.core import units as units_module
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.histogram import LogNormTask
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask
from dpcov.core.query import Table
from dpcov.core.units import MOST_ROWS, Units, longest_unit
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries import Shrinking, ShrunkGram
from dpcov.sources.arrays import ArraySource
from dpcov.sources.grouped import GroupedTable

Rows = NDArray[np.float64]

NUMBERS = st.one_of(
    st.sampled_from([math.nan, math.inf, 1e308, 5e-324, -0.0, 0.0, 2.0**53 + 2, 1e-30]),
    st.floats(-10, 10),
    st.floats(-1e6, 1e6),
    st.floats(width=64),
)
UNITS = st.lists(
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=0, max_size=6), min_size=1, max_size=6
)
LATTICE = Table.of_size(6, 3, constant=False, grouped=True).lattice
MAP = integer_map(np.array([[1.0, 0.0, 0.0], [0.3, 2.0, 0.0], [-0.2, 0.1, 0.5]]))
CLIPPINGS = [Clipping(MAP, 3.0, rule) for rule in Rule]
GRID = LogNormGrid(-8, 8, 2)


def stacked(unit_rows: list[Any], d: int = 3) -> tuple[Rows, NDArray[np.int64]]:
    counts = [len(rows) for rows in unit_rows]
    rows = np.array([row for rows in unit_rows for row in rows], dtype=np.float64).reshape(-1, d)
    return rows, np.cumsum(counts)


def total(task: RowTask, unit_rows: list[Any], *, even: bool = False, d: int = 3) -> NDArray[np.int64]:
    rows, ends = stacked(unit_rows, d)
    worker = task.worker()
    worker.add(rows.T, 0, Units(ends, even))
    return worker.total()


def reference_unit(
    rows: list[list[float]], clipping: Clipping, *, even: bool
) -> tuple[list[list[int]], Fraction]:
    """The integer rows of one unit, and its squared length, in rational arithmetic and single roundings."""
    mapped = [reference.mapped_row(row, clipping.lattice_map) for row in rows]
    squares = [sum(v * v for v in values) for values, _ in mapped]
    known = [shift for (_, shift), square in zip(mapped, squares, strict=True) if square]
    exponent = max(known, default=0)
    below = [min(max(shift - exponent, -200), 0) for _, shift in mapped]
    parts = [Fraction(square) * Fraction(4) ** down for square, down in zip(squares, below, strict=True)]
    joint = float(sum(math.ceil(part) for part in parts))
    weight = 1 / math.sqrt(len(rows)) if even and rows else 1.0
    scale = LATTICE.clip / clipping.radius / clipping.lattice_map.scale
    unclipped = float(np.ldexp(scale, exponent)) * weight
    whole = LATTICE.clip / math.sqrt(max(joint, 1.0))
    factor = {
        Rule.SHRINK: min(unclipped, whole),
        Rule.DROP: unclipped if unclipped <= whole else 0.0,
        Rule.DIRECTION: whole,
        Rule.TAIL: whole if unclipped > whole else 0.0,
    }[clipping.rule]
    result = [
        [round(Fraction(v * float(np.ldexp(factor, down)))) for v in values]
        for (values, _), down in zip(mapped, below, strict=True)
    ]
    size = sum(z * z for row in result for z in row)
    kept = result if size <= LATTICE.bound**2 else [[0] * len(row) for row in result]
    return kept, Fraction(joint) * Fraction(4) ** exponent / (max(len(rows), 1) if even else 1)


@given(unit_rows=UNITS, clipping=st.sampled_from(CLIPPINGS), even=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_gram_matrix_of_units_is_what_python_integers_say(
    *, unit_rows: list[Any], clipping: Clipping, even: bool
) -> None:
    found = total(GramTask(clipping, LATTICE, constant=False), unit_rows, even=even)
    rows = [row for unit in unit_rows for row in reference_unit(unit, clipping, even=even)[0]]
    expected = [[sum(z[i] * z[j] for z in rows) for j in range(3)] for i in range(3)]
    assert found.tolist() == expected


@given(unit_rows=UNITS, clipping=st.sampled_from(CLIPPINGS), even=st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_unit_is_longer_than_the_bound(*, unit_rows: list[Any], clipping: Clipping, even: bool) -> None:
    task = GramTask(clipping, LATTICE, constant=False)
    for unit in unit_rows:
        gram = total(task, [unit], even=even)
        assert np.trace(gram) <= LATTICE.bound**2
        assert int((gram.astype(object) ** 2).sum()) <= LATTICE.bound**4


@given(
    unit_rows=UNITS,
    clipping=st.sampled_from(CLIPPINGS),
    even=st.booleans(),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=50, deadline=None)
def test_neither_the_order_of_rows_nor_that_of_units_nor_blocks_matter(
    *, unit_rows: list[Any], clipping: Clipping, even: bool, random: Any
) -> None:
    norms = LogNormTask(clipping.lattice_map, GRID, constant=False)
    joint = JointTask((GramTask(clipping, LATTICE, constant=False), norms))
    once = total(joint, unit_rows, even=even)
    shuffled = [random.sample(unit, len(unit)) for unit in random.sample(unit_rows, len(unit_rows))]
    one_by_one = sum(total(joint, [unit], even=even) for unit in shuffled)
    assert (once == total(joint, shuffled, even=even)).all()
    assert (once == one_by_one).all()


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=8), st.sampled_from(Rule))
@settings(max_examples=50, deadline=None)
def test_units_of_one_row_are_rows(rows: list[Any], rule: Rule) -> None:
    clipping = Clipping(identity_map(4), 3.0, rule)
    table = np.array(rows)
    tasks: list[RowTask] = [
        GramTask(clipping, LATTICE, constant=True),
        LogNormTask(clipping.lattice_map, GRID, constant=True),
    ]
    for task in tasks:
        plain, grouped = task.worker(), task.worker()
        plain.add(table.T, 0)
        grouped.add(table.T, 0, Units(np.arange(1, len(rows) + 1)))
        assert (plain.total() == grouped.total()).all()


@given(unit_rows=UNITS, even=st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_unit_counts_once_in_the_bin_of_its_joint_length(*, unit_rows: list[Any], even: bool) -> None:
    counts = total(LogNormTask(MAP, GRID, constant=False), unit_rows, even=even)
    assert counts.sum() == len(unit_rows)
    for unit in unit_rows:
        square = reference_unit(unit, CLIPPINGS[0], even=even)[1] / Fraction(MAP.scale) ** 2
        own = total(LogNormTask(MAP, GRID, constant=False), [unit], even=even)
        edges = [Fraction(0), *(Fraction(edge) ** 2 for edge in GRID.edges()), Fraction(10**700)]
        place, slack = int(np.argmax(own)), Fraction(1, 10**12)
        # Beside an edge, floats may tell otherwise.
        assert edges[place] * (1 - slack) <= square <= edges[place + 1] * (1 + slack)


def test_clipping_each_row_alone_would_break_the_bound() -> None:
    """What the joint factor is for: ten rows of the radius' length are ten times the bound otherwise."""
    unit = [[3.0, 0.0, 0.0]] * 10
    task = GramTask(identity(3, 3.0), LATTICE, constant=False)
    alone = sum(total(task, [[row]]) for row in unit)
    together = total(task, [unit])
    assert np.trace(alone) > 9 * LATTICE.bound**2
    assert 0.99 * LATTICE.clip**2 < np.trace(together) <= LATTICE.bound**2


@pytest.mark.parametrize("rows", [1, 10, 8168, 100_000])
def test_units_of_any_size_shrink_to_the_radius(rows: int) -> None:
    """Also one that is longer than a block: what rounding adds is allowed for."""
    unit = np.random.default_rng(0).normal(size=(rows, 3)) * 1e3
    gram = total(GramTask(identity(3, 1.0), LATTICE, constant=False), [unit])
    assert np.trace(gram) == pytest.approx(LATTICE.clip**2, rel=1e-3)
    assert np.allclose(gram / np.trace(gram), unit.T @ unit / np.sum(unit**2), atol=1e-3)


def test_a_unit_with_too_many_rows_counts_as_one_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "MOST_ROWS", 5)
    unit, other = [[1.0, 0.0, 0.0]] * 6, [[0.0, 1.0, 0.0]] * 5
    gram = GramTask(identity(3, 9.0), LATTICE, constant=False)
    norms = LogNormTask(identity_map(3), GRID, constant=False)
    assert (total(gram, [unit, other]) == total(gram, [[], other])).all()
    assert (total(norms, [unit, other]) == total(norms, [[], other])).all()
    assert total(norms, [unit])[0] == 1


def test_every_unit_may_count_the_same() -> None:
    unit_rows = [[[1.0, 0.0, 0.0]] * 4, [[0.0, 1.0, 0.0]]]
    task = GramTask(identity(3, 9.0), LATTICE, constant=False)
    one = (LATTICE.clip / 9.0) ** 2
    assert np.allclose(np.diag(total(task, unit_rows)) / one, [4, 1, 0], rtol=1e-4)
    assert np.allclose(np.diag(total(task, unit_rows, even=True)) / one, [1, 1, 0], rtol=1e-4)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_blocks_cut_between_units(counts: list[int], longest: int) -> None:
    units = Units(np.cumsum(counts))
    found: list[int] = []
    for first_row, first_unit, part in units.blocks(longest):
        assert first_unit == len(found)
        assert first_row == sum(counts[:first_unit])
        assert part.ends[-1] <= longest or len(part.ends) == 1
        assert len(part.ends) <= longest
        found += part.counts.tolist()
    assert found == counts


@given(UNITS, st.data())
@settings(max_examples=60, deadline=None)
def test_a_sample_takes_whole_units(unit_rows: list[Any], data: Any) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, len(unit_rows) - 1))))
    task = GramTask(CLIPPINGS[0], LATTICE, constant=False)
    sampled = SampledTask(task, np.array(chosen, dtype=np.int64))
    expected = sum((total(task, [unit_rows[i]]) for i in chosen), np.zeros((3, 3), dtype=np.int64))
    assert (total(sampled, unit_rows) == expected).all()


def grouped_curator(unit_rows: list[Any], rho: int = 10**9) -> Curator:
    rows, ends = stacked(unit_rows)
    source = GroupedTable(ArraySource(rows), ends, even=False)
    return Curator(source, Budget(PrivacyCost(Fraction(rho))), SeededBits(np.random.default_rng(0)))


def test_a_curator_answers_about_units() -> None:
    curator = grouped_curator([[[3.0, 0.0, 0.0]] * 4, [[0.0, 1.0, 0.0]], []] * 400)
    assert (curator.n_rows, curator.grouped) == (1200, True)
    gram, norms, beyond = curator.ask(
        Gram(identity(3, 6.0), 10**8, "gram"),
        NormHistogram(identity_map(3), LogNormGrid(-1, 3, 1), 10**8, "norms"),
        RowsBeyond(identity_map(3), LogNormGrid(-1, 3, 1), 5, 10**8, "beyond"),
    )
    assert np.allclose(gram.mean(), np.diag([12.0, 1 / 3, 0.0]), atol=1e-3)
    assert norms.counts.tolist() == [400, 0, 0, 400, 0, 0, 0, 0, 400, 0]
    assert beyond.count == 400
    assert "row" not in repr(curator)


def test_queries_that_know_single_rows_only_are_refused_before_they_are_charged() -> None:
    curator = grouped_curator([[[3.0, 0.0, 0.0]] * 4] * 10)
    query = ShrunkGram(identity(3), (Shrinking(identity_map(3), 2.0),), 1, "round")
    with pytest.raises(ArgumentError, match="ShrunkGram protects single rows only"):
        curator.ask(query)
    assert curator.receipt().charges == ()
    worker = query.task(Table.of_size(10, 3, constant=False), SeededBits(np.random.default_rng(0))).worker()
    with pytest.raises(ArgumentError, match="single rows only"):
        worker.add(np.ones((3, 4)), 0, Units(np.array([4])))


@given(st.integers(1, 10**9), st.integers(1, 500))
def test_the_grid_leaves_room_for_the_rounding_of_the_longest_unit(n_units: int, n_columns: int) -> None:
    table = Table.of_size(n_units, n_columns, constant=False, grouped=True)
    assert table.lattice.clip + math.sqrt(MOST_ROWS * n_columns) / 2 + 1 <= table.lattice.bound
    assert table.lattice.bound == Lattice.for_table(n_units, n_columns).bound


def test_a_unit_fits_into_memory() -> None:
    assert longest_unit(1) == longest_unit(32) == MOST_ROWS
    assert longest_unit(1000) * 1000 <= 2**25
    assert longest_unit(2**26) == 1


@pytest.mark.parametrize("ends", [[], [3, 2]])
def test_units_that_are_none_are_refused(ends: list[int]) -> None:
    with pytest.raises(ArgumentError, match="ascending"):
        Units(np.array(ends, dtype=np.int64))
