"""Subsample and aggregate: the paper's Algorithm 3, its baseline.

After Ashtiani and Liaw, "Private and polynomial time algorithms for learning Gaussians and beyond"
(COLT 2022), on the framework of Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in
private data analysis" (STOC 2007). Random groups of m rows have second moments that agree; a weighted
mean of them gets noise of its own shape. It needs very many rows, and says how many.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcov.checks import number, positive
from dpcov.core import Clipping, Curator, NoAnswerError
from dpcov.laws import nearest_positive_semidefinite
from dpcov.maps import identity_map
from dpcov.methods.estimate import Estimate, whole_radius
from dpcov.paper.queries import Aggregate, aggregate_noise_scale
from dpcov.paper.radius import find_covering_radius

RADIUS_SHARE = Fraction(1, 20)
"""Of the budget: for the radius, if it is not given."""


def estimate_aggregate(
    curator: Curator, *, m: int, alpha: float = 0.1, radius: float | None = None
) -> Estimate:
    """Release a second moment with an error of about 2 alpha, if random groups of rows agree.

    Parameters
    ----------
    curator : Curator
        With a delta in its budget, all of which is spent.
    m : int
        Rows of a group.
    alpha : float, default 0.1
        At most 1/2. A group of m rows has the second moment of the table up to 1 +- alpha.
    radius : float, optional
        Rows longer than this are shrunk to it; found privately if not given. It must not come from the rows.

    Notes
    -----
    *Formal guarantee.* delta-approximate zCDP with the remaining rho and delta, for replacing one row.
    Refused before anything is spent if there are too few groups for its noise to hide a row. *Utility.* If
    all groups are within 1 +- alpha of the table, the result is within 1 +- ``guaranteed_error``, which adds
    the noise, with probability 0.98. The paper fixes the noise at alpha / 12 instead and asks for the rows
    that this needs.
    """
    size, alpha = math.ceil(positive(m, "m")), number(alpha, "alpha", above=0, at_most=0.5)
    distance = 2 * alpha / (1 - alpha)
    own = None if radius is None else positive(radius, "radius")
    share = 1 - RADIUS_SHARE if own is None else Fraction(1)
    # Two steps of epsilon^2 / 2 each; a hair less, so that rounding cannot exceed the budget.
    epsilon = Fraction(math.sqrt(curator.remaining.rho * share) * (1 - 1e-12))
    aggregate_noise_scale(
        size,
        distance,
        n_rows=curator.n_rows,
        n_columns=curator.n_columns,
        epsilon=epsilon,
        delta=curator.remaining.delta,
    )
    if own is None:
        whole = find_covering_radius(curator, curator.remaining.rho * RADIUS_SHARE).radius
    else:
        whole = whole_radius(curator, own)
    lattice_map = identity_map(curator.n_columns)
    answer = curator.ask(
        Aggregate(
            Clipping(lattice_map, whole),
            size,
            distance,
            epsilon=epsilon,
            delta=curator.remaining.delta,
            purpose="subsample and aggregate",
        )
    )
    if answer is None:
        raise NoAnswerError(
            f"the second moments of random groups of {size} rows do not agree up to 1 +- {alpha:g}. "
            "Use larger groups or another method; what the test cost is spent."
        )
    d = curator.n_columns
    return Estimate(
        nearest_positive_semidefinite(answer.second_moment),
        {
            "groups": answer.agreement.n_groups,
            "agreement": answer.agreement.score,
            "noise_scale": answer.noise_scale,
            # |N| is beyond 2 sqrt(d) + 3 with probability exp(-9/2).
            "guaranteed_error": (1 + alpha) * (1 + answer.noise_scale * (2 * math.sqrt(d) + 3)) ** 2 - 1,
            "predicted_error": 4 * answer.noise_scale * math.sqrt(d),
        },
    )
