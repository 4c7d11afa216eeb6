from __future__ import annotations

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
)
from dpcov.core.lattice import Lattice, LatticeMap, MappedRows
from dpcov.maps import identity_map, integer_map

HOSTILE = [
    math.nan, math.inf, -math.inf, 1e308, -1.7e308, 5e-324, -2e-310, -0.0, 0.0,
    float(2**63), -float(2**63), 2.0**-1022, 2.0**-960, 2.0**53 + 2, 1e-30, 1.0,
]  # fmt: skip


def random_map(rng: np.random.Generator, d: int, condition: float) -> LatticeMap:
    scales = np.geomspace(1.0, condition, d)
    return integer_map(np.linalg.qr(rng.normal(size=(d, d))).Q * scales)


def load(rows: NDArray[np.float64], lattice_map: LatticeMap) -> MappedRows:
    mapped = MappedRows(lattice_map, len(rows))
    with np.errstate(all="ignore"):
        mapped.load(rows.T, constant=False)
    return mapped


def test_rows_below_the_least_size_are_zero_also_beside_ordinary_ones_alone() -> None:
    rows = np.array([[2.0**-961, 0.0], [2.0**-960, 0.0], [1.0, -2.0], [-(2.0**-1000), 2.0**-990]])
    mapped = load(rows, identity_map(2))
    assert (mapped.squares > 0).tolist() == [False, True, True, False]


@given(st.integers(1, 10**12), st.integers(1, 2000))
def test_the_grid_keeps_blocks_and_sums_exact(n_rows: int, n_columns: int) -> None:
    try:
        lattice = Lattice.for_table(n_rows, n_columns)
    except ArgumentError:
        assert n_rows > 10**10
        return
    assert lattice.exact_rows * lattice.bound**2 <= 2**53
    assert n_rows * lattice.bound**2 <= 2**61
    assert lattice.exact_rows >= 2**13
    # Rounding d entries moves a norm by at most sqrt(d) / 2; float factors by less than 1.
    coarse = lattice.coarse()
    for grid in (lattice, coarse):
        assert grid.clip + math.sqrt(n_columns) / 2 + 1 <= grid.bound
    assert coarse.exact_rows * coarse.bound**2 <= 2**53
    assert n_rows * coarse.bound**2 <= 2**61


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "longest_unit", "bound"),
    [
        (1000, 50, 1, 4095),
        (1000, 5000, 1, 4095),
        (1000, 7000, 1, 2**20),
        (1000, 2, 2**20, 2**20),
        (10**12, 2, 1, 1518),
    ],
)
def test_the_coarse_grid_is_taken_where_it_takes_little_off_the_radius(
    n_rows: int, n_columns: int, longest_unit: int, bound: int
) -> None:
    coarse = Lattice.for_table(n_rows, n_columns, longest_unit).coarse()
    assert coarse.bound == bound
    assert bound > 4095 or coarse.clip >= 0.99 * coarse.bound or n_rows == 10**12


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 6)),
               elements=st.one_of(st.sampled_from(HOSTILE), st.floats(width=64), st.floats(-10, 10)))
)  # fmt: skip
@settings(max_examples=150)
def test_rows_map_as_python_integers_say(rows: NDArray[np.float64]) -> None:
    lattice_map = random_map(np.random.default_rng(rows.shape[1]), rows.shape[1], 1e3)
    mapped = load(rows, lattice_map)
    for k, row in enumerate(rows.tolist()):
        values, shift = reference.mapped_row(row, lattice_map)
        assert mapped.values[:, k].tolist() == values
        assert mapped.squares[k] == sum(v * v for v in values)
        assert not any(values) or mapped.shift[k] == shift


def test_wide_column_scales_map_as_python_integers_say() -> None:
    rng = np.random.default_rng(3)
    lattice_map = integer_map(np.diag([1e-20, 1.0, 1e20]) + np.tril(np.ones((3, 3))) * 1e-21)
    rows = rng.normal(size=(50, 3)) * np.array([1e20, 1.0, 1e-20])
    rows[7] = [1e308, 1.0, 1e300]
    mapped = load(rows, lattice_map)
    expected = [reference.mapped_row(row, lattice_map)[0] for row in rows.tolist()]
    assert mapped.values.T.tolist() == expected


def test_hostile_rows_are_zero_and_leave_the_others_their_bits() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(64, 5))
    lattice_map = random_map(rng, 5, 100.0)
    before = load(rows, lattice_map).values.copy()
    hostile = rows.copy()
    hostile[::7, 2] = np.resize([math.nan, math.inf, -math.inf], len(rows[::7]))
    after = load(hostile, lattice_map).values
    assert not after[:, ::7].any()
    kept = np.ones(len(rows), dtype=bool)
    kept[::7] = False
    assert (after[:, kept] == before[:, kept]).all()


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_whatever_the_factor_no_row_leaves_the_ball(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mapped = load(rng.normal(size=(32, 6)), random_map(rng, 6, 10.0))
    factor = np.exp(rng.uniform(-700, 700, size=32))
    factor[:4] = [math.nan, math.inf, 0.0, 1e300]
    with np.errstate(all="ignore"):
        squares = mapped.round_to_lattice(factor, 1 << 20)
    for column, square in zip(mapped.values.T.tolist(), squares.tolist(), strict=True):
        exact = sum(int(v) ** 2 for v in column)
        assert exact == square <= (1 << 20) ** 2


@pytest.mark.parametrize(
    ("coefficients", "exponents"),
    [
        (np.ones((50, 1)), np.zeros(50)),
        (np.ones((2, 2)), np.zeros(2)),
        (np.eye(2) / 3, np.zeros(2)),
        (np.eye(2) * 2.0**26, np.zeros(2)),
        (np.eye(2) * np.nan, np.zeros(2)),
        (np.eye(2), np.zeros(3)),
        (np.eye(2), np.array([0, -1000])),
    ],
)
def test_a_map_that_would_not_be_exact_cannot_be_made(
    coefficients: NDArray[np.float64], exponents: NDArray[np.int64]
) -> None:
    with pytest.raises(ArgumentError, match="map"):
        LatticeMap(coefficients, 1.0, exponents)


def test_a_map_cannot_be_changed() -> None:
    lattice_map = identity_map(2)
    with pytest.raises(ValueError, match="read-only"):
        lattice_map.coefficients[0, 0] = 1e300
