"""Rates that the paper states without constants: how rows grow, with every hidden constant taken as 1.

None of them is a promise (`Bound.exact` is False). `sample_size` has the bounds with constants.
"""

from __future__ import annotations

import math

from dpcov.checks import count, number, share
from dpcov.paper.theory.bounds import Bound


def learner_rows(rows: float, fraction: float, failure: float) -> Bound:
    """Return the rows that a private learner may use of a table with outliers, or infinity if it needs more.

    Parameters
    ----------
    rows : float
        How many rows m(gamma, xi, eps, delta) the learner needs.
    fraction : float
        The share of outliers.
    failure : float
        The probability with which an outlier may be among them.

    Notes
    -----
    Section 4.2, "A Private Learner": it runs on a subsample that is free of outliers with probability 1 - xi.
    """
    needed = number(rows, "rows", at_least=1)
    clean = math.log1p(-share(failure, "failure")) / math.log1p(-share(fraction, "fraction"))
    return Bound(
        needed if needed <= clean else math.inf, exact=False, place="Section 4.2, A Private Learner",
        formula="m(gamma, xi, eps, delta), if at most ln(1 - xi) / ln(1 - eta)",
    )  # fmt: skip


def aggregate_rate(error: float, m: float, n_columns: int, epsilon: float) -> Bound:
    """Return the rate of subsample and aggregate, as Sections 3.1, 4.2 and Appendix D quote it.

    Parameters
    ----------
    error, epsilon : float
        The target gamma, and the guarantee.
    m : float
        The subsample size m(gamma, xi) at the *target* accuracy.
    n_columns : int
        The dimension d.

    Notes
    -----
    ``d m(gamma, xi) / (eps gamma)``. For the distribution Pareto times a direction the paper prints
    ``(d / eps) max(d / gamma^2, B^2 d / gamma)``; a factor 1 / gamma is missing there.
    """
    rows = count(n_columns, "n_columns") * number(m, "m", at_least=1)
    return Bound(
        rows / (number(epsilon, "epsilon", above=0) * number(error, "error", above=0)),
        exact=False, place="Section 3.1, Appendix D", formula="d m(gamma, xi) / (eps gamma)",
    )  # fmt: skip


def recursive_rate(
    error: float, n_columns: int, rho: float, *, m: float, sample: float, condition: float, failure: float
) -> Bound:
    """Return equation (1) of the paper as it stands, a rate; `distribution_rows` has the constants.

    Parameters
    ----------
    error, rho : float
        The target gamma, and the budget.
    n_columns : int
        The dimension d.
    m, sample : float
        m(1/2, beta), and m(gamma, xi), the rows that stand for the distribution.
    condition : float
        ``R / lambda_min``, greater than e.
    failure : float
        The paper's xi.

    Notes
    -----
    Appendix D is this with each distribution's m: ``d / gamma^2 + d^(3/2) / (gamma sqrt(rho))`` for the
    ellipsoid, with d B^2 for d in the second term for Pareto times a direction, and d + B^2 for Pareto
    beside a direction.
    """
    gamma, budget = number(error, "error", above=0), number(rho, "rho", above=0)
    log = math.log(number(condition, "condition", above=math.e))
    noise = math.sqrt(count(n_columns, "n_columns") / budget * log) * math.log(
        log / share(failure, "failure")
    )
    rows = number(sample, "sample", at_least=1) + number(m, "m", at_least=1) / gamma * noise
    return Bound(
        rows, exact=False, place="Equation (1)",
        formula="m(gamma, xi) + m(1/2, beta) / gamma sqrt(d / rho ln(R/lambda)) ln(ln(R/lambda) / xi)",
    )  # fmt: skip


def cluster_rate(
    n_rows: int, n_columns: int, epsilon: float, delta: float, *, domain: float, failure: float = 0.05
) -> Bound:
    """Return how many rows a ball must hold to be found privately: the rate of Nissim and Stemmer (2018).

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table.
    epsilon, delta : float
        The guarantee.
    domain : float
        How many values a coordinate can have, |X|.
    failure : float, default 0.05
        The probability of failure.

    Notes
    -----
    Theorem B.2, for finding the radius R.
    """
    n, d = count(n_rows, "n_rows"), count(n_columns, "n_columns")
    eps, t, chance = number(epsilon, "epsilon", above=0), share(delta, "delta"), share(failure, "failure")
    stars = 9 ** _iterated_log(2 * number(domain, "domain", at_least=1) * math.sqrt(d))
    logs = math.log(1 / chance) * math.log(n * d / (chance * t)) * math.sqrt(math.log(1 / (chance * t)))
    return Bound(
        n**0.1 * math.sqrt(d) / eps * logs * stars, exact=False, place="Theorem B.2",
        formula="n^0.1 sqrt(d) / eps ln(1/beta) ln(n d / (beta delta)) sqrt(ln(1/(beta delta))) "
        "9^log*(2 |X| sqrt(d))",
    )  # fmt: skip


def cluster_loss_rate(
    n_rows: int, n_columns: int, epsilon: float, delta: float, *, domain: float, failure: float = 0.05
) -> Bound:
    """Return how many rows a ball found privately may leave out: the rate of Nissim and Stemmer (2018).

    Parameters
    ----------
    n_rows, n_columns, epsilon, delta, domain, failure
        As for `cluster_rate`.

    Notes
    -----
    Theorem B.2, Delta. The rows are lost to clipping; the radius is within a constant of the least one.
    """
    n, d = count(n_rows, "n_rows"), count(n_columns, "n_columns")
    eps, t, chance = number(epsilon, "epsilon", above=0), share(delta, "delta"), share(failure, "failure")
    stars = 9 ** _iterated_log(2 * number(domain, "domain", at_least=1) * math.sqrt(d))
    return Bound(
        n**0.1 / eps * math.log(1 / (chance * t)) * math.log(1 / chance) * stars, exact=False,
        place="Theorem B.2", formula="n^0.1 / eps ln(1/(beta delta)) ln(1/beta) 9^log*(2 |X| sqrt(d))",
    )  # fmt: skip


def _iterated_log(value: float) -> int:
    steps = 0
    while value > 1:
        value = math.log2(value)
        steps += 1
    return steps
