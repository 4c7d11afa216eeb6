"""Distributions with a sampler, an exact second moment, M1, M2 and a subsample size m(alpha, beta).

Those of the paper (Sections 4.2 and Appendix D), the Gaussian, linear images of any of them, and any of
them with outliers. In what follows S is the second moment and ``y = S^-1/2 x``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri

from dpcov.arrays import Array, Matrix
from dpcov.checks import count, number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.subsamplability import bernstein_size


class Distribution(ABC):
    """A distribution of rows with a known second moment."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The dimension d."""

    @abstractmethod
    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows, shape (n_rows, d)."""

    @abstractmethod
    def second_moment(self) -> Matrix:
        """Return E[x x^T]."""

    @abstractmethod
    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T] for a symmetric K, the `weight`."""

    @abstractmethod
    def largest_form(self, weight: Matrix) -> float:
        """Return a bound on x^T K x for a positive semidefinite K; infinite if there is none."""

    @property
    def m1(self) -> float:
        """A bound on |y|."""
        return math.sqrt(self.largest_form(_inverse(self.second_moment())))

    @property
    def m2(self) -> float:
        """The largest eigenvalue of E[|y|^2 y y^T], exactly."""
        return largest_eigenvalue(self.fourth_moment(_inverse(self.second_moment())), self.second_moment())

    @property
    def eigenvalues(self) -> Array:
        """Of the second moment, the least first."""
        return np.asarray(np.linalg.eigvalsh(self.second_moment()))

    @property
    def least_eigenvalue(self) -> float:
        """Of the second moment."""
        return float(self.eigenvalues[0])

    @property
    def radius(self) -> float:
        """A bound on |x|; infinite if there is none."""
        return math.sqrt(self.largest_form(np.eye(self.n_columns)))

    def radius_of(self, n_rows: int, failure: float) -> float:
        """Return a bound on the longest of `n_rows` rows that fails with probability at most `failure`."""
        del n_rows, failure
        return self.radius

    def subsample_size(self, alpha: float, beta: float) -> int:
        """Return m(alpha, beta).

        Samples this large or larger are within 1 +- alpha with probability 1 - beta. By `bernstein_size`,
        unless the distribution says otherwise.
        """
        return bernstein_size(self.m1, self.m2, self.n_columns, alpha, beta)

    def leverage_beyond(self, part: float) -> float:
        """Return the value of |y|^2 that this part of the rows exceeds, or a bound on it."""
        share(part, "part")
        return self.m1**2


