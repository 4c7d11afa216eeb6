"""Checks of options that users give to methods."""

from __future__ import annotations

import math
from numbers import Real

from dpcov.core import ArgumentError


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float greater than 0, or raise an `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (number > 0 and math.isfinite(number)):
        raise ArgumentError(f"{name} must be a finite number greater than 0, got {number:g}.")
    return number
