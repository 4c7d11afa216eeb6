"""Private eigenvalues and traces of the Gram matrix, and a search with the sparse vector technique.

The proof note is ``spectrum.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Number, PrivacyCost, approximate_cost, as_fraction
from dpcov.core.desk import Desk
from dpcov.core.errors import ArgumentError, ExactnessError
from dpcov.core.laplace import discrete_laplace
from dpcov.core.lattice import LatticeMap
from dpcov.core.noise import discrete_gaussian
from dpcov.core.queries.gram import Clipping, GramTask
from dpcov.core.queries.histogram import LogNormGrid, LogNormTask

_LARGEST_NOISE_VARIANCE = 1 << 114
# Generous: float64 needs a few d, and what is claimed is checked afterwards.
_EIGENVALUE_ERROR = 64


@dataclass(frozen=True, eq=False)
class NoisySpectrum:
    """The eigenvalues of a second moment with noise, in descending order before the noise.

    Attributes
    ----------
    eigenvalues : ndarray of float64, shape (d,)
        Of the mean of ``y y^T`` over the mapped and clipped rows; may be negative.
    sigma : float
        Standard deviation of the noise of each.
    """

    eigenvalues: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True)
class NoisyTrace:
    """The trace of a second moment with noise of standard deviation `sigma`."""

    value: float
    sigma: float


class SpectralQueries(Desk):
    """Queries about the eigenvalues of the Gram matrix, and about weighted counts of norms."""

    def eigenvalues(self, clipping: Clipping, rho: Number, *, purpose: str) -> NoisySpectrum:
        """Return the noisy eigenvalues of the second moment of the mapped and clipped rows.

        Notes
        -----
        *Formal guarantee.* `rho`-zCDP for replacing one row. By Hoffman and Wielandt the sorted
        eigenvalues move by at most the Frobenius norm of the change, ``sqrt(2) B^2``; what float64
        adds to it is certified after the fact (``spectrum.md``). Every eigenvalue, rounded to an
        integer, gets discrete Gaussian noise.
        """
        cost = _cost(rho)
        self._check_clipping(clipping)
        lattice, d = self._lattice, self.n_columns
        error = eigenvalue_error(self.n_rows, d, lattice.bound)
        sensitivity_squared = (math.isqrt(2 * lattice.bound**4) + 1 + 2 * d * (error + 1)) ** 2
        variance = Fraction(sensitivity_squared, 2) / cost.rho
        _check_variance(variance, cost)
        self._budget.charge(cost, purpose)
        exact = self._scan(GramTask(clipping, lattice, self._constant), purpose)
        values = certified_eigenvalues(exact, error)
        noisy = values + discrete_gaussian(self._bits, variance, d)
        unit = (clipping.radius / lattice.clip) ** 2 / self.n_rows
        return NoisySpectrum(noisy.astype(np.float64) * unit, math.sqrt(variance) * unit)

    def trace(self, clipping: Clipping, rho: Number, *, purpose: str) -> NoisyTrace:
        """Return the noisy trace of the second moment of the mapped and clipped rows.

        Notes
        -----
        *Formal guarantee.* `rho`-zCDP for replacing one row: a row adds an integer between 0 and B^2
        to the trace, which gets discrete Gaussian noise of variance ``B^4 / (2 rho)``.
        """
        cost = _cost(rho)
        self._check_clipping(clipping)
        lattice = self._lattice
        variance = Fraction(lattice.bound**4, 2) / cost.rho
        _check_variance(variance, cost)
        self._budget.charge(cost, purpose)
        exact = self._scan(GramTask(clipping, lattice, self._constant), purpose)
        noisy = int(np.trace(exact)) + int(discrete_gaussian(self._bits, variance, 1)[0])
        unit = (clipping.radius / lattice.clip) ** 2 / self.n_rows
        return NoisyTrace(noisy * unit, math.sqrt(variance) * unit)

    def first_above(
        self,
        lattice_map: LatticeMap,
        grid: LogNormGrid,
        weights: Sequence[Sequence[int]],
        thresholds: Sequence[int],
        *,
        epsilon: Number,
        purpose: str,
    ) -> int | None:
        """Return the first k whose weighted count of rows, with noise, reaches its noisy threshold.

        Parameters
        ----------
        lattice_map : LatticeMap
            The public map.
        grid : LogNormGrid
            Public bins of the norms.
        weights : sequence of sequences of int
            For each k, what a row in each bin counts.
        thresholds : sequence of int
            For each k, what the sum over all rows is compared with.
        epsilon : number
            What to spend, however many k are passed.
        purpose : str
            What it pays for, for the receipt.

        Returns
        -------
        int or None
            None if no k passes.

        Notes
        -----
        *Formal guarantee.* `epsilon`-DP for replacing one row, charged as (epsilon^2 / 2)-zCDP: the
        sparse vector technique (Dwork and Roth 2014, Algorithm 1) in integers, with discrete Laplace
        noise of scale ``2 D / epsilon`` on the threshold and ``4 D / epsilon`` on every sum. D is the
        greatest spread of the weights of one k (``spectrum.md``).
        """
        budget_epsilon = as_fraction(epsilon, "epsilon")
        if budget_epsilon <= 0:
            raise ArgumentError(f"epsilon must be greater than 0, got {float(budget_epsilon):g}.")
        self._check_map(lattice_map)
        rows = [[int(weight) for weight in line] for line in weights]
        if not rows or len(rows) != len(thresholds) or any(len(line) != grid.n_bins for line in rows):
            raise ArgumentError("weights must have a line for each threshold and a weight for each bin.")
        spread = max(1, *(max(line) - min(line) for line in rows))
        self._budget.charge(approximate_cost(budget_epsilon, Fraction(0)), purpose)
        counts = self._scan(LogNormTask(lattice_map, grid, self._constant), purpose).tolist()
        shift = discrete_laplace(self._bits, 2 * spread / budget_epsilon)
        for k, (line, threshold) in enumerate(zip(rows, thresholds, strict=True)):
            exact = sum(weight * count for weight, count in zip(line, counts, strict=True))
            noisy = exact + discrete_laplace(self._bits, 4 * spread / budget_epsilon)
            if noisy >= int(threshold) + shift:
                return k
        return None


def eigenvalue_error(n_rows: int, d: int, bound: int) -> int:
    """Return what computed eigenvalues may be off by, from public numbers alone."""
    return math.ceil(Fraction(_EIGENVALUE_ERROR * d**2 * n_rows * bound**2, 1 << 53))


def certified_eigenvalues(gram: NDArray[np.int64], error: int) -> NDArray[np.int64]:
    """Return the eigenvalues of an integer matrix, descending, rounded, off by at most `error` + 1.

    A decomposition ``G = V W V^T`` is checked after the fact: with ``R = G - V W V^T`` and
    ``V^T V = I + F``, every eigenvalue is off by at most ``|R| + |F| max |W|`` (Weyl; Ostrowski).
    """
    matrix = gram.astype(np.float64)
    with np.errstate(all="ignore"):
        try:
            values, vectors = np.linalg.eigh(matrix)
        except np.linalg.LinAlgError:
            raise _not_certified() from None
        residual = float(np.linalg.norm(matrix - (vectors * values) @ vectors.T))
        defect = float(np.linalg.norm(vectors.T @ vectors - np.eye(len(matrix))))
        found = residual + defect * float(np.abs(values).max())
    # The sums themselves round by less than a quarter of what is allowed.
    if not 2 * found <= max(error, 1):
        raise _not_certified()
    rounded: NDArray[np.int64] = np.rint(values[::-1]).astype(np.int64)
    return rounded


def _not_certified() -> ExactnessError:
    return ExactnessError(
        "Eigenvalues could not be certified. The LAPACK that NumPy uses here does not compute in IEEE "
        "float64, which the privacy guarantee rests on; nothing was released."
    )


def _cost(rho: Number) -> PrivacyCost:
    cost = PrivacyCost(as_fraction(rho, "rho"))
    if cost.rho <= 0:
        raise ArgumentError(f"rho must be greater than 0, got {float(cost.rho):g}.")
    return cost


def _check_variance(variance: Fraction, cost: PrivacyCost) -> None:
    if variance > _LARGEST_NOISE_VARIANCE:
        raise ArgumentError(f"rho={float(cost.rho):g} is too small for this question; ask for more.")
