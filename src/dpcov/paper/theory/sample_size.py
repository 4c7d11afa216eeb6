"""How many rows the paper's other algorithms need, every constant explicit.

Mahpud and Sheffet (2025): one Gaussian release (the last step of Algorithm 2), subsample and aggregate
(Algorithm 3), the least eigenvalue (Algorithm 4), and equation (1), which adds the rows that a sample
needs to stand for its distribution. The recursive algorithm itself is in `recursion`, rates of other work
in `related`, rates without constants in `rates`.
"""

from __future__ import annotations

import math

from dpcov.checks import count, number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.bounds import Bound, least_rows, whole_rows
from dpcov.paper.theory.distributions import Distribution
from dpcov.paper.theory.recursion import noise_norm_at_most, recursive_error
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, smallest_size

GAUSSIAN_NORM = 2.0
"""Algorithm 3's constant C: a d x d Gaussian matrix has norm at most ``C (sqrt(d) + sqrt(ln(4 / xi)))`` with
probability 1 - xi / 2, as it is at most ``2 sqrt(d) + sqrt(2 ln(2 / xi))`` (Davidson and Szarek 2001)."""

_OCCUPIED_BUCKETS = 3


def gaussian_error(
    n_rows: int,
    n_columns: int,
    rho: float,
    *,
    radius: float,
    least_eigenvalue: float = 1.0,
    failure: float = 0.05,
) -> float:
    """Return the relative error that one Gaussian release of rows in a known ball guarantees.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table.
    rho : float
        The budget.
    radius : float
        A bound on the length of a row; no row is clipped.
    least_eigenvalue : float, default 1
        Of the second moment.
    failure : float, default 0.05
        The probability with which it may be larger.

    Notes
    -----
    ``R^2 (sqrt(2 d) + sqrt(2 ln(2 / xi))) / (n sqrt(rho) lambda)``: the stopping rule in the proof of
    Theorem 3.3, and Analyze Gauss (Dwork et al. 2014) with the constant for replacing one row.
    """
    squared = number(radius, "radius", above=0) ** 2 / number(least_eigenvalue, "least_eigenvalue", above=0)
    scale = count(n_rows, "n_rows") * math.sqrt(number(rho, "rho", above=0))
    return squared * noise_norm_at_most(n_columns, failure) / scale


def gaussian_rows(
    error: float,
    n_columns: int,
    rho: float,
    *,
    radius: float,
    least_eigenvalue: float = 1.0,
    failure: float = 0.05,
) -> Bound:
    """Return how many rows one Gaussian release needs for a relative error.

    Parameters
    ----------
    error : float
        The target.
    n_columns, rho, radius, least_eigenvalue, failure
        As for `gaussian_error`.
    """
    one = gaussian_error(1, n_columns, rho, radius=radius, least_eigenvalue=least_eigenvalue, failure=failure)
    return Bound(
        rows=whole_rows(one / number(error, "error", above=0)),
        exact=True,
        place="Theorem 3.3, stopping rule",
        formula="R^2 (sqrt(2 d) + sqrt(2 ln(2 / xi))) / (gamma sqrt(rho) lambda)",
    )


