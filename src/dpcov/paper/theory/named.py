"""The distributions of the paper by name, with any condition number."""

from __future__ import annotations

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import choice, count, number
from dpcov.core import ArgumentError
from dpcov.paper.theory.distributions import Distribution, EllipsoidSurface
from dpcov.paper.theory.mixtures import LinearImage, log_spaced_gaussian
from dpcov.paper.theory.pareto import PARETO_BOUND, PARETO_SHAPE, ParetoBesideDirection, ParetoTimesDirection

DISTRIBUTIONS = ("ellipsoid", "pareto", "pareto-beside", "gaussian")
"""Appendix D.1, both of Appendix D.2, and normal rows."""

HEAVY = ("pareto", "pareto-beside")
"""Those that have a shape and a bound."""

_MOST_CONDITION = 1e100


def named_distribution(
    name: str,
    n_columns: int,
    *,
    condition: float = 1.0,
    shape: float | None = None,
    bound: float | None = None,
) -> Distribution:
    """Return a distribution of the paper whose eigenvalues go from 1 to 1 / `condition` in equal ratios.

    Parameters
    ----------
    name : {"ellipsoid", "pareto", "pareto-beside", "gaussian"}
        Appendix D.1; a truncated Pareto length times, or beside, a uniform direction (Appendix D.2); normal.
    n_columns : int
        The dimension d; at least 2 for "pareto-beside".
    condition : float, default 1
        Largest over least eigenvalue of the second moment. Rows are mapped linearly to have it, which leaves
        M1, M2 and m(alpha, beta) as they are.
    shape : float, optional
        Of the Pareto law: its density is proportional to lambda^-(shape + 1). That of the paper has 5.
    bound : float, optional
        Where the Pareto law ends, B; by default 10, as in the paper.

    Examples
    --------
    >>> from dpcov import theory
    >>> law = theory.named_distribution("pareto", 3, condition=100.0, shape=4.0)
    >>> [f"{value:.2g}" for value in law.second_moment().diagonal()]
    ['1', '0.1', '0.01']
    """
    choice(name, "distribution", DISTRIBUTIONS)
    d, spread = (
        count(n_columns, "n_columns"),
        number(condition, "condition", at_least=1, at_most=_MOST_CONDITION),
    )
    if name not in HEAVY and (shape is not None or bound is not None):
        given = "shape" if shape is not None else "bound"
        raise ArgumentError(f"{given} is for {' and '.join(HEAVY)}; {name} has none: leave it out.")
    if name == "gaussian":
        return log_spaced_gaussian(d, spread)
    values = np.logspace(0, -np.log10(spread), d)
    if name == "ellipsoid":
        return EllipsoidSurface(d * np.diag(values))
    end, tail = PARETO_BOUND if bound is None else bound, PARETO_SHAPE if shape is None else shape
    if name == "pareto":
        return _stretched(ParetoTimesDirection(d, end, tail), values)
    if d == 1:
        raise ArgumentError("n_columns must be at least 2 for pareto-beside: a length and a direction.")
    return _stretched(ParetoBesideDirection(d - 1, end, tail), values)


def _stretched(base: Distribution, values: Array) -> Distribution:
    """Return the linear image that has these eigenvalues; the second moment of `base` is diagonal."""
    return LinearImage(base, np.diag(np.sqrt(values / base.second_moment().diagonal())))
