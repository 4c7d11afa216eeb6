from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.linear_tables import NAMES, make_release, make_rows
from numpy.typing import NDArray

import dpcov
from dpcov.laws import NoiseLaw
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
    expected = np.sqrt(np.diag(inverse) * float(found.residual_variance) * 2000 / 1996)
    np.testing.assert_allclose(found.coefficients.standard_error, expected, rtol=1e-6)


def test_a_collinear_predictor_is_named() -> None:
    rows = make_rows(5000)
    rows = np.column_stack([rows, 100 * rows[:, 1] + rows[:, 2]])
    names = ("delay", "hour", "minute", "other", "time")
    r = make_release(rows, noise=1e-7, names=names)
    with pytest.raises(dpcov.UnresolvedError, match=r"time - 100 hour - minute is below the noise.*ridge"):
        r.regress("delay", on=["hour", "minute", "time"], ridge=0)
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


def flat_release(rows: Array, sigma: float, *, hidden: float = 0.0, seed: int | None = None) -> dpcov.Release:
    """A release whose noise is the same in all directions of the columns."""
    made = make_release(rows, names=tuple("yabc")[: rows.shape[1]])
    moment, d = made._matrix, rows.shape[1] + 1
    if seed is not None:
        square = np.random.default_rng(seed).standard_normal((d, d))
        moment = moment + sigma * (square + square.T) / 2
    return replace(made, noise=NoiseLaw(np.eye(d), sigma, hidden), _matrix=moment)


def standard_rows(n: int = 5000) -> Array:
    """Four independent columns; the first explained by the second."""
    rows = np.random.default_rng(2).standard_normal((n, 4))
    rows[:, 0] = rows[:, 1] + rows[:, 0]
    return rows


def test_a_weak_combination_that_matters_is_refused_by_name_with_the_way_out() -> None:
    rows = standard_rows()
    rows[:, 2] = rows[:, 1] + 0.05 * rows[:, 2]
    r = flat_release(rows, 0.01)
    with pytest.raises(dpcov.UnresolvedError, match=r'b - a is below the noise.*ridge="auto"'):
        r.regress("y", on=["a", "b", "c"], ridge=0)
    fit = r.regress("y", on=["a", "b", "c"], ridge="auto")
    # Nothing said about a ridge, the same answer says what was done.
    default = r.regress("y", on=["a", "b", "c"])
    assert 0 < default.ridge == fit.ridge
    np.testing.assert_array_equal(default.coefficients.values, fit.coefficients.values)
    note = f"Without a ridge slopes would follow the noise: one of {fit.ridge:.3g} was taken."
    assert default.coefficients.notes[0] == note
    assert note in default.r_squared.notes
    assert note not in fit.coefficients.notes
    left = rows[:, 0] - fit.predict(rows[:, 1:])
    assert 1 - left.var() / rows[:, 0].var() > 0.45


def test_a_weak_combination_that_hardly_matters_gets_a_note() -> None:
    rows = standard_rows()
    rows[:, 2] *= 0.055
    # Its variance, 0.003, is below three noise norms, 3 sqrt(6) 0.0005, and above one.
    fit = flat_release(rows, 0.0005).regress("y", on=["a", "b", "c"])
    (note,) = fit.coefficients.notes
    assert note.startswith("b ")
    assert "is below the noise" in note
    np.testing.assert_allclose(fit.coefficients.values[:3], least_squares(rows, 0, intercept=True)[:3])
    assert not flat_release(rows, 0.0001).regress("y", on=["a", "b", "c"]).coefficients.notes


def test_what_clipped_rows_may_make_up_gets_a_note() -> None:
    # Clipped rows may have had all of a column, and the column is twice what they have of it.
    fit = flat_release(standard_rows(), 1e-4, hidden=1.5).regress("y", on=["a", "b"])
    assert any("a few rows that were clipped" in note for note in fit.coefficients.notes)
    assert fit.r_squared.notes
    assert not flat_release(standard_rows(), 1e-4).regress("y", on=["a", "b"]).coefficients.notes


