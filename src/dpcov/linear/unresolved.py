"""Which combinations of columns could not be told from noise, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from dpcov.core import Array
from dpcov.linear.frames import number

_TOLD = 3.0
_NEGLIGIBLE = 1e-6
_MOST_TERMS = 8


@dataclass(frozen=True)
class Combination:
    """A combination of columns whose variance is too small to be told from noise.

    Attributes
    ----------
    coefficients : tuple of (str, float)
        Columns and their coefficients, the leading column first with coefficient 1.
    standard_deviation_at_most : float
        An upper bound of its standard deviation, at 95%.
    """

    coefficients: tuple[tuple[str, float], ...]
    standard_deviation_at_most: float

    def __str__(self) -> str:
        (first, _), *rest = self.coefficients
        text = first
        for name, value in rest[: _MOST_TERMS - 1]:
            size = "" if abs(abs(value) - 1) < 0.005 else f"{abs(value):.3g} "
            text += f" {'-' if value < 0 else '+'} {size}{name}"
        return text + (" + ..." if len(rest) >= _MOST_TERMS else "")

    def describe(self) -> str:
        """Return a sentence."""
        bound = number(self.standard_deviation_at_most)
        return f"{self} cannot be told from a constant: its standard deviation is at most {bound}"


def find_unresolved(
    covariance: Array, factor: Array, sigma: float, names: Sequence[str]
) -> list[Combination]:
    """Return the combinations of columns whose variance is less than three times the noise norm.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        Of the columns, released.
    factor : ndarray, shape (m, k)
        Its noise is ``factor @ N @ factor.T``.
    sigma : float
        Of N.
    names : sequence of str
        The columns.
    """
    size = len(names)
    norm = math.sqrt(2 * size) * sigma
    noise_scale = np.linalg.norm(factor, axis=1)
    # Triangular and scaled: products of the factor would square its condition number.
    triangle = qr((factor / noise_scale[:, None]).T, mode="economic")[1]
    scaled = covariance / np.outer(noise_scale, noise_scale)
    half = solve_triangular(triangle, scaled, trans="T")
    white = solve_triangular(triangle, half.T, trans="T")
    values, vectors = np.linalg.eigh((white + white.T) / 2)
    lost = values < told_from_noise(size, sigma)
    if not lost.any():
        return []
    forms = solve_triangular(triangle, vectors[:, lost]).T / noise_scale
    # Tracy-Widom: 19 of 20 noise matrices have a norm below this.
    bound = norm * (1 + 0.73 * size ** (-2 / 3))
    spreads = np.sqrt(np.maximum(np.diag(covariance), bound * noise_scale**2))
    found = []
    for form in _simplify(forms, spreads):
        order, raw = _in_order(form, spreads)
        raw = _shortened(raw, order, covariance, factor, sigma)
        terms = tuple((names[i], float(raw[i])) for i in order if raw[i])
        variance = max(float(raw @ covariance @ raw), 0.0) + bound * float(np.square(raw @ factor).sum())
        found.append(Combination(terms, math.sqrt(variance)))
    # Under large noise several may have come down to the same few columns.
    return list({str(combination): combination for combination in found}.values())


def _shortened(raw: Array, order: Sequence[int], covariance: Array, factor: Array, sigma: float) -> Array:
    """Leave out columns, the least one first, as long as what remains cannot be told from noise by itself."""
    form, left = raw.copy(), len(order)
    with_columns, mapped = covariance @ form, form @ factor
    variance = float(form @ with_columns)
    for i in reversed(order[1:]):
        own = form[i]
        shorter = variance - 2 * own * with_columns[i] + own**2 * covariance[i, i]
        shorter_mapped = mapped - own * factor[i]
        if shorter < told_from_noise(left - 1, sigma) * float(shorter_mapped @ shorter_mapped):
            form[i], left = 0.0, left - 1
            with_columns = with_columns - own * covariance[i]
            variance, mapped = shorter, shorter_mapped
    return form


def told_from_noise(size: int, sigma: float) -> float:
    """Return what a variance must exceed to be told from noise: three times the norm of the noise."""
    return _TOLD * math.sqrt(2 * size) * sigma


def _simplify(forms: Array, spreads: Array) -> Array:
    """Solve for the columns that matter most, so that each form has few of them.

    Returns forms of columns in units of their spreads.
    """
    scaled = forms * spreads
    pivots = qr(scaled, mode="r", pivoting=True)[1][: len(forms)]
    return np.asarray(np.linalg.solve(scaled[:, pivots], scaled), dtype=np.float64)


def _in_order(form: Array, spreads: Array) -> tuple[list[int], Array]:
    """Return which columns matter, the leading one first, and all coefficients relative to it."""
    sizes = np.abs(form) / np.abs(form).max()
    raw = form / spreads
    # Of columns that matter about equally, the one that leaves the others the largest coefficients leads.
    candidates = np.flatnonzero(sizes > 0.9)
    lead = int(candidates[np.argmin(np.round(np.abs(raw[candidates]) / np.abs(raw[candidates]).min(), 6))])
    rest = [int(i) for i in np.argsort(-sizes, kind="stable") if sizes[i] > _NEGLIGIBLE and i != lead]
    raw[[i for i in range(len(raw)) if i != lead and i not in rest]] = 0.0
    return [lead, *rest], raw / raw[lead]
