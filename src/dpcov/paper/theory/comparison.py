"""Rows that each approach needs for a distribution: equation (1) and the comparison of Appendix D."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.checks import number, share
from dpcov.paper.theory.bounds import Bound, least_rows
from dpcov.paper.theory.distributions import Distribution, Gaussian
from dpcov.paper.theory.prediction import whitening_error
from dpcov.paper.theory.rates import aggregate_rate, recursive_rate
from dpcov.paper.theory.related import (
    brown_rows,
    exponential_rows,
    one_release_rows,
    preconditioning_rows,
    unbounded_rows,
)
from dpcov.paper.theory.sample_size import (
    aggregate_groups,
    aggregate_parameters,
    distribution_rows,
    gaussian_error,
)
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, smallest_size

THEOREM = "theorem"
CALIBRATED = "calibrated on benchmarks"
RATE = "rate only"
UNKNOWN = "nothing known"


@dataclass(frozen=True)
class Compared:
    """How many rows one method needs.

    Attributes
    ----------
    method : str
        As in ``dpcov.methods()``.
    rows : float
        NaN if nothing is known.
    basis : {"theorem", "calibrated on benchmarks", "rate only", "nothing known"}
        A guarantee with explicit constants, a typical number that benchmarks confirm, or a rate whose hidden
        constants are taken as 1: only how it grows means anything.
    place : str
        Where it is stated; why nothing is known.
    formula : str
        In words or symbols.
    """

    method: str
    rows: float
    basis: str
    place: str
    formula: str


def compare(  # noqa: PLR0917
    distribution: Distribution, gamma: float, xi: float, rho: float, epsilon: float, delta: float
) -> tuple[Compared, ...]:
    """Return the rows that each method needs for the second moment of a distribution.

    Parameters
    ----------
    distribution : Distribution
        Of the paper's Appendix D, or another.
    gamma : float
        The relative error against the distribution's second moment, below 1.
    xi : float
        The probability with which it may be larger.
    rho : float
        The budget of methods that are zCDP.
    epsilon, delta : float
        The guarantee of the others. It is the caller's to make the two comparable.

    Returns
    -------
    tuple of Compared
        Every method that the library runs: theorems first, then rates. "recursive" and "aggregate" stand
        there with both.

    Notes
    -----
    Sample and algorithm each get an error ``g = sqrt(1 + gamma) - 1``, as in `distribution_rows`. The
    explicit bound of "aggregate" is the paper's Theorem A.6, with groups within g / 2; `dpcov.plan` has the
    library's own. Nothing here may be compared with a line of another basis. No line is below the rows that
    stand for the distribution, m(gamma, xi).

    Examples
    --------
    >>> from dpcov import theory
    >>> law = theory.ParetoTimesDirection(10, bound=4.0)
    >>> found = theory.compare(law, gamma=0.1, xi=0.05, rho=0.5, epsilon=1.0, delta=1e-6)
    >>> [one.method for one in found if one.basis == "theorem"]
    ['recursive', 'gaussian', 'aggregate']
    >>> found[1].rows < found[3].rows
    True
    """
    target, chance, budget = share(gamma, "gamma"), share(xi, "xi"), number(rho, "rho", above=0)
    d, each = distribution.n_columns, math.sqrt(1 + target) - 1
    number(epsilon, "epsilon", above=0)
    share(delta, "delta")
    recursive = distribution_rows(distribution, target, budget, failure=chance)
    longest = distribution.radius_of(math.ceil(min(recursive.rows, 1e18)), chance / 4)
    least, sample = distribution.least_eigenvalue, float(distribution.subsample_size(target, chance))
    m, _ = smallest_size(
        lambda beta: distribution.subsample_size(LARGEST_ALPHA, beta),
        LARGEST_ALPHA,
        longest,
        least * (1 - each),
    )

    def rate(method: str, bound: Bound | None) -> Compared:
        if bound is None:
            return Compared(method, math.nan, UNKNOWN, "it assumes Gaussian rows", "")
        return Compared(method, max(sample, bound.rows), RATE, bound.place, bound.formula)

    ratio, eigenvalues = longest**2 / least, distribution.second_moment().trace() / least
    course = recursive_rate(
        target, d, budget, m=m, sample=sample, failure=chance, condition=max(longest / least, 3.0)
    )
    one_release = one_release_rows(target, d, budget, ratio)
    normal = isinstance(distribution, Gaussian)
    condition = distribution.eigenvalues[-1] / least
    known_scale = preconditioning_rows(target, d, budget, condition) if normal else None
    return (
        _whitening(distribution, each, chance, budget),
        _theorem("recursive", recursive),
        _theorem("gaussian", _gaussian(distribution, each, chance, budget)),
        _theorem("aggregate", _aggregate(distribution, each, chance, epsilon, delta)),
        rate("recursive", course),
        rate("aggregate", aggregate_rate(target, sample, d, epsilon)),
        rate("leverage", brown_rows(target, d, epsilon, delta, leverage=_leverage(distribution))),
        rate("separate", one_release),
        rate("adaptive", one_release),
        rate("exponential", exponential_rows(target, d, budget, ratio, eigenvalues)),
        rate("coinpress", known_scale),
        rate("preconditioning", known_scale),
        rate("unbounded", unbounded_rows(target, d, epsilon, delta) if normal else None),
    )


def _theorem(method: str, bound: Bound) -> Compared:
    return Compared(method, bound.rows, THEOREM, bound.place, bound.formula)


def _whitening(distribution: Distribution, error: float, chance: float, rho: float) -> Compared:
    """Predict the default, with a sample that stands for the distribution."""
    d = distribution.n_columns

    def error_at(rows: int) -> float:
        return whitening_error(rows, d, rho, distribution.leverage_beyond)

    rows = max(float(distribution.subsample_size(error, chance)), least_rows(error_at, error))
    return Compared(
        "whitening", rows, CALIBRATED, "benchmarks/results/paper.csv",
        "max(m(gamma, xi), q sqrt(2 d) / (gamma sqrt(0.85 rho))), q a leverage that few rows exceed",
    )  # fmt: skip


def _gaussian(distribution: Distribution, error: float, chance: float, rho: float) -> Bound:
    """One release of rows in a ball that holds them all."""
    least = distribution.least_eigenvalue * (1 - error)

    def one_release(rows: int) -> float:
        radius = distribution.radius_of(rows, chance / 3)
        return gaussian_error(
            rows, distribution.n_columns, rho, radius=radius, least_eigenvalue=least, failure=chance / 3
        )

    return Bound(
        max(float(distribution.subsample_size(error, chance / 3)), least_rows(one_release, error)),
        exact=True,
        place="Theorem 3.3, stopping rule",
        formula="max(m(gamma, xi), R^2 (sqrt(2 d) + sqrt(2 ln(2 / xi))) / (gamma sqrt(rho) lambda))",
    )


def _aggregate(
    distribution: Distribution, error: float, chance: float, epsilon: float, delta: float
) -> Bound:
    """Theorem A.6 for a sample of the distribution: groups within half of the error, and the sample too."""
    alpha, d = error / 2, distribution.n_columns
    inner, small = aggregate_parameters(epsilon, delta)
    groups = aggregate_groups(d, inner, small, alpha=alpha, failure=chance / 2)
    m = distribution.subsample_size(alpha, chance / (4 * groups))
    sample = distribution.subsample_size(error, chance / 2)
    return Bound(
        float(max(groups * m, sample)),
        exact=True,
        place="Theorem A.6, last term doubled",
        formula="max(m(gamma, xi), groups m(gamma / 2, xi / (2 groups)))",
    )


def _leverage(distribution: Distribution) -> float:
    if not math.isfinite(distribution.m1):
        # About that of most rows, as for a Gaussian.
        return float(distribution.n_columns)
    return distribution.m1**2
