"""Integer enclosures of exp(-x), from which the samplers decide exactly."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction


def exp_enclosure(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Enclose ``exp(-exponent) * 2^precision`` between two integers.

    Parameters
    ----------
    exponent : Fraction
        At least 0.
    precision : int
        Number of binary places.

    Returns
    -------
    tuple of int
        ``(low, high)`` with ``high - low <= 3``.
    """
    if exponent == 0:
        return 1 << precision, 1 << precision
    digits = precision // 3 + 12
    # Rounding the exponent by a relative 10^-(digits + magnitude) moves exp by less than
    # 10^-digits; Decimal.exp is correctly rounded. Both stay far below one unit.
    magnitude = max(0, len(str(int(exponent))))
    with localcontext(Context(prec=digits + magnitude, Emin=-(10**9), Emax=10**9)):
        value = (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp()
        scaled = int(value * (Decimal(2) ** precision))
    return max(scaled - 1, 0), min(scaled + 2, 1 << precision)
