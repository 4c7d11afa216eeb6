"""The two estimators of Dong, Liang and Yi (2022)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov

Matrix = NDArray[np.float64]


def zipf_table(d: int, n: int, seed: int, buckets: int = 4, steepness: float = 3.0) -> Matrix:
    """The paper's synthetic rows: correlated Gaussians, rescaled to lengths 2^-k by a Zipf law."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) @ rng.random((d, d))
    rows -= rows.mean(axis=0)
    shares = np.arange(1, buckets + 1) ** -steepness
    ends = np.rint(n * np.cumsum(shares) / shares.sum()).astype(int)
    lengths = np.repeat(2.0 ** np.arange(1 - buckets, 1), np.diff(np.concatenate([[0], ends])))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths[:, None])


def release(rows: Matrix, method: str, seed: int = 0, **options: Any) -> dpcov.Release:
    rng = np.random.default_rng(seed)
    return dpcov.release(rows, method=method, intercept=False, rng=rng, **options)


@pytest.mark.parametrize(
    ("d", "n", "method", "published"),
    [
        (10, 50_000, "separate", 8.8e-4),
        (10, 50_000, "adaptive", 7.0e-4),
        (200, 5_000, "separate", 0.0205),
        (200, 5_000, "adaptive", 0.0138),
    ],
)
def test_the_accuracy_of_the_authors_code_is_reached(d: int, n: int, method: str, published: float) -> None:
    """The paper's settings, rho = 0.1, against the authors' algorithm with the noise of their code.

    Ours must lie between 0.5 and 1.1 of it: entries off the diagonal need only half of that variance.
    """
    errors = []
    for seed in range(2):
        rows = zipf_table(d, n, seed)
        found = release(rows, method, seed, rho=0.1, radius=1.0)
        errors.append(float(np.linalg.norm(found.second_moment().values - rows.T @ rows / n)))
    assert 0.5 * published < np.mean(errors) < 1.1 * published


def test_eigenvalues_apart_win_with_many_columns_and_lose_with_few() -> None:
    def frobenius(rows: Matrix, method: str) -> float:
        found = release(rows, method, rho=0.1, radius=1.0).second_moment().values
        return float(np.linalg.norm(found - rows.T @ rows / len(rows)))

    wide, narrow = zipf_table(150, 4000, 0), zipf_table(5, 4000, 0)
    assert frobenius(wide, "separate") < 0.5 * frobenius(wide, "gaussian")
    assert frobenius(narrow, "separate") > frobenius(narrow, "gaussian")


def test_results_are_symmetric_and_positive_even_when_all_is_noise() -> None:
    for method in ("separate", "adaptive"):
        matrix = release(zipf_table(20, 50, 0), method, rho=1e-3, radius=1.0).second_moment().values
        assert (matrix == matrix.T).all()
        assert np.linalg.eigvalsh(matrix).min() > -1e-12


def test_a_generous_radius_is_brought_down_towards_the_rows() -> None:
    # The search is as noisy as a few rows of the given radius, so it gains while d rows' noise exceeds that.
    rows = zipf_table(100, 4000, 0)
    found = release(rows, "adaptive", rho=1, radius=16.0)
    assert 0.2 < found.diagnostics["radius"] <= 8
    fixed = release(rows, "gaussian", rho=1, radius=16.0)
    exact = rows.T @ rows / len(rows)
    errors = [float(np.linalg.norm(one.second_moment().values - exact)) for one in (found, fixed)]
    assert errors[0] < errors[1] / 4


def test_the_budget_is_kept_to_the_last_share() -> None:
    rows = zipf_table(5, 1000, 0)
    for method in ("separate", "adaptive"):
        spent = release(rows, method, rho=0.3, radius=1.0).receipt.spent
        assert 0.3 - 1e-9 < float(spent.rho) <= 0.3


@pytest.mark.parametrize("method", ["separate", "adaptive"])
@pytest.mark.parametrize("options", [{}, {"radius": 0}, {"radius": None}, {"radius": "wide"}])
def test_a_radius_is_asked_for(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(dpcov.ArgumentError, match="radius"):
        release(np.ones((10, 2)), method, rho=1, **options)
