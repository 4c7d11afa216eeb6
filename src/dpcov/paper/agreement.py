"""How many groups a test of their agreement needs."""

from __future__ import annotations

from fractions import Fraction

from dpcov.core import ArgumentError
from dpcov.paper.queries import LEAST_AGREEMENT, agreement_noise

_MOST_GROUPS = 1 << 40


def check_agreement_groups(n_rows: int, group_size: int, epsilon: Fraction, delta: Fraction) -> None:
    """Raise an `ArgumentError` if groups that all agree would fail the test every other time."""
    n_groups = n_rows // group_size
    room = 1 - LEAST_AGREEMENT
    if agreement_noise(n_groups, epsilon, delta) <= room:
        return
    # With half of the room groups that all agree pass whatever the noise is.
    needed = groups_for_agreement_noise(room / 2, epsilon, delta)
    advice = (
        f"use groups of at most m={n_rows // needed} rows"
        if n_rows >= needed
        else f"use a table of at least {needed} rows, or a larger budget"
    )
    raise ArgumentError(
        f"{n_groups} groups of m={group_size} rows are too few to test whether they agree at this budget, "
        f"which needs {needed} groups; {advice}. Nothing was spent on it."
    )


def groups_for_agreement_noise(most: Fraction, epsilon: Fraction, delta: Fraction) -> int:
    """Return how many groups keep the noise of an agreement at `most`."""
    high = 2
    while agreement_noise(high, epsilon, delta) > most and high < _MOST_GROUPS:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if agreement_noise(middle, epsilon, delta) <= most else (middle, high)
    return high
