"""Terms: products, powers and logarithms of columns, each a function of one row."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError
from dpcov.sources.encoding.kinds import Ends

_GREATEST_POWER = 9
_POWER = re.compile(r"(?P<column>.+)\^(?P<power>\d+)")
_LOG = re.compile(r"log\((?P<column>.+)\)")
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")


@dataclass(frozen=True)
class Factor:
    """A column, a power of it, or its logarithm."""

    column: str
    power: int = 1
    log: bool = False

    def name(self, column: str) -> str:
        """Return what this is called for one of the columns of numbers that the column becomes."""
        if self.log:
            return f"log({column})"
        return column if self.power == 1 else f"{column}^{self.power}"

    def apply(self, numbers: Array) -> Array:
        """Return the power or logarithm; NaN where there is none."""
        if self.log:
            return natural_logarithm(numbers)
        result = numbers
        for _ in range(self.power - 1):
            result = result * numbers
        return result

    def ends(self, ends: Ends) -> Ends:
        """Return bounds of the power or logarithm of what has these bounds."""
        if self.log:
            lower, upper = (math.log(end) if 0 < end < math.inf else math.inf for end in ends)
            return (lower if ends[0] > 0 else -math.inf, upper)
        result = ends
        for _ in range(self.power - 1):
            result = product_of(result, ends)
        if self.power % 2 == 0:
            least = 0.0 if ends[0] <= 0 <= ends[1] else min(abs(end) for end in ends) ** self.power
            result = (least, max(abs(end) for end in ends) ** self.power)
        return result


@dataclass(frozen=True)
class Term:
    """A product of factors."""

    factors: tuple[Factor, ...]

    def __str__(self) -> str:
        return ":".join(factor.name(factor.column) for factor in self.factors)

    def names(self, columns: Mapping[str, Sequence[str]]) -> list[str]:
        """Return a name for each combination of the columns of numbers that the factors become."""
        parts = [[factor.name(name) for name in columns[factor.column]] for factor in self.factors]
        return [":".join(names) for names in itertools.product(*parts)]

    def encode(self, columns: Mapping[str, Sequence[Array]]) -> list[Array]:
        """Return a column of products for each combination."""
        parts = [[factor.apply(numbers) for numbers in columns[factor.column]] for factor in self.factors]
        return [_product(numbers) for numbers in itertools.product(*parts)]

    def bounds(self, ends: Mapping[str, Sequence[Ends]]) -> list[Ends]:
        """Return bounds of each of these."""
        parts = [[factor.ends(one) for one in ends[factor.column]] for factor in self.factors]
        found = []
        for combination in itertools.product(*parts):
            result = combination[0]
            for one in combination[1:]:
                result = product_of(result, one)
            found.append(result)
        return found


def read_term(text: str, columns: Sequence[str]) -> Term:
    """Return the term that a text such as ``age^2``, ``age:sex`` or ``log(income)`` stands for."""
    if not isinstance(text, str):
        raise ArgumentError(f'terms must be texts such as "age^2" or "age:sex", got {text!r}.')
    term = Term(tuple(_read_factor(part.strip(), text, columns) for part in text.split(":")))
    if len(term.factors) == 1 and term.factors[0] == Factor(term.factors[0].column):
        raise ArgumentError(f"terms: {text} is a column already.")
    return term


def _read_factor(part: str, text: str, columns: Sequence[str]) -> Factor:
    if part in columns:
        return Factor(part)
    power, log = _POWER.fullmatch(part), _LOG.fullmatch(part)
    found = power or log
    column = found["column"].strip() if found else part
    if column not in columns:
        near = did_you_mean([column], columns) or f"There are: {', '.join(columns)}."
        raise ArgumentError(f"terms: {text} needs {column or 'a column'}, which is not among columns. {near}")
    if log:
        return Factor(column, log=True)
    exponent = int(power["power"]) if power else 1
    if not 2 <= exponent <= _GREATEST_POWER:
        raise ArgumentError(f"terms: {text} must have a power from 2 to {_GREATEST_POWER}.")
    return Factor(column, exponent)


def natural_logarithm(x: Array) -> Array:
    """Return the logarithm, NaN of what is not above 0, by operations that IEEE rounds alike everywhere.

    The logarithm of a library may differ in its last bit from one machine, or one place in an array, to the
    next. Here ``x = m 2^e`` with m near 1, and ``log m = 2 atanh(s)`` with ``s = (m - 1) / (m + 1)``, of
    which 12 terms of the series are beyond the last bit. It is off by at most a few units in the last place.
    """
    x = np.asarray(x, dtype=np.float64)
    x = np.where((x > 0) & np.isfinite(x), x, np.nan)
    mantissa, exponent = np.frexp(x)
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, 2 * mantissa, mantissa)
    e = exponent.astype(np.float64) - low
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = np.zeros_like(s)
    for odd in range(25, 1, -2):
        series = (series + 1.0 / odd) * square
    result: Array = e * _LN2_HIGH + (2 * s + (2 * s * series + e * _LN2_LOW))
    return result


def product_of(one: Ends, other: Ends) -> Ends:
    """Return bounds of products of what has these bounds."""
    corners = [0.0 if 0 in (a, b) else a * b for a in one for b in other]
    return min(corners), max(corners)


def _product(numbers: Sequence[Array]) -> Array:
    result = numbers[0]
    for other in numbers[1:]:
        result = result * other
    return result
