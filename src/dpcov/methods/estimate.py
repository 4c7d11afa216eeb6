"""What every method of estimation returns, and how it gets there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import Curator, LatticeMap, NoisyGram
from dpcov.laws import NoiseLaw, nearest_positive_semidefinite
from dpcov.losses import LossLaw

_TINY = float(np.finfo(np.float64).tiny)


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
    losses : tuple of LossLaw
        What shrinking long rows took away; empty where that is not known.
    """

    second_moment: Matrix
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    noise: NoiseLaw | None = None
    losses: tuple[LossLaw, ...] = ()


def whole_radius(curator: Curator, radius: float) -> float:
    """Return a bound on rows with their constant, given one on the table's own columns.

    The constant adds 1 to a squared length.
    """
    return math.hypot(radius, 1.0) if curator.has_constant else radius


def mapped_back(lattice_map: LatticeMap, answer: NoisyGram, diagnostics: Mapping[str, Any]) -> Estimate:
    """Return the estimate that a noisy second moment of mapped rows stands for."""
    inverse = np.asarray(np.linalg.inv(lattice_map.matrix()), dtype=np.float64)
    matrix = inverse @ nearest_positive_semidefinite(answer.mean()) @ inverse.T
    return Estimate((matrix + matrix.T) / 2, diagnostics, NoiseLaw(inverse, answer.sigma))


def shrink_towards(target: Matrix, matrix: Matrix, sigma: float) -> tuple[Matrix, float]:
    """Draw a noisy matrix to the multiple of `target` that is next to it.

    The estimator of James and Stein (1961): the noise has the same variance in every direction of
    Frobenius norm, less in that of the trace, so whatever the true matrix is, this lowers the mean squared
    error, and by much if the true matrix is as near to the target as the noise is large. The weight is at
    most what moves no direction by more than the noise norm: a single direction that stands out stays.

    Parameters
    ----------
    target : ndarray, shape (d, d)
        Symmetric, not zero.
    matrix : ndarray, shape (d, d)
        Symmetric.
    sigma : float
        Standard deviation of its noise on the diagonal; off it, ``sigma / sqrt(2)``.

    Returns
    -------
    shrunk : ndarray, shape (d, d)
    weight : float
        Of the target, from 0 to 1.
    """
    d = len(matrix)
    away = matrix - np.vdot(target, matrix) / np.vdot(target, target) * target
    # The multiple is kept, which leaves so many free entries; James and Stein subtract two more.
    freedom = max(d * (d + 1) / 2 - 1 - 2, 0.0)
    by_entries = freedom * sigma**2 / max(float(np.linalg.norm(away)) ** 2, _TINY)
    by_norm = 2 * d * sigma**2 / max(float(np.linalg.norm(away, 2)) ** 2, _TINY)
    weight = min(by_entries, by_norm, 1.0)
    return matrix - weight * away, weight
