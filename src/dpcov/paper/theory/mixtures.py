"""Distributions made from others: linear images, and mixtures with outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcov.arrays import Array, Matrix
from dpcov.checks import choice, count, number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.distributions import Distribution, Gaussian, largest_eigenvalue


@dataclass(frozen=True, eq=False)
class LinearImage(Distribution):
    """Rows ``F x`` with x from another distribution. M1, M2 and m(alpha, beta) stay as they are.

    Attributes
    ----------
    base : Distribution
        Where x comes from.
    factor : array, shape (d, d)
        F, invertible.
    """

    base: Distribution
    factor: ArrayLike

    def __post_init__(self) -> None:
        shape = np.shape(self.factor)
        if shape != (self.base.n_columns, self.base.n_columns):
            raise ArgumentError(f"factor must have shape {(self.base.n_columns,) * 2}, got {shape}.")
        if not np.isfinite(self._factor).all() or np.linalg.matrix_rank(self._factor) < self.base.n_columns:
            raise ArgumentError("factor must be finite and invertible.")

    @cached_property
    def _factor(self) -> Matrix:
        return np.array(self.factor, dtype=np.float64)

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return self.base.n_columns

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return self.base.sample(n_rows, rng) @ self._factor.T

    def second_moment(self) -> Matrix:
        """Return F S F^T."""
        moment = self._factor @ self.base.second_moment() @ self._factor.T
        return np.asarray((moment + moment.T) / 2)

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        inner = self.base.fourth_moment(self._factor.T @ weight @ self._factor)
        return np.asarray(self._factor @ inner @ self._factor.T)

    def largest_form(self, weight: Matrix) -> float:
        """Return a bound on x^T K x."""
        return self.base.largest_form(self._factor.T @ weight @ self._factor)

    @property
    def m1(self) -> float:
        """A bound on |y|, that of the base."""
        return self.base.m1

    @property
    def m2(self) -> float:
        """The largest eigenvalue of E[|y|^2 y y^T], that of the base."""
        return self.base.m2

    def radius_of(self, n_rows: int, failure: float) -> float:
        """Return a bound on the longest of `n_rows` rows."""
        if math.isfinite(self.radius):
            return self.radius
        return float(np.linalg.norm(self._factor, 2)) * self.base.radius_of(n_rows, failure)

    def subsample_size(self, alpha: float, beta: float) -> int:
        """Return m(alpha, beta), that of the base."""
        return self.base.subsample_size(alpha, beta)

    def leverage_beyond(self, part: float) -> float:
        """Return the value of |y|^2 that this part of the rows exceeds, that of the base."""
        return self.base.leverage_beyond(part)


@dataclass(frozen=True)
class WithOutliers(Distribution):
    """A mixture: a row is an outlier with probability `fraction`, else from the base. Section 4.2.

    Attributes
    ----------
    base : Distribution
        Where inliers come from.
    fraction : float
        The share eta of outliers.
    distance : float
        The length of an outlier.
    kind : {"sphere", "least"}
        Outliers in a uniform direction, or along the base's least eigenvector, with a random sign.
    """

    base: Distribution
    fraction: float
    distance: float
    kind: str = "sphere"

    def __post_init__(self) -> None:
        share(self.fraction, "fraction")
        number(self.distance, "distance", above=0)
        choice(self.kind, "kind", ["sphere", "least"])

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return self.base.n_columns

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return self.sample_labelled(n_rows, rng)[0]

    def sample_labelled(self, n_rows: int, rng: np.random.Generator) -> tuple[Matrix, NDArray[np.bool_]]:
        """Draw rows, and say which are inliers."""
        rows = self.base.sample(n_rows, rng)
        inliers = rng.random(n_rows) >= self.fraction
        outliers = int(np.count_nonzero(~inliers))
        if self.kind == "sphere":
            directions = rng.standard_normal((outliers, self.n_columns))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        else:
            directions = rng.choice([-1.0, 1.0], outliers)[:, None] * self._least
        rows[~inliers] = self.distance * directions
        return rows, inliers

    @cached_property
    def _least(self) -> Array:
        return np.asarray(np.linalg.eigh(self.base.second_moment())[1][:, 0])

    def outlier_second_moment(self) -> Matrix:
        """Return E[x x^T] of the outliers alone."""
        if self.kind == "sphere":
            return np.eye(self.n_columns) * (self.distance**2 / self.n_columns)
        return self.distance**2 * np.outer(self._least, self._least)

    def second_moment(self) -> Matrix:
        """Return that of the mixture; the inliers' is ``base.second_moment()``."""
        inliers = (1 - self.fraction) * self.base.second_moment()
        return np.asarray(inliers + self.fraction * self.outlier_second_moment())

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        inliers = (1 - self.fraction) * self.base.fourth_moment(weight)
        return np.asarray(inliers + self.fraction * self._outlier_fourth(weight))

    def _outlier_fourth(self, weight: Matrix) -> Matrix:
        if self.kind == "least":
            form = float(self._least @ weight @ self._least)
            return np.asarray(self.distance**4 * form * np.outer(self._least, self._least))
        d = self.n_columns
        return np.asarray(self.distance**4 * (np.trace(weight) * np.eye(d) + 2 * weight) / (d * (d + 2)))

    def largest_form(self, weight: Matrix) -> float:
        """Return a bound on x^T K x."""
        return max(self.base.largest_form(weight), self._largest_outlier_form(weight))

    def _largest_outlier_form(self, weight: Matrix) -> float:
        if self.kind == "least":
            return self.distance**2 * float(self._least @ weight @ self._least)
        return self.distance**2 * float(np.linalg.eigvalsh((weight + weight.T) / 2)[-1])

    def radius_of(self, n_rows: int, failure: float) -> float:
        """Return a bound on the longest of `n_rows` rows."""
        return max(self.base.radius_of(n_rows, failure), self.distance)

    def subsample_size(self, alpha: float, beta: float) -> int:
        """Return m(alpha, beta) of the mixture: `bernstein_size`, or in two parts if the base is unbounded.

        For an unbounded base (Gaussian) the outliers' part of the sum obeys Bernstein's inequality, the
        number of inliers a scalar one, and the inliers' second moment the base's own m; each gets a third
        of beta and alpha is split so that the three add up.
        """
        if math.isfinite(self.m1):
            return super().subsample_size(alpha, beta)
        a, b = number(alpha, "alpha", above=0), share(beta, "beta") / 3
        eta, d = self.fraction, self.n_columns
        inverse = np.asarray(np.linalg.inv(self.second_moment()), dtype=np.float64)
        variance = eta * largest_eigenvalue(self._outlier_fourth(inverse), self.second_moment())
        largest = max(self._largest_outlier_form(inverse), 1.0)
        outliers = (8 * variance / a**2 + 4 * largest / (3 * a)) * math.log(2 * d / b)
        slack = (1 - eta) * min(a, 4.0) / 8
        inlier_count = (2 * eta * (1 - eta) / slack**2 + 2 / (3 * slack)) * math.log(2 / b)
        within = (a / 2 - slack / (1 - eta)) / (1 + slack / (1 - eta))
        inliers = self.base.subsample_size(within, b) / (1 - eta - slack)
        return math.ceil(max(outliers, inlier_count, inliers))


def log_spaced_gaussian(n_columns: int, condition: float) -> Gaussian:
    """Return a Gaussian whose eigenvalues go from 1 down to 1 / `condition` in equal ratios.

    Parameters
    ----------
    n_columns : int
        The dimension d.
    condition : float
        At least 1.
    """
    d = count(n_columns, "n_columns")
    decades = math.log10(number(condition, "condition", at_least=1))
    return Gaussian(np.diag(np.logspace(0, -decades, d)))
