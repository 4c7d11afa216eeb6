from __future__ import annotations

import re
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.ledger import Ledger
from dpcov.opening import WeakGuaranteeWarning


def rows(n_rows: int = 50_000, d: int = 3) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(n_rows, d)) + 0.5


def test_a_release_is_close_to_the_second_moment() -> None:
    table = rows()
    result = dpcov.release(table, rho=0.5, method="gaussian", radius=6.0)
    with_ones = np.column_stack([table, np.ones(len(table))])
    exact = with_ones.T @ with_ones / len(table)
    sigma = result.diagnostics["noise_standard_deviation"]
    # Ten entries of sd sigma: beyond 7 sd once in 10^10; clipping at 6 adds less than 1e-3.
    assert np.abs(result.second_moment().values - exact).max() < 7 * sigma + 1e-3
    assert result.columns == ("x0", "x1", "x2")
    assert result.n_rows == 50_000
    assert float(result.receipt.spent.rho) == 0.5
    assert result.receipt.private


def test_no_error_is_predicted_where_far_rows_follow_no_law() -> None:
    made = dpcov.release(rows(), rho=0.5, rng=np.random.default_rng(0))
    error = made.diagnostics["predicted_error"]
    assert made.predicted_error == error < 0.1
    assert "variances within" in repr(made)
    beyond = made.diagnostics["rows_beyond"]
    far = replace(made, diagnostics={**made.diagnostics, "rows_beyond": beyond | {"explained": False}})
    vague = replace(made, diagnostics={**made.diagnostics, "predicted_error": 1.5})
    for without in (far, vague):
        assert without.predicted_error is None
        assert "variances within" not in repr(without)


def test_second_moment_has_no_intercept() -> None:
    matrix = dpcov.second_moment(rows(), rho=0.5, method="gaussian", radius=6.0)
    assert matrix.shape == (3, 3)
    assert np.linalg.eigvalsh(matrix).min() >= 0


@pytest.mark.parametrize("function", [dpcov.second_moment, dpcov.covariance])
def test_an_array_cannot_be_marked_and_is_not_made_from_a_seed(function: Any) -> None:
    with pytest.raises(dpcov.ArgumentError, match="an array cannot say so"):
        function(rows(), rho=0.5, rng=np.random.default_rng(0))


def test_epsilon_and_delta_are_kept() -> None:
    result = dpcov.release(rows(), epsilon=1, delta=1e-6, method="gaussian", radius=6.0)
    assert 0.999 < result.receipt.epsilon(1e-6) <= 1.0


def test_the_matrix_is_valid_even_when_it_is_all_noise() -> None:
    table = rows(20, 10)
    for seed in range(5):
        result = dpcov.release(
            table, rho=1e-4, method="gaussian", radius=6.0, rng=np.random.default_rng(seed), force=True
        )
        matrix = result.second_moment().values
        assert (matrix == matrix.T).all()
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.abs(matrix).max()


def test_a_table_too_small_to_show_anything_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=1)
    table = rows(30, 100)
    with pytest.raises(dpcov.ArgumentError, match=r"too few for 101 columns.*61 rows or rho=2.03;"):
        dpcov.release(table, rho=0.5, ledger=ledger, dataset="people")
    assert ledger.account("people").spent.rho == 0
    with pytest.raises(dpcov.ArgumentError, match=r"rho=2.03 \(epsilon=11.8\).*force=True"):
        dpcov.release(table, epsilon=1, delta=1e-6)
    made = dpcov.release(table, rho=0.5, force=True)
    assert made.resolved == 0
    with pytest.raises(dpcov.ArgumentError, match="force must be"):
        dpcov.release(table, rho=0.5, force="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_rows", "rho", "enough"), [(61, 0.5, True), (60, 0.5, False), (30, 2.03, True)])
def test_what_a_small_table_is_told_to_have_is_enough(n_rows: int, rho: float, enough: bool) -> None:  # noqa: FBT001
    table = np.ones((n_rows, 100))
    if enough:
        dpcov.release(table, rho=rho, method="gaussian", radius=10.0)
        return
    with pytest.raises(dpcov.ArgumentError, match="too few"):
        dpcov.release(table, rho=rho, method="gaussian", radius=10.0)


