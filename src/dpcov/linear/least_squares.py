"""Least squares from a second moment: coefficients, fit, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcov.arrays import Array
from dpcov.linear.questions import Questions


class Solution:
    """Coefficients, fit, and their gradients by the block of predictors, target and constant.

    With M the moments of predictors (and constant), t those with the target and D the penalty,
    ``b = (M + D)^-1 t``. So ``db_k = p_k^T (dt - dM b - dD b)``: with r the residual's coefficients, the
    gradient is ``sym(p_k r^T)`` less what the penalty adds.
    """

    def __init__(
        self,
        questions: Questions,
        chosen: list[int],
        goal: int,
        ridge: float = 0.0,
        left_out: Sequence[int] = (),
        *,
        intercept: bool = True,
    ) -> None:
        geometry = questions.geometry
        size, complete = len(chosen), geometry.complete
        block = [*chosen, goal]
        intercept = intercept and questions.has_constant
        centred = geometry.centred if intercept else questions.without_constant.moment
        covariance = centred[np.ix_(block, block)]
        variances, own = np.diag(covariance)[:size], float(covariance[size, size])
        penalty = ridge * np.where(variances > 0, variances, 1.0)
        penalty[list(left_out)] = math.inf
        slopes, inverse = _solve(covariance[:size, :size], covariance[:size, size], penalty)
        residual_form = np.append(-slopes, 1.0)
        self.residual = max(float(residual_form @ covariance @ residual_form), 0.0)
        self.r_squared = float(np.clip(1 - self.residual / own, 0.0, 1.0)) if own > 0 else 0.0
        self.coefficients = slopes

        # Centred columns as forms of the block (predictors, target, constant), and the rows p_k.
        forms, constant, mean = np.eye(size + 1), np.zeros(size + 1), np.zeros(size + 1)
        if questions.has_constant:
            mean = geometry.mean[block] if intercept else mean
            forms, constant = np.column_stack([forms, -mean]), np.append(constant, 1.0)
        rows = inverse @ forms[:size] / complete
        if intercept:
            self.coefficients = np.append(slopes, residual_form @ mean)
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
