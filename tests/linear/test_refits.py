"""What clipping may have done to a regression: intervals, notes, and fits of the likely tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.linear_tables import make_release

import dpcov
from dpcov.laws import NoiseLaw
from dpcov.linear.least_squares import Solution
from dpcov.linear.penalties import Penalty, choose_penalty
from dpcov.linear.questions import Questions
from dpcov.linear.refits import refit
from dpcov.losses import LossLaw


def clipped_release(taken: float) -> dpcov.Release:
    """y follows x as it was released; then `taken` times the variance that is left of x comes back."""
    x, rest = np.random.default_rng(6).standard_normal((2, 20_000))
    # 1,000 rows of the length v that are shrunk to 1 or a little less take about ``1,000 (v^2 - 1)`` from the
    # sum of squares.
    length = math.sqrt(1 + taken * 20_000 / 1_000)
    law = LossLaw(
        rows=np.full(16, 1_000.0 if taken else 0.0),
        shape=np.full(16, -0.5),
        spread=np.full(16, 1.5 * (length - 1)),
        radius=1.0,
        directions=0,
        along=np.array([0.0, 1.0]),
    )
    return make_release(np.column_stack([x + rest, x]), names=("y", "x"), losses=(law,))


def test_a_slope_of_which_little_was_taken_stays() -> None:
    made = clipped_release(0.01)
    # Clipping moves it by a hundredth, the noise by as much.
    noisy = replace(made, noise=NoiseLaw(np.eye(3), 0.01))
    fit = noisy.regress("y", on=["x"])
    lower, upper = fit.coefficients.interval()
    assert lower[0] < fit.coefficients["x"] < upper[0]


@pytest.mark.parametrize("taken", [0.5, 2.0, 8.0])
def test_a_slope_that_clipping_may_have_moved_is_given_with_both_intervals(taken: float) -> None:
    # Without noise to speak of, the law is certain that clipping took that much, of x alone.
    fit = clipped_release(taken).regress("y", on=["x"])
    assert fit.coefficients["x"] == pytest.approx(1, abs=0.05)
    # The raw rows then have a slope of 1 / (1 + taken), and R squared of that over a target of variance 2.
    for answer, raw in ((fit.coefficients, 1 / (1 + taken)), (fit.r_squared, 0.5 / (1 + taken))):
        assert any("Clipping moved the slope of x, unless" in note for note in answer.notes)
        lower, upper = answer.interval()
        assert lower[0] <= raw <= answer.values[0] <= upper[0]
        assert lower[0] > 0.6 * raw
    # What is left unexplained is 1 as it was released, and `2 - 1 / (1 + taken)` in the raw rows.
    lower, upper = fit.residual_variance.interval()
    assert lower[0] <= float(fit.residual_variance) <= 1.03
    assert upper[0] == pytest.approx(2 - 1 / (1 + taken), rel=0.05)


def test_of_what_was_not_clipped_no_note_tells() -> None:
    assert not clipped_release(0.0).regress("y", on=["x"]).coefficients.notes


def test_predictions_that_clipping_may_have_spoiled_carry_a_note() -> None:
    # A slope of 1 explains half. With 2 times the variance of x they are off by ``(1 - 1/3)^2 * 3`` more.
    doubts = [
        any("predictions may be worse than its mean" in note for note in found.r_squared.notes)
        for found in (clipped_release(taken).regress("y", on=["x"]) for taken in (0.5, 2.0))
    ]
    assert doubts == [False, True]


@pytest.mark.parametrize("ridge", [0, 0.1, "auto"])
def test_refits_are_regressions_of_the_restored_covariance(ridge: float | str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(5_000, 3)) @ rng.normal(size=(3, 3)) + [3.0, 0.0, 1.0]
    along = np.array([1.5, 0.2, -0.4])
    law = LossLaw(np.full(8, 40.0), np.full(8, -0.3), np.full(8, 2.0), 1.0, directions=0, along=along)
    questions = make_release(rows, names=("y", "x", "z"), losses=(law,))._questions
    penalty = choose_penalty(questions, [1, 2], 0, ridge)
    solution = Solution(questions, [1, 2], 0, penalty.ridge, penalty.left_out)
    found = refit(questions, [1, 2], 0, penalty, solution)
    assert found is not None
    assert questions.law.losses is not None
    squares, lengths = questions.law.losses.located
    white = np.append(along, 0.0)
    common = questions.moment[-1] * math.sqrt(1 / questions.moment[-1, -1])
    for draw in (0, 7, 20):
        lost = lengths[0, draw] * np.outer(white, common)
        moment = questions.moment + squares[0, draw] * np.outer(white, white) + lost + lost.T
        again = Questions(questions.columns, questions.n_rows, moment, questions.noise, ())
        raw = Solution(again, [1, 2], 0, penalty.ridge, penalty.left_out)
        expected = [*raw.coefficients, raw.residual, raw.r_squared]
        released = [*solution.coefficients, solution.residual, solution.r_squared]
        np.testing.assert_allclose(found.moved[:, draw], np.subtract(expected, released), rtol=1e-6)
        form = np.array([1.0, *-solution.coefficients])
        spread = moment[0, 0] - moment[0, -1] ** 2 / moment[-1, -1]
        assert found.predicted[draw] == pytest.approx(1 - form @ moment @ form / spread)


def test_predictors_that_are_left_out_stay_out() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(5_000, 3)) @ rng.normal(size=(3, 3))
    law = LossLaw(np.full(8, 40.0), np.full(8, -0.3), np.full(8, 2.0), 1.0, along=np.array([1.0, 0.5, 0.3]))
    questions = make_release(rows, names=("y", "x", "z"), losses=(replace(law, directions=0),))._questions
    found = []
    for chosen, penalty in (([1, 2], Penalty(0.1, (1,))), ([1], Penalty(0.1))):
        fitted = Solution(questions, chosen, 0, penalty.ridge, penalty.left_out)
        again = refit(questions, chosen, 0, penalty, fitted)
        assert again is not None
        found.append(again)
    np.testing.assert_allclose(np.delete(found[0].moved, 1, axis=0), found[1].moved)
    assert not found[0].moved[1].any()


def test_one_table_of_ten_is_enough_for_doubt() -> None:
    made = clipped_release(2.0)
    (law,) = made.losses
    rows = np.where(np.arange(len(law.rows)) % 8 == 0, law.rows, 0.0)
    fit = replace(made, losses=(replace(law, rows=rows),)).regress("y", on=["x"])
    assert any("predictions may be worse than its mean" in note for note in fit.r_squared.notes)


def test_combinations_of_slopes_move_as_slopes_do() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(5_000, 3)) @ rng.normal(size=(3, 3))
    law = LossLaw(np.full(8, 40.0), np.full(8, -0.3), np.full(8, 2.0), 1.0, directions=0, along=np.ones(3))
    fit = make_release(rows, names=("y", "x", "z"), losses=(law,)).regress("y", on=["x", "z"])
    lower, upper = fit.coefficients.interval()
    response = fit._errors.response_along(np.eye(3))
    np.testing.assert_allclose(
        fit._errors.law.interval(fit.coefficients.values, response, 0.95, sampling=False), (lower, upper)
    )


def test_nothing_is_fitted_again_without_located_losses_or_a_constant() -> None:
    for made in (clipped_release(0.0), make_release(np.eye(4), intercept=False)):
        questions = replace(made, losses=())._questions
        penalty = Penalty(0.0)
        assert refit(questions, [1], 0, penalty, Solution(questions, [1], 0)) is None
