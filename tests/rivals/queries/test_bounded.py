from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Budget, Curator, OSEntropy, PrivacyCost, SeededBits
from dpcov.core.lattice import Lattice
from dpcov.core.query import Table
from dpcov.rivals.queries import SLOPE_UNITS, BoundedGram, BoundedProducts, Bounds
from dpcov.rivals.queries.bounded import grid_size
from dpcov.sources import ArraySource

Array = NDArray[np.float64]

BOUNDS = Bounds((0.0, -5.0, 100.0), (10.0, 5.0, 200.0), target=2)
ANY_NUMBER = st.one_of(
    st.floats(width=64), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 10.0, 200.0])
)
ANY_ROW = st.tuples(ANY_NUMBER, ANY_NUMBER, ANY_NUMBER)
ANY_SLOPES = st.lists(st.integers(-(10**11), 10**11), min_size=3, max_size=3)


def curator(rows: Array, rho: float = 1.0, seed: int | None = 0, *, constant: bool = True) -> Curator:
    bits = OSEntropy() if seed is None else SeededBits(np.random.default_rng(seed))
    return Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(rho))), bits, constant=constant)


def public(n_rows: int) -> Table:
    return Table(n_rows, 4, True, True, Lattice.for_table(n_rows, 4))


def total(query: BoundedGram | BoundedProducts, rows: Array) -> NDArray[np.int64]:
    """The exact integers, before noise."""
    table = public(len(rows))
    query.check(table)
    worker = query.task(table, SeededBits(np.random.default_rng(0))).worker()
    worker.add(np.ascontiguousarray(rows.T), 0)
    return worker.total()


def some_rows(n: int = 400) -> Array:
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.uniform(0, 10, n), rng.normal(0, 2, n), rng.uniform(100, 200, n)])
    rows[0] = [20.0, -7.0, 1e9]
    rows[1, 1] = np.nan
    return rows


def on_grid(rows: Array) -> Array:
    """What rows are within their bounds, with a constant; rows with gaps are zero."""
    lower, upper = np.array(BOUNDS.lower), np.array(BOUNDS.upper)
    unit = (2 * np.clip(rows, lower, upper) - lower - upper) / (upper - lower)
    whole = np.column_stack([unit, np.ones(len(rows))])
    whole[~np.isfinite(rows).all(axis=1)] = 0.0
    return whole


def test_sums_are_those_of_clipped_and_scaled_rows() -> None:
    rows = some_rows()
    unit = grid_size(public(len(rows)))
    grid = on_grid(rows)
    predictors, target = grid[:, [0, 1, 3]], grid[:, 2]
    gram = total(BoundedGram(BOUNDS, 1, purpose=""), rows) / unit**2
    np.testing.assert_allclose(gram, predictors.T @ predictors, atol=400 * 2 / unit)
    slopes = np.array([0.5, -0.25, 0.125])
    residual = target - predictors @ slopes
    query = BoundedProducts(BOUNDS, (slopes * SLOPE_UNITS).astype(int).tolist(), 0.4, 1, purpose="")
    expected = predictors.T @ np.clip(residual, -0.4, 0.4)
    assert (np.abs(residual) > 0.4).any()
    np.testing.assert_allclose(total(query, rows) / unit**2, expected, atol=400 * 4 / unit)


