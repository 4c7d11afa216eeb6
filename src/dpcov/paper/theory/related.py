"""Rates of other work, for `dpcov.plan` and `compare`: how rows grow, with every hidden constant taken as 1.

None of them is a promise (`Bound.exact` is False). Most have no practical algorithm. Those stated for
total variation learn a Gaussian's covariance in relative Frobenius norm, which is more than the spectral
error here.

How rows grow with the dimension is as the works' abstracts, or later ones about them, state it. The
powers of error, epsilon and delta of Aden-Ali, Kothari, Alabi and Kamath (2022) were not checked against
their theorems; the rate of Amin is derived here.
"""

from __future__ import annotations

import math

from dpcov.checks import count, number, positive, share
from dpcov.paper.theory.bounds import Bound


def brown_rows(
    error: float, n_columns: int, epsilon: float, delta: float, *, leverage: float | None = None
) -> Bound:
    """Return the rate of Brown, Hopkins and Smith (2023) for tables of bounded leverage.

    Parameters
    ----------
    error, epsilon, delta : float
        Relative spectral error against the table's own second moment, and the guarantee.
    n_columns : int
        The dimension d.
    leverage : float, optional
        The largest leverage; d by default, about that of Gaussian rows. An outlier's can be R^2 / lambda.

    Notes
    -----
    Section 4.2 of the paper: an overhead of ``O(leverage sqrt(d) / eps)``; for sub-Gaussian rows d^(3/2),
    as in the abstract of the work itself. More than O(1/eps) rows beyond the bound make it fail.
    """
    gamma, d, eps, log = _checked(error, n_columns, epsilon, delta)
    largest = float(d) if leverage is None else positive(leverage, "leverage")
    rows = largest * math.sqrt(d * log) / (eps * gamma) + d * log / eps
    return Bound(
        rows, exact=False, place="Section 4.2; Brown et al. 2023",
        formula="leverage sqrt(d ln(1/delta)) / (eps gamma) + d ln(1/delta) / eps",
    )  # fmt: skip


def preconditioning_rows(error: float, n_columns: int, rho: float, condition: float) -> Bound:
    """Return the rate of Kamath et al. (2019) for Gaussian rows with known bounds, also that of CoinPress.

    Parameters
    ----------
    error, rho : float
        Total variation distance, and the budget.
    n_columns : int
        The dimension d.
    condition : float
        The ratio of the bounds on the eigenvalues.
    """
    gamma, d, scale = positive(error, "error"), count(n_columns, "n_columns"), math.sqrt(positive(rho, "rho"))
    log = math.log(number(condition, "condition", at_least=1))
    rows = d**2 / gamma**2 + d**2 / (gamma * scale) + d**1.5 * math.sqrt(log) / scale
    return Bound(
        rows, exact=False, place="Kamath et al. 2019",
        formula="d^2 / gamma^2 + d^2 / (gamma sqrt(rho)) + d^(3/2) sqrt(ln(condition) / rho)",
    )  # fmt: skip


def unbounded_rows(error: float, n_columns: int, epsilon: float, delta: float) -> Bound:
    """Return the rate of Kamath et al. (2022) for Gaussian rows of unknown scale.

    Parameters
    ----------
    error, epsilon, delta : float
        Total variation distance, and the guarantee.
    n_columns : int
        The dimension d.
    """
    gamma, d, eps, log = _checked(error, n_columns, epsilon, delta)
    rows = d**2 / gamma**2 + d**2 * log / (gamma * eps) + d**2.5 * log / eps
    return Bound(
        rows, exact=False, place="Kamath et al. 2022",
        formula="d^2 / gamma^2 + d^2 ln(1/delta) / (gamma eps) + d^(5/2) ln(1/delta) / eps",
    )  # fmt: skip


