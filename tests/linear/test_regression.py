from __future__ import annotations

import numpy as np
import pytest
from helpers.linear_tables import NAMES, make_release, make_rows
from numpy.typing import NDArray

import dpcov
from dpcov.linear.least_squares import Solution
from dpcov.linear.questions import Questions

Array = NDArray[np.float64]


def least_squares(rows: Array, ridge: float, *, intercept: bool) -> Array:
    """First column on the others, with the penalty as extra rows."""
    target, predictors = rows[:, 0], rows[:, 1:]
    scale = predictors.std(axis=0) if intercept else np.sqrt(np.square(predictors).mean(axis=0))
    design = np.column_stack([predictors, np.ones(len(rows))]) if intercept else predictors
    extra = np.zeros((predictors.shape[1], design.shape[1]))
    np.fill_diagonal(extra, np.sqrt(ridge * len(rows)) * scale)
    return np.asarray(np.linalg.lstsq(np.vstack([design, extra]), np.append(target, np.zeros(len(extra))))[0])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_coefficients_are_those_of_least_squares(ridge: float, intercept: bool) -> None:  # noqa: FBT001
    rows = make_rows()
    found = make_release(rows, names=NAMES, intercept=intercept).regress("alpha", on=NAMES[1:], ridge=ridge)
    expected = least_squares(rows, ridge, intercept=intercept)
    np.testing.assert_allclose(found.coefficients.values, expected, rtol=1e-6)
    design = np.column_stack([rows[:, 1:], np.ones(len(rows))]) if intercept else rows[:, 1:]
    residual = np.mean((rows[:, 0] - design @ expected) ** 2)
    assert float(found.residual_variance) == pytest.approx(residual, rel=1e-6)
    total = rows[:, 0].var() if intercept else np.mean(rows[:, 0] ** 2)
    assert float(found.r_squared) == pytest.approx(1 - residual / total, rel=1e-6)
    np.testing.assert_allclose(found.predict(rows[:5, 1:]), (design @ expected)[:5], rtol=1e-6)


@pytest.mark.parametrize(
    ("constant", "intercept"), [(True, True), (True, False), (False, False)], ids=["with", "without", "none"]
)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_gradients_are_the_numerical_ones(ridge: float, *, constant: bool, intercept: bool) -> None:
    release = make_release(make_rows(), intercept=constant)
    moment = release._matrix
    chosen, goal = [2, 1], 0
    index = [*chosen, goal, *([4] if constant else [])]

    def solve(matrix: Array) -> Solution:
        return Solution(
            Questions(release.columns, 400, matrix, release.noise, ()),
            chosen,
            goal,
            ridge,
            intercept=intercept,
        )

    def numbers(matrix: Array) -> Array:
        solution = solve(matrix)
        return np.append(solution.coefficients, [solution.residual, solution.r_squared])

    solution = solve(moment)
    gradients = np.array([*solution.coefficient_gradients, *solution.fit_gradients])
    rng = np.random.default_rng(0)
    for _ in range(10):
        step = rng.standard_normal(moment.shape)
        step = 1e-6 * (step + step.T)
        change = (numbers(moment + step) - numbers(moment - step)) / 2
        predicted = np.einsum("qij,ij->q", gradients, step[np.ix_(index, index)])
        np.testing.assert_allclose(change, predicted, rtol=1e-4, atol=1e-9)


def test_sampling_errors_are_the_textbook_ones() -> None:
    rows = make_rows(2000)
    found = make_release(rows, noise=1e-12, names=NAMES).regress("alpha", on=NAMES[1:], sampling=True)
    design = np.column_stack([rows[:, 1:], np.ones(len(rows))])
    inverse = np.linalg.inv(design.T @ design)
    expected = np.sqrt(np.diag(inverse) * float(found.residual_variance))
    np.testing.assert_allclose(found.coefficients.standard_error, expected, rtol=1e-4)


def test_a_collinear_predictor_is_named() -> None:
    rows = make_rows(5000)
    rows = np.column_stack([rows, 100 * rows[:, 1] + rows[:, 2]])
    names = ("delay", "hour", "minute", "other", "time")
    r = make_release(rows, noise=1e-7, names=names)
    with pytest.raises(dpcov.UnresolvedError, match=r"time - 100 hour - minute is below the noise.*ridge"):
        r.regress("delay", on=["hour", "minute", "time"])
    assert [str(combination) for combination in r.unresolved] == ["time - 100 hour - minute"]
    assert np.isfinite(
        r.regress("delay", on=["hour", "minute", "time"], ridge=0.01).coefficients.values
    ).all()
    assert r.regress("delay", on=["hour", "time"]).on == ("hour", "time")
    with pytest.raises(dpcov.UnresolvedError, match="precision matrix"):
        r.precision()
    assert r.precision(["hour", "other"]).values.shape == (2, 2)


def test_several_unresolved_combinations_are_told_apart() -> None:
    rows = make_rows(5000)
    rows = np.column_stack([rows, rows[:, 0] + rows[:, 1], np.full(len(rows), 5.0), 2 * rows[:, 2]])
    r = make_release(rows, noise=1e-4, names=tuple("abcdefg"))
    assert sorted(str(combination) for combination in r.unresolved) == ["b - e + a", "f", "g - 2 c"]
    assert all(0 < combination.standard_deviation_at_most < 0.2 for combination in r.unresolved)
    correlation = r.correlation()
    assert np.isnan(correlation.values[5]).all()
    assert "f is below the noise" in correlation.notes[0]
    assert not np.isnan(np.delete(np.delete(correlation.values, 5, 0), 5, 1)).any()
