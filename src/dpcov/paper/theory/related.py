"""Rates of other work, for `dpcov.plan`: how rows grow, with every hidden constant taken as 1.

None of them is a promise (`Bound.exact` is False). Most have no practical algorithm. Those stated for
total variation learn a Gaussian's covariance in relative Frobenius norm, which is more than the spectral
error here.

How rows grow with the dimension is as the works' abstracts, or later ones about them, state it. The
powers of error, epsilon and delta of Aden-Ali, Kothari and Alabi were not checked against their theorems.
"""

from __future__ import annotations

import math

from dpcov.checks import count, positive, share
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