def test_slopes_that_would_predict_worse_than_the_mean_are_refused() -> None:
    rows = standard_rows()
    rows[:, 0] = 1e-2 * np.random.default_rng(8).standard_normal(len(rows))
    # The predictors stand far above the noise, but the target does not: its slopes are noise.
    r = flat_release(rows, 1e-2)
    with pytest.raises(dpcov.UnresolvedError, match=r'predictions of y would be worse.*ridge="auto"'):
        r.regress("y", on=["a", "b", "c"], ridge=0)
    # By default, too: no penalty helps.
    with pytest.raises(dpcov.UnresolvedError, match=r"y is below the noise.*explain another column"):
        r.regress("y", on=["a", "b", "c"])
    fit = r.regress("y", on=["a", "b", "c"], ridge="auto")
    assert fit.ridge == np.inf
    assert (fit.coefficients.values[:3] == 0).all()
    lower, upper = fit.coefficients.interval()
    assert (lower[:3] == -np.inf).all()
    assert (upper[:3] == np.inf).all()
    assert "all slopes are left at 0" in fit.coefficients.notes[0]
    assert fit.predict(rows[:2, 1:]) == pytest.approx(rows[:, 0].mean())


def test_columns_that_explain_nothing_get_a_note_on_r_squared_alone() -> None:
    rows = standard_rows()
    rows[:, 0] = np.random.default_rng(8).standard_normal(len(rows))
    fit = flat_release(rows, 2e-2, seed=1).regress("y", on=["a", "b", "c"])
    assert "may explain nothing of y" in fit.r_squared.notes[0]
    assert not fit.coefficients.notes
    assert "may explain nothing of y" in repr(fit)
    assert "may explain nothing of y" in fit._repr_html_()
    assert not flat_release(standard_rows(), 2e-2, seed=1).regress("y", on=["a", "b", "c"]).r_squared.notes


def test_the_automatic_ridge_leaves_out_what_noise_alone_might_be() -> None:
    rows = standard_rows()
    # A variance of 2.5 standard deviations of its noise: three norms of it, 3 sqrt 2, would be resolved.
    rows[:, 2] *= np.sqrt(2.5e-4)
    fit = flat_release(rows, 1e-4, seed=3).regress("y", on=["a", "b", "c"], ridge="auto")
    assert fit.coefficients.values[1] == 0
    rows[:, 2] *= 2
    assert (
        flat_release(rows, 1e-4, seed=3).regress("y", on=["a", "b", "c"], ridge="auto").coefficients.values[1]
    )


def test_the_automatic_ridge_leaves_out_a_column_below_the_noise() -> None:
    rows = standard_rows()
    rows[:, 2] *= 1e-3
    r = flat_release(rows, 1e-4, seed=3)
    fit = r.regress("y", on=["a", "b", "c"], ridge="auto")
    assert fit.ridge < 0.01
    assert fit.coefficients.values[1] == 0
    assert fit.coefficients.interval().upper[1] == np.inf
    assert np.isfinite(fit.coefficients.interval().upper[[0, 2, 3]]).all()
    assert fit.coefficients.notes == ("b is below the noise: its slope is left at 0.",)
    alone = r.regress("y", on=["a", "c"], ridge="auto")
    np.testing.assert_allclose(fit.coefficients.values[[0, 2, 3]], alone.coefficients.values)
    fixed = r.regress("y", on=["a", "c"], ridge=0.1)
    assert fixed.coefficients.name == "y regressed on a, c with a ridge of 0.1"


def test_the_automatic_ridge_is_never_refused() -> None:
    # Noise is small, so no penalty is needed; but clipped rows may hide any variance, and slopes be wild.
    r = flat_release(standard_rows(), 1e-4, hidden=1e8, seed=0)
    for ridge in (0, None):
        with pytest.raises(dpcov.UnresolvedError, match="worse than its mean"):
            r.regress("y", on=["a", "b"], ridge=ridge)
    fit = r.regress("y", on=["a", "b"], ridge="auto")
    assert fit.ridge == 0
    assert "a few rows that were clipped" in fit.coefficients.notes[0]


