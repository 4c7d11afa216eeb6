"""Regressors that are told bounds: sufficient statistics with noise and an adaptive ridge, plain and boosted.

*AdaSSP*: Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction and
estimation in unbounded domain" (UAI 2018). The Gram matrix of the predictors and their products with the
target get noise, and a ridge makes up for the noise where the Gram matrix does not exceed it. *Boosted*:
Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu, "Improved differentially private regression via gradient
boosting" (2023). The same Gram matrix serves many rounds, each of which fits what earlier ones left;
residuals are clipped, so that little noise hides them, and the ridge is worn off.

*Assume* values within public bounds. *Deviations*, all for the better: columns are brought to ``[-1, 1]`` by
their bounds; a row is replaced, not added or removed, as everywhere here; the least eigenvalue is that of the
noisy matrix, which the paper spends a third of the budget on; negative eigenvalues, which only noise has,
become zero; the ridge is the norm that the noise has, not a bound on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.checks import choice, count, number, share
from dpcov.core import ArgumentError, Curator
from dpcov.laws import nearest_positive_semidefinite, noise_norm
from dpcov.rivals.queries import SLOPE_UNITS, BoundedGram, BoundedProducts, Bounds, NoisyMoments

_GRAM_SHARE = Fraction(1, 2)
_MOST_ROUNDS = 1000
# What a query takes in all. Beyond it slopes are noise: a target of at most 1 hardly needs them.
_LARGEST_SLOPES = float(1 << 18)


@dataclass(frozen=True, eq=False)
class BoundedFit:
    """A regression by a method that is told bounds.

    Attributes
    ----------
    on : tuple of str
        The predictors.
    coefficients : ndarray
        One for each predictor, and the intercept last.
    ridge : float
        The penalty, for columns that are brought to ``[-1, 1]``.
    """

    on: tuple[str, ...]
    coefficients: Vector
    ridge: float


def fit_adassp(curator: Curator, *, target: str, bounds: Mapping[str, tuple[float, float]]) -> BoundedFit:
    """Regress a column on all others by AdaSSP.

    Parameters
    ----------
    curator : Curator
        Of a table with a constant column. All of its remaining budget is spent: half of it on the Gram
        matrix, half on the products with the target.
    target : str
        The column to explain.
    bounds : mapping
        Of every column, a lower and an upper end that do not come from the rows.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, SeededBits, resolve_budget
    >>> from dpcov.rivals.adassp import fit_adassp
    >>> from dpcov.sources import ArraySource
    >>> height = np.random.default_rng(0).normal(170, 10, size=20_000)
    >>> table = ArraySource(np.column_stack([height, 0.6 * height - 40]))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(table, Budget(resolve_budget(rho=1)), seeded, constant=True)
    >>> fit = fit_adassp(curator, target="x1", bounds={"x0": (130, 210), "x1": (30, 90)})
    >>> fit.on, fit.coefficients[:1].round(1)
    (('x0',), array([0.6]))
    """
    told = _told(curator, target, bounds)
    half = curator.remaining.rho * _GRAM_SHARE
    gram, products = curator.ask(
        BoundedGram(told, half, "products of the predictors"),
        BoundedProducts(
            told, [0] * len(told.lower), 1.0, curator.remaining.rho - half, "products with the target"
        ),
    )
    inverse, ridge = _penalised_inverse(gram)
    return _to_columns(curator, told, inverse @ products.values, ridge)


def fit_boosted_adassp(
    curator: Curator,
    *,
    target: str,
    bounds: Mapping[str, tuple[float, float]],
    rounds: int = 20,
    clip: float = 0.25,
    gram_share: float = 0.3,
) -> BoundedFit:
    """Regress a column on all others by boosted AdaSSP.

    Parameters
    ----------
    curator : Curator
        Of a table with a constant column. All of its remaining budget is spent.
    target : str
        The column to explain.
    bounds : mapping
        Of every column, a lower and an upper end that do not come from the rows.
    rounds : int, default 20
        How many fits of what is left.
    clip : float, default 0.25
        Residuals are clipped to this share of half the distance of the target's bounds.
    gram_share : float, default 0.3
        The share of the budget for the Gram matrix; the rounds have equal parts of the rest.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, SeededBits, resolve_budget
    >>> from dpcov.rivals.adassp import fit_boosted_adassp
    >>> from dpcov.sources import ArraySource
    >>> height = np.random.default_rng(0).normal(170, 10, size=20_000)
    >>> table = ArraySource(np.column_stack([height, 0.6 * height - 40]))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(table, Budget(resolve_budget(rho=1)), seeded, constant=True)
    >>> fit = fit_boosted_adassp(curator, target="x1", bounds={"x0": (130, 210), "x1": (30, 90)})
    >>> fit.coefficients[:1].round(2)
    array([0.6])
    """
    told = _told(curator, target, bounds)
    rounds = count(rounds, "rounds", at_most=_MOST_ROUNDS)
    kept = number(clip, "clip", above=0, at_most=1)
    whole = curator.remaining.rho
    for_gram = whole * Fraction(share(gram_share, "gram_share"))
    gram = curator.ask(BoundedGram(told, for_gram, "products of the predictors"))
    inverse, ridge = _penalised_inverse(gram)
    slopes = np.zeros(len(told.lower), dtype=np.int64)
    for _ in range(rounds):
        part = (whole - for_gram) / rounds
        products = curator.ask(
            BoundedProducts(told, slopes.tolist(), kept, part, "products with the residuals")
        )
        slopes += _whole_units(inverse @ products.values, slopes)
    return _to_columns(curator, told, slopes / SLOPE_UNITS, ridge)


def _told(curator: Curator, target: str, bounds: Mapping[str, tuple[float, float]]) -> Bounds:
    """Return the bounds in the order of the table's columns, checked."""
    choice(target, "target", curator.columns, kind="column ")
    missing = [name for name in curator.columns if name not in bounds]
    if missing:
        raise ArgumentError(
            f"bounds lacks {', '.join(missing)}: give a lower and an upper end for each column."
        )
    ends = [bounds[name] for name in curator.columns]
    lower, upper = (tuple(number(end[side], "a bound") for end in ends) for side in (0, 1))
    return Bounds(lower, upper, curator.columns.index(target))


