"""Checks of what users give: each returns the argument in its right type, or says in words what is wrong.

Budgets are checked where they are kept exactly, by ``dpcov.core.resolve_budget``.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

from dpcov.core import ArgumentError

_SHOWN = 12


def number(
    value: object,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return `value` as a finite float in a range, or raise an `ArgumentError` that names the argument.

    Examples
    --------
    >>> from dpcov.checks import number
    >>> number(3, "radius", above=0)
    3.0
    >>> number(-1, "radius", above=0)
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: radius must be greater than 0, got -1.
    """
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


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float greater than 0, or raise an `ArgumentError`."""
    return number(value, name, above=0)


def share(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1, or raise an `ArgumentError`.

    Examples
    --------
    >>> from dpcov.checks import share
    >>> share(1.0, "level")
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: level must lie strictly between 0 and 1, got 1.
    """
    result = number(value, name)
    if not 0 < result < 1:
        raise ArgumentError(f"{name} must lie strictly between 0 and 1, got {result:g}.")
    return result


def count(value: object, name: str, *, at_least: int = 1, at_most: int | None = None) -> int:
    """Return `value` as an int in a range, or raise an `ArgumentError`.

    Examples
    --------
    >>> from dpcov.checks import count
    >>> count(3.0, "n_components", at_most=4)
    3
    >>> count(2.5, "n_components", at_most=4)
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: n_components must be a whole number from 1 to 4, got 2.5.
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        # Infinity and NaN have no floor, and whole numbers beyond float64 are of no use to any formula.
        with suppress(OverflowError, ValueError):
            float(value)
            whole = operator.index(math.floor(value))
            if whole == value and at_least <= whole and (at_most is None or whole <= at_most):
                return whole
    limits = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise ArgumentError(f"{name} must be a whole number {limits}, got {value!r}.")


def flag(value: object, name: str) -> bool:
    """Return `value` if it is True or False, or raise an `ArgumentError`: no other value will do.

    Examples
    --------
    >>> from dpcov.checks import flag
    >>> flag("no", "intercept")
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: intercept must be True or False, got 'no'.
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {value!r}.")
    return value


def choice(value: Any, name: str, known: Sequence[str], *, kind: str = "") -> str:
    """Return `value` if it is one of the texts in `known`, or raise an error with the nearest of them.

    Examples
    --------
    >>> from dpcov.checks import choice
    >>> choice("papr", "constants", ["repaired", "paper"])
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: constants: there is no 'papr'. Did you mean 'paper'?
    """
    if value not in known:
        shown = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        hint = did_you_mean([str(value)], known) or f"There are: {shown}."
        raise ArgumentError(f"{name}: there is no {kind}{str(value)!r}. {hint}")
    return str(value)


def did_you_mean(wrong: Sequence[str], known: Sequence[str]) -> str:
    """Return a question that names what is known and close to a wrong name; nothing if nothing is close.

    Examples
    --------
    >>> from dpcov.checks import did_you_mean
    >>> did_you_mean(["hight"], ["age", "height"])
    "Did you mean 'height'?"
    """
    near = dict.fromkeys(name for one in wrong for name in difflib.get_close_matches(one, known, n=2))
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
