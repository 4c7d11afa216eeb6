"""What a bound on the number of rows looks like, and checks of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from dpcov.core import ArgumentError

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


def number(
    value: object,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return `value` as a finite float in a range, or raise an `ArgumentError` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ArgumentError(f"{name} must be finite, got {result:g}.")
    if result <= above:
        raise ArgumentError(f"{name} must be greater than {above:g}, got {result:g}.")
    if result < at_least:
        raise ArgumentError(f"{name} must be at least {at_least:g}, got {result:g}.")
    if result > at_most:
        raise ArgumentError(f"{name} must be at most {at_most:g}, got {result:g}.")
    return result


def share(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1, or raise an `ArgumentError`."""
    result = number(value, name)
    if not 0 < result < 1:
        raise ArgumentError(f"{name} must lie strictly between 0 and 1, got {result:g}.")
    return result


def count(value: object, name: str, *, at_least: int = 1) -> int:
    """Return `value` as an int, or raise an `ArgumentError`."""
    result = number(value, name, at_least=at_least)
    if result != int(result):
        raise ArgumentError(f"{name} must be a whole number, got {result:g}.")
    return int(result)