def test_methods_with_other_noise_take_small_tables() -> None:
    assert dpcov.release(rows(5, 2), rho=1, method="separate", radius=5.0).n_rows == 5


def test_a_seed_repeats_and_marks() -> None:
    results = [
        dpcov.release(rows(), rho=0.5, method="gaussian", radius=6.0, rng=np.random.default_rng(3))
        for _ in range(2)
    ]
    assert (results[0].second_moment().values == results[1].second_moment().values).all()
    assert not results[0].receipt.private
    assert "NOT PRIVATE" in repr(results[0])
    assert "NOT PRIVATE" in str(results[0].receipt)


def test_hostile_rows_give_no_warning_and_count_as_zero() -> None:
    table = rows()
    hostile = table.copy()
    hostile[:6, 0] = [np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0]
    expected = table.copy()
    expected[:3] = 0.0
    expected[3:6, 0] = [1e308, 0.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = dpcov.release(
            hostile, rho=1, method="gaussian", radius=5.0, intercept=False, rng=np.random.default_rng(0)
        )
    same = dpcov.release(
        expected, rho=1, method="gaussian", radius=5.0, intercept=False, rng=np.random.default_rng(0)
    )
    assert (seen.second_moment().values == same.second_moment().values).all()


GOOD: dict[str, Any] = {"rho": 0.5, "method": "gaussian", "radius": 6.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 0}, "rho must be greater than 0"),
        ({"rho": -1}, "rho must be greater than 0"),
        ({"rho": None}, "budget is needed"),
        ({"rho": None, "epsilon": 1}, "epsilon needs delta"),
        ({"epsilon": 1, "delta": 1e-6}, "Give one of rho, mu, and epsilon"),
        ({"radius": 0}, "radius"),
        ({"radius": -1}, "radius"),
        ({"radius": float("inf")}, "radius"),
        ({"radius": "wide"}, "radius"),
        ({"radius": None}, "radius"),
        ({"radius": True}, "radius"),
        ({"radius": 10**400}, "radius"),
        ({"intercept": "no"}, "intercept"),
        ({"method": "gausian"}, "Did you mean 'gaussian'"),
        ({"bound": 3}, "takes no bound"),
        ({"collumns": ["a"]}, "takes no collumns. Did you mean 'columns'"),
        ({"rng": 7}, "rng must be"),
        ({"data": np.zeros((0, 2))}, "no rows"),
        ({"data": np.zeros(5)}, "two dimensions"),
        ({"data": pl.DataFrame({"name": ["x"]})}, "not numeric: name"),
        ({"columns": ["nowhere"]}, "columns"),
    ],
)
def test_bad_arguments_are_refused_in_words(change: dict[str, Any], message: str) -> None:
    arguments = {"data": rows(), **GOOD, **change}
    with pytest.raises(dpcov.ArgumentError, match=message):
        dpcov.release(arguments.pop("data"), **arguments)


def test_every_method_has_a_citation() -> None:
    assert all(method.citation and method.privacy for method in dpcov.methods())


@pytest.mark.parametrize(
    ("budget", "told"),
    [({"epsilon": 1000, "delta": 1e-6}, "epsilon = 1000"), ({"epsilon": 1, "delta": 0.1}, "delta = 0.1")],
)
def test_a_budget_that_protects_hardly_anyone_is_not_spent_in_silence(
    budget: dict[str, Any], told: str
) -> None:
    with pytest.warns(WeakGuaranteeWarning, match=f"{told}.*protects hardly anyone"):
        made = dpcov.release(rows(), method="gaussian", radius=5.0, progress=False, **budget)
    assert made.receipt.spent.rho > 0


def test_a_usual_budget_is_spent_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpcov.release(rows(), epsilon=1, delta=1e-6, method="gaussian", radius=5.0, progress=False)


def test_a_release_knows_where_it_comes_from(tmp_path: Path) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=9)
    made = dpcov.release(
        rows(), epsilon=1, delta=1e-5, ledger=ledger, dataset="people", purpose="heights", progress=False
    )
    assert made.provenance.title == "people: heights"
    assert made.provenance.delta == Fraction(1e-5)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made.provenance.date)
    made.save(tmp_path / "out.dpcov")
    assert dpcov.load(tmp_path / "out.dpcov").provenance == made.provenance
