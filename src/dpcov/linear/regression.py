"""Regression of any column on any others, from the released matrix alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import flag
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.laws import least_resolved
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_column, find_columns
from dpcov.linear.fitted import Regression
from dpcov.linear.formulas import Model, read_model
from dpcov.linear.inference import JointErrors
from dpcov.linear.least_squares import Solution
from dpcov.linear.levels import join_rare_levels
from dpcov.linear.penalties import ADVICE, AUTO, Penalty, choose_penalty
from dpcov.linear.prediction import Outlook
from dpcov.linear.questions import Questions
from dpcov.linear.refits import refit
from dpcov.linear.responses import Response
from dpcov.linear.unresolved import count_unresolved

_WORSE = 0.05
"""By which share of the target's variance predictions may be worse than the mean before they are refused.

Where columns explain next to nothing, any noise makes predictions worse than the mean, and the slopes, about
zero, are the answer all the same: it is given with a note. From a twentieth on noise is what the slopes are
made of.
"""

_LEVEL = 0.95

_PULLED = (
    "Clipping moved the slope of {}, unless the clipped rows lie on the line of the others. Intervals allow "
    "for both."
)


def regress(
    questions: Questions,
    target: str,
    on: Sequence[str] | None,
    ridge: float | str | None,
    *,
    intercept: bool,
    sampling: bool,
) -> Regression:
    """Explain one column by others.

    Parameters
    ----------
    questions : Questions
        The release to ask.
    target : str
        The column to explain, or a formula.
    on : sequence of str, optional
        The columns that explain it; None with a formula.
    ridge : float, "auto" or None
        Penalty on the squared coefficients, each in units of its column's spread; "auto" takes the one of
        least expected error (`Prediction.best_ridge`), None does so where without one noise would make
        predictions worse than the mean.
    intercept : bool
        Whether the constant joins the predictors, if the release has one.
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.
    """
    model = read_model(questions, target, on, intercept=flag(intercept, "intercept"))
    find_column(questions.columns, model.target, "target")
    if model.target in questions.names(find_columns(questions.columns, model.on, "on")):
        raise ArgumentError(f"on contains the target '{model.target}': leave it out.")
    questions, model = _without_rare_levels(questions, model)
    goal = find_column(questions.columns, model.target, "target")
    chosen = find_columns(questions.columns, model.on, "on")
    questions, (*chosen, goal) = questions.among([*chosen, goal])
    seen = questions if model.intercept else questions.without_constant
    penalty = choose_penalty(seen, chosen, goal, ridge)
    if ridge != AUTO and not penalty.ridge:
        try:
            kept = [place for i, place in enumerate(chosen) if i not in penalty.left_out]
            _refuse_nonsense(seen, kept, penalty, model.target)
        except UnresolvedError:
            automatic = penalty if ridge is not None else choose_penalty(seen, chosen, goal, AUTO)
            if not 0 < automatic.ridge < math.inf:
                raise
            penalty = replace(automatic, stands_in=True)
    fitted = _fit(questions, chosen, goal, penalty, intercept=model.intercept)
    outside = _moved_by_clipping(questions, fitted, chosen)
    solution, response, index = fitted.solution, fitted.response, fitted.index
    outlook = None if penalty.prediction is None else penalty.prediction.outlook(penalty.ridge)
    places = np.arange(len(response.noise))
    names = questions.names(chosen)
    count = len(solution.coefficients)
    labels = (*names, questions.constant) if count > len(names) else names
    rests_on = [questions.rests_on] if questions.rests_on else []
    notes = [
        *([_PULLED.format(outside)] if outside else []),
        *_notes(seen, chosen, penalty),
        *(f"{found.describe()}." for found in seen.find_unresolved([goal])),
        *_exposed_notes(questions, chosen, goal),
        *model.notes,
        *rests_on,
    ]

    # Intervals of slopes and R squared allow for rows beyond the region, whether these lie on the line of the
    # others or not, so that they carry no note about them: on the shelf's tables for tuning 98% of 304 slopes
    # without another note were held by their intervals, and all of 85 R squared.
    law = questions.law.perhaps_unmoved() if outside else questions.law

    def fit(name: str, value: float, place: int, most: float, *, allowed_for: bool = False) -> Answer:
        its_response = response.select(places[count + place : count + place + 1])
        answer = questions.answer(
            name,
            np.array([value]),
            [[name]],
            its_response,
            sampling=sampling,
            limits=(0.0, most),
            notes=notes,
            allowed_for=allowed_for,
        )
        return replace(answer, _law=law)

    r_squared = fit("R squared", solution.r_squared, 1, 1.0, allowed_for=True)
    if outlook is not None:
        doubts = _doubts(r_squared, outlook, model.target, fitted)
        r_squared = replace(r_squared, notes=(*doubts, *r_squared.notes))
    penalised = f" with a ridge of {penalty.ridge:.3g}" if penalty.ridge else ""
    of_coefficients = law.after_fitting(count)
    coefficients = questions.answer(
        f"{model.target} regressed on {', '.join(names)}{penalised}",
        solution.coefficients,
        [labels],
        response.select(places[:count]),
        sampling=sampling,
        notes=notes,
        allowed_for=True,
    )
    return Regression(
        target=model.target,
        on=names,
        terms=model.terms,
        ridge=penalty.ridge,
        coefficients=replace(coefficients, _law=of_coefficients),
        residual_variance=fit("residual variance", solution.residual, 0, math.inf),
        r_squared=r_squared,
        complete_rows=questions.complete_rows,
        spreads=np.sqrt(np.diag(seen.centred[0])[[*chosen, goal]]),
        untested=_untested(seen, chosen, penalty),
        references=tuple(names[0] for names in questions.levels.values() if set(names[1:]) & set(model.on)),
        _errors=JointErrors(
            questions.geometry,
            of_coefficients,
            solution.coefficient_gradients,
            tuple(index),
            None if response.moved is None else response.moved[:count],
        ),
    )


def _without_rare_levels(questions: Questions, model: Model) -> tuple[Questions, Model]:
    """Return the model with rare levels of categories joined, and whom to ask about it."""
    if not questions.has_constant or questions.noise is None or not model.intercept:
        return questions, model
    asked, on, joined, notes = join_rare_levels(questions, model.on)
    if not joined or not on:
        return questions, model
    terms = {
        term: tuple(name for name in dict.fromkeys(joined.get(name, name) for name in names) if name)
        for term, names in model.terms.items()
    }
    kept = {term: names for term, names in terms.items() if names}
    return asked, replace(model, on=on, terms=kept, notes=(*model.notes, *notes))


def _untested(questions: Questions, chosen: list[int], penalty: Penalty) -> str:
    """Return why coefficients cannot be tested, if so."""
    if questions.noise is None:
        return "the method states no law of its noise"
    if penalty.ridge:
        return "a ridge pulls coefficients towards zero"
    if _unresolved_notes(questions, chosen, penalty.ridge):
        return "noise or clipped rows hide a combination of the predictors"
    return ""


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Least squares, how coefficients and fit respond to the matrix, and the places of its block.

    With `predicted`, what R squared would be in the tables that clipping may have made this release from.
    """

    solution: Solution
    response: Response
    index: list[int]
    predicted: Array | None = None

    @property
    def may_mislead(self) -> bool:
        """Whether predictions are worse than the mean in one of 20 of these tables."""
        return self.predicted is not None and float(np.quantile(self.predicted, (1 - _LEVEL))) <= 0


