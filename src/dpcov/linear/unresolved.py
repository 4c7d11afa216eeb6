"""Which combinations of columns lie below the noise, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from dpcov.arrays import Matrix, Vector
from dpcov.laws import least_resolved, noise_norm, rarely_exceeded
from dpcov.tables import number

_NEGLIGIBLE = 1e-6
_MOST_TERMS = 8


@dataclass(frozen=True)
class Combination:
    """A combination of columns whose variance lies below the noise.

    Attributes
    ----------
    coefficients : tuple of (str, float)
        Columns and their coefficients, the leading column first with coefficient 1.
    standard_deviation_at_most : float
        An upper bound of its standard deviation, at 95%, over the rows that were not clipped; infinite where
        noise, or clipped rows, hide even that.
    clipped : bool
        Whether clipped rows may carry all of it, and more than was released.
    apart_from : str
        Which rows may have been clipped, in words: nobody knows what they have of it. Empty if none were.

    Examples
    --------
    >>> from dpcov.linear import Combination
    >>> found = Combination((("departure", 1.0), ("hour", -100.0), ("minute", -1.0)), 0.25)
    >>> print(found)
    departure - 100 hour - minute
    >>> found.describe()
    'departure - 100 hour - minute is below the noise: its standard deviation is at most 0.25'
    """

    coefficients: tuple[tuple[str, float], ...]
    standard_deviation_at_most: float
    clipped: bool = False
    apart_from: str = ""

    def __str__(self) -> str:
        (first, _), *rest = self.coefficients
        text = first
        for name, value in rest[: _MOST_TERMS - 1]:
            size = "" if abs(abs(value) - 1) < 0.005 else f"{abs(value):.3g} "
            text += f" {'-' if value < 0 else '+'} {size}{name}"
        return text + (" + ..." if len(rest) >= _MOST_TERMS else "")

    def describe(self) -> str:
        """Return a sentence without its full stop."""
        if self.clipped:
            return (
                f"{self} may rest on a few rows that were clipped, or on rounding: it may vary much more or "
                "less than was released"
            )
        if math.isinf(self.standard_deviation_at_most):
            return f"{self} is below the noise, however large it is"
        bound = number(self.standard_deviation_at_most)
        besides = f"apart from {self.apart_from}, " if self.apart_from else ""
        return f"{self} is below the noise: {besides}its standard deviation is at most {bound}"


def count_unresolved(covariance: Matrix, factor: Matrix, sigma: float, hidden: float = 0.0) -> int:
    """Return how many independent combinations `find_unresolved` would name, without naming them."""
    least = least_resolved(len(covariance), sigma, hidden)
    return int((_in_noise_units(covariance, factor)[0] < least).sum())


def find_unresolved(
    covariance: Matrix,
    factor: Matrix,
    sigma: float,
    names: Sequence[str],
    hidden: float = 0.0,
    *,
    apart_from: str = "",
) -> list[Combination]:
    """Return the combinations of columns whose variance lies below the noise: a basis of them.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        The released covariance of the columns.
    factor : ndarray, shape (m, k)
        Its noise is ``factor @ N @ factor.T``.
    sigma : float
        The standard deviation of N on its diagonal.
    names : sequence of str
        The names of the columns.
    hidden : float, default 0
        What clipped rows may have of a variance where the noise is N (`dpcov.laws.NoiseLaw.hidden`).
    apart_from : str, default ""
        Which rows may have been clipped (`Combination`).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear.unresolved import find_unresolved
    >>> twice = np.array([[1.0, 2.0], [2.0, 4.0]])
    >>> [str(found) for found in find_unresolved(twice, np.eye(2), 0.01, ("a", "b"))]
    ['b - 2 a']
    """
    size = len(names)
    values, forms = _in_noise_units(covariance, factor)
    lost = values < least_resolved(size, sigma, hidden)
    if not lost.any():
        return []
    bound = rarely_exceeded(size) * noise_norm(size, sigma)
    noise_scale = np.linalg.norm(factor, axis=1)
    spreads = np.sqrt(np.maximum(np.diag(covariance), bound * noise_scale**2))
    found = []
    shorten = _Shortening(covariance, factor, sigma, hidden)
    for pivot, scaled in _simplify(forms[lost] * spreads):
        sizes = np.abs(scaled) / np.abs(scaled).max()
        raw, order = shorten(scaled / spreads, sizes, pivot)
        terms = tuple((names[i], float(raw[i])) for i in order)
        released, scale = max(float(raw @ covariance @ raw), 0.0), float(np.square(raw @ factor).sum())
        # Above the noise, but not above what clipped rows may have: those may be any length.
        clipped = released > least_resolved(size, sigma) * scale
        at_most = math.inf if clipped else math.sqrt(released + bound * scale)
        found.append(Combination(terms, at_most, clipped, apart_from))
    return found


def all_unresolved(names: Sequence[str]) -> list[Combination]:
    """Return every column by itself, of unknown size: what is left where nothing stands above the noise."""
    return [Combination(((name, 1.0),), math.inf) for name in names]


def _in_noise_units(covariance: Matrix, factor: Matrix) -> tuple[Vector, Matrix]:
    """Return variances in coordinates in which noise is white, and the forms of columns that have them."""
    noise_scale = np.linalg.norm(factor, axis=1)
    # Triangular and scaled: products of the factor would square its condition number.
    triangle = qr((factor / noise_scale[:, None]).T, mode="economic")[1]
    scaled = covariance / np.outer(noise_scale, noise_scale)
    half = solve_triangular(triangle, scaled, trans="T")
    white = solve_triangular(triangle, half.T, trans="T")
    values, vectors = np.linalg.eigh((white + white.T) / 2)
    return values, solve_triangular(triangle, vectors).T / noise_scale


def _simplify(scaled: Matrix) -> list[tuple[int, Vector]]:
    """Solve forms for the columns that matter most, one for each, so that each form has few others.

    Returns that column and the form. No other form contains the column, so the forms stay independent
    whatever else is left out of them.
    """
    pivots = qr(scaled, mode="r", pivoting=True)[1][: len(scaled)]
    solved = np.asarray(np.linalg.solve(scaled[:, pivots], scaled), dtype=np.float64)
    return list(zip(map(int, pivots), solved, strict=True))


@dataclass(frozen=True, eq=False)
class _Shortening:
    """Leaves columns out of forms, the least one first, as long as what remains lies below the noise."""

    covariance: Matrix
    factor: Matrix
    sigma: float
    hidden: float

    def __call__(self, form: Vector, sizes: Vector, pivot: int) -> tuple[Vector, list[int]]:
        """Return the coefficients that are left, and their columns, the leading one first; the pivot stays.

        `sizes` tells how much each column of the form matters, at most 1.
        """
        form = np.where((sizes > _NEGLIGIBLE) | (np.arange(len(form)) == pivot), form, 0.0)
        lead = _leading(sizes, form)
        kept = [lead, *(int(i) for i in np.argsort(-sizes, kind="stable") if form[i] and i != lead)]
        with_columns, mapped = self.covariance @ form, form @ self.factor
        variance = float(form @ with_columns)
        for i in [column for column in reversed(kept) if column != pivot]:
            own = form[i]
            shorter = variance - 2 * own * with_columns[i] + own**2 * self.covariance[i, i]
            shorter_mapped = mapped - own * self.factor[i]
            noise = float(shorter_mapped @ shorter_mapped)
            if shorter < least_resolved(len(kept) - 1, self.sigma, self.hidden) * noise:
                form[i] = 0.0
                kept.remove(i)
                with_columns = with_columns - own * self.covariance[i]
                variance, mapped = shorter, shorter_mapped
        return form / form[kept[0]], kept


def _leading(sizes: Vector, form: Vector) -> int:
    """Return which column leads: of those that matter about equally, the one of least coefficient.

    The others then have large coefficients, such as the 100 of ``time - 100 hour``.
    """
    candidates = np.flatnonzero(sizes > 0.9)
    coefficients = np.abs(form[candidates])
    return int(candidates[np.argmin(np.round(coefficients / coefficients.min(), 6))])