def test_every_cut_of_the_rows_gives_the_same_sums() -> None:
    rows = some_rows()
    table = public(len(rows))
    for query in (BoundedGram(BOUNDS, 1, ""), BoundedProducts(BOUNDS, [70_001, -3, 900_001], 0.3, 1, "")):
        task = query.task(table, SeededBits(np.random.default_rng(0)))
        whole, parts = task.worker(), [task.worker(), task.worker()]
        whole.add(np.ascontiguousarray(rows.T), 0)
        for start in range(0, 400, 50):
            parts[start % 100 // 50].add(list(rows[start : start + 50].T), start)
        assert (parts[0].total() + parts[1].total() == whole.total()).all()


@given(ANY_ROW, ANY_ROW, ANY_SLOPES, st.floats(0.01, 1.0))
@settings(max_examples=100)
def test_no_neighbour_moves_a_sum_by_more_than_claimed(
    first: tuple[float, float, float], second: tuple[float, float, float], slopes: list[int], clip: float
) -> None:
    rows = some_rows(6)
    other = rows.copy()
    rows[2], other[2] = first, second
    table = public(6)
    square = 3 * grid_size(table) ** 2
    gram = BoundedGram(BOUNDS, Fraction(1, 3), purpose="")
    moved = (total(gram, rows) - total(gram, other)).astype(object)
    # The cost of the noise that is added: |D|^2 / (2 s2) for entries on and above the diagonal.
    assert int((moved**2).sum()) <= 2 * square**2
    assert Fraction(int((moved**2).sum()), 2 * gram.variance(table)) <= gram.cost.rho
    products = BoundedProducts(BOUNDS, slopes, clip, Fraction(1, 3), purpose="")
    moved = (total(products, rows) - total(products, other)).astype(object)
    assert Fraction(int((moved**2).sum())) / (2 * products.variance(table)) <= products.cost.rho


def test_the_bounds_on_neighbours_are_reached() -> None:
    table = public(1)
    gram = BoundedGram(BOUNDS, 1, purpose="")
    # Orthogonal corners: 1 + 1 - ... cannot be 0 with three entries of size 1, so a zero row is the far end.
    corner = total(gram, np.array([[10.0, 5.0, 150.0]]))
    assert math.isclose(float(np.square(corner.astype(float)).sum()), float((3 * grid_size(table) ** 2) ** 2))
    products = BoundedProducts(BOUNDS, [0, 0, 0], 1.0, 1, purpose="")
    high, low = (total(products, np.array([[10.0, 5.0, end]])) for end in (200.0, 100.0))
    moved = float(np.square((high - low).astype(float)).sum())
    assert math.isclose(moved / (2 * float(products.variance(table))), 1.0, rel_tol=1e-9)


def test_noise_has_the_stated_size() -> None:
    rows = some_rows()
    grid = on_grid(rows)
    predictors = grid[:, [0, 1, 3]]
    exact = predictors.T @ predictors / 400
    found = [curator(rows, seed=seed).ask(BoundedGram(BOUNDS, 1, purpose="")) for seed in range(150)]
    errors = np.array([(answer.values - exact) / answer.sigma for answer in found])
    diagonal, above = errors[:, range(3), range(3)].ravel(), errors[:, [0, 0, 1], [1, 2, 2]].ravel()
    # 450 normal numbers each: the mean is beyond 0.29 and the sd beyond 1 +- 0.2 with probability below 1e-9.
    for numbers in (diagonal, above * math.sqrt(2)):
        assert abs(numbers.mean()) < 0.29
        assert abs(numbers.std() - 1) < 0.2
    assert math.isclose(found[0].sigma, 3 / 400, rel_tol=1e-3)
    query = BoundedProducts(BOUNDS, [0, 0, 0], 0.5, 1, purpose="")
    exact = predictors.T @ np.clip(grid[:, 2], -0.5, 0.5) / 400
    answers = [curator(rows, seed=seed).ask(query) for seed in range(150)]
    numbers = np.array([(answer.values - exact) / answer.sigma for answer in answers]).ravel()
    assert abs(numbers.mean()) < 0.29
    assert abs(numbers.std() - 1) < 0.2
    assert math.isclose(answers[0].sigma, math.sqrt(2 * 3) * 0.5 / 400, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (BoundedGram(Bounds((0.0,), (1.0,), 0), 1, ""), "3 columns"),
        (BoundedGram(Bounds((0.0, 0.0, 1.0), (1.0, 1.0, 1.0), 0), 1, ""), "below its upper"),
        (BoundedGram(Bounds((0.0, 0.0, -math.inf), (1.0, 1.0, 1.0), 0), 1, ""), "finite"),
        (BoundedGram(Bounds((0.0, 0.0, 0.0), (1.0, 1.0, math.nan), 0), 1, ""), "finite"),
        (BoundedGram(Bounds((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 3), 1, ""), "3 columns"),
        (BoundedGram(BOUNDS, 1e-30, ""), "rho"),
        (BoundedProducts(BOUNDS, [0, 0], 1.0, 1, ""), "slopes"),
        (BoundedProducts(BOUNDS, [2**41, 0, 0], 1.0, 1, ""), "slopes"),
        (BoundedProducts(BOUNDS, [0, 0, 0], 1.5, 1, ""), "clip"),
        (BoundedProducts(BOUNDS, [0, 0, 0], 0.0, 1, ""), "clip"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(
    query: BoundedGram | BoundedProducts, message: str
) -> None:
    asked = curator(some_rows())
    with pytest.raises(ArgumentError, match=message):
        asked.ask(query)
    assert asked.remaining.rho == 1


def test_a_table_without_a_constant_is_refused() -> None:
    with pytest.raises(ArgumentError, match="constant"):
        curator(some_rows(), constant=False).ask(BoundedGram(BOUNDS, 1, purpose=""))
