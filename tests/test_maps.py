from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.curators import curator
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Gram
from dpcov.core.lattice import MappedRows, times_power
from dpcov.maps import integer_map, largest_gain_ratio, map_rounding, rounding_variance


@pytest.mark.parametrize("d", [1, 2, 7, 64])
@pytest.mark.parametrize("condition", [1.0, 1e6])
def test_a_map_is_close_to_the_matrix_it_rounds(d: int, condition: float) -> None:
    rng = np.random.default_rng(d)
    matrix = np.linalg.qr(rng.normal(size=(d, d))).Q * np.geomspace(1.0, condition, d)
    rounded = integer_map(matrix).matrix()
    assert (rounded == np.tril(rounded)).all()
    ratio = np.linalg.solve(matrix.T, (rounded.T @ rounded - matrix.T @ matrix))
    assert np.abs(np.linalg.solve(matrix.T, ratio.T)).max() < 0.02


def test_a_map_with_columns_of_very_different_scales_keeps_them_all() -> None:
    scales = np.array([1e-30, 1.0, 1e30])
    rounded = integer_map(np.diag(scales)).matrix()
    np.testing.assert_allclose(np.diag(rounded), scales, rtol=1e-6)


def test_a_singular_matrix_still_gives_an_invertible_map() -> None:
    rounded = integer_map(np.ones((4, 4)))
    assert (np.diag(rounded.coefficients) != 0).all()


@pytest.mark.parametrize(
    "matrix", [np.ones(3), np.ones((2, 3)), np.full((2, 2), np.nan), np.zeros((2, 2)), np.eye(2) * 1e300]
)
def test_a_bad_map_is_refused(matrix: NDArray[np.float64]) -> None:
    with pytest.raises(ArgumentError, match="map"):
        integer_map(matrix)


@pytest.mark.parametrize("sizes", [[1.0, 0.0], [1.0, math.inf], [1.0, math.nan], [[1.0, 1.0]]])
def test_bad_sizes_are_refused(sizes: list[float]) -> None:
    with pytest.raises(ArgumentError, match="sizes"):
        integer_map(np.eye(2), sizes)


@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(-6, 10), st.booleans())
@settings(max_examples=100)
def test_rounding_bounds_what_a_map_does_to_a_norm(seed: int, d: int, digits: float, sized: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(seed)
    matrix = np.eye(d) + np.outer(rng.normal(size=d), np.eye(d)[-1]) * 10**digits
    sizes = 10 ** rng.uniform(-3, 3, size=d)
    lattice_map = integer_map(matrix, sizes if sized else None)
    rows = rng.uniform(-1, 1, size=(50, d)) * sizes
    mapped = MappedRows(lattice_map, len(rows))
    mapped.load(rows.T, constant=False)
    norms = np.sqrt(mapped.squares) * times_power(1.0 / lattice_map.scale, mapped.shift)
    wanted = np.linalg.norm(rows @ matrix.T, axis=1)
    allowed = map_rounding(lattice_map, sizes) + 2.0**-24 * d * norms
    assert (np.abs(norms - wanted) <= allowed * (1 + 1e-9)).all()
    # The bound is proportional to the sizes, and no more than a few thousand times too careful.
    assert map_rounding(lattice_map, 3 * sizes) == pytest.approx(3 * map_rounding(lattice_map, sizes))
    if sized:
        largest = float(np.linalg.norm(np.abs(matrix) @ sizes))
        assert map_rounding(lattice_map, sizes) <= 1e-4 * largest


def test_rounding_is_seen_where_a_map_amplifies_it() -> None:
    # The difference of a column and itself is nothing but rounding once one of them is scaled by a third.
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    rows[:, 1] = rows[:, 0] / 3
    null = np.array([1.0, -3.0]) * largest_gain_ratio(2)
    asked = integer_map(np.array([[1.0, 0.0], null]), [1.0, 1 / 3])
    curator_of_rows = curator(rows, 10**9)[0]
    answer = curator_of_rows.ask(Gram(Clipping(asked, 10.0), Fraction(10**9), "test"))
    least = float(np.linalg.eigvalsh(answer.mean())[0])
    bound = rounding_variance(asked, [1.0, 1 / 3])
    assert 1e-5 < least < bound < 100 * least
