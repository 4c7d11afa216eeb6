"""Arguments that several commands take, and how they are read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import typer

from dpcov.core import ArgumentError


def read_number(text: str) -> Fraction:
    """Return the number exactly as typed: ``0.1`` is one tenth.

    Examples
    --------
    >>> from dpcov.cli.arguments import read_number
    >>> read_number("0.1")
    Fraction(1, 10)
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"'{text}' is not a number.") from None


def read_whole(text: str) -> int:
    """Return a whole number, which may be typed as ``1e6``.

    Examples
    --------
    >>> from dpcov.cli.arguments import read_whole
    >>> read_whole("1e6")
    1000000
    """
    value = read_number(text)
    if value.denominator != 1:
        raise typer.BadParameter(f"'{text}' is not a whole number.")
    return int(value)


def to_float(number: Fraction, name: str) -> float:
    """Return a number that was read exactly as a float, or raise an `ArgumentError` if it is too large."""
    try:
        return float(number)
    except OverflowError:
        raise ArgumentError(f"{name} is too large: give a number below 1e308.") from None


def read_names(given: Sequence[str]) -> list[str]:
    """Return names from comma-separated lists; a name with a comma stands in double quotes.

    Examples
    --------
    >>> from dpcov.cli.arguments import read_names
    >>> read_names(["age, height", '"weight, kg"'])
    ['age', 'height', 'weight, kg']
    """
    return [name.strip() for row in csv.reader(given, skipinitialspace=True) for name in row if name.strip()]


def read_bounds(given: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return bounds by column, from texts such as ``age=0:120``.

    Examples
    --------
    >>> from dpcov.cli.arguments import read_bounds
    >>> read_bounds(["age=0:120", "income = 0 : 1e6"])
    {'age': (0.0, 120.0), 'income': (0.0, 1000000.0)}
    """
    bounds = {}
    for text in given:
        name, _, ends = text.rpartition("=")
        lower, colon, upper = ends.partition(":")
        if not name or not colon:
            raise ArgumentError(f"--bounds takes COLUMN=LOWER:UPPER, such as age=0:120; got '{text}'.")
        try:
            first, last = (to_float(read_number(end.strip()), "--bounds") for end in (lower, upper))
        except typer.BadParameter as error:
            raise ArgumentError(f"--bounds {name}: {error}") from None
        bounds[name.strip()] = (first, last)
    return bounds


Rho = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_number, metavar="NUMBER", help="The budget in zCDP, instead of epsilon and delta."
    ),
]
Epsilon = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_number, metavar="NUMBER", help="The budget as (epsilon, delta)-DP; 1 is common."
    ),
]
Mu = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_number,
        metavar="NUMBER",
        help="The budget in Gaussian DP; 0.2 is strict.",
    ),
]
Delta = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_number, metavar="NUMBER", help="Goes with epsilon; well below 1 / rows, such as 1e-6."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
