"""Regression of any column on any others, from the released matrix alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import number
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.laws import noise_norm
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_column, find_columns
from dpcov.linear.fitted import Regression
from dpcov.linear.prediction import Outlook, Prediction
from dpcov.linear.questions import Questions
from dpcov.linear.unresolved import count_unresolved

_WORSE = 0.05
"""By which share of the target's variance predictions may be worse than the mean before they are refused.

Where columns explain next to nothing, any noise makes predictions worse than the mean, and the slopes, about
zero, are the answer all the same: it is given with a note. From a twentieth on noise is what the slopes are
made of.
"""

_AUTO = "auto"
_ADVICE = 'leave one of these columns out, or give ridge="auto"'


def regress(
    questions: Questions, target: str, on: Sequence[str], ridge: float | str, *, sampling: bool
) -> Regression:
    """Explain one column by others.

    Parameters
    ----------
    questions : Questions
        The release to ask.
    target : str
        The column to explain.
    on : sequence of str
        The columns that explain it.
    ridge : float or "auto"
        Penalty on the squared coefficients, each in units of its column's spread; "auto" takes the one of
        least expected error (`Prediction.best_ridge`).
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.
    """
    goal = find_column(questions.columns, target, "target")
    chosen = find_columns(questions.columns, on, "on")
    if goal in chosen:
        raise ArgumentError(f"on contains the target '{target}': leave it out.")
    penalty = _choose_penalty(questions, chosen, goal, ridge)
    outlook = None if penalty.prediction is None else penalty.prediction.outlook(penalty.ridge)
    if outlook is not None and not penalty.ridge and not penalty.left_out:
        _refuse_nonsense(questions, chosen, outlook, target)
    solution = _Solution(questions, chosen, goal, penalty.ridge, penalty.left_out)
    index = [*chosen, goal, *([len(questions.columns)] if questions.has_constant else [])]
    gradients = np.array([*solution.coefficient_gradients, *solution.fit_gradients])
    response = questions.geometry.of_gradients(gradients, index)
    for part in response.parts().values():
        # A slope that is left at 0 has no error that is known.
        part[list(penalty.left_out)] = math.nan
    places = np.arange(len(gradients))
    names = questions.names(chosen)
    count = len(solution.coefficients)
    labels = (*names, questions.constant) if questions.has_constant else names
    notes = _notes(questions, chosen, penalty)

    def fit(name: str, value: float, place: int, most: float) -> Answer:
        its_response = response.select(places[count + place : count + place + 1])
        return questions.answer(
            name,
            np.array([value]),
            [[name]],
            its_response,
            sampling=sampling,
            limits=(0.0, most),
            notes=notes,
        )

    r_squared = fit("R squared", solution.r_squared, 1, 1.0)
    if outlook is not None and _may_be_worse(r_squared, outlook):
        about = f"These columns may explain nothing of {target}: predictions may be worse than its mean."
        r_squared = replace(r_squared, notes=(about, *r_squared.notes))
    penalised = f" with a ridge of {penalty.ridge:.3g}" if penalty.ridge else ""
    return Regression(
        target=target,
        on=names,
        ridge=penalty.ridge,
        coefficients=questions.answer(
            f"{target} regressed on {', '.join(names)}{penalised}",
            solution.coefficients,
            [labels],
            response.select(places[:count]),
            sampling=sampling,
            notes=notes,
        ),
        residual_variance=fit("residual variance", solution.residual, 0, math.inf),
        r_squared=r_squared,
    )


@dataclass(frozen=True, eq=False)
class _Penalty:
    """The penalty, which of the predictors it leaves at 0, and what tells how well it predicts."""

    ridge: float
    left_out: tuple[int, ...] = ()
    prediction: Prediction | None = None


def _choose_penalty(questions: Questions, chosen: list[int], goal: int, ridge: float | str) -> _Penalty:
    """Return the penalty that was asked for, or the best one.

    The best one leaves out a column whose released variance is below the norm of its own noise: what its unit
    is, and so what a slope would do to predictions, is not known.
    """
    noise = questions.noise
    if ridge != _AUTO:
        if isinstance(ridge, str):
            raise ArgumentError(f'ridge must be a number or "auto", got {ridge!r}.')
        given = number(ridge, "ridge", at_least=0)
        return _Penalty(given, (), None if noise is None else Prediction(questions, noise, chosen, goal))
    # Says so if nothing was released at all.
    block, factor = questions.centred
    if noise is None:
        raise UnresolvedError('ridge="auto" needs the law of the noise, which this method does not state.')
    least = noise_norm(1, noise.sigma) * np.square(factor[chosen]).sum(axis=1)
    kept = np.diag(block)[chosen] > least
    if not kept.any():
        return _Penalty(math.inf, tuple(range(len(chosen))))
    prediction = Prediction(questions, noise, [chosen[i] for i in np.flatnonzero(kept)], goal)
    best = prediction.best_ridge
    left_out = np.arange(len(chosen)) if math.isinf(best) else np.flatnonzero(~kept)
    return _Penalty(best, tuple(map(int, left_out)), prediction)


def _notes(questions: Questions, chosen: list[int], penalty: _Penalty) -> list[str]:
    """Return what should be known about the coefficients."""
    if math.isinf(penalty.ridge):
        return ["No slopes stand above the noise: all are left at 0."]
    names = questions.names([chosen[i] for i in penalty.left_out])
    kept = [place for i, place in enumerate(chosen) if i not in penalty.left_out]
    return [
        *(f"{name} is below the noise: its slope is left at 0." for name in names),
        *_unresolved_notes(questions, kept, penalty.ridge),
    ]


def _unresolved_notes(questions: Questions, chosen: list[int], penalty: float) -> list[str]:
    """Return a note for each combination of the predictors that noise hides or clipped rows may make up.

    None if the penalty lifts all of them above that: errors are then small beside what is inverted.
    """
    if questions.noise is None:
        return []
    block, factor = questions.centred
    part, noise = block[np.ix_(chosen, chosen)], questions.noise
    penalised = part + penalty * np.diag(np.diag(part))
    if not count_unresolved(penalised, factor[chosen], noise.sigma, noise.hidden):
        return []
    return [f"{combination.describe()}." for combination in questions.find_unresolved(chosen)]


def _refuse_nonsense(questions: Questions, chosen: list[int], outlook: Outlook, target: str) -> None:
    """Raise an `UnresolvedError` if coefficients without a penalty would be noise.

    A combination below the noise does not have to be the end: an interval divides by what was released of it,
    and is as much wider. But if predictions could be worse than the mean, once the combination varies as much
    as noise and clipped rows may hide, the coefficients would be noise. Where every combination stands above
    the noise, that takes a target whose own noise is large.
    """
    noise = questions.noise
    if noise is None:
        return
    block, factor = questions.centred
    hidden = count_unresolved(block[np.ix_(chosen, chosen)], factor[chosen], noise.sigma)
    if hidden and outlook.r_squared <= 0:
        questions.refuse_unresolved(chosen, "The regression", _ADVICE)
    if outlook.r_squared < -_WORSE:
        raise UnresolvedError(
            f"The regression cannot be answered: with the noise in its coefficients, predictions of {target} "
            f"would be worse than its mean. To go on, {_ADVICE}."
        )


def _may_be_worse(r_squared: Answer, outlook: Outlook) -> bool:
    """Whether predictions may be worse than the mean: R squared at its lower end, less what noise costs."""
    lowest = float(r_squared.interval().lower[0])
    return lowest <= outlook.followed + outlook.misled + outlook.intercept


class _Solution:
    """Coefficients, fit, and their gradients by the block of predictors, target and constant.

    With M the moments of predictors (and constant), t those with the target and D the penalty,
    ``b = (M + D)^-1 t``. So ``db_k = p_k^T (dt - dM b - dD b)``: with r the residual's coefficients, the
    gradient is ``sym(p_k r^T)`` less what the penalty adds.
    """

    def __init__(
        self, questions: Questions, chosen: list[int], goal: int, ridge: float, left_out: Sequence[int] = ()
    ) -> None:
        geometry = questions.geometry
        size, complete = len(chosen), geometry.complete
        block = [*chosen, goal]
        covariance = geometry.centred[np.ix_(block, block)]
        variances, own = np.diag(covariance)[:size], float(covariance[size, size])
        penalty = ridge * np.where(variances > 0, variances, 1.0)
        penalty[list(left_out)] = math.inf
        slopes, inverse = _solve(covariance[:size, :size], covariance[:size, size], penalty)
        residual_form = np.append(-slopes, 1.0)
        self.residual = max(float(residual_form @ covariance @ residual_form), 0.0)
        self.r_squared = float(np.clip(1 - self.residual / own, 0.0, 1.0)) if own > 0 else 0.0
        self.coefficients = slopes

        # Centred columns as forms of the block (predictors, target, constant), and the rows p_k.
        forms, constant = np.eye(size + 1), np.zeros(size + 1)
        if questions.has_constant:
            mean = geometry.mean[block]
            forms, constant = np.column_stack([forms, -mean]), np.append(constant, 1.0)
            self.coefficients = np.append(slopes, residual_form @ mean)
        rows = inverse @ forms[:size] / complete
        if questions.has_constant:
            rows = np.vstack([rows, constant / complete - mean[:size] @ rows])
        residual = residual_form @ forms
        self.coefficient_gradients = _symmetric_products(rows, residual)
        if ridge and slopes.any():
            squares = np.einsum("ki,kj->kij", forms[:size], forms[:size])
            self.coefficient_gradients -= np.tensordot(rows[:, :size] * (ridge * slopes), squares, 1)
        spread = (np.outer(residual, residual) - self.residual * np.outer(constant, constant)) / complete
        if ridge and slopes.any():
            spread -= np.tensordot(2 * ridge * slopes * variances, self.coefficient_gradients[:size], 1)
        target = (np.outer(forms[size], forms[size]) - own * np.outer(constant, constant)) / complete
        share = (self.residual / own * target - spread) / own if own > 0 else np.zeros_like(spread)
        self.fit_gradients = [spread, share]


def _symmetric_products(rows: Array, other: Array) -> Array:
    products = np.einsum("ki,j->kij", rows, other)
    return np.asarray((products + products.transpose(0, 2, 1)) / 2)


def _solve(matrix: Array, right: Array, penalty: Array) -> tuple[Array, Array]:
    """Solve and invert, columns brought to one scale first; an infinite penalty leaves a column out."""
    kept = np.flatnonzero(np.isfinite(penalty))
    inverse = np.zeros_like(matrix)
    if len(kept):
        penalised = matrix[np.ix_(kept, kept)] + np.diag(penalty[kept])
        scale = np.sqrt(np.diag(penalised))
        scale = np.where(scale > 0, scale, 1.0)
        units = np.outer(scale, scale)
        inverse[np.ix_(kept, kept)] = np.linalg.pinv(penalised / units, hermitian=True) / units
    return inverse @ right, inverse
