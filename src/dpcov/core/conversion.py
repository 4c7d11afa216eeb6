"""Between (epsilon, delta) and the two currencies of queries: zCDP, and Gaussian differential privacy.

*zCDP.* Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), Proposition 12
with Corollary 13: a rho-zCDP mechanism is (epsilon, delta)-DP with

    epsilon = alpha rho + ln(1 - 1/alpha) + (ln(1/delta) - ln(alpha)) / (alpha - 1)

for *every* order alpha > 1. The paper's ``rho + sqrt(2 rho ln(1/delta))`` is too small and is used nowhere.

*Gaussian.* Dong, Roth and Su, "Gaussian Differential Privacy" (2022), Corollary 2.13: a mu-GDP mechanism,
``mu = sqrt(2 rho)`` here, is (epsilon, delta)-DP just if ``delta >= Phi(-x) - e^epsilon Phi(-x - mu)``, where
``x = epsilon / mu - mu / 2``. As ``e^epsilon phi(x + mu) = phi(x)``, that is ``phi(x) (R(x) - R(x + mu))``
with the ratio ``R(x) = Phi(-x) / phi(x)``.

A float search finds a good order, epsilon or rho; whichever it finds, the formula is then evaluated in 80
decimal digits and rounded against us, so no error of the search or of floats can make a claim too strong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import erfcx, ndtr

from dpcov.core.errors import ArgumentError

_CONTEXT = Context(prec=80, Emin=-(10**15), Emax=10**15)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
# An evaluation makes at most a few thousand roundings of relative size 10^-79, and no difference in it loses
# more than 30 digits: 10^-40 of the largest magnitude involved covers them many times over.
_SLACK = Decimal(10) ** -40
_GRID = 1 << 80
_LOG_ORDERS = np.arange(-20, 80, 0.25).tolist()
_GREATEST_BUDGET = 10**9
_TERMS = 500


def epsilon_from_rho(rho: Fraction, delta: Fraction, *, gaussian: bool = False) -> Fraction:
    """Return an epsilon for which every rho-zCDP mechanism is (epsilon, `delta`)-DP, rounded up.

    With `gaussian`: every sqrt(2 rho)-GDP mechanism. It is within 1e-9 of the least.
    """
    log_inverse = _log_inverse(delta)
    if not 0 <= rho <= _GREATEST_BUDGET:
        raise ArgumentError("rho must lie between 0 and 1e9.")
    if rho == 0 or (gaussian and gaussian_delta(rho, Fraction(0))[1] <= delta):
        return Fraction(0)
    rho_float = float(rho)
    if not gaussian:
        order = _best_order(lambda a: a * rho_float + _order_term(a, log_inverse))
        with localcontext(_CONTEXT):
            value = _decimal(order) * _decimal(rho) + _exact_order_term(order, delta)
            return max(Fraction(0), _on_grid(value + (abs(value) + 1) * _SLACK, math.ceil))
    tail = rho_float + math.sqrt(4 * rho_float * log_inverse)
    found = Fraction(_boundary(lambda e: _log_delta(rho_float, e) <= -log_inverse, tail, 0.0))
    step = Fraction(1, 1 << 44)
    while gaussian_delta(rho, found)[1] > delta:
        found, step = found * (1 + step), 2 * step
    return Fraction(math.ceil(found * _GRID), _GRID)


def rho_from_epsilon(epsilon: Fraction, delta: Fraction, *, gaussian: bool = False) -> Fraction:
    """Return a rho for which every rho-zCDP mechanism is (`epsilon`, `delta`)-DP, rounded down.

    With `gaussian`: every sqrt(2 rho)-GDP mechanism. It is within 1e-9 of the greatest.
    """
    log_inverse = _log_inverse(delta)
    if not 0 < epsilon <= _GREATEST_BUDGET:
        raise ArgumentError("epsilon must be greater than 0 and at most 1e9.")
    epsilon_float = float(epsilon)
    if gaussian:
        spread = math.sqrt(2 * log_inverse)
        inside = (epsilon_float / (math.sqrt(spread**2 + 2 * epsilon_float) + spread)) ** 2 * 2
        outside = 2 * inside
        while _log_delta(outside, epsilon_float) <= -log_inverse and outside < _GREATEST_BUDGET:
            outside *= 2
        rho = Fraction(_boundary(lambda r: _log_delta(r, epsilon_float) <= -log_inverse, inside, outside))
        rho = Fraction(math.floor(min(rho, Fraction(_GREATEST_BUDGET)) * _GRID), _GRID)
    else:
        order = _best_order(lambda a: -(epsilon_float - _order_term(a, log_inverse)) / a)
        with localcontext(_CONTEXT):
            value = (_decimal(epsilon) - _exact_order_term(order, delta)) / _decimal(order)
            rho = _on_grid(value - (abs(value) + 1) * _SLACK, math.floor)
    if rho <= 0:
        raise ArgumentError(
            f"epsilon={float(epsilon):g} with delta={float(delta):g} leaves no budget; "
            "ask for a larger epsilon or delta."
        )
    # The way back proves it, by a search of its own; whoever asks for epsilon = 1 shall not read 1 + 2e-16.
    step = Fraction(1, 1 << 42)
    while epsilon_from_rho(rho, delta, gaussian=gaussian) > epsilon:
        rho, step = Fraction(math.floor(rho * (1 - step) * _GRID), _GRID), 2 * step
    return rho


def gaussian_delta(rho: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose the least delta for which every sqrt(2 rho)-GDP mechanism is (epsilon, delta)-DP."""
    with localcontext(_CONTEXT):
        mu = (2 * _decimal(rho)).sqrt()
        x = _decimal(epsilon) / mu - mu / 2
        density = (-x * x / 2).exp() / (2 * _PI).sqrt()
        (low, high), (low_beyond, high_beyond) = _mills_ratio(x), _mills_ratio(x + mu)
        slack = density * (high + high_beyond) * _SLACK
        enclosure = density * (low - high_beyond) - slack, density * (high - low_beyond) + slack
        return Fraction(enclosure[0]), Fraction(enclosure[1])