def aggregate_parameters(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the parameters with which Algorithm 3 as a whole is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The whole guarantee.

    Notes
    -----
    Lemma A.5: with parameters (e, t) the algorithm is ``(2 e, 4 exp(e) t)``-DP.
    """
    half = number(epsilon, "epsilon", above=0) / 2
    return half, share(delta, "delta") / (4 * math.exp(half))


def masking_scale(
    alpha: float, n_columns: int, failure: float, *, norm_constant: float = GAUSSIAN_NORM
) -> float:
    """Return eta, the scale of the noise in Algorithm 3.

    Parameters
    ----------
    alpha : float
        Of subsamplability.
    n_columns : int
        The dimension d.
    failure : float
        The paper's xi. (Line 17 of Algorithm 3 has beta in its place; the lemma has xi.)
    norm_constant : float, optional
        The paper's C.
    """
    d = count(n_columns, "n_columns")
    spread = math.sqrt(d) + math.sqrt(math.log(4 / share(failure, "failure")))
    return number(alpha, "alpha", above=0) / (48 * number(norm_constant, "norm_constant", above=0) * spread)


def aggregate_groups(
    n_columns: int,
    epsilon: float,
    delta: float,
    *,
    alpha: float,
    failure: float = 0.05,
    norm_constant: float = GAUSSIAN_NORM,
) -> int:
    """Return how many groups of m rows Algorithm 3 needs: for privacy, not only for accuracy.

    Parameters
    ----------
    n_columns : int
        The dimension d.
    epsilon, delta : float
        The algorithm's parameters; the whole is ``(2 epsilon, 4 exp(epsilon) delta)``-DP.
    alpha : float
        Of subsamplability; the result is within 2 alpha.
    failure : float, default 0.05
        The paper's xi.
    norm_constant : float, optional
        The paper's unspecified C.

    Notes
    -----
    Theorems 3.1 and A.6: 800 times the largest of five terms. The last one, for passing the test of
    agreement, is twice the paper's here: truncated Laplace noise of bound B lowers the score 1 to 1 - B,
    and the test asks for 0.8 + B, so B must be at most 0.1, where the paper's constant leaves 0.2.
    """
    d = count(n_columns, "n_columns")
    e, t = number(epsilon, "epsilon", above=0), share(delta, "delta")
    eta = masking_scale(alpha, d, failure, norm_constant=norm_constant)
    logarithm = math.log(2 / t)
    largest = max(
        math.sqrt(2 * d * (d + 1 / eta**2) / e),
        8 * d * math.sqrt(logarithm) / e,
        8 * logarithm / e,
        12 * math.sqrt(d * logarithm) / (e * eta),
        math.log1p(math.expm1(e) / (2 * t)) / (40 * e),
    )
    return math.ceil(800 * largest)


def aggregate_rows(
    m: int,
    n_columns: int,
    epsilon: float,
    delta: float,
    *,
    alpha: float,
    failure: float = 0.05,
    norm_constant: float = GAUSSIAN_NORM,
) -> Bound:
    """Return how many rows Algorithm 3 (subsample and aggregate) needs.

    Parameters
    ----------
    m : int
        Of subsamplability at `alpha` and a beta of at most ``failure / (2 groups)``.
    n_columns, epsilon, delta, alpha, failure, norm_constant
        As for `aggregate_groups`.
    """
    groups = aggregate_groups(
        n_columns, epsilon, delta, alpha=alpha, failure=failure, norm_constant=norm_constant
    )
    return Bound(
        rows=float(groups * count(m, "m")),
        exact=True,
        place="Theorems 3.1 and A.6, last term doubled",
        formula="800 m max(sqrt(2 d (d + 1/eta^2) / eps), 8 d sqrt(ln(2/delta)) / eps, 8 ln(2/delta) / eps, "
        "12 sqrt(d ln(2/delta)) / (eps eta), ln(1 + (e^eps - 1) / (2 delta)) / (40 eps))",
    )


def eigenvalue_rows(m: int, epsilon: float, delta: float, *, failure: float = 0.05) -> Bound:
    """Return how many rows Algorithm 4 needs to release a least eigenvalue.

    Parameters
    ----------
    m : int
        Of subsamplability at a beta of at most ``failure / (2 groups)``.
    epsilon, delta : float
        The guarantee of the stability-based histogram.
    failure : float, default 0.05
        The probability with which nothing is released or the result is off.

    Notes
    -----
    Theorem B.3 with its constant, for the library's histogram: discrete Laplace noise of scale 2 /
    epsilon, a bucket released from ``1 + t`` on with ``P[noise >= t] <= delta / 2``. The groups'
    eigenvalues fill at most three buckets, not two as the paper says (their ratio can be ``(1 + alpha) /
    (1 - alpha)``, a bucket's is ``1 / (1 - alpha)``), so one of them holds a third. The released value
    lies between ``(1 - alpha)^2`` and ``1 + alpha`` times the least eigenvalue (the paper has ``1 -
    alpha``: the lower end of the bucket is lower still); divided by 1 + alpha it is a lower bound on it.
    """
    e, t, chance = number(epsilon, "epsilon", above=0), share(delta, "delta"), share(failure, "failure")
    ratio = math.exp(-e / 2)
    threshold = max(1, math.ceil(math.log(2 / (t * (1 + ratio))) * 2 / e))
    below = max(0, math.ceil(math.log(2 / (chance * (1 + ratio))) * 2 / e) - 1)
    groups = _OCCUPIED_BUCKETS * (1 + threshold + below)
    return Bound(
        rows=float(groups * count(m, "m")),
        exact=True,
        place="Theorem B.3",
        formula="3 m (1 + t + s), t = ceil((2/eps) ln(2 / (delta (1 + e^(-eps/2))))), "
        "s = the same with xi for delta, less 1",
    )


def distribution_rows(
    distribution: Distribution,
    error: float,
    rho: float,
    *,
    failure: float = 0.05,
    m: float | None = None,
    constants: str = "repaired",
) -> Bound:
    """Return how many rows drawn from a distribution give its second moment through the recursive algorithm.

    Parameters
    ----------
    distribution : Distribution
        Ellipsoid, Pareto times or beside a direction, Gaussian, or with outliers (then the mixture's
        second moment).
    error : float
        The relative error against the distribution's second moment.
    rho : float
        The budget.
    failure : float, default 0.05
        A quarter each for the sample, for rows beyond the radius (Gaussian only), and a half for the
        algorithm.
    m : float, optional
        The subsample size told to the algorithm; by default m(1/2, beta) with the largest beta allowed.
    constants : {"repaired", "paper"}
        Of the recursive algorithm.

    Notes
    -----
    Equation (1), with its constants. Sample and algorithm each get an error ``g = sqrt(1 + error) - 1``,
    whose factors multiply to 1 + error. For a bounded distribution no row is in the tail: leverages in the
    sample are at most ``M1^2 / (1 - g)``, below ``m (1 + alpha)``. The same holds for Gaussian rows, for any
    number of rows in practice. So the bound is about the whole second moment, and does not rest on the
    *sample* being subsamplable, which the paper takes for granted. It also means that a much smaller m will
    do: any from ``M1^2 / (1.5 (1 - g))`` on.
    """
    target, budget = number(error, "error", above=0), number(rho, "rho", above=0)
    part = share(failure, "failure") / 4
    each = math.sqrt(1 + target) - 1
    if each >= 1:
        raise ArgumentError(f"error must be below 3, got {target:g}.")
    least = distribution.least_eigenvalue * (1 - each)

    def error_at(rows: int) -> float:
        radius = distribution.radius_of(rows, part)
        size = float(
            smallest_size(
                lambda beta: distribution.subsample_size(LARGEST_ALPHA, beta),
                LARGEST_ALPHA,
                radius,
                least,
                constants=constants,
            )[0]
            if m is None
            else m
        )
        return recursive_error(
            rows,
            distribution.n_columns,
            budget,
            m=size,
            alpha=LARGEST_ALPHA,
            radius=radius,
            least_eigenvalue=least,
            failure=2 * part,
            constants=constants,
        )

    sample = float(distribution.subsample_size(each, part))
    return Bound(
        rows=max(sample, least_rows(error_at, each)),
        exact=True,
        place="Equation (1) with Theorem 3.3",
        formula="max(m(gamma, xi), rows of the recursive algorithm with m(1/2, beta))",
    )
