"""Queries that are (epsilon, delta)-DP: their arguments, and what they cost.

The proof note is ``../../core/budget.md``.
"""

from __future__ import annotations

from fractions import Fraction

from dpcov.core import ArgumentError, PrivacyCost
from dpcov.core.budget import Number, as_fraction


def approximate_cost(epsilon: Fraction, delta: Fraction) -> PrivacyCost:
    """Cost of an (epsilon, delta)-DP mechanism: delta-approximate (epsilon^2 / 2)-zCDP.

    An (epsilon, delta)-DP pair of distributions is a mixture of an epsilon-DP pair, with weight
    1 - delta, and anything else (Kairouz, Oh and Viswanath 2015), which is the definition of
    delta-approximate zCDP.
    """
    return PrivacyCost(epsilon * epsilon / 2, delta)


def approximate_arguments(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    """Return the arguments of an (epsilon, delta)-DP query as exact numbers, or raise an `ArgumentError`."""
    parameters = as_fraction(epsilon, "epsilon"), as_fraction(delta, "delta")
    if parameters[0] <= 0:
        raise ArgumentError(f"epsilon must be greater than 0, got {float(parameters[0]):g}.")
    if not 0 < parameters[1] < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(parameters[1]):g}.")
    return parameters
