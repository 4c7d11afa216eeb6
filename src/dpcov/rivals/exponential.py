"""Eigenvectors by the exponential mechanism, eigenvalues with Laplace noise: pure epsilon-DP.

Amin, Dick, Kulesza, Munoz Medina and Vassilvitskii, "Differentially private covariance estimation" (NeurIPS
2019). Unvetted: the sampler of directions computes with float64.

*Assumes* rows no longer than ``radius``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcov.checks import positive
from dpcov.core import Clipping, Curator
from dpcov.maps import identity_map
from dpcov.methods.estimate import Estimate, whole_radius
from dpcov.rivals.queries import Eigenpairs


def estimate_exponential(curator: Curator, *, radius: float, allow_unvetted: bool = False) -> Estimate:
    """Release the second moment of the rows, clipped to a ball around the origin.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent.
    radius : float
        Rows longer than this are shrunk to it. It must not come from the rows.
    allow_unvetted : bool
        Must be True.

    Notes
    -----
    *Formal guarantee.* epsilon-DP with ``epsilon = sqrt(2 rho)``, for replacing one row, in idealised
    arithmetic; charged as the rho-zCDP that it implies.
    """
    own = positive(radius, "radius")
    whole = whole_radius(curator, own)
    # A hair less, so that rounding cannot exceed the budget.
    epsilon = Fraction(math.sqrt(2 * curator.remaining.rho) * (1 - 1e-12))
    lattice_map = identity_map(curator.n_columns)
    answer = curator.ask(
        Eigenpairs(
            Clipping(lattice_map, whole),
            epsilon=epsilon,
            purpose="eigenvalues and eigenvectors",
            allow_unvetted=allow_unvetted,
        )
    )
    inverse = np.linalg.inv(lattice_map.matrix())
    matrix = inverse @ ((answer.vectors * answer.values) @ answer.vectors.T) @ inverse.T
    return Estimate((matrix + matrix.T) / 2, {"radius": own, "epsilon": float(epsilon)})
