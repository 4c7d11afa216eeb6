"""Subsamplability: what (m, alpha, beta) means, requires and implies.

A table is (m, alpha, beta)-subsamplable if every random subsample of at least m rows, drawn with
replacement, has a second moment within a factor 1 +- alpha of the table's, in every direction,
with probability at least 1 - beta (Mahpud and Sheffet 2025, Definition 1.1). Formulas of public numbers
only: nothing here sees a row.

Where the paper's formula does not hold, the docstring says so and the function computes what does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from dpcov.checks import choice, count, number, share
from dpcov.core import ArgumentError

LARGEST_ALPHA = 0.5
"""The main theorem asks for alpha at most this."""


class TheoremWarning(UserWarning):
    """Parameters outside the range for which the theorem promises accuracy. Privacy is not affected."""


def bernstein_size(m1: float, m2: float, n_columns: int, alpha: float, beta: float) -> int:
    """Return a subsample size m(alpha, beta) by the matrix Bernstein inequality.

    Parameters
    ----------
    m1 : float
        A bound on the length of ``y = S^-1/2 x``. M1^2 is the largest leverage; at least `n_columns`.
    m2 : float
        A bound on the largest eigenvalue of ``E[|y|^2 y y^T]``.
    n_columns : int
        The dimension d.
    alpha, beta : float
        Any accuracy greater than 0, and the probability of failure.

    Notes
    -----
    Claim 4.2 of the paper, corrected. Bernstein's inequality gives failure with probability at most
    ``2 d exp(-(m alpha^2 / 2) / (M2 + alpha (1 + M1^2) / 3))``, hence

        m = (2 M2 / alpha^2 + 2 (1 + M1^2) / (3 alpha)) ln(2 d / beta)

    for this size and all larger ones. The paper has the *maximum* of the two terms, times ln(4 d / beta),
    which is smaller by a factor of up to 2. That does not follow, and is false: for d = 1 and x^2 = K with
    probability 1/K, else 0, the failure probability at alpha = 3, beta = 1e-6 is 12 times beta (tested).
    """
    d = count(n_columns, "n_columns")
    first, second = number(m1, "m1", above=0), number(m2, "m2", above=0)
    a, b = number(alpha, "alpha", above=0), share(beta, "beta")
    per_log = 2 * second / a**2 + 2 * (1 + first**2) / (3 * a)
    return math.ceil(per_log * math.log(2 * d / b))


def paper_bernstein_size(m1: float, m2: float, n_columns: int, alpha: float, beta: float) -> int:
    """Return m(alpha, beta) as Claim 4.2 of the paper states it: too small, see `bernstein_size`.

    Parameters
    ----------
    m1, m2, n_columns, alpha, beta
        As for `bernstein_size`.
    """
    d = count(n_columns, "n_columns")
    first, second = number(m1, "m1", above=0), number(m2, "m2", above=0)
    a, b = number(alpha, "alpha", above=0), share(beta, "beta")
    return math.ceil(max(2 * second / a**2, 2 * (1 + first**2) / (3 * a)) * math.log(4 * d / b))


def tail_share(m: float, beta: float) -> float:
    """Return the largest share of rows that the tail of an (m, alpha, beta)-subsamplable table can have.

    Parameters
    ----------
    m, beta : float
        Of subsamplability.

    Notes
    -----
    Claim 3.7: ``(beta + beta^2) / m``. Its proof uses ``1 - beta >= exp(-beta - beta^2)``, which fails from
    beta = 0.684 on; beyond, ``-ln(1 - beta) / m`` is returned, which the same argument gives.
    """
    b = share(beta, "beta")
    return min(1.0, max(b + b * b, -math.log1p(-b)) / number(m, "m", at_least=1))


def largest_beta(
    alpha: float, m: float, radius: float, least_eigenvalue: float = 1.0, *, constants: str = "repaired"
) -> float:
    """Return the largest beta for which removing the tail costs at most a share alpha of any direction.

    Parameters
    ----------
    alpha, m : float
        Of subsamplability.
    radius : float
        A bound on the length of a row.
    least_eigenvalue : float, default 1
        Of the second moment. The paper scales it to 1, so its R^2 is ``radius^2 / least_eigenvalue`` here.
    constants : {"repaired", "paper"}
        Which condition.

    Returns
    -------
    float
        1 if there is no condition: when R^2 is at most ``(1 + alpha) m``, no row can be in the tail.

    Notes
    -----
    Theorem 3.3 and Lemma 3.8. Write ``q = R^2 / ((1 + alpha) m)``.

    *paper*: ``alpha / (4 (1 + alpha) log2(q))``; the logarithm is to base 2, as its proof doubles. That proof
    counts k buckets where there are k + 1, and leaves out rows of the tail that are short in the
    direction looked at; its slack covers both if q is at least 4, but not for q near 1.

    *repaired*: the leverage of a random row exceeds ``s (1 + alpha)`` with probability at most
    ``-ln(1 - beta) / floor(s)`` for every s >= m. Summing over s bounds the loss in any direction by
    ``(1 + alpha) (1 + 1/m + ln(q)) (-ln(1 - beta))``, so that

        -ln(1 - beta) <= alpha / ((1 + alpha) (1 + 1/m + ln(q))),

    which allows more than 5 times the paper's beta for large q.
    """
    a = number(alpha, "alpha", above=0, at_most=LARGEST_ALPHA)
    size = number(m, "m", at_least=1)
    squared = number(radius, "radius", above=0) ** 2 / number(least_eigenvalue, "least_eigenvalue", above=0)
    ratio = squared / ((1 + a) * size)
    if ratio <= 1:
        return 1.0
    if check_constants(constants) == "paper":
        return min(1.0, a / (4 * (1 + a) * math.log2(ratio)))
    return -math.expm1(-a / ((1 + a) * (1 + 1 / size + math.log(ratio))))


def smallest_size(
    size_at: Callable[[float], float],
    alpha: float,
    radius: float,
    least_eigenvalue: float = 1.0,
    *,
    constants: str = "repaired",
) -> tuple[int, float]:
    """Return the least m, and its beta, that meet the theorem's condition on beta, which itself depends on m.

    Parameters
    ----------
    size_at : callable
        From beta to a subsample size m(alpha, beta) at this alpha.
    alpha, radius, least_eigenvalue, constants
        As for `largest_beta`.
    """

    def beta_for(m: int) -> float:
        # Where the theorem asks nothing of beta, the tail is empty; any beta below 1 will do.
        return min(largest_beta(alpha, m, radius, least_eigenvalue, constants=constants), 0.5)

    high = 1
    while size_at(beta_for(high)) > high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if size_at(beta_for(middle)) <= middle else (middle, high)
    return high, beta_for(high)


def check_parameters(
    m: float,
    alpha: float,
    *,
    n_rows: int,
    beta: float | None = None,
    radius: float | None = None,
    least_eigenvalue: float | None = None,
    constants: str = "repaired",
) -> None:
    """Raise or warn if parameters are outside the range of the main theorem. No row is looked at.

    Parameters
    ----------
    m, alpha, beta : float
        Of subsamplability. Without `beta` its condition is not checked.
    n_rows : int
        The public number of rows.
    radius, least_eigenvalue : float, optional
        Of the theorem; needed to check `beta`.
    constants : {"repaired", "paper"}
        Which condition on beta.

    Raises
    ------
    ArgumentError
        For alpha beyond 1/2, m beyond `n_rows` and numbers that make no sense: the method is not defined
        there.

    Warns
    -----
    TheoremWarning
        For a beta too large: the method runs and is private, but accuracy is not promised.
    """
    size = number(m, "m", at_least=1)
    rows = count(n_rows, "n_rows")
    accuracy = number(alpha, "alpha", above=0)
    check_constants(constants)
    if accuracy > LARGEST_ALPHA:
        raise ArgumentError(f"alpha must be at most 1/2, as the main theorem asks, got {accuracy:g}.")
    if size > rows:
        raise ArgumentError(
            f"m must be at most the number of rows, {rows}, got {size:g}: a subsample of m rows has to fit. "
            "Use more rows, or a larger alpha or beta, which make m smaller."
        )
    if beta is None:
        return
    chance = share(beta, "beta")
    if radius is None or least_eigenvalue is None:
        raise ArgumentError("beta can be checked only with radius and least_eigenvalue.")
    largest = largest_beta(accuracy, size, radius, least_eigenvalue, constants=constants)
    if chance > largest:
        warnings.warn(
            f"beta={chance:g} is larger than {largest:.3g}, the largest for which the main theorem promises "
            "accuracy with these m, alpha, radius and least_eigenvalue. The result is private all the same.",
            TheoremWarning,
            stacklevel=2,
        )


def check_constants(constants: str) -> str:
    """Return `constants` if it is "paper" or "repaired", or raise an `ArgumentError`."""
    return choice(constants, "constants", ["paper", "repaired"])
