"""Methods for Gaussian tables: recursive preconditioning, and the one for unknown scales."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.rivals.compare import TrueMoment
from dpcov.rivals.gaussian_tables import chi_radius

Matrix = NDArray[np.float64]


def table(n: int, eigenvalues: list[float], seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    d = len(eigenvalues)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.asarray(rng.normal(size=(n, d)) * np.sqrt(eigenvalues) @ axes.T)


def error(rows: Matrix, method: str, seed: int = 0, **options: Any) -> float:
    rng = np.random.default_rng(seed)
    found = dpcov.release(rows, method=method, intercept=False, rng=rng, **options)
    return TrueMoment.of(rows).relative_error(found.second_moment().values)


def test_the_tail_bound_holds_and_is_not_wasteful() -> None:
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(200_000, 7)), axis=1)
    # Expected below 2000 by the bound, about 300 in truth.
    assert 50 < (lengths > chi_radius(7, 0.01)).sum() < 2000


def test_preconditioning_makes_the_error_independent_of_the_condition_number() -> None:
    options: dict[str, Any] = {"rho": 0.5, "largest_eigenvalue": 1.1}
    worst = [
        max(
            error(rows, "preconditioning", seed, least_eigenvalue=0.9 * least, **options) for seed in range(3)
        )
        for least, rows in ((least, table(50_000, [1.0, least**0.5, least, least])) for least in (1e-2, 1e-8))
    ]
    # Without rounds the error at 1e-8 would be in the ten thousands.
    assert worst[0] < 0.05
    assert worst[1] < 0.1


def test_without_the_rounds_it_is_useless() -> None:
    rows = table(50_000, [1.0, 1e-4, 1e-8, 1e-8])
    assert error(rows, "gaussian", rho=0.5, radius=6.0) > 100


def test_an_unknown_scale_is_found() -> None:
    rows = 1e30 * table(60_000, [1.0, 0.1, 1e-6])
    assert max(error(rows, "unbounded", seed, rho=0.5, delta=1e-6) for seed in range(2)) < 0.1


def test_a_wide_gap_is_closed_by_a_subspace() -> None:
    rows = table(60_000, [1.0, 1e-9])
    found = dpcov.release(
        rows, method="unbounded", rho=0.5, delta=1e-6, intercept=False, rng=np.random.default_rng(0)
    )
    assert found.diagnostics["subspace"]
    assert found.diagnostics["condition_at_most"] < 1e6
    assert TrueMoment.of(rows).relative_error(found.second_moment().values) < 0.05
    assert found.receipt.spent.rho == Fraction(0.5)


def test_too_few_rows_or_no_delta_cost_nothing() -> None:
    with pytest.raises(dpcov.ArgumentError, match="needs at least"):
        dpcov.release(table(2000, [1.0, 1.0]), method="unbounded", rho=0.5, delta=1e-6)
    with pytest.raises(dpcov.ArgumentError, match="delta"):
        dpcov.release(table(2000, [1.0, 1.0]), method="unbounded", rho=0.5)


def test_a_constant_combination_gives_no_answer() -> None:
    rows = table(30_000, [1.0, 1.0])
    rows[:, 1] = rows[:, 0]
    with pytest.raises(dpcov.NoAnswerError, match="constant"):
        dpcov.release(
            rows,
            method="unbounded",
            rho=0.5,
            delta=1e-6,
            intercept=False,
            rng=np.random.default_rng(0),
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs largest_eigenvalue and least_eigenvalue"),
        ({"largest_eigenvalue": 1.0}, "needs least_eigenvalue: a lower bound"),
        ({"largest_eigenvalue": 1.0, "least_eigenvalue": 2.0}, "must not exceed"),
        ({"largest_eigenvalue": 1.0, "least_eigenvalue": "low"}, "least_eigenvalue"),
    ],
)
def test_bad_bounds_are_refused_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        dpcov.release(np.ones((10, 2)), rho=1, method="preconditioning", **options)
