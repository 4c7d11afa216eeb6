"""Naive reference implementations: one row at a time, in Python integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.queries.gram import Clipping, Rule
from dpcov.paper.queries import Shrinking


def mapped_row(row: Sequence[float], lattice_map: LatticeMap) -> tuple[list[int], int]:
    """The integer image of one row and its exponent, as lattice.md states them."""
    exponents = [int(e) for e in lattice_map.column_exponents]
    scaled = [
        _ldexp(x, e) if math.isfinite(x) else math.inf
        for x, e in zip(map(float, row), exponents, strict=True)
    ]
    integers, first = rounded_row(scaled, 27, math.ldexp(1.0, -960 + max(0, *exponents)))
    coefficients = [[int(c) for c in line] for line in lattice_map.coefficients]
    image = [sum(c * x for c, x in zip(line, integers, strict=True)) for line in coefficients]
    values, second = rounded_row([float(y) for y in image], 26, 1.0)
    return values, first + second


def rounded_row(row: Sequence[float], norm_log2: int, least: float) -> tuple[list[int], int]:
    entry_log2 = (2 * norm_log2 - (len(row) - 1).bit_length()) // 2
    largest = max(map(abs, row))
    if not (least <= largest < math.inf):
        return [0] * len(row), 1 - entry_log2
    exponent = math.frexp(largest)[1] - entry_log2
    return [round(Fraction(x) / Fraction(2) ** exponent) for x in row], exponent


def lattice_row(
    row: Sequence[float], clipping: Clipping, lattice: Lattice, earlier: Sequence[Shrinking] = ()
) -> list[int]:
    """What one row contributes: its integer vector."""
    shrinking = 1.0
    for step in earlier:
        values, shift = mapped_row(row, step.lattice_map)
        unit = _ldexp(1.0 / step.lattice_map.scale, shift)
        length = math.sqrt(max(sum(v * v for v in values), 1)) * unit
        shrinking = min(shrinking, step.radius / length if length > 0 else math.inf)
    values, shift = mapped_row(row, clipping.lattice_map)
    norm = math.sqrt(max(sum(v * v for v in values), 1))
    unclipped = _ldexp(lattice.clip / clipping.radius / clipping.lattice_map.scale, shift) * shrinking
    whole = lattice.clip / norm
    match clipping.rule:
        case Rule.SHRINK:
            factor = min(unclipped, whole)
        case Rule.DROP:
            factor = unclipped if unclipped <= whole else 0.0
        case Rule.DIRECTION:
            factor = whole
        case Rule.TAIL:
            factor = whole if unclipped > whole else 0.0
    result = [round(Fraction(v * factor)) for v in values]
    return result if sum(z * z for z in result) <= lattice.bound**2 else [0] * len(result)


def gram(
    table: NDArray[np.float64], clipping: Clipping, lattice: Lattice, earlier: Sequence[Shrinking] = ()
) -> list[list[int]]:
    """The Gram matrix of all rows, in Python integers."""
    rows = [lattice_row(row, clipping, lattice, earlier) for row in table.tolist()]
    d = table.shape[1]
    return [[sum(z[i] * z[j] for z in rows) for j in range(d)] for i in range(d)]


def _ldexp(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
