"""Integer enclosures of exp(-x), and exact decisions made from them.

A decision "is a uniform real below p?" is exact when both sides are refined until they
separate: the uniform by drawing more bits, p by asking for a tighter enclosure.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from dpcov.core.entropy import BitSource, random_integer

Enclosure = Callable[[int], tuple[int, int]]
"""Maps a precision b to integers (low, high) with low <= p * 2^b <= high, high - low small."""


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


def uniform_is_below(bits: BitSource, enclosure: Enclosure, *, prefix: int = 0, prefix_bits: int = 0) -> bool:
    """Decide exactly whether a uniform real in [0, 1) lies below a probability.

    Parameters
    ----------
    bits : BitSource
        Supplies further bits of the uniform as they are needed.
    enclosure : callable
        Encloses the probability at any precision.
    prefix, prefix_bits : int
        Leading bits of the uniform that were drawn before.
    """
    value, length = prefix, prefix_bits
    while True:
        if length:
            low, high = enclosure(length)
            if value + 1 <= low:
                return True
            if value >= high:
                return False
        value = (value << 64) | random_integer(bits, 64)
        length += 64