def test_a_target_below_the_noise_has_slopes_only_on_what_explains_it() -> None:
    # Its noise has a standard deviation of 0.01, and 3 sqrt(2) times that is what it must exceed.
    rows = standard_rows()
    rows[:, 0] = rows[:, 1] + 0.1 * rows[:, 0]
    for variance, is_lost in ((0.041, True), (0.044, False)):
        r = flat_release(rows * [np.sqrt(variance) / rows[:, 0].std(), 1, 1, 1], 0.01)
        explained = r.regress("y", on=["a"]).coefficients
        assert explained.values[0] == pytest.approx(0.2, abs=0.02)
        # Rows that were clipped may be all that it has, so that intervals say little: there is a note.
        assert any("y is below the noise: apart from" in note for note in explained.notes) is is_lost
        assert r.regress("y", on=["b"], ridge=0).coefficients.values[0] == pytest.approx(0, abs=0.02)
        if is_lost:
            assert r.regress("y", on=["b"], ridge="auto").ridge == np.inf
            with pytest.raises(dpcov.UnresolvedError, match=r"y is below the noise.*another column"):
                r.regress("y", on=["b"])
        else:
            assert r.regress("y", on=["b"]).coefficients.values[0] == pytest.approx(0, abs=0.02)


def test_a_target_below_the_noise_may_be_explained_by_many_columns_together() -> None:
    # Without a penalty eight columns that nearly agree follow the noise; with the best one they do not.
    rng = np.random.default_rng(5)
    common = rng.standard_normal((5_000, 1))
    on = common + 0.1 * rng.standard_normal((5_000, 8))
    rows = np.column_stack([0.25 * common, on])
    made = make_release(rows, names=("y", *"abcdefgh"))
    r = replace(made, noise=NoiseLaw(np.eye(10), 0.02))
    with pytest.raises(dpcov.UnresolvedError):
        r.regress("y", on=list("abcdefgh"), ridge=0)
    fit = r.regress("y", on=list("abcdefgh"))
    assert fit.ridge == r.regress("y", on=list("abcdefgh"), ridge="auto").ridge > 0
    assert np.var(rows[:, 0] - fit.predict(rows[:, 1:])) < 0.2 * rows[:, 0].var()


def test_a_column_of_clipped_rows_under_a_penalty_has_a_note() -> None:
    rows = standard_rows()
    rows[:, 0] = 3 * rows[:, 2] + rows[:, 0]
    fit = flat_release(rows, 0.15, hidden=5.0).regress("y", on=["b"], ridge="auto")
    assert 0 < fit.ridge < np.inf
    assert any(note.startswith("b may rest on a few rows") for note in fit.coefficients.notes)


LEFT_OUT = "b may rest on a few rows that were clipped: its slope is left at 0."


def test_a_column_of_clipped_rows_has_no_slope_unless_a_ridge_is_given() -> None:
    # b is far above the noise, but rows far beyond the region may have had twice what was released of it: in
    # the table it may be a hundred times as long, and its slope would predict a hundred times too much.
    rows = standard_rows()
    rows[:, 2] *= 0.1
    rows[:, 0] += 30 * rows[:, 2]
    for hidden, is_left_out in ((0.0202, True), (0.0198, False)):
        r = flat_release(rows * np.array([1, 1, 0.1 / rows[:, 2].std(), 1]), 1e-6, hidden=hidden)
        for ridge in (None, "auto"):
            fit = r.regress("y", on=["a", "b"], ridge=ridge)
            assert bool(fit.coefficients.values[1] == 0) is is_left_out
            assert (fit.coefficients.notes[0] == LEFT_OUT) is is_left_out
            assert fit.coefficients.notes[0].startswith("b may rest on a few rows that were clipped")
            assert fit.coefficients.values[0] == pytest.approx(1, abs=0.1)
        assert r.regress("y", on=["a", "b"], ridge=0).coefficients.values[1] == pytest.approx(30, rel=0.05)