def _fit(questions: Questions, chosen: list[int], goal: int, penalty: Penalty, *, intercept: bool) -> _Fitted:
    solution = Solution(questions, chosen, goal, penalty.ridge, penalty.left_out, intercept=intercept)
    index = [*chosen, goal, *([len(questions.columns)] if questions.has_constant else [])]
    gradients = np.array([*solution.coefficient_gradients, *solution.fit_gradients])
    response = questions.geometry.of_gradients(gradients, index)
    again = refit(questions, chosen, goal, penalty, solution) if intercept else None
    if again is not None:
        response = replace(response, moved=again.moved)
    for part in response.parts().values():
        # A slope that is left at 0 has no error that is known.
        part[list(penalty.left_out)] = math.nan
    return _Fitted(solution, response, index, None if again is None else again.predicted)


def _moved_by_clipping(questions: Questions, fitted: _Fitted, chosen: list[int]) -> str:
    """Return the predictor whose slope its own interval leaves out by most; empty if there is none.

    Clipped rows that lie on the line of the others leave a slope as it is; those that lie along the predictor
    alone pull it. Where the law of what clipping took is certain of some of the latter, and noise is small,
    the interval leaves out a slope that may be right to a percent.
    """
    slopes = fitted.solution.coefficients[: len(chosen)]
    response = fitted.response.select(np.arange(len(chosen)))
    lower, upper = questions.law.interval(slopes, response, _LEVEL, sampling=False)
    outside = np.nan_to_num(np.maximum(lower - slopes, slopes - upper) / (upper - lower))
    place = int(np.argmax(outside))
    return questions.columns[chosen[place]] if outside[place] > 0 else ""


