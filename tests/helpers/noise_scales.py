"""Variances at which the discrete Gaussian is checked against its exact law."""

from __future__ import annotations

from fractions import Fraction

SMALL = [
    Fraction(1, 4),
    Fraction(1),
    Fraction(2),
    Fraction(10),
    Fraction(337, 10),
    Fraction(1000),
    Fraction(5000),
]
