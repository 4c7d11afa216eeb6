"""Columns by name, with errors that help."""

from __future__ import annotations

from collections.abc import Sequence

from dpcov.checks import choice
from dpcov.core import ArgumentError


def find_column(columns: Sequence[str], name: str, argument: str) -> int:
    """Return the place of the column called `name`, or raise an error with the nearest names.

    Examples
    --------
    >>> from dpcov.linear.columns import find_column
    >>> find_column(["age", "height"], "height", "target")
    1
    >>> find_column(["age", "height"], "hight", "target")
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: target: there is no column 'hight'. Did you mean 'height'?
    """
    if not isinstance(name, str):
        raise ArgumentError(f"{argument} must be the name of a column, got {name!r}.")
    return list(columns).index(choice(name, argument, columns, kind="column "))


def find_label(labels: Sequence[str], name: str) -> int:
    """Return the place of an answer's label, or raise an error with the nearest ones."""
    return list(labels).index(choice(name, "answer", labels))


def find_labels(labels: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the places of several labels."""
    if isinstance(names, slice | int) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"answers are indexed by names, such as {labels[0]!r}; use .values for numbers.")
    return [find_label(labels, name) for name in names]


def find_columns(columns: Sequence[str], names: Sequence[str] | None, argument: str) -> list[int]:
    """Return the places of several columns, each named once; of all if `names` is None.

    Examples
    --------
    >>> from dpcov.linear.columns import find_columns
    >>> find_columns(["age", "height", "weight"], ["weight", "age"], "columns")
    [2, 0]
    """
    if names is None:
        return list(range(len(columns)))
    if isinstance(names, str):
        parts = [names] if names in columns else [part.strip() for part in names.split(",")]
        raise ArgumentError(
            f"{argument} must be a list of column names, got the text {names!r}: use {parts}."
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
