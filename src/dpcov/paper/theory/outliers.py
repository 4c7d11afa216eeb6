"""How many outliers each approach stands (Section 4.2 of the paper).

A share eta of the rows are outliers: ``S = (1 - eta) S_D + eta S_out``.
"""

from __future__ import annotations

import math

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.distributions import Distribution, largest_eigenvalue


def outliers_harmless(inliers: Matrix, outliers: Matrix, fraction: float) -> bool:
    """Whether outliers are small in every direction: ``S_out <= (1 / (7 eta) + 1) S_D`` and eta <= 1/9.

    Parameters
    ----------
    inliers, outliers : ndarray, shape (d, d)
        Second moments S_D, positive definite, and S_out.
    fraction : float
        The share eta of outliers.

    Notes
    -----
    Section 4.2, "Our Work": it makes ``(7/8) S <= S_D <= (9/8) S``. The paper asks besides for an eta of at
    most `tolerated_by_recursion`, to show that the table is subsamplable. But it shows that for subsamples of
    exactly m rows only, and for larger ones it is false: a single outlier that carries 1/8 of a direction
    spoils subsamples of n/10 rows in 1 of 10 cases (tested).

    It is not needed either. If no inlier is in the tail, the rows outside the tail keep at least
    ``(1 - eta) S_D >= (7/8) (1 - eta) S``, which is all that `recursion.md` asks, whatever eta is.
    """
    eta = share(fraction, "fraction")
    base = np.asarray(inliers, dtype=np.float64)
    try:
        np.linalg.cholesky(base)
    except np.linalg.LinAlgError:
        raise ArgumentError("inliers must be positive definite.") from None
    largest = largest_eigenvalue(np.asarray(outliers, dtype=np.float64), base)
    return eta <= 1 / 9 and largest <= 1 / (7 * eta) + 1


def tolerated_by_recursion(m: float, beta: float) -> float:
    """Return the largest share of outliers for which a subsample is clean with probability 1 - beta / 2.

    Parameters
    ----------
    m : float
        The subsample size m(1/3, beta / 2) of the inliers. (The paper takes alpha = 1/2 here. But a
        subsample must be within 1/2 of S, and S is only within 1/8 of S_D.)
    beta : float
        Of the main theorem.

    Notes
    -----
    Section 4.2, "Our Work": ``eta = O(beta / m)``; exactly, ``1 - (1 - beta / 2)^(1 / m)``. See
    `outliers_harmless` for what it is worth.
    """
    return -math.expm1(math.log1p(-share(beta, "beta") / 2) / number(m, "m", at_least=1))


def tolerated_by_aggregate(m: float) -> float:
    """Return the largest share of outliers for which most subsamples of m rows are clean.

    Parameters
    ----------
    m : float
        The subsample size m(gamma, xi) of the inliers at the *target* accuracy.

    Notes
    -----
    Section 4.2, "Subsample and Aggregate": ``(1 - eta)^m > 1/2``. Algorithm 3 needs more: an average
    agreement of 0.8 takes a share of clean groups c with c^2 >= 0.8, that is ``(1 - eta)^m >= 0.895``.
    """
    return -math.expm1(math.log(0.5) / number(m, "m", at_least=1))


def tolerates_more_below(distribution: Distribution, beta: float, failure: float) -> float:
    """Return the error below which the recursion tolerates more outliers than aggregation does.

    Parameters
    ----------
    distribution : Distribution
        Of the inliers.
    beta : float
        Of the main theorem: it depends on the radius and the least eigenvalue, not on the error.
    failure : float
        The paper's xi.

    Notes
    -----
    Section 4.2. Aggregation needs most groups of m(gamma, xi) rows to be clean, which get larger as gamma
    gets smaller; the recursion a subsample of m(1/3, beta / 2) rows, as the paper has it. 1 if it tolerates
    more at any error.

    Examples
    --------
    >>> from dpcov import theory
    >>> 0.01 < theory.tolerates_more_below(theory.log_spaced_gaussian(10, 1e6), 0.03, 0.05) < 0.1
    True
    """
    recursion = tolerated_by_recursion(distribution.subsample_size(1 / 3, share(beta, "beta") / 2), beta)
    low, high = 1e-9, 1.0
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        aggregation = tolerated_by_aggregate(distribution.subsample_size(middle, failure))
        low, high = (middle, high) if recursion > aggregation else (low, middle)
    return high


def tolerated_by_learner(rows: float, failure: float) -> float:
    """Return the largest share of outliers for which a private learner's subsample is clean.

    Parameters
    ----------
    rows : float
        How many rows m(gamma, xi, eps, delta) the learner needs.
    failure : float
        The probability xi with which an outlier may be among them.

    Notes
    -----
    Section 4.2, "A Private Learner": ``eta = O(xi / m)``; exactly, ``1 - (1 - xi)^(1 / m)``.
    """
    return -math.expm1(math.log1p(-share(failure, "failure")) / number(rows, "rows", at_least=1))


def tolerated_by_leverage(n_rows: float, epsilon: float) -> float:
    """Return the order of the largest share of outliers that Brown et al. (2023) stand: a rate.

    Parameters
    ----------
    n_rows : float
        The number of rows.
    epsilon : float
        The guarantee.

    Notes
    -----
    Section 4.2: their count of outliers fails beyond ``O(1 / eps)``, so ``eta = O(1 / (eps n))``,
    constant 1 here.
    """
    return min(1.0, 1 / (number(epsilon, "epsilon", above=0) * number(n_rows, "n_rows", at_least=1)))
