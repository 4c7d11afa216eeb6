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

from dpcov.arrays import Matrix
from dpcov.checks import count, number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.subsamplability import bernstein_size

_PARETO_EXPONENT = 6


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
    def least_eigenvalue(self) -> float:
        """Of the second moment."""
        return float(np.linalg.eigvalsh(self.second_moment())[0])

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
        return _directions(n_rows, self.n_columns, rng) @ np.linalg.cholesky(self._matrix).T

    def second_moment(self) -> Matrix:
        """Return A / d."""
        return self._matrix / self.n_columns

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        return _elliptical_fourth(self._matrix, weight)

    def largest_form(self, weight: Matrix) -> float:
        """Return the largest x^T K x."""
        return _largest_on_ellipsoid(self._matrix, weight)


@dataclass(frozen=True)
class ParetoTimesDirection(Distribution):
    """Rows ``lambda v``: a truncated Pareto length times a uniform direction. Appendix D.2.

    M1 = B sqrt(d) / s, M2 = d E[lambda^4] / s^4 with ``s^2 = E[lambda^2]``, at most 9/5 d.

    Attributes
    ----------
    direction_columns : int
        The dimension d.
    bound : float, default 10
        B: lambda has a density proportional to lambda^-6 on [1, B].
    """

    direction_columns: int
    bound: float = 10.0

    def __post_init__(self) -> None:
        count(self.direction_columns, "direction_columns")
        number(self.bound, "bound", above=1)

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return self.direction_columns

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return _pareto(n_rows, self.bound, rng)[:, None] * _directions(n_rows, self.n_columns, rng)

    def second_moment(self) -> Matrix:
        """Return E[lambda^2] / d times the identity."""
        return np.eye(self.n_columns) * (pareto_moment(2, self.bound) / self.n_columns)

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        return pareto_moment(4, self.bound) * _elliptical_fourth(np.eye(self.n_columns), weight)

    def largest_form(self, weight: Matrix) -> float:
        """Return the largest x^T K x."""
        return self.bound**2 * _largest_on_ellipsoid(np.eye(self.n_columns), weight)


@dataclass(frozen=True)
class ParetoBesideDirection(Distribution):
    """Rows ``(lambda, v)``: a truncated Pareto coordinate beside a uniform direction of d coordinates.

    Appendix D.2. M1^2 = d + B^2 / s^2, M2 = d + max(1, E[lambda^4] / s^4) with ``s^2 = E[lambda^2]``.

    Attributes
    ----------
    direction_columns : int
        d; the rows have d + 1 columns.
    bound : float, default 10
        B: lambda has a density proportional to lambda^-6 on [1, B].
    """

    direction_columns: int
    bound: float = 10.0

    def __post_init__(self) -> None:
        count(self.direction_columns, "direction_columns")
        number(self.bound, "bound", above=1)

    @property
    def n_columns(self) -> int:
        """The dimension, d + 1."""
        return self.direction_columns + 1

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        lengths = _pareto(n_rows, self.bound, rng)
        return np.column_stack([lengths, _directions(n_rows, self.direction_columns, rng)])

    def second_moment(self) -> Matrix:
        """Return the diagonal matrix of E[lambda^2] and 1 / d."""
        rest = np.full(self.direction_columns, 1 / self.direction_columns)
        return np.diag(np.concatenate([[pareto_moment(2, self.bound)], rest]))

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]; odd moments of the direction vanish."""
        d = self.direction_columns
        second, fourth = pareto_moment(2, self.bound), pareto_moment(4, self.bound)
        corner, side, rest = weight[0, 0], weight[0, 1:], weight[1:, 1:]
        result = np.empty((d + 1, d + 1))
        result[0, 0] = corner * fourth + second * np.trace(rest) / d
        result[0, 1:] = result[1:, 0] = 2 * second * side / d
        result[1:, 1:] = corner * second * np.eye(d) / d + _elliptical_fourth(np.eye(d), rest)
        return result

    def largest_form(self, weight: Matrix) -> float:
        """Return a bound on x^T K x, the largest value if K has no mixed term."""
        side = float(np.linalg.norm(weight[0, 1:]))
        rest = _largest_on_ellipsoid(np.eye(self.direction_columns), weight[1:, 1:])
        return float(weight[0, 0]) * self.bound**2 + 2 * self.bound * side + rest


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


def largest_eigenvalue(matrix: Matrix, moment: Matrix) -> float:
    """Return the largest u^T A u / u^T S u for a symmetric A, the `matrix`, and S, the `moment`."""
    factor = np.linalg.cholesky(moment)
    white = np.linalg.solve(factor, np.linalg.solve(factor, matrix).T)
    return float(np.linalg.eigvalsh((white + white.T) / 2)[-1])


def _inverse(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def pareto_moment(power: int, bound: float) -> float:
    """Return E[lambda^power] of the Pareto law with density proportional to lambda^-6 on [1, bound].

    Parameters
    ----------
    power : int
        Any but 5.
    bound : float
        B, greater than 1.
    """
    last = _PARETO_EXPONENT - 1
    rest = last - power
    return last / rest * (1 - bound**-rest) / (1 - bound**-last)


def _pareto(n_rows: int, bound: float, rng: np.random.Generator) -> Matrix:
    last = _PARETO_EXPONENT - 1
    return np.asarray((1 - (1 - bound**-last) * rng.random(n_rows)) ** (-1 / last))


def _directions(n_rows: int, n_columns: int, rng: np.random.Generator) -> Matrix:
    rows = rng.standard_normal((n_rows, n_columns))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _elliptical_fourth(shape: Matrix, weight: Matrix) -> Matrix:
    """Return E[(x^T K x) x x^T] for x = F v, F F^T = shape, v uniform on the unit sphere."""
    d = len(shape)
    mapped = shape @ weight @ shape
    return np.asarray((np.trace(weight @ shape) * shape + 2 * mapped) / (d * (d + 2)))


def _largest_on_ellipsoid(shape: Matrix, weight: Matrix) -> float:
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