def one_release_rows(error: float, n_columns: int, rho: float, ratio: float) -> Bound:
    """Return the rate of releases whose noise goes with the longest row: Dong, Liang and Yi (2022).

    Parameters
    ----------
    error, rho : float
        Relative spectral error, and the budget.
    n_columns : int
        The dimension d.
    ratio : float
        The longest row squared over the least eigenvalue.

    Notes
    -----
    Their analysis is for the Frobenius norm. In the spectral norm eigenvectors of a noisy matrix, with the
    true eigenvalues, are off by at most twice the noise (Weyl), so that the rate is that of one release.
    """
    gamma, d, scale = positive(error, "error"), count(n_columns, "n_columns"), math.sqrt(positive(rho, "rho"))
    return Bound(
        positive(ratio, "ratio") * math.sqrt(d) / (gamma * scale), exact=False,
        place="Dong et al. 2022, by Weyl's inequality", formula="R^2 sqrt(d) / (gamma sqrt(rho) lambda)",
    )  # fmt: skip


def exponential_rows(error: float, n_columns: int, rho: float, ratio: float, trace: float) -> Bound:
    """Return the rate of Amin et al. (2019), epsilon-DP with ``epsilon = sqrt(2 rho)``.

    Parameters
    ----------
    error, rho : float
        Relative spectral error, and the budget.
    n_columns : int
        The dimension d.
    ratio : float
        The longest row squared over the least eigenvalue.
    trace : float
        The sum of the eigenvalues over the least one.

    Notes
    -----
    Each of d eigenvectors has a share eps / d, and loses R^2 d^2 / (n eps) of its eigenvalue; what is lost in
    all, times an eigenvalue, bounds the square of the Frobenius error.
    """
    gamma, d = positive(error, "error"), count(n_columns, "n_columns")
    eps = math.sqrt(2 * positive(rho, "rho"))
    rows = d**2 * positive(ratio, "ratio") * positive(trace, "trace") / (eps * gamma**2)
    return Bound(
        rows, exact=False, place="Amin et al. 2019",
        formula="d^2 R^2 tr(S) / (eps gamma^2 lambda^2), eps = sqrt(2 rho)",
    )  # fmt: skip


def aden_ali_rows(error: float, n_columns: int, epsilon: float, delta: float) -> Bound:
    """Return the rate of Aden-Ali, Ashtiani and Kamath (2020): any Gaussian in total variation; no algorithm.

    Parameters
    ----------
    error, epsilon, delta : float
        Total variation distance, and the guarantee.
    n_columns : int
        The dimension d.
    """
    gamma, d, eps, log = _checked(error, n_columns, epsilon, delta)
    rows = d**2 / gamma**2 + d**2 / (gamma * eps) + log / eps
    return Bound(
        rows, exact=False, place="Aden-Ali et al. 2020",
        formula="d^2 / gamma^2 + d^2 / (gamma eps) + ln(1/delta) / eps",
    )  # fmt: skip


def kothari_rows(error: float, n_columns: int, epsilon: float, delta: float) -> Bound:
    """Return the rate of Kothari, Manurangsi and Velingker (2021): robust, by sums of squares.

    Parameters
    ----------
    error, epsilon, delta : float
        Relative spectral error, and the guarantee.
    n_columns : int
        The dimension d.
    """
    gamma, d, eps, log = _checked(error, n_columns, epsilon, delta)
    rows = d**8 / gamma**4 * (1 + (log / eps) ** 4)
    return Bound(
        rows, exact=False, place="Kothari et al. 2021", formula="d^8 / gamma^4 (1 + (ln(1/delta) / eps)^4)"
    )


def alabi_rows(error: float, n_columns: int, epsilon: float, delta: float) -> Bound:
    """Return the rate of Alabi et al. (2023): robust, any Gaussian in total variation, by sums of squares.

    Parameters
    ----------
    error, epsilon, delta : float
        Total variation distance, and the guarantee.
    n_columns : int
        The dimension d.
    """
    gamma, d, eps, log = _checked(error, n_columns, epsilon, delta)
    rows = d**2 / gamma**2 + d**2 * log / (gamma * eps)
    return Bound(
        rows, exact=False, place="Alabi et al. 2023", formula="d^2 / gamma^2 + d^2 ln(1/delta) / (gamma eps)"
    )


def _checked(error: float, n_columns: int, epsilon: float, delta: float) -> tuple[float, int, float, float]:
    """Return gamma, d, epsilon and ln(1 / delta)."""
    return (
        positive(error, "error"),
        count(n_columns, "n_columns"),
        positive(epsilon, "epsilon"),
        math.log(1 / share(delta, "delta")),
    )
