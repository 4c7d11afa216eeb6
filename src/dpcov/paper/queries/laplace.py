"""Exact discrete Laplace noise, plain and truncated, for counts.

Used by the group statistics of the paper's Algorithms 3 and 4, which ask for few numbers,
so these samplers draw one number at a time. The proof note is ``laplace.md``.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

from dpcov.core.entropy import BitSource, random_integer
from dpcov.core.errors import ArgumentError
from dpcov.core.noise import exp_enclosure

_DIGITS = 50
_GREATEST_PARAMETER = 10**5


def discrete_laplace(bits: BitSource, scale: Fraction) -> int:
    """Draw an integer x with probability proportional to exp(-|x| / `scale`).

    Parameters
    ----------
    bits : BitSource
        Fair bits.
    scale : Fraction
        Greater than 0. For an integer query of l1 sensitivity D, ``scale = D / epsilon`` gives
        epsilon-DP.

    Notes
    -----
    *Formal guarantee.* Given fair independent bits, the law is exact (Canonne, Kamath and
    Steinke 2020, Algorithm 2).
    """
    if scale <= 0:
        raise ArgumentError(f"scale must be greater than 0, got {float(scale):g}.")
    while True:
        negative = bool(uniform_below(bits, 2))
        magnitude = _geometric(bits, scale)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def _geometric(bits: BitSource, scale: Fraction) -> int:
    """Draw x >= 0 with probability proportional to exp(-x / scale)."""
    # exp(-x q / p) over x: draw v >= 0 with law exp(-v / p), then x = v // q.
    p, q = scale.numerator, scale.denominator
    while True:
        remainder = uniform_below(bits, p)
        if bernoulli_exp(bits, Fraction(remainder, p)):
            break
    quotient = 0
    while bernoulli_exp(bits, Fraction(1)):
        quotient += 1
    return (remainder + p * quotient) // q


def uniform_below(bits: BitSource, bound: int) -> int:
    """Return an exactly uniform integer in [0, `bound`), by rejection."""
    if bound < 1:
        raise ArgumentError(f"bound must be at least 1, got {bound}.")
    length = (bound - 1).bit_length()
    while (value := random_integer(bits, length)) >= bound:
        pass
    return value


def bernoulli_exp(bits: BitSource, exponent: Fraction) -> bool:
    """Return True with probability exactly exp(-`exponent`), for an exponent of at least 0."""
    if exponent == 0:
        return True
    uniform = length = 0
    while True:
        uniform, length = (uniform << 64) | random_integer(bits, 64), length + 64
        low, high = exp_enclosure(exponent, length)
        if uniform + 1 <= low:
            return True
        if uniform >= high:
            return False


def truncated_laplace(bits: BitSource, scale: Fraction, bound: int) -> int:
    """Draw from the discrete Laplace law conditioned on |x| <= `bound`, exactly.

    The paper's TLap (Algorithm 3, line 9; Geng, Ding, Guo and Kumar 2020) on the integers.
    """
    if bound < 0:
        raise ArgumentError(f"bound must be at least 0, got {bound}.")
    while True:
        value = discrete_laplace(bits, scale)
        if abs(value) <= bound:
            return value


def truncation_bound(sensitivity: int, epsilon: Fraction, delta: Fraction) -> int:
    """Return a bound A for which truncated Laplace noise is (epsilon, delta)-DP.

    Parameters
    ----------
    sensitivity : int
        Greatest change D of the integer query.
    epsilon, delta : Fraction
        The guarantee, with noise of scale ``D / epsilon``.

    Notes
    -----
    Shifting by at most D, the two laws differ beyond a factor e^epsilon only on the D outermost
    integers of one end, where one of them vanishes. With r = exp(-epsilon / D) their mass is
    ``r^(A+1) (r^-D - 1) / (1 + r - 2 r^(A+1))``, which is at most delta when
    ``r^(A+1) (r^-D - 1 + 2 delta) <= delta (1 + r)``.
    """
    _check_tail(epsilon, delta)
    if sensitivity < 1:
        raise ArgumentError(f"sensitivity must be at least 1, got {sensitivity}.")
    with localcontext(Context(prec=_DIGITS)):
        step = _decimal(epsilon) / sensitivity
        excess = _decimal(epsilon).exp() - 1 + 2 * _decimal(delta)
        bound = (excess / (_decimal(delta) * (1 + (-step).exp()))).ln() / step - 1
        return max(sensitivity, _ceiling(bound))


def laplace_tail_threshold(scale: Fraction, delta: Fraction) -> int:
    """Return a least integer t >= 1 with P[x >= t] <= `delta` for discrete Laplace x, or one above.

    For t >= 1 the tail is ``r^t / (1 + r)`` with r = exp(-1 / scale).
    """
    _check_tail(scale, delta)
    with localcontext(Context(prec=_DIGITS)):
        ratio = (-1 / _decimal(scale)).exp()
        return max(1, _ceiling(-(_decimal(delta) * (1 + ratio)).ln() * _decimal(scale)))


def _check_tail(parameter: Fraction, delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(delta):g}.")
    if not 0 < parameter <= _GREATEST_PARAMETER:
        raise ArgumentError("epsilon and scale must be greater than 0 and at most 1e5.")


def _ceiling(value: Decimal) -> int:
    # 50 digits leave an error far below 10^-20 for any bound that fits into 64 bits.
    return int((value + Decimal("1e-20")).to_integral_value(ROUND_CEILING))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
