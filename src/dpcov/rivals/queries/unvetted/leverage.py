"""Stable second moments by filtering rows of high leverage.

Brown, Hopkins and Smith, "Fast, sample-efficient, affine-invariant private mean and covariance estimation for
subgaussian distributions" (COLT 2023): a second moment that replacing one row moves by a factor close to 1,
a score that says how far the table is from one without that property, and samples of a Gaussian whose
covariance is that second moment. ``unvetted.md`` has the proofs, with every constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource
from dpcov.paper.queries.laplace import truncation_bound
from dpcov.rivals.queries.unvetted.floats import normals

Matrix = NDArray[np.float64]

SCORE_SENSITIVITY = 2
"""Replacing a row moves the score by at most this."""

_SINGULAR = 1e-11
_GRID = 400
_MARGIN = 1.01
_MOST_NORMALS = 1 << 25
_CHUNK_NORMALS = 1 << 20


@dataclass(frozen=True)
class FilterPlan:
    """Public numbers of a run.

    Attributes
    ----------
    steps : int
        k: thresholds go from the leverage bound to e^2 times it in 2 k steps.
    largest_noise : int
        The test's noise is never larger.
    samples : int
        How many Gaussian vectors are drawn.
    """

    steps: int
    largest_noise: int
    samples: int


def plan_filter(
    n_rows: int, d: int, leverage: float, *, epsilon: Fraction, rho: Fraction, delta: Fraction
) -> FilterPlan | None:
    """Return the numbers of a run, or None if there are too few rows for its proof.

    The test is (`epsilon`, `delta`)-DP, the samples are `delta`-approximate `rho`-zCDP.
    """
    bound = truncation_bound(SCORE_SENSITIVITY, epsilon, delta)
    steps = 2 * bound + 1
    highest = math.e**2 * leverage / n_rows
    if highest > -math.expm1(-1 / steps) or (steps - 1) * highest > 0.5:
        return None
    change = 2 * highest / (1 - (steps - 1) * highest)
    if change >= 0.5:
        return None
    allowed = _most_samples(change + change / (1 - change), float(rho), float(delta))
    samples = min(allowed, _MOST_NORMALS // d)
    # Fewer samples than this say nothing about d directions.
    return FilterPlan(steps, bound, samples) if samples >= 4 * d else None


def _most_samples(trace_change: float, rho: float, delta: float) -> int:
    """Return how many samples of N(0, S) are delta-approximately rho-zCDP close to as many of N(0, S').

    The eigenvalues x of ``S^-1/2 S' S^-1/2`` satisfy ``sum |x - 1| <= trace_change``. The Renyi divergence of
    one eigenvalue is at most c (x - 1)^2, hence that of all at most ``c trace_change^2``. Orders are
    infinite from some order on; ``unvetted.md`` says how delta covers those.
    """
    moves = np.linspace(-1, 1, _GRID) * trace_change
    if moves[0] <= -1:
        return 0
    orders = np.concatenate([[1.01], 1 + np.geomspace(0.02, 1e6, _GRID)])
    one = np.array([_divergences(moves, order) for order in orders])
    orders, one = orders[np.isfinite(one)], one[np.isfinite(one)]
    slack = -math.log1p(-delta)
    best = 0.0
    for last in range(2, len(orders)):
        # The divergence grows with the order: that at the next order serves all orders up to it.
        lower = np.concatenate([[1.0], orders[:last]])
        gap = np.concatenate([[orders[0] - 1], orders[:last] - 1])
        allowed = (rho * lower - (1 + 1 / gap) * slack) / one[: last + 1]
        beyond = rho * orders[last] - math.log(2 / delta) / (orders[last] - 1) - slack
        best = max(best, min(float(allowed.min()), beyond / one[last]))
    return math.floor(best)


def _divergences(moves: NDArray[np.float64], order: float) -> float:
    """Return a bound on the divergence of one sample in either direction; infinite if there is none."""
    ratios = np.concatenate([1 + moves, 1 / (1 + moves)])
    mixed = 1 - order + order * ratios
    if not (mixed > 0).all():
        return math.inf
    size = np.abs(np.concatenate([moves, moves]))
    constant = float((_divergence(ratios, order) / size**2).max())
    return _MARGIN * constant * float(size.max()) ** 2


def _divergence(ratio: NDArray[np.float64], order: float) -> NDArray[np.float64]:
    """Return the Renyi divergence of N(0, 1) from N(0, ratio)."""
    result: NDArray[np.float64] = np.log(ratio) / 2 + np.log(ratio / (1 - order + order * ratio)) / (
        2 * (order - 1)
    )
    return result


def filter_rows(rows: Matrix, leverage: float, steps: int) -> tuple[NDArray[np.float64], int]:
    """Return each row's weight in the stable second moment, and the score.

    For thresholds from ``e^2 leverage`` down to `leverage`, rows of higher leverage are removed until none is
    left: what remains is the largest set whose rows all have low leverage in it. A row's weight is the share
    of the upper half of the thresholds at which it remains. The score is the least, over the lower half, of
    the rows removed plus the threshold's number, at most `steps`.
    """
    n = len(rows)
    kept = np.ones(n, dtype=np.bool_)
    weights = np.zeros(n)
    leverages = _leverages(rows, kept)
    score = steps
    for step in range(2 * steps, -1, -1):
        threshold = leverage * math.exp(step / steps)
        while leverages is not None and bool((leverages[kept] > threshold).any()):
            kept &= leverages <= threshold
            leverages = None if n - int(kept.sum()) >= steps else _leverages(rows, kept)
        removed = n - int(kept.sum())
        if leverages is None or removed >= steps:
            # All lower thresholds remove as many rows or more: their scores are at least `steps`.
            break
        if step > steps:
            weights[kept] += 1 / steps
        else:
            score = min(score, removed + step)
    return weights, score


def weighted_factor(rows: Matrix, weights: NDArray[np.float64]) -> Matrix:
    """Return an upper triangular R with ``R^T R`` the sum of weighted ``y y^T``, divided by all rows."""
    return np.asarray(np.linalg.qr(rows * np.sqrt(weights / len(rows))[:, None], mode="r"))


def sampled_moment(bits: BitSource, factor: Matrix, samples: int) -> Matrix:
    """Return the mean of ``g g^T`` over `samples` draws g of N(0, R^T R)."""
    d = len(factor)
    total = np.zeros((d, d))
    left = samples
    while left:
        count = min(left, max(1, _CHUNK_NORMALS // d))
        draws = normals(bits, count, d)
        total += draws.T @ draws
        left -= count
    moment: Matrix = factor.T @ (total / samples) @ factor
    return moment


def _leverages(rows: Matrix, kept: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Return ``y^T S^-1 y`` for all rows, S being the sum of ``y y^T`` over kept rows divided by all rows.

    None if S is singular.
    """
    n, d = rows.shape
    if int(kept.sum()) < d:
        return None
    triangle = np.asarray(np.linalg.qr(rows[kept], mode="r"))
    singular = np.linalg.svd(triangle, compute_uv=False)
    if not singular[-1] > _SINGULAR * singular[0]:
        return None
    mapped = np.linalg.solve(triangle.T, rows.T)
    leverages: NDArray[np.float64] = n * np.square(mapped).sum(axis=0)
    return leverages
