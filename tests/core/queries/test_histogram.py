from __future__ import annotations

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError
from dpcov.core.lattice import LatticeMap
from dpcov.core.queries.histogram import LogNormGrid, LogNormTask
from dpcov.maps import identity_map, integer_map
from dpcov.sources import ArraySource

GRID = LogNormGrid(lowest=-1100, highest=1100, halves=2)


def counts(rows: NDArray[np.float64], lattice_map: LatticeMap, grid: LogNormGrid = GRID) -> NDArray[np.int64]:
    return ArraySource(rows, threads=1).scan(LogNormTask(lattice_map, grid, constant=False))


def test_every_row_falls_into_the_bin_of_its_norm() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3)) * np.exp(rng.normal(size=(400, 1)) * 20)
    lattice_map = integer_map(np.diag([1.0, 10.0, 100.0]))
    edges = GRID.edges()
    expected = np.zeros(GRID.n_bins, dtype=np.int64)
    for row in rows.tolist():
        values, shift = reference.mapped_row(row, lattice_map)
        norm = math.ldexp(math.sqrt(sum(v * v for v in values)), shift) / lattice_map.scale
        # No norm of this table lies within 1e-9 of an edge, so float norms settle the bin.
        assert np.abs(edges[np.abs(edges - norm).argmin()] / norm - 1) > 1e-9
        expected[np.searchsorted(edges, norm, side="right")] += 1
    assert (counts(rows, lattice_map) == expected).all()


@pytest.mark.parametrize("halves", [1, 2, 3, 8, 128])
def test_bins_within_a_doubling_are_what_single_comparisons_give(halves: int) -> None:
    grid = LogNormGrid(lowest=-3, highest=4, halves=halves)
    rng = np.random.default_rng(halves)
    # Edges themselves as well, and numbers beside them: squares of norms 2^(k / (2 halves)).
    edges = np.exp2(np.arange(1, halves) / halves - 1)
    squares = np.concatenate([
        [0.0, 1.0, 2.0, 2.0**52], np.exp2(rng.uniform(0, 52, 500)),
        edges * 2.0**20, np.nextafter(edges, 0) * 2.0**20, np.nextafter(edges, 2) * 2.0**20,
    ])  # fmt: skip
    exponent = rng.integers(-30, 5, size=len(squares))
    exponent[0] = 2000  # a zero row, whatever its exponent
    expected = []
    for square, own in zip(squares.tolist(), exponent.tolist(), strict=True):
        mantissa, doubling = math.frexp(square)
        # Doubling k of the square begins at 2^(k - 1) of it.
        within = sum(mantissa >= edge for edge in edges.tolist())
        index = halves * (doubling - 1 + 2 * own - 2 * grid.lowest) + within + 1
        expected.append(min(max(index, 0), grid.n_bins - 1) if square else 0)
    assert grid.locate(squares, exponent).tolist() == expected
    assert len(set(expected)) > 10


@pytest.mark.parametrize("halves", [1, 3])
def test_wide_bins_join_those_of_a_doubling(halves: int) -> None:
    narrow = LogNormGrid(lowest=-3, highest=6, halves=halves)
    wide = LogNormGrid(lowest=-3, highest=6, halves=halves, doublings=4)
    first = 2 * halves * 5
    assert wide.n_bins == first + 4 + 2
    assert wide.edges().tolist() == [*narrow.edges()[:first].tolist(), 4.0, 8.0, 16.0, 32.0, 64.0]
    rng = np.random.default_rng(halves)
    # Powers of 2 as well, which begin a bin.
    squares = np.concatenate([[0.0], np.exp2(rng.uniform(-10, 16, 500)), 4.0 ** np.arange(-5, 9)])
    exponent = np.zeros(len(squares), dtype=np.int64)
    expected = np.searchsorted(wide.edges(), np.sqrt(squares), side="right")
    assert wide.locate(squares, exponent).tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 2 * halves + 6


@pytest.mark.parametrize("doublings", [-1, 7, 8])
def test_a_grid_has_narrow_bins(doublings: int) -> None:
    with pytest.raises(ArgumentError, match="grid"):
        LogNormGrid(lowest=-3, highest=4, halves=2, doublings=doublings)


def test_more_bins_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(ArgumentError, match="1 to 128 halves"):
        LogNormGrid(lowest=0, highest=1, halves=129)


def test_edges_belong_to_the_bin_above() -> None:
    # A map of scale 1 exactly, so that norms which are powers of two are represented exactly.
    lattice_map = LatticeMap(
        np.asfortranarray([[float(1 << 26)]]), float(1 << 26), np.zeros(1, dtype=np.int64)
    )
    grid = LogNormGrid(lowest=-2, highest=2, halves=1)
    assert grid.edges().tolist() == [2 ** (k / 2) for k in range(-4, 5)]
    found = counts(
        np.array([[0.0], [0.2], [0.25], [1.0], [1.4], [1.5], [3.9], [4.0], [1e300]]), lattice_map, grid
    )
    assert found.tolist() == [2, 1, 0, 0, 0, 2, 1, 0, 1, 2]


def test_hostile_rows_are_counted_as_zero_rows() -> None:
    rows = np.array([[math.nan, 1.0], [math.inf, 1.0], [-math.inf, math.nan], [0.0, -0.0], [5e-324, 0.0]])
    found = counts(rows, identity_map(2))
    assert found[0] == 5
    assert found.sum() == 5


@given(
    hnp.arrays(np.float64, (8, 2), elements=st.floats(width=64)),
    hnp.arrays(np.float64, 2, elements=st.floats(width=64)),
    st.integers(0, 7),
)
@settings(max_examples=150)
def test_replacing_a_row_moves_the_counts_by_at_most_sqrt_2(
    rows: NDArray[np.float64], other: NDArray[np.float64], place: int
) -> None:
    neighbour = rows.copy()
    neighbour[place] = other
    change = counts(rows, identity_map(2)) - counts(neighbour, identity_map(2))
    assert (change**2).sum() <= 2
    # The number of rows in bin k or later, for every k: what `RowsBeyond` releases.
    assert np.abs(np.cumsum(change)).max() <= 1
    assert counts(rows, identity_map(2)).sum() == 8
    wide = LogNormGrid(lowest=-1100, highest=1100, halves=2, doublings=1000)
    moved = counts(rows, identity_map(2), wide) - counts(neighbour, identity_map(2), wide)
    assert (moved**2).sum() <= 2


def test_counts_are_the_same_in_any_order_and_on_two_threads() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_cauchy(size=(5000, 6))
    lattice_map = integer_map(rng.normal(size=(6, 6)))
    expected = counts(rows, lattice_map)
    assert (counts(rows[rng.permutation(5000)], lattice_map) == expected).all()
    task = LogNormTask(lattice_map, GRID, constant=False)
    assert (ArraySource(np.asfortranarray(rows), threads=2).scan(task) == expected).all()
