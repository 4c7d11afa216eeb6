"""What every method of estimation returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.methods.tail import TailLaw


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The law of the noise in a second-moment matrix, which is public.

    The estimate is ``inverse @ (A + N) @ inverse.T``: A is the second moment of the mapped rows, N
    is symmetric with independent entries of mean zero (discrete Gaussian on a fine grid).

    Attributes
    ----------
    inverse : ndarray, shape (d, d)
        The public map back to the table's columns.
    sigma : float
        Standard deviation of N on its diagonal; off the diagonal it is ``sigma / sqrt(2)``.
    """

    inverse: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """A private second-moment matrix and what is known about it.

    Attributes
    ----------
    second_moment : ndarray, shape (d, d)
        Symmetric positive semidefinite; the mean of ``x x^T`` over the rows.
    diagnostics : mapping
        Facts from public parameters and private answers only.
    noise : NoiseLaw, optional
        The noise in the matrix (before it was made positive semidefinite); None where the noise is
        not additive or nothing was released.
    tail : TailLaw, optional
        What shrinking long rows took away; None where that is not known.
    """

    second_moment: NDArray[np.float64]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    noise: NoiseLaw | None = None
    tail: TailLaw | None = None


def nearest_positive_semidefinite(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the positive semidefinite matrix that is closest in Frobenius norm."""
    symmetric = (matrix + matrix.T) / 2
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    positive = np.maximum(eigenvalues, 0.0)
    projected: NDArray[np.float64] = (vectors * positive) @ vectors.T
    return (projected + projected.T) / 2
