"""Checks of numbers that users give."""

from __future__ import annotations

import math
from numbers import Real

from dpcov.core import ArgumentError


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


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float greater than 0, or raise an `ArgumentError`."""
    return number(value, name, above=0)
