"""A private clipping radius, then whichever release is predicted to be better.

Dong, Liang and Yi, "Differentially private covariance revisited" (NeurIPS 2022), the tail-sensitive
algorithm (AdaptiveCov). A noisy trace and a sparse-vector search over radii ``radius / 2^j`` find where
what clipping takes away begins to outweigh the noise; then comes one noisy Gram matrix, or eigenvectors
and eigenvalues apart.

*Assumes* rows no longer than ``radius``; gains if most are much shorter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import positive
from dpcov.core import Clipping, Curator, Gram, LatticeMap, LogNormGrid
from dpcov.laws import nearest_positive_semidefinite
from dpcov.maps import identity_map, integer_map
from dpcov.methods.estimate import Estimate, whole_radius
from dpcov.rivals.gaussian_tables import chi_radius
from dpcov.rivals.queries import FirstAbove, Trace
from dpcov.rivals.separate import separate_release

_TRACE_SHARE = Fraction(1, 8)
_SEARCH_SHARE = Fraction(1, 8)
_FAILURE = 0.1
_HALVINGS = 40
# Weights of the search are multiples of this part of the squared radius.
_UNITS_LOG2 = 100
# The authors' experiments divide their bound on the error of eigenvectors by this.
_EIGENVECTOR_ERROR = 6.0


def estimate_adaptive(curator: Curator, *, radius: float) -> Estimate:
    """Release the second moment of the rows, clipped to a ball that is found privately.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent: 1/8 on the trace, 1/8 on the radius, 3/4 on the release.
    radius : float
        No row is longer than this, or is shrunk to it. It must not come from the rows.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row.
    """
    own = positive(radius, "radius")
    widest = whole_radius(curator, own)
    total = curator.remaining.rho
    # Rows are measured in units of the radius.
    unit_map = integer_map(np.eye(curator.n_columns) / widest)
    answer = curator.ask(Trace(Clipping(unit_map, 1.0), total * _TRACE_SHARE, "trace"))
    upper = answer.value + answer.sigma * math.sqrt(2 * math.log(8 / _FAILURE))
    trace = min(max(upper, 1e-16), 1.0)
    noise = _Noise.at(curator.n_rows, curator.n_columns, float(total * Fraction(3, 4)), trace)
    epsilon = Fraction(math.sqrt(2 * total * _SEARCH_SHARE) * (1 - 1e-12))
    halvings = _search(curator, unit_map, noise, epsilon)
    clip = widest * 2.0 ** min(1 - halvings, 0)
    apart = noise.separate(halvings) < noise.whole(halvings)
    if apart:
        matrix = separate_release(curator, clip)
    else:
        lattice_map = identity_map(curator.n_columns)
        gram = curator.ask(
            Gram(Clipping(lattice_map, clip), curator.remaining.rho, "Gram matrix of the clipped rows")
        )
        inverse = np.linalg.inv(lattice_map.matrix())
        matrix = nearest_positive_semidefinite(inverse @ _within(gram.mean(), clip) @ inverse.T)
    return Estimate(matrix, {"radius": clip, "eigenvalues_apart": apart})


@dataclass(frozen=True)
class _Noise:
    """Predicted Frobenius errors at a radius of 2^-j, in units of the squared radius."""

    gauss: float
    vectors: float
    values: float

    @classmethod
    def at(cls, n: int, d: int, rho: float, trace: float) -> _Noise:
        failure = 0.75 * _FAILURE
        log = math.log(2 / failure)
        frobenius = math.sqrt(d * d + 2 * math.sqrt(d * log) * (1 + math.sqrt(2 * (d - 1))) + 6 * log)
        theta = min((math.log(max(d, 2)) / d) ** 0.3, 0.5)
        spectral = (1 + theta) * (
            2 * math.sqrt(d) + 6 * math.sqrt(math.log(max(d, 2))) / math.sqrt(math.log(1 + theta))
        ) + math.sqrt(2 * math.log(4 / failure))
        return cls(
            gauss=frobenius / (math.sqrt(rho) * n),
            vectors=2**1.25 * math.sqrt(trace * spectral / n) / rho**0.25 / _EIGENVECTOR_ERROR,
            values=math.sqrt(2) * chi_radius(d, failure / 2) / (math.sqrt(rho) * n),
        )

    def whole(self, halvings: int) -> float:
        """Of one noisy Gram matrix."""
        return self.gauss * 4.0**-halvings

    def separate(self, halvings: int) -> float:
        """Of eigenvectors and eigenvalues apart."""
        return self.vectors * 2.0**-halvings + self.values * 4.0**-halvings


def _search(curator: Curator, unit_map: LatticeMap, noise: _Noise, epsilon: Fraction) -> int:
    """Return the number of halvings at which clipping is first found to outweigh the noise."""
    grid = LogNormGrid(lowest=-_HALVINGS, highest=0, halves=1)
    # Longer rows are shrunk to the radius later on, so they count as rows of that length.
    tops = np.minimum(np.concatenate([grid.edges(), [1.0]]), 1.0)
    squares = [Fraction(float(top)) ** 2 for top in tops]
    units = 1 << _UNITS_LOG2
    weights, thresholds = [], []
    for halvings in range(_HALVINGS):
        inner = Fraction(1, 4**halvings)
        weights.append([math.floor(max(square - inner, Fraction(0)) * units) for square in squares])
        least = min(noise.whole(halvings), noise.separate(halvings))
        thresholds.append(math.floor(Fraction(least) * curator.n_rows * units))
    found = curator.ask(FirstAbove(unit_map, grid, weights, thresholds, epsilon, "clipping radius"))
    return _HALVINGS if found is None else found


def _within(matrix: Matrix, radius: float) -> Matrix:
    """Return the matrix with its eigenvalues brought between 0 and the squared radius."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    clipped: Matrix = (vectors * np.clip(values, 0.0, radius**2)) @ vectors.T
    return clipped
