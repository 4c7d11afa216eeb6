"""Private eigenvalues and traces of the Gram matrix.

The proof note is ``spectrum.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import BitSource, Clipping, ExactnessError, RowTask
from dpcov.core.budget import Number
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries.gram import GramTask
from dpcov.core.query import GaussianQuery, Table, check_variance

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


@dataclass(frozen=True, eq=False)
class Eigenvalues(GaussianQuery):
    """Ask for the eigenvalues of the second moment of the mapped and clipped rows: a `NoisySpectrum`.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row. By Hoffman and Wielandt the sorted eigenvalues move
    by at most the Frobenius norm of the change, ``sqrt(2) B^2``; what float64 adds to it is certified after
    the fact (``spectrum.md``). Every eigenvalue, rounded to an integer, gets rounded Gaussian noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import Eigenvalues
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 2.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> answer = curator.ask(Eigenvalues(Clipping(identity_map(2), 3.0), rho=1, purpose="eigenvalues"))
    >>> np.allclose(answer.eigenvalues, [2.0, 0.5], atol=0.1)
    True
    """

    clipping: Clipping
    rho: Number
    purpose: str

    def variance(self, table: Table) -> Fraction:
        """Parameter of the noise of each eigenvalue, in squared lattice units."""
        d, bound = table.n_columns, table.lattice.bound
        error = eigenvalue_error(table.n_rows, d, bound)
        sensitivity_squared = (math.isqrt(2 * bound**4) + 1 + 2 * d * (error + 1)) ** 2
        return Fraction(sensitivity_squared, 2) / self.cost.rho

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a clipping that does not fit, or noise that does not."""
        self.clipping.check(table)
        check_variance(self.variance(table), self.cost, "eigenvalues")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix."""
        del bits
        return GramTask(self.clipping, table.lattice, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisySpectrum:
        """Add noise to the certified eigenvalues."""
        error = eigenvalue_error(table.n_rows, table.n_columns, table.lattice.bound)
        variance = self.variance(table)
        noisy = certified_eigenvalues(exact, error) + rounded_gaussian(bits, variance, table.n_columns)
        unit = self.clipping.unit(table.lattice) / table.n_rows
        return NoisySpectrum(noisy.astype(np.float64) * unit, math.sqrt(variance) * unit)


@dataclass(frozen=True, eq=False)
class Trace(GaussianQuery):
    """Ask for the trace of the second moment of the mapped and clipped rows: a `NoisyTrace`.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row: a row adds an integer between 0 and B^2 to the
    trace, which gets rounded Gaussian noise of variance ``B^4 / (2 rho)`` (``spectrum.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import Trace
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 2.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> abs(curator.ask(Trace(Clipping(identity_map(2), 3.0), rho=1, purpose="trace")).value - 2.5) < 0.1
    True
    """

    clipping: Clipping
    rho: Number
    purpose: str

    def variance(self, table: Table) -> Fraction:
        """Parameter of the noise, in squared lattice units."""
        return Fraction(table.lattice.bound**4, 2) / self.cost.rho

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a clipping that does not fit, or noise that does not."""
        self.clipping.check(table)
        check_variance(self.variance(table), self.cost, "a trace")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix."""
        del bits
        return GramTask(self.clipping, table.lattice, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyTrace:
        """Add noise to the exact trace."""
        variance = self.variance(table)
        noisy = int(np.trace(exact)) + int(rounded_gaussian(bits, variance, 1)[0])
        unit = self.clipping.unit(table.lattice) / table.n_rows
        return NoisyTrace(noisy * unit, math.sqrt(variance) * unit)


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