@pytest.mark.parametrize(("added", "pays"), [(0.016, False), (0.024, True)])
def test_a_column_that_is_not_resolved_beside_others_has_to_pay(added: float, *, pays: bool) -> None:
    # a and b are made exactly uncorrelated with each other and with what neither explains.
    columns = np.random.default_rng(4).standard_normal((5000, 3))
    columns = np.linalg.qr(columns - columns.mean(axis=0))[0] * math.sqrt(5000)
    rest, a, b = columns.T
    y = math.sqrt(0.3) * a + math.sqrt(added) * b + math.sqrt(0.7 - added) * rest
    for hidden, is_resolved in ((0.0102, False), (0.0098, True)):
        r = flat_release(np.column_stack([y, a, 0.1 * b]), 1e-6, hidden=hidden)
        for ridge in (None, "auto"):
            fit = r.regress("y", on=["a", "b"], ridge=ridge)
            assert bool(fit.coefficients.values[1] == 0) is not (pays or is_resolved)
            assert (LEFT_OUT in fit.coefficients.notes) is not (pays or is_resolved)
            assert bool(fit.coefficients.notes) is not is_resolved


def test_if_no_column_is_resolved_those_that_may_have_lost_half_are_taken_or_else_all() -> None:
    rows = standard_rows()
    rows[:, 0] = 3 * rows[:, 2] + rows[:, 3] + 0.1 * rows[:, 0]
    rows *= np.array([1, 1, 0.1 / rows[:, 2].std(), 0.08 / rows[:, 3].std()])
    neither, second = [False, False], [False, True]
    for hidden, left_out in ((0.012, neither), (0.0135, second), (0.0198, second), (0.0202, neither)):
        fit = flat_release(rows, 1e-6, hidden=hidden).regress("y", on=["b", "c"])
        slopes = fit.coefficients.values[:2]
        np.testing.assert_array_equal(slopes == 0, left_out)
        np.testing.assert_allclose(slopes, np.where(left_out, 0, [30, 12.5]), rtol=0.1)
        assert any("clipped" in note for note in fit.coefficients.notes)


def test_intervals_under_a_penalty_hold_the_penalised_coefficients_of_the_rows() -> None:
    rows = standard_rows()
    rows[:, 2] = rows[:, 1] + 0.3 * rows[:, 2]
    held, plain = np.zeros((300, 3), dtype=bool), np.zeros((300, 3), dtype=bool)
    for seed in range(300):
        fit = flat_release(rows, 2e-3, seed=seed).regress("y", on=["a", "b", "c"], ridge=0.1)
        lower, upper = (bound[:3] for bound in fit.coefficients.interval())
        for found, ridge in ((held, 0.1), (plain, 0.0)):
            raw = least_squares(rows, ridge, intercept=True)[:3]
            found[seed] = (lower <= raw) & (raw <= upper)
    # Of 300 intervals at 95%, fewer than 262 hold once in 10^9.
    assert (held.sum(axis=0) > 261).all()
    # They are not for the coefficients of least squares.
    assert plain[:, :2].mean() < 0.1


def test_a_method_without_a_law_of_noise_has_no_automatic_ridge() -> None:
    made = replace(make_release(standard_rows()), noise=None)
    with pytest.raises(dpcov.UnresolvedError, match="law of the noise"):
        made.regress("x0", on=["x1"], ridge="auto")
    assert made.regress("x0", on=["x1"]).ridge == 0
    with pytest.raises(dpcov.UnresolvedError, match="Everything is below the noise"):
        replace(made, _matrix=np.zeros((5, 5))).regress("x0", on=["x1"], ridge="auto")


def test_another_word_than_auto_is_refused() -> None:
    with pytest.raises(dpcov.ArgumentError, match='a number or "auto"'):
        make_release(standard_rows()).regress("x0", on=["x1"], ridge="automatic")
