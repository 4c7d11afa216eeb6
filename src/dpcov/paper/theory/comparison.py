"""Rows that each approach needs for a distribution: equation (1) and the comparison of Appendix D."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.checks import number, share
from dpcov.paper.theory.bounds import Bound, least_rows
from dpcov.paper.theory.distributions import Distribution
from dpcov.paper.theory.rates import aggregate_rate, recursive_rate
from dpcov.paper.theory.related import brown_rows
from dpcov.paper.theory.sample_size import (
    aggregate_groups,
    aggregate_parameters,
    distribution_rows,
    gaussian_error,
)
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, smallest_size


@dataclass(frozen=True)
class Compared:
    """How many rows one approach needs.

    Attributes
    ----------
    method : str
        As in ``dpcov.methods()``.
    bound : Bound
        With explicit constants, or a rate with hidden constants taken as 1: `Bound.exact` says which.
    """

    method: str
    bound: Bound


def compare(  # noqa: PLR0917
    distribution: Distribution, gamma: float, xi: float, rho: float, epsilon: float, delta: float
) -> tuple[Compared, ...]:
    """Return the rows that each approach needs for the second moment of a distribution.

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

    Notes
    -----
    Sample and algorithm each get an error ``g = sqrt(1 + gamma) - 1``, as in `distribution_rows`. The
    explicit bound of "aggregate" is the paper's Theorem A.6, with groups within g / 2; `dpcov.plan` has the
    library's own. Explicit bounds and rates must not be compared with each other.

    Examples
    --------
    >>> from dpcov import theory
    >>> law = theory.ParetoTimesDirection(10, bound=4.0)
    >>> found = theory.compare(law, gamma=0.1, xi=0.05, rho=0.5, epsilon=1.0, delta=1e-6)
    >>> [(one.method, one.bound.exact) for one in found]  # doctest: +NORMALIZE_WHITESPACE
    [('recursive', True), ('gaussian', True), ('aggregate', True), ('recursive', False), ('aggregate', False),
     ('leverage', False)]
    >>> found[0].bound.rows < found[2].bound.rows
    True
    """
    target, chance, budget = share(gamma, "gamma"), share(xi, "xi"), number(rho, "rho", above=0)
    d, each = distribution.n_columns, math.sqrt(1 + target) - 1
    sample = float(distribution.subsample_size(target, chance))
    least = distribution.least_eigenvalue * (1 - each)

    def one_release(rows: int) -> float:
        radius = distribution.radius_of(rows, chance / 3)
        return gaussian_error(rows, d, budget, radius=radius, least_eigenvalue=least, failure=chance / 3)

    gaussian = Bound(
        max(float(distribution.subsample_size(each, chance / 3)), least_rows(one_release, each)),
        exact=True,
        place="Theorem 3.3, stopping rule",
        formula="max(m(gamma, xi), R^2 (sqrt(2 d) + sqrt(2 ln(2 / xi))) / (gamma sqrt(rho) lambda))",
    )
    recursive = distribution_rows(distribution, target, budget, failure=chance)
    longest = distribution.radius_of(math.ceil(recursive.rows), chance / 4)
    m, _ = smallest_size(
        lambda beta: distribution.subsample_size(LARGEST_ALPHA, beta), LARGEST_ALPHA, longest, least
    )
    return (
        Compared("recursive", recursive),
        Compared("gaussian", gaussian),
        Compared("aggregate", _aggregate(distribution, each, chance, epsilon, delta)),
        Compared(
            "recursive",
            recursive_rate(
                target, d, budget, m=m, sample=sample, failure=chance,
                condition=max(longest / distribution.least_eigenvalue, 3.0),
            ),
        ),
        Compared("aggregate", aggregate_rate(target, sample, d, epsilon)),
        Compared("leverage", brown_rows(target, d, epsilon, delta, leverage=_leverage(distribution))),
    )  # fmt: skip


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
