"""Recursive private preconditioning of a Gaussian table.

Kamath, Li, Singhal and Ullman, "Privately learning high-dimensional distributions" (COLT 2019). Each
round finds the directions whose variance is at least half of the bound kappa and halves them, which
brings the bound down by a constant factor; a last release has a bounded condition number.

*Assumes* rows from a Gaussian with mean zero and eigenvalues between ``least_eigenvalue`` and
``largest_eigenvalue``. The paper leaves constants open; ``docs/arena.md`` has ours.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import positive
from dpcov.core import ArgumentError, Clipping, Curator, Gram, Rule
from dpcov.maps import integer_map
from dpcov.methods.estimate import Estimate, mapped_back
from dpcov.rivals.gaussian_tables import chi_radius

LAST_BOUND = 10.0
"""Rounds end when the bound on the condition number is at most this."""

_LARGE = 0.5
_GROWTH = 1.1
_ROUND_FACTOR = 0.7
_FAILURE = 0.01
_PRECONDITIONING_SHARE = Fraction(1, 2)


def estimate_preconditioning(
    curator: Curator, *, largest_eigenvalue: float, least_eigenvalue: float
) -> Estimate:
    """Release the second moment of a Gaussian table with mean zero.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent: half on preconditioning, half on the last release.
    largest_eigenvalue, least_eigenvalue : float
        Bounds on the eigenvalues of the second moment that do not come from the rows.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows are.
    """
    highest = positive(largest_eigenvalue, "largest_eigenvalue")
    lowest = positive(least_eigenvalue, "least_eigenvalue")
    if lowest > highest:
        raise ArgumentError("least_eigenvalue must not exceed largest_eigenvalue.")
    return precondition_and_release(curator, np.eye(curator.n_columns) / math.sqrt(lowest), highest / lowest)


def precondition_and_release(
    curator: Curator, forms: Matrix, condition: float, facts: dict[str, Any] | None = None
) -> Estimate:
    """Run the recursion on rows whose second moment, after `forms`, lies between I and `condition` I."""
    rounds = max(0, math.ceil(math.log(condition / LAST_BOUND) / -math.log(_ROUND_FACTOR)))
    length = chi_radius(curator.n_columns, _FAILURE / curator.n_rows)
    share = curator.remaining.rho * _PRECONDITIONING_SHARE / max(rounds, 1)
    bound = condition
    for _ in range(rounds):
        lattice_map = integer_map(forms)
        radius = length * math.sqrt(bound)
        answer = curator.ask(
            Gram(Clipping(lattice_map, radius, Rule.DROP), share, "round of preconditioning")
        )
        values, vectors = np.linalg.eigh(answer.mean())
        factors = _GROWTH * np.where(values >= _LARGE * bound, 0.5, 1.0)
        forms = (vectors.T * factors[:, None]) @ lattice_map.matrix()
        bound *= _ROUND_FACTOR
    lattice_map = integer_map(forms)
    clipping = Clipping(lattice_map, length * math.sqrt(bound), Rule.DROP)
    answer = curator.ask(Gram(clipping, curator.remaining.rho, "the released matrix"))
    return mapped_back(lattice_map, answer, {"rounds": rounds + 1, **(facts or {})})
