"""What clipping may have done to a regression, found by fitting again instead of by derivatives.

Where far rows are those of one column or one direction, clipping may have taken as much of a variance as it
left, or several times as much. Slopes and R squared are ratios: their derivatives would promise an R squared
above 1, and slopes of the other sign. So the likely losses along such directions are added to the released
covariance, draw by draw, and the regression is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Array
from dpcov.linear.least_squares import Solution
from dpcov.linear.penalties import Penalty
from dpcov.linear.questions import Questions

_LEAST = 1e-12
"""A variance of this part of the released one is zero: rounding leaves as much where a draw takes all."""


@dataclass(frozen=True, eq=False)
class Refits:
    """Regressions of tables that a release may come from, one for each draw of the located losses.

    Attributes
    ----------
    moved : ndarray, shape (number of answers, number of draws)
        What each answer is too small by: the coefficients, the residual variance and R squared.
    predicted : ndarray, shape (number of draws,)
        R squared of the released coefficients in these tables; below 0 they predict worse than the mean.
    """

    moved: Array
    predicted: Array


def refit(
    questions: Questions, chosen: list[int], goal: int, penalty: Penalty, solution: Solution
) -> Refits | None:
    """Fit a regression with a constant again, with what clipping may have taken added to the covariance.

    Parameters
    ----------
    questions : Questions
        The release.
    chosen : list of int
        The places of the predictors.
    goal : int
        The place of the target.
    penalty : Penalty
        Of the regression.
    solution : Solution
        As it is released.

    Returns
    -------
    Refits or None
        None if no losses are located, or if the release has no constant.
    """
    draws = questions.law.losses
    if draws is None or not questions.has_constant or not penalty.ridge < np.inf:
        return None
    tables = questions.geometry.with_losses(draws, [*chosen, goal])
    if tables is None:
        return None
    covariances, means = tables
    slopes = _slopes(covariances, penalty)
    forms = np.column_stack([-slopes, np.ones(len(slopes))])
    own = covariances[:, -1, -1]
    residual = np.maximum(np.einsum("ki,kij,kj->k", forms, covariances, forms), 0.0)
    share = np.clip(1 - np.divide(residual, own, out=np.ones_like(own), where=own > 0), 0.0, 1.0)
    answers = np.vstack([slopes.T, np.einsum("ki,ki->k", forms, means), residual, share])
    released = np.append(solution.coefficients, [solution.residual, solution.r_squared])
    form = np.append(-solution.coefficients[:-1], 1.0)
    left = np.einsum("i,kij,j->k", form, covariances, form) + (means @ form - solution.coefficients[-1]) ** 2
    predicted = 1 - np.divide(left, own, out=np.ones_like(own), where=own > 0)
    return Refits(answers - released[:, None], predicted)


def _slopes(covariances: Array, penalty: Penalty) -> Array:
    """Return least squares under a penalty for each table; predictors that are left out have slope 0."""
    size = covariances.shape[-1] - 1
    slopes = np.zeros((len(covariances), size))
    kept = [place for place in range(size) if place not in penalty.left_out]
    if not kept:
        return slopes
    part = covariances[:, kept][:, :, kept]
    scales = np.sqrt(np.einsum("kii->ki", part))
    scales = np.where(scales > 0, scales, 1.0)
    relative = part / (scales[:, :, None] * scales[:, None, :]) + penalty.ridge * np.eye(len(kept))
    target = covariances[:, kept, -1] / scales
    values, vectors = np.linalg.eigh(relative)
    turned = np.einsum("kji,kj->ki", vectors, target)
    turned = np.divide(turned, values, out=np.zeros_like(values), where=values > _LEAST)
    slopes[:, kept] = np.einsum("kij,kj->ki", vectors, turned) / scales
    return slopes
