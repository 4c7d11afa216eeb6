"""What a bound on the number of rows looks like, and how one is found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_MOST_ROWS = 1 << 62


@dataclass(frozen=True)
class Bound:
    """How many rows a guarantee needs.

    Attributes
    ----------
    rows : float
        A whole number if `exact`; infinite if no number of rows is enough.
    exact : bool
        True: every constant is explicit, so many rows suffice. False: a rate, with all hidden constants
        taken as 1 and logarithms left out where the source leaves them out; only how it grows means
        anything.
    place : str
        Where it is stated.
    formula : str
        In words or symbols.
    """

    rows: float
    exact: bool
    place: str
    formula: str


def whole_rows(value: float) -> float:
    """Return `value` rounded up; infinite stays infinite."""
    return float(math.ceil(value)) if math.isfinite(value) else math.inf


def least_rows(error_at: Callable[[int], float], error: float) -> float:
    """Return the least number of rows for which `error_at` is at most `error`; infinite if there is none.

    Parameters
    ----------
    error_at : callable
        Must not increase with the number of rows.
    error : float
        The target.
    """
    high = 1
    while error_at(high) > error:
        high *= 2
        if high > _MOST_ROWS:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if error_at(middle) <= error else (middle, high)
    return float(high)
