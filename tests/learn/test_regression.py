from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.learn_tables import NAMES, features, frame, target
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

import dpcov
from dpcov.learn import PrivateLinearRegression, PrivateRidge, PrivateWhitener


def test_it_is_close_to_least_squares() -> None:
    private = PrivateLinearRegression(rho=0.5).fit(features(), target())
    exact = LinearRegression().fit(features(), target())
    errors = private.regression_.coefficients.standard_error
    # Six standard errors of the noise: once in 10^8.
    assert (np.abs(private.coef_ - exact.coef_) < 6 * errors[:-1]).all()
    assert abs(private.intercept_ - exact.intercept_) < 6 * errors[-1]
    assert (errors[:-1] < [0.05, 0.005, 0.1]).all()
    assert abs(private.score(features(), target()) - exact.score(features(), target())) < 0.001
    other = LinearRegression().fit(features(), np.roll(target(), 1))
    assert (np.abs(private.coef_ - other.coef_) > 6 * errors[:-1]).all()


def test_ridge_is_that_of_scikit_learn_on_columns_of_variance_one() -> None:
    table = (features() - features().mean(axis=0)) / features().std(axis=0)
    private = PrivateRidge(0.3, rho=5.0).fit(table, target())
    exact = Ridge(alpha=0.3 * len(table)).fit(table, target())
    assert np.allclose(private.coef_, exact.coef_, atol=0.02)
    assert not np.allclose(private.coef_, LinearRegression().fit(table, target()).coef_, atol=0.1)


def test_a_feature_given_twice_needs_ridge() -> None:
    table = features()[:, [0, 0, 1]]
    plain = PrivateLinearRegression(rho=0.5)
    with pytest.raises(dpcov.UnresolvedError, match="x0 - x1 is below the noise"):
        plain.fit(table, target())
    ridge = PrivateRidge.from_release(plain.release_, target="target", alpha=0.01)
    assert np.abs(ridge.coef_[0] - ridge.coef_[1]) < 0.1
    assert np.isfinite(ridge.predict(table)).all()


@pytest.mark.parametrize(
    "table",
    [
        frame(),
        frame().set_index(np.arange(50_000) % 7),
        frame().convert_dtypes(),
        pl.DataFrame(frame()),
        pa.Table.from_pandas(frame()),
    ],
    ids=["pandas", "index", "nullable", "polars", "arrow"],
)
def test_every_kind_of_table_gives_the_same_bits(table: Any) -> None:
    def fit(X: Any, y: Any) -> PrivateLinearRegression:  # noqa: N803
        return PrivateLinearRegression(rho=0.5, rng=np.random.default_rng(2)).fit(X, y)

    expected, seen = fit(features(), target()), fit(table, pl.Series("wage", target()))
    assert (seen.coef_ == expected.coef_).all()
    assert list(seen.feature_names_in_) == NAMES
    assert (seen.target_, expected.target_) == ("wage", "target")
    assert (seen.predict(table) == expected.predict(features())).all()


def test_columns_named_by_numbers_and_a_target_named_like_a_feature() -> None:
    numbered = pd.DataFrame(features())
    assert not hasattr(PrivateLinearRegression(rho=0.5).fit(numbered, target()), "feature_names_in_")
    private = PrivateLinearRegression(rho=0.5).fit(frame(), pd.Series(target(), name="age"))
    assert private.release_.columns == (*NAMES, "age_")


def test_missing_values_anywhere_leave_out_their_rows() -> None:
    table, wanted = frame().convert_dtypes(), pd.Series(target()).convert_dtypes()
    table.loc[:99, "age"] = pd.NA
    wanted = wanted.where(np.arange(len(wanted)) // 100 != 1)
    private = PrivateLinearRegression(rho=0.5).fit(table, wanted)
    exact = LinearRegression().fit(features()[200:], target()[200:])
    errors = private.regression_.coefficients.standard_error[:-1]
    assert (np.abs(private.coef_ - exact.coef_) < 6 * errors).all()
    assert np.isnan(private.predict(table)[:100]).all()
    later = private.score(table.iloc[200:], wanted.iloc[200:])
    assert private.score(table, wanted) == pytest.approx(later)
    assert later == pytest.approx(r2_score(target()[200:], private.predict(table)[200:]))
    assert np.isnan(private.score(table[:50], wanted[:50]))


def test_from_release_gives_what_the_release_says() -> None:
    made = dpcov.release(frame().assign(wage=target()), rho=0.5)
    whole = PrivateLinearRegression.from_release(made, target="wage")
    expected = made.regress("wage", on=NAMES).coefficients.values
    assert (np.append(whole.coef_, whole.intercept_) == expected).all()
    part = PrivateRidge.from_release(made, target="age", columns=["wage"], alpha=0.2)
    assert part.coef_[0] == made.regress("age", on=["wage"], ridge=0.2).coefficients.values[0]
    assert list(part.feature_names_in_) == ["wage"]
    with pytest.raises(dpcov.ArgumentError, match="Did you mean 'wage'"):
        PrivateRidge.from_release(made, target="wages")
    with pytest.raises(dpcov.ArgumentError, match="on contains the target"):
        PrivateRidge.from_release(made, target="wage", columns=["wage", "age"])


def test_a_release_without_names_asks_for_none() -> None:
    made = dpcov.release(features(), rho=0.5)
    private = PrivateLinearRegression.from_release(made, target="x1")
    assert private.predict(features()[:4, [0, 2]]).shape == (4,)


def test_a_pipeline_of_two_spends_twice_and_says_so() -> None:
    pipeline = make_pipeline(
        PrivateWhitener(rho=0.25).set_output(transform="pandas"), PrivateLinearRegression(rho=0.5)
    ).fit(frame(), target())
    spent = sum(step.receipt_.spent.rho for step in pipeline)
    assert spent == 0.75
    assert pipeline.score(frame(), target()) > 0.5
    assert list(pipeline[-1].feature_names_in_) == NAMES


def test_by_default_the_penalty_suits_the_noise() -> None:
    twice = features()[:, [0, 0, 1]]
    private = PrivateRidge(rho=0.5).fit(twice, target())
    same = private.release_.regress("target", on=["x0", "x1", "x2"], ridge="auto")
    assert private.regression_.ridge == same.ridge
    exact = LinearRegression().fit(features()[:, :2], target())
    assert private.score(twice, target()) > exact.score(features()[:, :2], target()) - 0.02
    assert PrivateRidge().get_params()["alpha"] == "auto"
    few = PrivateRidge(rho=0.02).fit(features()[:3_000], target()[:3_000])
    assert few.regression_.ridge > 0


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), float("inf"), True, "small"])
def test_a_bad_penalty_is_refused(alpha: Any) -> None:
    with pytest.raises(dpcov.ArgumentError, match="alpha must be"):
        PrivateRidge(alpha, rho=0.5).fit(features(), target())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (target()[:-1], r"inconsistent numbers of samples: \[50000, 49999\]"),
        (features(), "y must be one column"),
        (target().astype(str), "y must hold real numbers"),
        (pl.Series(["a"] * 50_000), "y must hold real numbers"),
    ],
)
def test_a_bad_target_is_refused(y: Any, message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        PrivateLinearRegression(rho=0.5).fit(features(), y)


def test_weights_are_refused() -> None:
    with pytest.raises(TypeError, match="sample_weight"):
        PrivateLinearRegression(rho=0.5).fit(features(), target(), sample_weight=target())  # type: ignore[call-arg]