def _mills_ratio(x: Decimal) -> tuple[Decimal, Decimal]:
    """Enclose R(x) = Phi(-x) / phi(x), up to roundings."""
    if x < 0:
        low, high = _mills_ratio(-x)
        whole = (2 * _PI).sqrt() * (x * x / 2).exp()
        return whole - high, whole - low
    if x < 3:
        # R(0) exp(x^2 / 2) - (x + x^3 / 3 + x^5 / 15 + ...); terms at least halve in the end.
        term, total, n = x, Decimal(0), 1
        while term > _SLACK**2 or 2 * x * x > n:
            total, n = total + term, n + 2
            term *= x * x / n
        rest = (_PI / 2).sqrt() * (x * x / 2).exp() - total
        return rest - 2 * term, rest
    # Laplace's continued fraction 1 / (x + 1 / (x + 2 / (x + ...))): its convergents lie on alternate sides.
    ends = []
    for count in (_TERMS, _TERMS + 1):
        below = x
        for n in range(count, 0, -1):
            below = x + n / below
        ends.append(1 / below)
    return min(ends), max(ends)


def _log_delta(rho: float, epsilon: float) -> float:
    """Return the logarithm of delta in floats, for the search."""
    mu = math.sqrt(2 * rho)
    x = epsilon / mu - mu / 2
    beyond = float(erfcx((x + mu) / math.sqrt(2)))
    if x > 0:
        gap = float(erfcx(x / math.sqrt(2))) - beyond
        return math.log(gap / 2) - x * x / 2 if gap > 0 else -math.inf
    gap = float(ndtr(-x)) - math.exp(-x * x / 2) * beyond / 2
    return math.log(gap) if gap > 0 else -math.inf


def _boundary(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return a number that fits, next to one that does not, by bisection."""
    for _ in range(80):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside


def _log_inverse(delta: Fraction) -> float:
    if not 0 < delta < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(delta):g}.")
    return math.log(delta.denominator) - math.log(delta.numerator)


def _order_term(order: float, log_inverse_delta: float) -> float:
    return math.log1p(-1 / order) + (log_inverse_delta - math.log(order)) / (order - 1)


def _exact_order_term(order: Fraction, delta: Fraction) -> Decimal:
    a = _decimal(order)
    return (1 - 1 / a).ln() + (-_decimal(delta).ln() - a.ln()) / (a - 1)


def _best_order(objective: Callable[[float], float]) -> Fraction:
    """Search alpha = 1 + exp(s) over s: a coarse grid, then finer ones around its best place."""

    def at(s: float) -> float:
        order = 1 + math.exp(s)
        return objective(order) if order > 1 else math.inf

    best, width = min(_LOG_ORDERS, key=at), 0.25
    for _ in range(9):
        best, width = min((best + width * step / 8 for step in range(-8, 9)), key=at), width / 4
    return Fraction(1 + math.exp(best))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _on_grid(value: Decimal, rounding: Callable[[Fraction], int]) -> Fraction:
    return Fraction(rounding(Fraction(value) * _GRID), _GRID)