def _notes(questions: Questions, chosen: list[int], penalty: Penalty) -> list[str]:
    """Return what should be known about the coefficients."""
    if math.isinf(penalty.ridge):
        return ["No slope stands above the noise: all slopes are left at 0."]
    kept = [place for i, place in enumerate(chosen) if i not in penalty.left_out]
    instead = f"Without a ridge slopes would follow the noise: one of {penalty.ridge:.3g} was taken."
    # A penalty lifts combinations above the noise, but no column of clipped rows out of doubt.
    doubtful = [f"{found.describe()}." for place in kept for found in questions.find_unresolved([place])]
    return [
        *([instead] if penalty.stands_in else []),
        *(f"{_why_left_out(questions, chosen[i])}: its slope is left at 0." for i in penalty.left_out),
        *(_unresolved_notes(questions, kept, penalty.ridge) or doubtful),
    ]


def _exposed_notes(questions: Questions, chosen: list[int], goal: int) -> list[str]:
    """Return notes about columns that far rows may have moved, if that may move the coefficients.

    A clipped row is shrunk as a whole, and stays on the line that others lie on, unless its target goes its
    own way. If far rows lie along one predictor of several, they hardly move the slopes.
    """
    target, predictors = questions.find_exposed([goal]), questions.find_exposed(chosen)
    return [*predictors, *target] if target or len(predictors) == len(chosen) else []


def _why_left_out(questions: Questions, place: int) -> str:
    """Return why nobody knows the unit of a column."""
    noise, name = questions.noise, questions.columns[place]
    block, factor = questions.centred
    least = 0.0 if noise is None else least_resolved(1, noise.sigma)
    if block[place, place] > least * float(np.square(factor[place]).sum()):
        return f"{name} may rest on a few rows that were clipped"
    return f"{name} is below the noise"


def _unresolved_notes(questions: Questions, chosen: list[int], penalty: float) -> list[str]:
    """Return a note for each combination of the predictors that noise hides or clipped rows may make up.

    None if the penalty lifts all of them above that: errors are then small beside what is inverted.
    """
    if questions.noise is None:
        return []
    block, factor = questions.resolvable
    part, noise = block[np.ix_(chosen, chosen)], questions.noise
    penalised = part + penalty * np.diag(np.diag(part))
    if not count_unresolved(penalised, factor[chosen], noise.sigma, noise.hidden):
        return []
    return [f"{combination.describe()}." for combination in questions.find_unresolved(chosen)]


def _refuse_nonsense(questions: Questions, chosen: list[int], penalty: Penalty, target: str) -> None:
    """Raise an `UnresolvedError` if coefficients without a penalty would be noise.

    A combination below the noise does not have to be the end: an interval divides by what was released of it,
    and is as much wider. But if predictions could be worse than the mean, once the combination varies as much
    as noise and clipped rows may hide, the coefficients would be noise. Where every combination stands above
    the noise, that takes a target whose own noise is large.
    """
    noise = questions.noise
    if noise is None or penalty.prediction is None:
        return
    outlook = penalty.prediction.outlook(penalty.ridge)
    block, factor = questions.resolvable
    hidden = count_unresolved(block[np.ix_(chosen, chosen)], factor[chosen], noise.sigma)
    if hidden and outlook.r_squared <= 0:
        questions.refuse_unresolved(chosen, "The regression", ADVICE)
    if outlook.r_squared < -_WORSE:
        raise UnresolvedError(
            f"The regression cannot be answered: with the noise in its coefficients, predictions of {target} "
            f"would be worse than its mean. To go on, {ADVICE}."
        )


def _doubts(r_squared: Answer, outlook: Outlook, target: str, fitted: _Fitted) -> list[str]:
    """Return why predictions may be worse than the mean after all."""
    # R squared at its lower end, less what noise costs.
    lowest = float(r_squared.interval().lower[0]) - outlook.followed - outlook.misled - outlook.intercept
    if lowest <= 0 or fitted.may_mislead:
        return [f"These columns may explain nothing of {target}: predictions may be worse than its mean."]
    return []
