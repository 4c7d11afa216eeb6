"""What every method of estimation returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcov.arrays import Matrix
from dpcov.laws import LossLaw, NoiseLaw

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


def shrink_towards(target: Matrix, matrix: Matrix, sigma: float) -> tuple[Matrix, float]:
    """Draw a noisy matrix to the multiple of `target` that is next to it.

    The estimator of James and Stein (1961): the noise has the same variance in every direction of
    Frobenius norm, so whatever the true matrix is, this lowers the mean squared error, and by
    much if the true matrix is as near to the target as the noise is large. The weight is at most what
    moves no direction by more than the noise norm: a single direction that stands out stays.

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
