"""Private answers: integers with noise, on a public grid, with the exact law of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.lattice import LatticeMap
from dpcov.core.queries.histogram import LogNormGrid


@dataclass(frozen=True, eq=False)
class NoisyGram:
    """The Gram matrix of mapped and clipped rows, with discrete Gaussian noise.

    Attributes
    ----------
    integers : ndarray of int64, shape (d, d)
        Symmetric. One unit stands for ``unit`` in the sum over rows of ``y y^T``.
    unit : float
        The grid: every entry of the released sum is an integer multiple of it.
    variance : int
        Parameter of the noise on the diagonal, in squared units. Off the diagonal it is half of it.
    radius : float
        Every row's image lies in the ball of this radius.
    n_rows : int
        The number of rows that were read.
    lattice_map : LatticeMap
        The public map that was applied.
    """

    integers: NDArray[np.int64]
    unit: float
    variance: int
    radius: float
    n_rows: int
    lattice_map: LatticeMap

    def mean(self) -> NDArray[np.float64]:
        """Return the noisy second moment of the mapped rows: the sum divided by the rows read."""
        return self.integers.astype(np.float64) * (self.unit / self.n_rows)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on the diagonal of `mean`; off it, divide by sqrt 2."""
        return float(np.sqrt(float(self.variance))) * self.unit / self.n_rows


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """A histogram of the rows' norms, with discrete Gaussian noise.

    Attributes
    ----------
    counts : ndarray of int64, shape (grid.n_bins,)
        May be negative.
    variance : Fraction
        Parameter of the noise of each count.
    grid : LogNormGrid
        The public bins.
    n_rows : int
        The number of rows that were read.
    """

    counts: NDArray[np.int64]
    variance: Fraction
    grid: LogNormGrid
    n_rows: int


@dataclass(frozen=True)
class NoisyCount:
    """A number of rows with discrete Gaussian noise of parameter `variance`; may be negative."""

    count: int
    variance: Fraction


@dataclass(frozen=True)
class NoisyBucket:
    """A bucket [lower, upper) of group statistics whose noisy count passed the threshold."""

    lower: float
    upper: float
    count: int


@dataclass(frozen=True)
class NoisyAgreement:
    """How often the second moments of two groups of rows are close (Algorithm 3, lines 4 to 10).

    Attributes
    ----------
    score : float
        The share of ordered pairs of groups, equal ones included, within the distance, with noise.
    largest_noise : float
        The noise is never larger than this.
    at_least : Fraction
        The true share is never below this: the score less the largest noise, without rounding.
    n_groups : int
        The number of groups.
    """

    score: float
    largest_noise: float
    at_least: Fraction
    n_groups: int


@dataclass(frozen=True, eq=False)
class NoisyAggregate:
    """A weighted mean of groups' second moments with multiplicative noise (Algorithm 3).

    Attributes
    ----------
    second_moment : ndarray of float64, shape (d, d)
        Symmetric, positive semidefinite up to its rounding to a public grid.
    noise_scale : float
        eta: the matrix is ``S^1/2 (I + eta N) (I + eta N)^T S^1/2``.
    agreement : NoisyAgreement
        The test that it passed.
    """

    second_moment: NDArray[np.float64]
    noise_scale: float
    agreement: NoisyAgreement
