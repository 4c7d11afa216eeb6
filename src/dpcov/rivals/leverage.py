"""Filtering by leverage with propose-test-release, then samples of a Gaussian.

Brown, Hopkins and Smith, "Fast, sample-efficient, affine-invariant private mean and covariance estimation for
subgaussian distributions" (COLT 2023). It needs no bound on the scale of the table and does not depend on
its condition number, but it may fail: a private test says whether rows of high leverage are few enough.
Unvetted: leverages are computed with float64.

*Assumes* that no row has a leverage above ``leverage``, as in a subgaussian table.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcov.checks import positive
from dpcov.core import Curator, NoAnswerError
from dpcov.laws import nearest_positive_semidefinite
from dpcov.methods.estimate import Estimate
from dpcov.rivals.gaussian_tables import chi_radius
from dpcov.rivals.queries import StableMoment

_FAILURE = 0.01
_TEST_SHARE = Fraction(1, 2)


def estimate_leverage(
    curator: Curator, *, leverage: float | None = None, allow_unvetted: bool = False
) -> Estimate:
    """Release the second moment of a table whose rows all have a low leverage.

    Parameters
    ----------
    curator : Curator
        With a delta in its budget. All of it is spent, also if there is no answer.
    leverage : float, optional
        A bound on ``x^T S^-1 x`` over the rows, S being their second moment; by default what Gaussian rows
        with mean zero have.
    allow_unvetted : bool
        Must be True.

    Notes
    -----
    *Formal guarantee.* delta-approximate zCDP with the remaining rho and delta, for replacing one row, in
    idealised arithmetic. Refused before anything is spent if there are too few rows for its proof.
    """
    usual = chi_radius(curator.n_columns, _FAILURE / curator.n_rows) ** 2
    bound = usual if leverage is None else positive(leverage, "leverage")
    rho, delta = curator.remaining.rho * _TEST_SHARE, curator.remaining.delta / 2
    # The test costs epsilon^2 / 2; a hair less, so that rounding cannot exceed the budget.
    epsilon = Fraction(math.sqrt(2 * rho) * (1 - 1e-12))
    answer = curator.ask(
        StableMoment(
            bound,
            epsilon=epsilon,
            rho=curator.remaining.rho - rho,
            delta=delta,
            purpose="filter by leverage",
            allow_unvetted=allow_unvetted,
        )
    )
    if answer is None:
        raise NoAnswerError(
            f"too many rows have a leverage above {bound:.3g} for a private answer. "
            "Give a larger leverage or use another method; what the test cost is spent."
        )
    ratio = math.sqrt(curator.n_columns / answer.samples)
    return Estimate(
        nearest_positive_semidefinite(answer.second_moment),
        {"leverage": bound, "samples": answer.samples, "predicted_error": 2 * ratio + ratio**2},
    )
