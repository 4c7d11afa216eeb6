"""CoinPress: rounds of confidence ellipsoids for the covariance of a Gaussian table.

Biswas, Dong, Kamath and Ullman, "CoinPress: practical private mean and covariance estimation"
(NeurIPS 2020), the multivariate covariance estimator. Each round clips rows that the ellipsoid known
so far makes about standard normal, releases their second moment, and takes it, plus a margin, as the
next ellipsoid.

*Assumes* rows from a Gaussian with mean zero and a covariance of at most ``largest_eigenvalue``; the
number of rounds must suit the least eigenvalue. *Deviations* stand in ``docs/arena.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import count, positive
from dpcov.core import Clipping, Curator, Gram
from dpcov.laws import nearest_positive_semidefinite
from dpcov.maps import integer_map
from dpcov.methods.estimate import Estimate, mapped_back
from dpcov.rivals.gaussian_tables import chi_radius

_LAST_SHARE = Fraction(3, 4)
_CLIPPED = 0.1
_MOST_ROUNDS = 100


def estimate_coinpress(curator: Curator, *, largest_eigenvalue: float, rounds: int = 3) -> Estimate:
    """Release the second moment of a Gaussian table with mean zero.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent: 3/4 of it in the last round, the rest in equal parts.
    largest_eigenvalue : float
        A bound on the largest eigenvalue that does not come from the rows.
    rounds : int, default 3
        A round shrinks the ratio of the bound to the truth by about ``sqrt(n / d)`` at most.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows are.
    """
    bound = positive(largest_eigenvalue, "largest_eigenvalue")
    rounds = count(rounds, "rounds", at_most=_MOST_ROUNDS)
    d, whole = curator.n_columns, curator.remaining.rho
    radius = chi_radius(d, _CLIPPED)
    # What the second moment of standard normal rows is off by, about.
    ratio = math.sqrt(d / curator.n_rows)
    margin = ratio + ratio**2 / 2
    forms: Matrix = np.eye(d) / math.sqrt(bound)
    for _ in range(rounds - 1):
        lattice_map = integer_map(forms)
        share = whole * (1 - _LAST_SHARE) / (rounds - 1)
        answer = curator.ask(Gram(Clipping(lattice_map, radius), share, "round of CoinPress"))
        values, vectors = np.linalg.eigh(nearest_positive_semidefinite(answer.mean()) + margin * np.eye(d))
        # The new map comes after the old one: (U^-1/2) A, where published code has A on the wrong side.
        forms = (vectors.T / np.sqrt(values)[:, None]) @ lattice_map.matrix()
    lattice_map = integer_map(forms)
    answer = curator.ask(Gram(Clipping(lattice_map, radius), curator.remaining.rho, "the released matrix"))
    return mapped_back(lattice_map, answer, {"rounds": rounds, "radius": radius})
