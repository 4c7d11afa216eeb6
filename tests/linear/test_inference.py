"""Tests, covariances and predictions hold as often as they say, and broken ones would be noticed.

Noise is seeded, so that each test passes always or never. Thresholds are 6 standard deviations of a binomial
share away from what is claimed: by chance they are passed less than once in 10^9.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers.linear_tables import Array, make_release
from scipy.stats import chi2, norm

import dpcov
from dpcov.core import ArgumentError
from dpcov.losses import LossLaw

NAMES = ("y", "a", "b", "c")
RUNS = 1000
MIX = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 6.0], [0.0, 0.0, 1.0]])


def six_deviations(share: float, runs: int) -> float:
    return 6 * math.sqrt(share * (1 - share) / runs)


def null_table(n: int = 500) -> Array:
    """Rows in which y depends on a alone: the coefficients of b and c are zero to the last bit or so."""
    rng = np.random.default_rng(0)
    predictors = rng.standard_normal((n, 3)) @ MIX + [0, 2, -1]
    design = np.column_stack([predictors, np.ones(n)])
    left = rng.standard_normal(n)
    left -= design @ np.linalg.lstsq(design, left)[0]
    return np.column_stack([1 + 0.7 * predictors[:, 0] + left, predictors])


def noisy(seed: int, table: Array, noise: float = 0.02) -> dpcov.Release:
    return make_release(table, names=NAMES, noise=noise, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def fits() -> list[dpcov.Regression]:
    """Regressions of many releases of the same rows."""
    table = null_table()
    return [noisy(seed, table).regress("y", on=["a", "b", "c"]) for seed in range(RUNS)]


def test_p_values_and_intervals_agree() -> None:
    fit = noisy(0, null_table()).regress("y", on=["a", "b", "c"])
    p_values = fit.coefficients.p_values()
    for place in (1, 2):
        lower, upper = fit.coefficients.interval(1 - float(p_values[place]))
        nearest = min(abs(lower[place]), abs(upper[place]))
        assert nearest == pytest.approx(0, abs=1e-9)
    scores = fit.coefficients.values / fit.coefficients.standard_error
    np.testing.assert_allclose(p_values, 2 * norm.sf(np.abs(scores)), atol=1e-12)


def test_p_values_of_zero_coefficients_are_even(fits: list[dpcov.Regression]) -> None:
    runs = RUNS // 2
    p_values = np.array([fit.coefficients.p_values() for fit in fits[:runs]])
    for level in (0.05, 0.5):
        shares = (p_values < level).mean(axis=0)
        for zero in (1, 2):
            assert abs(shares[zero] - level) < six_deviations(level, runs)
        # The coefficient that is there is found.
        assert shares[0] > 0.99
    # Half the standard error would reject a third of what is true.
    halved = 2 * norm.sf(2 * norm.isf(p_values[:, 1] / 2))
    assert (halved < 0.05).mean() > 0.05 + six_deviations(0.05, runs)


def test_a_joint_test_rejects_what_is_true_as_often_as_it_says(fits: list[dpcov.Regression]) -> None:
    tests = [fit.wald(["b", "c"]) for fit in fits]
    p_values = np.array([test.p_value for test in tests])
    for level in (0.05, 0.5):
        assert abs((p_values < level).mean() - level) < six_deviations(level, RUNS)
    assert tests[0].degrees == 2
    # Errors go together: as if they did not, the level would be missed.
    wrong = []
    for fit in fits:
        scores = fit.coefficients.values[1:3] / fit.coefficients.standard_error[1:3]
        wrong.append(chi2.sf(scores @ scores, 2))
    off = [
        abs((np.array(wrong) < level).mean() - level) - six_deviations(level, RUNS) for level in (0.05, 0.5)
    ]
    assert max(off) > 0
    assert fits[0].wald(["a", "b"]).p_value < 1e-6


def test_one_coefficient_is_tested_alike_alone_and_jointly() -> None:
    fit = noisy(3, null_table()).regress("y ~ a + b + c")
    assert fit.wald("b").p_value == pytest.approx(fit.coefficients.p_values()[1], rel=1e-9)


def test_so_it_is_where_clipping_has_long_tails() -> None:
    rng, ones = np.random.default_rng(0), np.ones(16)
    predictors = rng.standard_normal((2000, 3))
    table = np.column_stack([predictors @ [0.02, 0.05, 0.08] + rng.standard_normal(2000), predictors])
    law = LossLaw(30 * ones, 0.3 * ones, 0.3 * ones, radius=4.0, directions=4, restored=0.01)
    fit = make_release(table, names=NAMES, noise=0.01, losses=(law,)).regress("y ~ a + b + c")
    p_values = fit.coefficients.p_values()[:3]
    for name, p_value in zip(fit.on, p_values, strict=True):
        assert fit.wald(name).p_value == pytest.approx(p_value, rel=1e-3, abs=1e-8)
    assert ((p_values > 1e-6) & (p_values < 0.5)).any()


def test_the_covariance_of_coefficients_is_that_of_repeated_releases() -> None:
    table, runs = null_table(), RUNS // 2
    fits = [noisy(seed, table, 0.005).regress("y", on=["a", "b", "c"]) for seed in range(runs)]
    found = np.cov(np.array([fit.coefficients.values for fit in fits]).T)
    claimed = np.mean([fit.covariance for fit in fits], axis=0)
    scale = np.sqrt(np.diag(claimed))
    # Entries of a sample covariance are off by less than 6 sqrt(2 / 500) of the scale.
    assert np.abs((found - claimed) / np.outer(scale, scale)).max() < 6 * math.sqrt(2 / runs)
    correlations = claimed / np.outer(scale, scale)
    assert np.abs(correlations - np.eye(4)).max() > 6 * math.sqrt(2 / runs)
    np.testing.assert_allclose(
        np.sqrt(np.diag(fits[0].covariance)), fits[0].coefficients.standard_error, rtol=1e-6
    )


def test_with_sampling_the_population_is_tested() -> None:
    """Tables are drawn anew, from a population in which b and c do nothing."""
    rng, runs = np.random.default_rng(1), RUNS // 4
    alone, jointly, without = [], [], []
    for seed in range(runs):
        predictors = rng.standard_normal((400, 3)) @ MIX
        # Residuals with the same spread everywhere need not be normal.
        left = rng.exponential(size=400) - 1
        release = noisy(seed, np.column_stack([predictors[:, 0] + left, predictors]), 0.01)
        fit = release.regress("y", on=["a", "b", "c"], sampling=True)
        alone.append(fit.coefficients.p_values()[1])
        jointly.append(fit.wald(["b", "c"]).p_value)
        without.append(release.regress("y", on=["a", "b", "c"]).coefficients.p_values()[1])
    for p_values in (alone, jointly):
        assert abs((np.array(p_values) < 0.05).mean() - 0.05) < six_deviations(0.05, runs) + 0.01
    # The noise of the release alone is not all there is.
    assert (np.array(without) < 0.05).mean() > 0.2


@pytest.mark.audit
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_true_releases_with_clipped_rows_reject_what_is_true_rarely(tails: str) -> None:
    runs = 60
    rng = np.random.default_rng(2)
    single, joint = [], []
    for seed in range(runs):
        predictors = rng.standard_normal((20_000, 3)) if tails == "normal" else rng.standard_t(5, (20_000, 3))
        left = rng.standard_normal(20_000)
        design = np.column_stack([predictors, np.ones(20_000)])
        left -= design @ np.linalg.lstsq(design, left)[0]
        table = np.column_stack([predictors[:, 0] + left, predictors])
        release = dpcov.release(
            table, rho=0.5, columns=list(NAMES), rng=np.random.default_rng([seed, 5]), progress=False
        )
        fit = release.regress("y ~ a + b + c")
        assert not fit.untested
        single.append(fit.coefficients.p_values()[1:3])
        joint.append(fit.wald(["b", "c"]).p_value)
        # One of 256 draws of what clipping may have taken may leave nothing of a slope.
        assert fit.wald(["a", "b"]).p_value < 0.01
    assert (np.array(joint) < 0.05).mean() < 0.05 + six_deviations(0.05, runs)
    assert (np.array(single) < 0.05).mean() < 0.05 + six_deviations(0.05, runs)


def test_predictions_hold_what_the_raw_rows_would_predict(fits: list[dpcov.Regression]) -> None:
    table = null_table()
    design = np.column_stack([table[:, 1:], np.ones(len(table))])
    exact = np.linalg.lstsq(design, table[:, 0])[0]
    rows = np.array([[0.0, 2.0, -1.0], [3.0, -2.0, 4.0]])
    truth = np.column_stack([rows, np.ones(2)]) @ exact
    held, narrow = np.zeros(2), np.zeros(2)
    for fit in fits:
        mean = fit.prediction(rows).mean
        lower, upper = mean.interval()
        held += (lower <= truth) & (truth <= upper)
        lower, upper = mean.interval(0.67)
        narrow += (lower <= truth) & (truth <= upper)
    assert (np.abs(held / RUNS - 0.95) < six_deviations(0.95, RUNS)).all()
    assert (np.abs(narrow / RUNS - 0.95) > six_deviations(0.95, RUNS)).all()


def test_intervals_of_new_rows_hold_new_rows() -> None:
    """With residuals that are normal with one spread, as they say."""
    table = null_table(2000)
    rng = np.random.default_rng(3)
    held, narrow, runs = 0, 0, 4 * RUNS
    for seed in range(RUNS // 10):
        found = noisy(seed, table, 0.03).regress("y ~ a + b + c")
        rows = rng.standard_normal((40, 3)) @ MIX + [0, 2, -1]
        new = 1 + 0.7 * rows[:, 0] + rng.standard_normal(40)
        prediction = found.prediction(rows)
        lower, upper = prediction.new_interval()
        held += int(((lower <= new) & (new <= upper)).sum())
        lower, upper = prediction.mean.interval()
        narrow += int(((lower <= new) & (new <= upper)).sum())
    # New rows of one release share its error: a hundred releases stand for the runs.
    assert abs(held / runs - 0.95) < six_deviations(0.95, runs) + 0.01
    assert narrow / runs < 0.5
    frame = prediction.to_frame()
    assert list(frame.columns) == ["mean", "mean_lower", "mean_upper", "new_lower", "new_upper"]
    assert "new row" in repr(prediction)
    assert "<table" in prediction._repr_html_()


def test_nested_models_are_compared_by_what_the_smaller_lacks() -> None:
    release = noisy(4, null_table())
    large, small = release.regress("y ~ a + b + c"), release.regress("y ~ a")
    assert large.compare(small) == large.wald(["b", "c"])
    assert large.compare(release.regress("y ~ b")).p_value < 1e-6
    for other in (release.regress("a ~ b"), large, release.regress("y ~ 0 + a")):
        with pytest.raises(ArgumentError, match="must be part of this one"):
            large.compare(other)
    with pytest.raises(ArgumentError, match="must be part of this one"):
        small.compare(large)


def test_what_cannot_be_tested_is_not() -> None:
    release = noisy(0, null_table())
    penalised = release.regress("y", on=["a", "b"], ridge=0.1)
    with pytest.raises(ArgumentError, match="a ridge pulls"):
        penalised.wald(["a"])
    assert "no p values: a ridge" in str(penalised)
    silent = replace(release, noise=None).regress("y ~ a")
    with pytest.raises(ArgumentError, match="no law of its noise"):
        silent.wald("a")
    with pytest.raises(ArgumentError, match="there is no column 'd'"):
        release.regress("y ~ a").wald("d")


def test_a_summary_has_what_statisticians_look_for() -> None:
    table = null_table(2000)
    fit = make_release(table, names=NAMES, noise=1e-9).regress("y ~ a + b", sampling=True)
    design = np.column_stack([table[:, 1:3], np.ones(2000)])
    exact = np.linalg.lstsq(design, table[:, 0])[0]
    left = table[:, 0] - design @ exact
    r_squared = 1 - left.var() / table[:, 0].var()
    assert float(fit.r_squared) == pytest.approx(r_squared, rel=1e-6)
    assert fit.adjusted_r_squared == pytest.approx(1 - (1 - r_squared) * 1999 / 1997, rel=1e-6)
    assert fit.intercept == pytest.approx(exact[2], rel=1e-6)
    assert fit.coefficients["a"] == pytest.approx(exact[0], rel=1e-6)
    told = fit.summary()
    textbook = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * np.square(left).sum() / 1997)
    np.testing.assert_allclose(told.numbers[:, 0], exact, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(told.numbers[:, 1], textbook, rtol=1e-4)
    np.testing.assert_allclose(told.numbers[:, 2], exact / textbook, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(told.numbers[:, 3], 2 * norm.sf(np.abs(exact / textbook)), atol=1e-9)
    text = str(told)
    for words in ("rows about 2,000", "adjusted", "residual sd", "lower 95%", "of the population", "<0.001"):
        assert words in text
    assert "of the raw rows" in str(make_release(table, names=NAMES).regress("y ~ a").summary(0.9))
    assert told._repr_html_().count("<svg") == 3
    assert repr(fit) == text


def test_a_regression_can_be_pickled() -> None:
    fit = noisy(0, null_table()).regress("y ~ a + b")
    again = pickle.loads(pickle.dumps(fit))  # noqa: S301  (made here)
    np.testing.assert_array_equal(again.covariance, fit.covariance)


def test_a_joint_test_needs_no_common_unit() -> None:
    release = noisy(5, null_table())
    assert release.noise is not None
    units = np.diag([1.0, 1.0, 1e6, 1e-6, 1.0])
    scaled = replace(
        release,
        noise=replace(release.noise, inverse=units @ release.noise.inverse),
        _matrix=units @ release._matrix @ units,
    )
    first, second = (made.regress("y ~ a + b + c").wald(["b", "c"]) for made in (release, scaled))
    assert first.statistic == pytest.approx(second.statistic, rel=1e-6)
