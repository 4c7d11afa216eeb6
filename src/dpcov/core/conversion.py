"""Between zero-concentrated and (epsilon, delta) differential privacy.

Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
Proposition 12 with Corollary 13: a rho-zCDP mechanism is (epsilon, delta)-DP with

    epsilon = alpha rho + ln(1 - 1/alpha) + (ln(1/delta) - ln(alpha)) / (alpha - 1)

for *every* order alpha > 1. A float search finds a good alpha; whichever it finds, the
formula is then evaluated in 50 decimal digits and rounded against us, so no error of the
search or of float arithmetic can make a claim too strong.

The paper's ``rho + sqrt(2 rho ln(1/delta))`` is too small and is used nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from dpcov.core.errors import ArgumentError

_DIGITS = 50
_GRID = 1 << 80
_LEAST_LOG_ORDER = -20.0
_GREATEST_LOG_ORDER = 80.0
_GREATEST_BUDGET = 10**9


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon for which every rho-zCDP mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    rho : Fraction
        The zCDP parameter, at least 0.
    delta : Fraction
        Strictly between 0 and 1.

    Returns
    -------
    Fraction
        Rounded up; within 1e-9 of the infimum over all orders.
    """
    _check_delta(delta)
    if not 0 <= rho <= _GREATEST_BUDGET:
        raise ArgumentError("rho must lie between 0 and 1e9.")
    if rho == 0:
        return Fraction(0)
    rho_float, log_inverse = float(rho), _log_inverse(delta)
    order = _minimise(lambda a: a * rho_float + _order_term(a, log_inverse))
    with localcontext(Context(prec=_DIGITS)):
        value = _decimal(order) * _decimal(rho) + _exact_order_term(order, delta)
    return max(Fraction(0), _round_to_grid(value, ROUND_CEILING))


def rho_from_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho for which every rho-zCDP mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Fraction
        Greater than 0.
    delta : Fraction
        Strictly between 0 and 1.

    Returns
    -------
    Fraction
        Rounded down; within 1e-9 of the supremum over all orders.
    """
    _check_delta(delta)
    if not 0 < epsilon <= _GREATEST_BUDGET:
        raise ArgumentError("epsilon must be greater than 0 and at most 1e9.")
    epsilon_float, log_inverse = float(epsilon), _log_inverse(delta)
    order = _minimise(lambda a: -(epsilon_float - _order_term(a, log_inverse)) / a)
    with localcontext(Context(prec=_DIGITS)):
        value = (_decimal(epsilon) - _exact_order_term(order, delta)) / _decimal(order)
    rho = _round_to_grid(value, ROUND_FLOOR)
    if rho <= 0:
        raise ArgumentError(
            f"epsilon={float(epsilon):g} with delta={float(delta):g} leaves no zCDP budget; "
            "ask for a larger epsilon or delta."
        )
    # The way back searches its own order; whoever asks for epsilon = 1 shall not read 1 + 2e-16.
    while epsilon_from_rho(rho, delta) > epsilon:
        rho = Fraction(math.floor(rho * (1 - Fraction(1, 1 << 48)) * _GRID), _GRID)
    return rho


def _check_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(delta):g}.")


def _order_term(order: float, log_inverse_delta: float) -> float:
    return math.log1p(-1 / order) + (log_inverse_delta - math.log(order)) / (order - 1)


def _exact_order_term(order: Fraction, delta: Fraction) -> Decimal:
    a = _decimal(order)
    return (1 - 1 / a).ln() + (-_decimal(delta).ln() - a.ln()) / (a - 1)


def _minimise(objective: Callable[[float], float]) -> Fraction:
    """Search alpha = 1 + exp(s) over s: coarse grid, then around its best place."""

    def at(s: float) -> float:
        order = 1 + math.exp(s)
        return objective(order) if order > 1 else math.inf

    best = min(np.arange(_LEAST_LOG_ORDER, _GREATEST_LOG_ORDER, 0.25).tolist(), key=at)
    near = minimize_scalar(at, bounds=(best - 0.25, best + 0.25), method="bounded", options={"xatol": 1e-9})
    return Fraction(1 + math.exp(min(best, float(near.x), key=at)))


def _log_inverse(delta: Fraction) -> float:
    return math.log(delta.denominator) - math.log(delta.numerator)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _round_to_grid(value: Decimal, rounding: str) -> Fraction:
    # The evaluation above makes a handful of roundings of relative size 10^-49;
    # 10^-40 of the largest magnitude involved covers them many times over.
    with localcontext(Context(prec=_DIGITS)):
        margin = (abs(value) + 1) * Decimal(10) ** -40
        moved = value + margin if rounding == ROUND_CEILING else value - margin
        scaled = Fraction(moved) * _GRID
    units = math.ceil(scaled) if rounding == ROUND_CEILING else math.floor(scaled)
    return Fraction(units, _GRID)
