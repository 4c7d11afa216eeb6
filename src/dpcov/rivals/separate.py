"""Eigenvectors and eigenvalues released apart.

Dong, Liang and Yi, "Differentially private covariance revisited" (NeurIPS 2022), the trace-sensitive
algorithm (SeparateCov): half of the budget buys a noisy Gram matrix, of which only the eigenvectors are
kept, the other half the eigenvalues, whose noise is much smaller. It wins in Frobenius norm when there
are many columns and few rows.

*Assumes* rows no longer than ``radius``.
"""

from __future__ import annotations

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import positive
from dpcov.core import Clipping, Curator, Gram
from dpcov.maps import identity_map
from dpcov.methods.estimate import Estimate, whole_radius
from dpcov.rivals.queries import Eigenvalues


def estimate_separate(curator: Curator, *, radius: float) -> Estimate:
    """Release the second moment of the rows, clipped to a ball around the origin.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent.
    radius : float
        Rows longer than this are shrunk to it. It must not come from the rows.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row.
    """
    own = positive(radius, "radius")
    whole = whole_radius(curator, own)
    return Estimate(separate_release(curator, whole), {"radius": own})


def separate_release(curator: Curator, radius: float) -> Matrix:
    """Spend what is left: half of it on the eigenvectors, half on the eigenvalues."""
    lattice_map = identity_map(curator.n_columns)
    clipping = Clipping(lattice_map, radius)
    answer = curator.ask(Gram(clipping, curator.remaining.rho / 2, "eigenvectors"))
    spectrum = curator.ask(Eigenvalues(clipping, curator.remaining.rho, "eigenvalues"))
    # Descending eigenvectors of the noisy matrix itself. Its singular vectors, which published code takes,
    # come in the order of |eigenvalue| and with signs that need not cancel: the result is then not symmetric.
    vectors = np.linalg.eigh(answer.mean())[1][:, ::-1]
    values = np.clip(spectrum.eigenvalues, 0.0, radius**2)
    inverse = np.linalg.inv(lattice_map.matrix())
    matrix: Matrix = inverse @ ((vectors * values) @ vectors.T) @ inverse.T
    return (matrix + matrix.T) / 2
