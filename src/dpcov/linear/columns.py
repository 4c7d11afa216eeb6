"""Columns by name, with errors that help."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from dpcov.core import ArgumentError

_SHOWN = 12


def find_column(columns: Sequence[str], name: str, argument: str) -> int:
    """Return the place of the column called `name`, or raise an error with the nearest names."""
    if not isinstance(name, str):
        raise ArgumentError(f"{argument} must be the name of a column, got {name!r}.")
    if name in columns:
        return list(columns).index(name)
    near = difflib.get_close_matches(name, columns, n=3, cutoff=0.5)
    if near:
        hint = f"Did you mean {' or '.join(repr(found) for found in near)}?"
    else:
        shown = ", ".join(columns[:_SHOWN])
        hint = f"There are: {shown}{', ...' if len(columns) > _SHOWN else ''}."
    raise ArgumentError(f"{argument}: the release has no column '{name}'. {hint}")


def find_columns(columns: Sequence[str], names: Sequence[str] | None, argument: str) -> list[int]:
    """Return the places of several columns, each named once; of all if `names` is None."""
    if names is None:
        return list(range(len(columns)))
    if isinstance(names, str):
        raise ArgumentError(
            f"{argument} must be a list of column names, got the text {names!r}: use [{names!r}]."
        )
    try:
        listed = list(names)
    except TypeError:
        raise ArgumentError(f"{argument} must be a list of column names, got {names!r}.") from None
    if not listed:
        raise ArgumentError(f"{argument} is empty: name at least one column.")
    found = [find_column(columns, name, argument) for name in listed]
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise ArgumentError(f"{argument} names a column twice: {', '.join(twice)}.")
    return found
