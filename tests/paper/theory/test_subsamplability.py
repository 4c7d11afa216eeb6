from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpcov import ArgumentError
from dpcov.paper.theory import (
    ParetoTimesDirection,
    TheoremWarning,
    bernstein_size,
    check_parameters,
    largest_beta,
    paper_bernstein_size,
    smallest_size,
    tail_share,
)

repeatable = settings(max_examples=100, derandomize=True)


def failure_of_rare_rows(m: int, length_squared: int, alpha: float) -> float:
    """For d = 1 and x^2 = K with probability 1/K, else 0: how likely m rows are off by more than alpha."""
    rare = binom(m, 1 / length_squared)
    mean = m / length_squared
    above = float(rare.sf(math.floor((1 + alpha) * mean)))
    return above + (float(rare.cdf(math.ceil((1 - alpha) * mean) - 1)) if alpha < 1 else 0.0)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.01), (0.5, 0.05), (0.5, 1e-20), (3.0, 1e-6)])
def test_bernstein_size_solves_the_inequality(alpha: float, beta: float) -> None:
    m1, m2, d = 7.0, 12.0, 10

    def bound(m: int) -> float:
        return 2 * d * math.exp(-(m * alpha**2 / 2) / (m2 + alpha * (1 + m1**2) / 3))

    m = bernstein_size(m1, m2, d, alpha, beta)
    assert bound(m) <= beta < bound(m - 1)


@pytest.mark.parametrize(("alpha", "beta", "times"), [(3.0, 1e-6, 12), (0.5, 1e-20, 5), (0.5, 1e-30, 100)])
def test_the_papers_size_is_too_small(alpha: float, beta: float, times: float) -> None:
    length_squared = 10_000
    m1, m2 = math.sqrt(length_squared), float(length_squared)
    paper = paper_bernstein_size(m1, m2, 1, alpha, beta)
    assert failure_of_rare_rows(paper, length_squared, alpha) > times * beta
    assert failure_of_rare_rows(bernstein_size(m1, m2, 1, alpha, beta), length_squared, alpha) < beta


@repeatable
@given(st.floats(1e-6, 0.999), st.integers(1, 10_000))
def test_tail_share_bounds_every_possible_tail(beta: float, m: int) -> None:
    # A tail of share p spoils m draws with probability 1 - (1 - p)^m, which must not exceed beta.
    largest = -math.expm1(math.log1p(-beta) / m)
    assert largest <= tail_share(m, beta) * (1 + 1e-12)


def test_tail_share_is_the_papers_where_that_holds() -> None:
    assert tail_share(50, 0.1) == pytest.approx((0.1 + 0.01) / 50)
    # Beyond, the paper's value would be exceeded by a tail that subsamplability allows.
    assert 1 - (1 - (0.99 + 0.99**2) / 50) ** 50 < 0.99 < 1 - (1 - tail_share(50, 0.99)) ** 50


def worst_loss(beta: float, m: int, alpha: float, ratio: float) -> float:
    """The largest mean leverage in the tail that subsamplability allows, by moving mass as far out as it
    can go.

    At most a share p(s) of the rows has a leverage above s (1 + alpha), p(s) = 1 - (1 - beta)^(1 /
    floor(s)) for s >= m, and none has one above ratio (1 + alpha) m.
    """
    steps = np.arange(m, math.ceil(ratio * m) + 1, dtype=np.float64)
    shares = -np.expm1(math.log1p(-beta) / steps)
    ends = np.minimum(steps + 1, ratio * m)
    # Leverage just below the end of each step, for the share that may lie there but not further out.
    beyond = np.append(shares[1:], 0.0)
    return float((1 + alpha) * np.sum((shares - beyond) * ends))


@pytest.mark.parametrize("ratio", [1.05, 1.5, 3.0, 10.0, 1e3])
@pytest.mark.parametrize("m", [1, 20, 500])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_the_repaired_condition_bounds_what_the_tail_can_carry(ratio: float, m: int, alpha: float) -> None:
    beta = largest_beta(alpha, m, math.sqrt(ratio * (1 + alpha) * m))
    assert worst_loss(beta, m, alpha, ratio) <= alpha
    assert worst_loss(min(2.5 * beta, 0.999), m, alpha, ratio) > alpha


def test_the_papers_condition_fails_for_a_radius_just_beyond_the_tail() -> None:
    m, alpha, ratio = 100, 0.5, 1.05
    beta = largest_beta(alpha, m, math.sqrt(ratio * (1 + alpha) * m), constants="paper")
    assert worst_loss(min(beta, 0.99), m, alpha, ratio) > alpha


@pytest.mark.parametrize("ratio", [4.0, 10.0, 1e6, 1e12])
def test_the_repaired_condition_allows_more_than_the_papers(ratio: float) -> None:
    radius = math.sqrt(ratio * 1.5 * 100)
    paper = largest_beta(0.5, 100, radius, constants="paper")
    assert paper == pytest.approx(0.5 / (4 * 1.5 * math.log2(ratio)))
    assert paper < largest_beta(0.5, 100, radius) < 1


def test_scaling_the_rows_changes_no_condition() -> None:
    assert largest_beta(0.5, 100, 1e3, 1.0) == pytest.approx(largest_beta(0.5, 100, 1.0, 1e-6))
    assert largest_beta(0.5, 100, math.sqrt(150.0)) == 1.0


def test_smallest_size_meets_both_conditions() -> None:
    rows = ParetoTimesDirection(10)

    def size_at(beta: float) -> int:
        return rows.subsample_size(0.5, beta)

    m, beta = smallest_size(size_at, 0.5, 1e6, 1.0)
    assert size_at(beta) <= m
    assert beta <= largest_beta(0.5, m, 1e6, 1.0)
    assert size_at(largest_beta(0.5, m - 1, 1e6, 1.0)) > m - 1


def test_parameters_in_range_pass_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_parameters(100, 0.5, n_rows=1000)
        check_parameters(100, 0.5, n_rows=1000, beta=0.01, radius=100.0, least_eigenvalue=1.0)


def test_a_large_beta_warns() -> None:
    with pytest.warns(TheoremWarning, match="beta=0.4"):
        check_parameters(100, 0.5, n_rows=1000, beta=0.4, radius=100.0, least_eigenvalue=1.0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"alpha": 0.6}, "alpha"),
        ({"alpha": 0.0}, "alpha"),
        ({"m": 1001}, "m"),
        ({"m": 0.5}, "m"),
        ({"m": "many"}, "m"),
        ({"n_rows": 10.5}, "n_rows"),
        ({"beta": 1.0, "radius": 1.0, "least_eigenvalue": 1.0}, "beta"),
        ({"beta": 0.1}, "beta"),
        ({"constants": "best"}, "constants"),
        ({"beta": 0.1, "radius": math.inf, "least_eigenvalue": 1.0}, "radius"),
    ],
)
def test_parameters_out_of_range_raise(arguments: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"m": 100, "alpha": 0.5, "n_rows": 1000} | arguments
    with pytest.raises(ArgumentError, match=name):
        check_parameters(**given)
