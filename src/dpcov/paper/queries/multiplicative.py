"""A weighted mean of groups' second moments with multiplicative noise: Algorithm 3, lines 14 to 20.

After Ashtiani and Liaw, "Private and polynomial time algorithms for learning Gaussians and beyond"
(2022). The noise has the shape of the answer, so it cannot be added on a fixed grid as elsewhere:
everything is computed to a thousand bits in integers, rounded once to a public grid, and the tiny
distance to the ideal mechanism is paid for out of delta. ``multiplicative.md`` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpcov.core.entropy import BitSource, random_integer
from dpcov.core.noise import rounded_gaussian
from dpcov.paper.queries.groups import CHANCE_SHARE, SLACK

LEAST_AGREEMENT = Fraction(4, 5)
"""The share of agreeing pairs that a table must surely have (line 11)."""

_DIGITS = 50
# Weights fall from 1 at 7/10 of all groups agreeing to 0 at 6/10 (line 15).
_WEIGHT_SLOPE, _WEIGHT_START = 10, 6
_CHANGE = _WEIGHT_SLOPE + 1

# A normal number is a rounded Gaussian of this many fractional bits, spread evenly over its cell.
_NORMAL_BITS = 57
_SPREAD_BITS = 967
_ROOT_BITS = 1024
_GRID_BITS = 20
# Total variation per entry of the noise: see the proof note.
_DISTANCE_BITS = 60

# Noise beyond this changes a matrix by more than half.
_MOST_NOISE = 0.22
_MOST_GROUPS = 1 << 50


@lru_cache(maxsize=16)
def multiplicative_noise_scale(
    n_groups: int, n_columns: int, distance: float, epsilon: Fraction, delta: Fraction
) -> Fraction | None:
    """Return the least eta for which lines 14 to 20 are (epsilon, delta)-DP, rounded up.

    None if none is, or only one so large that the result would be off by more than half. A float
    search finds eta and a Renyi order; the claim for them is then checked in 50 digits.
    """
    change = _spectral_change(n_groups, distance)
    exact_delta = _left_for_noise(n_columns, epsilon, delta)
    if change is None or exact_delta <= 0:
        return None
    limit, log_delta = float(epsilon), math.log(exact_delta.numerator) - math.log(exact_delta.denominator)

    def best(log_scale: float) -> tuple[float, float]:
        return _best_order(n_columns, float(change), math.exp(log_scale), log_delta)

    high = math.log(_MOST_NOISE / (2 * math.sqrt(n_columns) + 3))
    low = high - 40
    if best(high)[0] > limit:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if best(middle)[0] <= limit else (middle, high)
    scale = Fraction(math.exp(high) * (1 + 1e-6)).limit_denominator(1 << 40) + Fraction(1, 1 << 40)
    with localcontext(Context(prec=_DIGITS)):
        claimed = _epsilon(
            _Numbers(n_columns, _decimal(change), _decimal(scale), _decimal(exact_delta).ln()),
            Decimal(best(math.log(scale))[1]),
            Decimal.ln,
            Decimal.sqrt,
        )
        holds = claimed is not None and claimed + Decimal("1e-30") <= _decimal(epsilon)
    return scale if holds else None


def groups_needed(n_columns: int, distance: float, epsilon: Fraction, delta: Fraction) -> int | None:
    """Return how many groups `multiplicative_noise_scale` needs to give an answer; None if none suffice."""
    high = 64
    while multiplicative_noise_scale(high, n_columns, distance, epsilon, delta) is None:
        high *= 2
        if high > _MOST_GROUPS:
            return None
    low = high // 2
    while high - low > max(1, high >> 10):
        middle = (low + high) // 2
        if multiplicative_noise_scale(middle, n_columns, distance, epsilon, delta) is None:
            low = middle
        else:
            high = middle
    return high


def _spectral_change(n_groups: int, distance: float) -> Fraction | None:
    """Return g: replacing a row moves the weighted mean S to S' with ``|S^-1/2 S' S^-1/2 - I| <= g``."""
    closeness = (Fraction(SLACK) * (1 + Fraction(distance))) ** 2
    least_weight = Fraction(n_groups, 2) - _CHANGE
    if least_weight <= 0:
        return None
    change = _CHANGE * (closeness + 1) / least_weight
    return change if change < Fraction(1, 2) else None


def _left_for_noise(n_columns: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return delta less what arithmetic and the choice of compared groups may cost."""
    return delta * (1 - CHANCE_SHARE) - _arithmetic_delta(n_columns, epsilon)


def _arithmetic_delta(n_columns: int, epsilon: Fraction) -> Fraction:
    """Return twice what the difference between machine and ideal arithmetic costs."""
    growth = math.ceil(math.exp(min(float(epsilon), 700.0)) * 2)
    return Fraction(n_columns**2 * (2 + growth), 1 << _DISTANCE_BITS)


_Real = TypeVar("_Real", float, Decimal)


@dataclass(frozen=True)
class _Numbers(Generic[_Real]):
    d: int
    change: _Real
    scale: _Real
    log_delta: _Real


