"""What several Gram matrices in different coordinates tell together about one second moment.

An answer k is ``G_k = A_k S A_k^T + N_k``, the entries of N_k about independent with standard deviation s_k.
The least-squares estimate of S weighs each answer by its noise:

    minimise  sum_k |A_k S A_k^T - G_k|_F^2 / s_k^2,   hence   sum_k P_k S P_k = sum_k A_k^T G_k A_k / s_k^2,

with ``P_k = A_k^T A_k / s_k``. Conjugate gradients solve it, in coordinates in which the operator is about
the identity: those in which ``sum_k P_k^2 = I``, the precision of a variance along an axis being ``sum_k
(P_k)_ii^2``. In these coordinates the noise of the estimate has about unit variance in every direction.

Rounds that steer thus lose nothing of what earlier rounds have seen, and do not go back and forth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import NoisyGram

_MOST_STEPS = 200
_PRECISION = 1e-20
_ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Fused:
    """A second moment in coordinates in which its noise has about unit variance in every direction.

    Attributes
    ----------
    moment : ndarray, shape (d, d)
        The estimate.
    back : ndarray, shape (d, d)
        Symmetric; takes these coordinates to those that were asked about.
    """

    moment: Matrix
    back: Matrix

    @property
    def values(self) -> Vector:
        """The eigenvalues of the moment, ascending."""
        return np.asarray(np.linalg.eigvalsh(self.moment), dtype=np.float64)


@dataclass
class Knowledge:
    """The answers so far."""

    answers: list[NoisyGram] = field(default_factory=list)

    def in_coordinates(self, rows: Matrix) -> Fused:
        """Return what all answers together tell about the second moment of ``rows @ x``."""
        inverse = np.linalg.inv(rows)
        maps = [answer.lattice_map.matrix() @ inverse for answer in self.answers]
        # Relative to the least noise: rows may be so long that its square is beyond the range of floats.
        unit = min(answer.sigma for answer in self.answers)
        noises = [answer.sigma / unit for answer in self.answers]
        precisions = [map_.T @ map_ / noise for map_, noise in zip(maps, noises, strict=True)]
        told: Matrix = np.sum(
            [
                (map_ / noise).T @ (answer.mean() / unit) @ (map_ / noise)
                for map_, noise, answer in zip(maps, noises, self.answers, strict=True)
            ],
            axis=0,
        )
        back = _power(_power(np.sum([p @ p for p in precisions], axis=0), 0.5), -0.5)
        scaled = [back @ precision @ back for precision in precisions]
        return Fused(_solve(scaled, back @ told @ back), math.sqrt(unit) * back)


def _solve(precisions: list[Matrix], told: Matrix) -> Matrix:
    """Solve ``sum_k P_k X P_k = told`` for X by conjugate gradients."""

    def apply(x: Matrix) -> Matrix:
        result: Matrix = np.sum([precision @ x @ precision for precision in precisions], axis=0)
        return result

    solution = told.copy()
    residual = told - apply(solution)
    direction, square = residual, float(np.vdot(residual, residual))
    enough = _PRECISION * float(np.vdot(told, told))
    for _ in range(_MOST_STEPS):
        if square <= enough:
            break
        image = apply(direction)
        curvature = float(np.vdot(direction, image))
        if curvature <= _ROUNDING * float(np.vdot(direction, direction)):
            # No answer tells anything about what is left.
            break
        step = square / curvature
        solution = solution + step * direction
        residual = residual - step * image
        before, square = square, float(np.vdot(residual, residual))
        direction = residual + square / before * direction
    return (solution + solution.T) / 2


def _power(matrix: Matrix, exponent: float) -> Matrix:
    """Return a power of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # Below rounding, eigenvalues tell nothing, not even their sign.
    positive = np.where(values > 0, values, _ROUNDING * values[-1])
    result: Matrix = (vectors * positive**exponent) @ vectors.T
    return result
