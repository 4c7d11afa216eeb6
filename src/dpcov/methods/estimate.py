"""What every method of estimation returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Estimate:
    """A private second-moment matrix and what is known about it.

    Attributes
    ----------
    second_moment : ndarray, shape (d, d)
        Symmetric positive semidefinite; the mean of ``x x^T`` over the rows.
    diagnostics : mapping
        Facts from public parameters and private answers only.
    """

    second_moment: NDArray[np.float64]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


def nearest_positive_semidefinite(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the positive semidefinite matrix that is closest in Frobenius norm."""
    symmetric = (matrix + matrix.T) / 2
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    positive = np.maximum(eigenvalues, 0.0)
    projected: NDArray[np.float64] = (vectors * positive) @ vectors.T
    return (projected + projected.T) / 2
