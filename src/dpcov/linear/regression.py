"""Regression of any column on any others, from the released matrix alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import number
from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_column, find_columns
from dpcov.linear.fitted import Regression
from dpcov.linear.questions import Questions


def regress(
    questions: Questions, target: str, on: Sequence[str], ridge: float, *, sampling: bool
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
    ridge : float
        Penalty on the squared coefficients, each in units of its column's spread.
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.
    """
    goal = find_column(questions.columns, target, "target")
    chosen = find_columns(questions.columns, on, "on")
    if goal in chosen:
        raise ArgumentError(f"on contains the target '{target}': leave it out.")
    penalty = number(ridge, "ridge", at_least=0)
    if not penalty:
        questions.refuse_unresolved(
            chosen, "The regression", "leave one of these columns out, or give ridge (0.01, for instance)"
        )
    solution = _Solution(questions, chosen, goal, penalty)
    index = [*chosen, goal, *([len(questions.columns)] if questions.has_constant else [])]
    gradients = np.array([*solution.coefficient_gradients, *solution.fit_gradients])
    response = questions.geometry.of_gradients(gradients, index)
    places = np.arange(len(gradients))
    names = questions.names(chosen)
    count = len(solution.coefficients)
    labels = (*names, questions.constant) if questions.has_constant else names

    def fit(name: str, value: float, place: int, most: float) -> Answer:
        its_response = response.select(places[count + place : count + place + 1])
        return questions.answer(
            name, np.array([value]), [[name]], its_response, sampling=sampling, limits=(0.0, most)
        )

    return Regression(
        target=target,
        on=names,
        ridge=penalty,
        coefficients=questions.answer(
            f"{target} regressed on {', '.join(names)}",
            solution.coefficients,
            [labels],
            response.select(places[:count]),
            sampling=sampling,
        ),
        residual_variance=fit("residual variance", solution.residual, 0, math.inf),
        r_squared=fit("R squared", solution.r_squared, 1, 1.0),
    )


class _Solution:
    """Coefficients, fit, and their gradients by the block of predictors, target and constant.

    With M the moments of predictors (and constant), t those with the target and D the penalty,
    ``b = (M + D)^-1 t``. So ``db_k = p_k^T (dt - dM b - dD b)``: with r the residual's coefficients, the
    gradient is ``sym(p_k r^T)`` less what the penalty adds.
    """

    def __init__(self, questions: Questions, chosen: list[int], goal: int, ridge: float) -> None:
        geometry = questions.geometry
        size, complete = len(chosen), geometry.complete
        block = [*chosen, goal]
        covariance = geometry.centred[np.ix_(block, block)]
        variances, own = np.diag(covariance)[:size], float(covariance[size, size])
        slopes, inverse = _solve(covariance[:size, :size], covariance[:size, size], ridge * variances)
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
        if ridge:
            squares = np.einsum("ki,kj->kij", forms[:size], forms[:size])
            self.coefficient_gradients -= np.tensordot(rows[:, :size] * (ridge * slopes), squares, 1)
        fit = np.outer(residual, residual) - self.residual * np.outer(constant, constant)
        spread = fit / complete - np.tensordot(
            2 * ridge * slopes * variances, self.coefficient_gradients[:size], 1
        )
        target = (np.outer(forms[size], forms[size]) - own * np.outer(constant, constant)) / complete
        share = (self.residual / own * target - spread) / own if own > 0 else np.zeros_like(spread)
        self.fit_gradients = [spread, share]


def _symmetric_products(rows: Array, other: Array) -> Array:
    products = np.einsum("ki,j->kij", rows, other)
    return np.asarray((products + products.transpose(0, 2, 1)) / 2)


def _solve(matrix: Array, right: Array, penalty: Array) -> tuple[Array, Array]:
    """Solve and invert, columns brought to one scale first."""
    penalised = matrix + np.diag(penalty)
    scale = np.sqrt(np.diag(penalised))
    scale = np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.pinv(penalised / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    return inverse @ right, inverse