@dataclass(frozen=True, eq=False)
class EllipsoidSurface(Distribution):
    """Rows ``A^1/2 v`` on the surface of the ellipsoid ``x^T A^-1 x = 1``, v uniform on the unit sphere.

    Appendix D.1, which calls this uniform on the surface; its second moment A / d is that of this
    distribution. M1 = sqrt(d), M2 = d.

    Attributes
    ----------
    shape : array, shape (d, d)
        A, positive definite.
    """

    shape: ArrayLike

    @cached_property
    def _matrix(self) -> Matrix:
        return _definite(self.shape, "shape")

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return len(self._matrix)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return uniform_directions(n_rows, self.n_columns, rng) @ np.linalg.cholesky(self._matrix).T

    def second_moment(self) -> Matrix:
        """Return A / d."""
        return self._matrix / self.n_columns

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        return elliptical_fourth(self._matrix, weight)

    def largest_form(self, weight: Matrix) -> float:
        """Return the largest x^T K x."""
        return largest_on_ellipsoid(self._matrix, weight)


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """Normal rows of mean zero. M1 is infinite, M2 = d + 2.

    Attributes
    ----------
    covariance : array, shape (d, d)
        Positive definite.
    """

    covariance: ArrayLike

    @cached_property
    def _matrix(self) -> Matrix:
        return _definite(self.covariance, "covariance")

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return len(self._matrix)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return rng.standard_normal((n_rows, self.n_columns)) @ np.linalg.cholesky(self._matrix).T

    def second_moment(self) -> Matrix:
        """Return the covariance."""
        return self._matrix.copy()

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T], by Isserlis."""
        mapped = self._matrix @ weight @ self._matrix
        return np.asarray(np.trace(weight @ self._matrix) * self._matrix + 2 * mapped)

    def largest_form(self, weight: Matrix) -> float:
        """Return infinity: the rows are unbounded."""
        del weight
        return math.inf

    def radius_of(self, n_rows: int, failure: float) -> float:
        """Return a bound on the longest of `n_rows` rows (Laurent and Massart 2000)."""
        values = np.linalg.eigvalsh(self._matrix)
        log = math.log(count(n_rows, "n_rows") / share(failure, "failure"))
        spread = 2 * math.sqrt(float(np.sum(values**2)) * log) + 2 * float(values[-1]) * log
        return math.sqrt(float(values.sum()) + spread)

    def subsample_size(self, alpha: float, beta: float) -> int:
        """Return m(alpha, beta) by Davidson and Szarek (2001), as Bernstein's inequality needs bounded rows.

        Singular values of m whitened rows over sqrt(m) are within t of 1 with probability 1 - beta,
        ``t = (sqrt(d) + sqrt(2 ln(2 / beta))) / sqrt(m)``, and ``2 t + t^2 <= alpha``.
        """
        reach = math.sqrt(self.n_columns) + math.sqrt(2 * math.log(2 / share(beta, "beta")))
        return math.ceil((reach / (math.sqrt(1 + number(alpha, "alpha", above=0)) - 1)) ** 2)

    def leverage_beyond(self, part: float) -> float:
        """Return the value of |y|^2 that this part of the rows exceeds."""
        return float(chdtri(self.n_columns, share(part, "part")))


def largest_eigenvalue(matrix: Matrix, moment: Matrix) -> float:
    """Return the largest u^T A u / u^T S u for a symmetric A, the `matrix`, and S, the `moment`."""
    factor = np.linalg.cholesky(moment)
    white = np.linalg.solve(factor, np.linalg.solve(factor, matrix).T)
    return float(np.linalg.eigvalsh((white + white.T) / 2)[-1])


def _inverse(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def uniform_directions(n_rows: int, n_columns: int, rng: np.random.Generator) -> Matrix:
    """Draw rows that are uniform on the unit sphere."""
    rows = rng.standard_normal((n_rows, n_columns))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def elliptical_fourth(shape: Matrix, weight: Matrix) -> Matrix:
    """Return E[(x^T K x) x x^T] for x = F v, F F^T = shape, v uniform on the unit sphere."""
    d = len(shape)
    mapped = shape @ weight @ shape
    return np.asarray((np.trace(weight @ shape) * shape + 2 * mapped) / (d * (d + 2)))


def largest_on_ellipsoid(shape: Matrix, weight: Matrix) -> float:
    """Return the largest x^T K x over x = F v, F F^T = shape, |v| = 1."""
    factor = np.linalg.cholesky(shape)
    mapped = factor.T @ weight @ factor
    return max(0.0, float(np.linalg.eigvalsh((mapped + mapped.T) / 2)[-1]))


def _definite(matrix: ArrayLike, name: str) -> Matrix:
    result = np.array(matrix, dtype=np.float64)
    if result.ndim != 2 or result.shape[0] != result.shape[1] or not result.size:
        raise ArgumentError(f"{name} must be a square matrix, got shape {result.shape}.")
    if not np.isfinite(result).all() or not np.allclose(result, result.T, rtol=1e-12, atol=0):
        raise ArgumentError(f"{name} must be finite and symmetric.")
    try:
        np.linalg.cholesky(result)
    except np.linalg.LinAlgError:
        raise ArgumentError(f"{name} must be positive definite.") from None
    return (result + result.T) / 2