def _penalised_inverse(gram: NoisyMoments) -> tuple[Matrix, float]:
    """Return ``(G + ridge I)^-1`` and the ridge: what the least eigenvalue lacks to stand above the noise."""
    matrix = nearest_positive_semidefinite(gram.values)
    d = len(matrix)
    least = float(np.linalg.eigvalsh(matrix)[0])
    ridge = max(0.0, noise_norm(d, gram.sigma) - least)
    return np.asarray(np.linalg.inv(matrix + ridge * np.eye(d)), dtype=np.float64), ridge


def _whole_units(step: Vector, slopes: np.ndarray) -> np.ndarray:
    """Return a step in units of slopes, shortened where it would lead beyond what a query takes."""
    room = max(_LARGEST_SLOPES - float(np.abs(slopes).sum()) / SLOPE_UNITS, 0.0)
    factor = min(1.0, room / max(float(np.abs(step).sum()), 1e-300))
    return np.rint(step * factor * SLOPE_UNITS).astype(np.int64)


def _to_columns(curator: Curator, told: Bounds, slopes: Vector, ridge: float) -> BoundedFit:
    """Return the fit in the units of the table's columns."""
    centres, halves = told.centres, told.halves
    others = [place for place in range(len(told.lower)) if place != told.target]
    own = slopes[:-1] * halves[told.target] / halves[others]
    intercept = centres[told.target] + halves[told.target] * slopes[-1] - own @ centres[others]
    return BoundedFit(tuple(curator.columns[i] for i in others), np.append(own, intercept), ridge)
