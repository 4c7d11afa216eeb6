"""Analyze Gauss: one noisy Gram matrix of rows clipped to a known ball.

Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
Principal Component Analysis" (STOC 2014), Algorithm 1, with the noise that replacing one row
needs and no more. Its error is the same in every direction, relative to the *largest*
eigenvalue: good for a table that is known to be near-isotropic, useless for small directions.
"""

from __future__ import annotations

import numpy as np

from dpcov.checks import positive
from dpcov.core import Clipping, Curator, Gram
from dpcov.laws import NoiseLaw, nearest_positive_semidefinite
from dpcov.maps import identity_map
from dpcov.methods.estimate import Estimate, whole_radius


def estimate_gaussian(curator: Curator, *, radius: float) -> Estimate:
    """Release the second moment of the rows, clipped to a ball around the origin.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent on one query.
    radius : float
        Rows longer than this are shrunk to it. It must not come from the rows.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row.
    """
    own = positive(radius, "radius")
    whole = whole_radius(curator, own)
    lattice_map = identity_map(curator.n_columns)
    answer = curator.ask(
        Gram(Clipping(lattice_map, whole), curator.remaining.rho, "Gram matrix of the clipped rows")
    )
    inverse = np.asarray(np.linalg.inv(lattice_map.matrix()), dtype=np.float64)
    matrix = inverse @ answer.mean() @ inverse.T
    return Estimate(
        nearest_positive_semidefinite(matrix),
        {"radius": own, "noise_standard_deviation": answer.sigma},
        NoiseLaw(inverse, answer.sigma),
    )