def _epsilon(
    given: _Numbers[_Real], order: _Real, log: Callable[[_Real], _Real], root: Callable[[_Real], _Real]
) -> _Real | None:
    """Return epsilon at one Renyi order, or None where the divergence is infinite.

    The divergence between the noisy matrices of two neighbours is that of d rows, each of d numbers:
    N(1, scale^2) and N(0, scale^2) against the same times a ratio of 1 +- change.
    """
    one = order / order
    worst = one - one
    for ratio in (one - given.change, one + given.change):
        # Of the plain one from the stretched one, and the other way round.
        for mixed, whole, sign in (
            (one + order * (ratio - one), ratio, one),
            ((one - order) * ratio + order, one, -one),
        ):
            if mixed <= 0:
                return None
            spread = sign * log(ratio) / 2 + log(whole / mixed) / (2 * (order - one))
            centre = order * (root(ratio) - one) ** 2 / (2 * given.scale**2 * mixed)
            worst = max(worst, given.d * (given.d * spread + centre))
    return worst + log(one - one / order) + (-given.log_delta - log(order)) / (order - one)


def _best_order(d: int, change: float, scale: float, log_delta: float) -> tuple[float, float]:
    """Return the least epsilon over Renyi orders, and its order."""
    given = _Numbers(d, change, scale, log_delta)
    greatest = math.log(0.99 / change)
    orders = [1 + math.exp(-4 + (greatest + 4) * step / 199) for step in range(200)]
    found = ((_epsilon(given, order, math.log, math.sqrt), order) for order in orders)
    return min(((value, order) for value, order in found if value is not None), default=(math.inf, 2.0))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def groups_for_noise(
    n_columns: int, distance: float, epsilon: Fraction, delta: Fraction, scale: float
) -> float:
    """Return how many groups keep `multiplicative_noise_scale` at `scale` or less; infinite if none do.

    A forecast for plans, in floats: nothing private rests on it.
    """
    exact_delta = _left_for_noise(n_columns, epsilon, delta)
    if exact_delta <= 0:
        return math.inf
    log_delta = math.log(exact_delta.numerator) - math.log(exact_delta.denominator)
    # A hair less, as the scale is rounded up in the end.
    wanted = min(scale, _MOST_NOISE / (2 * math.sqrt(n_columns) + 3)) * (1 - 1e-5)

    def excess(log_change: float) -> float:
        found = _best_order(n_columns, math.exp(log_change), wanted, log_delta)[0]
        return math.log(min(max(found, 1e-12), 1e12) / float(epsilon))

    lowest, highest = math.log(1 / _MOST_GROUPS), math.log(0.4999)
    if excess(lowest) > 0:
        return math.inf
    # The largest change that so much noise hides, from below.
    change = highest if excess(highest) <= 0 else brentq(excess, lowest, highest, xtol=1e-9) - 1e-9
    closeness = (SLACK * (1 + distance)) ** 2
    return float(math.ceil(2 * _CHANGE * ((closeness + 1) / math.exp(change) + 1)))


def noisy_weighted_mean(
    bits: BitSource,
    grams: NDArray[np.int64],
    agreeing: NDArray[np.int64],
    compared: int,
    *,
    group_size: int,
    scale: Fraction,
) -> NDArray[np.float64]:
    """Return the weighted mean of the groups' second moments with multiplicative noise.

    Parameters
    ----------
    grams : ndarray of int64, shape (groups, d, d)
        Exact, in lattice units.
    agreeing : ndarray of int64, shape (groups,)
        With how many groups each agrees, itself included.
    compared : int
        Of how many.
    group_size : int
        Rows of a group.
    scale : Fraction
        eta.

    Returns
    -------
    ndarray of float64, shape (d, d)
        A multiple of 2^-20 lattice units, up to its conversion to float64.
    """
    weights = [
        # In units of 1 / compared: line 15 in integers.
        min(compared, max(0, _WEIGHT_SLOPE * int(count) - _WEIGHT_START * compared))
        for count in agreeing
    ]
    total = sum((gram.astype(object) * weight for gram, weight in zip(grams, weights, strict=True)), 0)
    root = _integer_cholesky(total)
    noisy = root @ _noise_factor(bits, len(root), scale)
    product = noisy @ noisy.T << _GRID_BITS
    divisor = (sum(weights) * group_size) << (2 * (_ROOT_BITS + _NORMAL_BITS + _SPREAD_BITS))
    rounded = (2 * product + divisor) // (2 * divisor)
    return np.array([[float(Fraction(entry, 1 << _GRID_BITS)) for entry in row] for row in rounded])


def _noise_factor(bits: BitSource, d: int, scale: Fraction) -> NDArray[np.object_]:
    """Return I + eta N in units of 2^-(normal bits + spread bits)."""
    coarse = rounded_gaussian(bits, 1 << (2 * _NORMAL_BITS), d * d)
    one = 1 << (_NORMAL_BITS + _SPREAD_BITS)
    factor = np.zeros((d, d), dtype=object)
    for place, cell in enumerate(coarse.tolist()):
        spread = random_integer(bits, _SPREAD_BITS) - (1 << (_SPREAD_BITS - 1))
        normal = (cell << _SPREAD_BITS) + spread
        i, j = divmod(place, d)
        factor[i, j] = normal * scale.numerator // scale.denominator + (one if i == j else 0)
    return factor


def _integer_cholesky(matrix: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return lower triangular L with ``L L^T = matrix``, in units of 2^-1024, without ever failing."""
    d = len(matrix)
    root = np.zeros((d, d), dtype=object)
    for j in range(d):
        left = (matrix[j:, j] << (2 * _ROOT_BITS)) - root[j:, :j] @ root[j, :j]
        pivot = isqrt(max(0, int(left[0])))
        if pivot:
            root[j:, j] = left // pivot
            root[j, j] = pivot
    return root
