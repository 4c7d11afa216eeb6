"""Methods with idealised arithmetic: they run only when asked to, and do what their papers say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcov
from dpcov.rivals.compare import TrueMoment

ROWS = np.random.default_rng(0).normal(size=(60_000, 3)) * [1.0, 0.1, 1e-4]


def release(method: str, seed: int = 0, **options: Any) -> dpcov.Release:
    rng = np.random.default_rng(seed)
    options = {"rho": 0.5, "delta": 1e-6, "intercept": False, "data": ROWS, **options}
    return dpcov.release(options.pop("data"), method=method, allow_unvetted=True, rng=rng, **options)


@pytest.mark.parametrize("method", ["exponential", "leverage"])
def test_consent_is_needed(method: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=r"unvetted.*allow_unvetted=True"):
        dpcov.release(ROWS, rho=0.5, delta=1e-6, method=method)
    with pytest.raises(dpcov.ArgumentError, match="allow_unvetted"):
        dpcov.release(ROWS, rho=0.5, delta=1e-6, method=method, allow_unvetted=1)  # type: ignore[arg-type]


def test_the_exponential_mechanism_tells_large_directions() -> None:
    found = release("exponential", radius=5.0)
    exact = ROWS.T @ ROWS / len(ROWS)
    assert np.abs(found.second_moment().values - exact).max() < 0.1
    assert abs(found.second_moment().values[0, 0] / exact[0, 0] - 1) < 0.02
    assert "idealised arithmetic" in str(found.receipt)
    assert 0.5 - 1e-9 < float(found.receipt.spent.rho) <= 0.5


def test_leverage_filtering_does_not_depend_on_the_scale() -> None:
    errors = [
        TrueMoment.of(rows).relative_error(release("leverage", seed, data=rows).second_moment().values)
        for seed, rows in enumerate((ROWS, ROWS * [1e8, 1e-8, 1.0]))
    ]
    predicted = release("leverage").diagnostics["predicted_error"]
    assert max(errors) < 1.5 * predicted
    assert predicted < 0.3


def test_outliers_make_leverage_filtering_refuse() -> None:
    rows = ROWS.copy()
    rows[:500] *= 1000
    with pytest.raises(dpcov.NoAnswerError, match="leverage"):
        release("leverage", data=rows)


def test_too_few_rows_cost_nothing() -> None:
    with pytest.raises(dpcov.ArgumentError, match="needs about"):
        release("leverage", data=ROWS[:5000])
    with pytest.raises(dpcov.ArgumentError, match="delta"):
        release("leverage", delta=None)
    with pytest.raises(dpcov.ArgumentError, match="radius"):
        release("exponential")


def test_one_column_needs_no_direction() -> None:
    found = release("exponential", data=ROWS[:, :1], radius=5.0)
    assert abs(found.second_moment().values[0, 0] / np.mean(ROWS[:, 0] ** 2) - 1) < 0.01
