"""Gaussian tables of unknown scale: private eigenvalues, a preconditioner, then the recursion.

Kamath, Mouzakis, Singhal, Steinke and Ullman, "A private and computationally-efficient estimator for
unbounded Gaussians" (COLT 2022). Random groups of rows agree on every eigenvalue up to a constant factor,
which a stability-based histogram finds; where two neighbouring eigenvalues lie far apart, groups also agree
on the subspace above the gap, which is then shrunk. What is left is a table with known bounds, for the
recursion of Kamath et al. 2019.

*Assumes* rows from a Gaussian with mean zero, and many of them. *Deviations* stand in ``docs/arena.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import ArgumentError, Clipping, Curator, NoAnswerError
from dpcov.maps import identity_map
from dpcov.methods.estimate import Estimate
from dpcov.paper.queries import groups_for_agreement
from dpcov.paper.radius import find_covering_radius
from dpcov.rivals.preconditioning import precondition_and_release
from dpcov.rivals.queries import EigenvalueBuckets, SharedSubspace

_RADIUS_SHARE = Fraction(1, 20)
_EIGENVALUE_SHARE = Fraction(1, 5)
_SUBSPACE_SHARE = Fraction(1, 10)
_RATIO = 0.25
_LEAST_GROUP = 8
# A subspace is worth its share of the budget if it brings the condition number down by this.
_WORTHWHILE = 100
# A cell is this many times as wide as all entries of a projection stray, taken together.
_CELL_ROOM = 4


def estimate_unbounded(curator: Curator) -> Estimate:
    """Release the second moment of a Gaussian table with mean zero and any covariance.

    Parameters
    ----------
    curator : Curator
        With a delta in its budget. All of it is spent.

    Notes
    -----
    *Formal guarantee.* delta-approximate zCDP with the remaining rho and delta, for replacing one row,
    whatever the rows are. Refused before anything is spent if there are too few rows for groups to agree.
    """
    total = curator.remaining
    d = curator.n_columns
    epsilon = _epsilon(total.rho * _EIGENVALUE_SHARE / d)
    delta = total.delta / (2 * d)
    size = _group_size(curator, epsilon, delta)
    radius = find_covering_radius(curator, total.rho * _RADIUS_SHARE).radius
    spectrum = _find_spectrum(curator, radius, size, epsilon, delta)
    forms, condition = np.eye(d) / math.sqrt(spectrum.lower[-1]), spectrum.upper[0] / spectrum.lower[-1]
    facts = {"group_size": size, "condition_at_most": condition, "subspace": False}
    gap = _find_gap(d, size, spectrum)
    if gap is not None and gap.condition < condition / _WORTHWHILE:
        answer = curator.ask(
            SharedSubspace(
                Clipping(identity_map(d), radius),
                size,
                gap.above,
                gap.cell,
                epsilon=_epsilon(total.rho * _SUBSPACE_SHARE),
                delta=total.delta / 2,
                purpose="subspace above the gap",
            )
        )
        if answer is not None:
            forms, condition = gap.close(answer.projection), gap.condition
            facts |= {"condition_at_most": condition, "subspace": True}
    return precondition_and_release(curator, forms, max(condition, 1.0), facts)


@dataclass(frozen=True)
class _Spectrum:
    """Bounds on every eigenvalue, descending."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class _Gap:
    """Two neighbouring eigenvalues that lie far apart, and what closing the gap would give.

    Attributes
    ----------
    above : int
        How many eigenvalues lie above it.
    cell : float
        The precision that groups agree to on the subspace above it.
    factor : float
        What the directions above are multiplied by.
    lowest, condition : float
        Bounds on the least eigenvalue and on the condition number after that.
    """

    above: int
    cell: float
    factor: float
    lowest: float
    condition: float

    def close(self, projection: Matrix) -> Matrix:
        """Return the map that closes the gap and makes the least eigenvalue at least 1."""
        top = np.linalg.eigh(projection)[1][:, -self.above :]
        shrinking: Matrix = np.eye(len(top)) - (1 - self.factor) * top @ top.T
        return shrinking / math.sqrt(self.lowest)


def _find_gap(d: int, size: int, spectrum: _Spectrum) -> _Gap | None:
    """Return the widest gap, if groups can agree on the subspace above it."""
    ratios = [spectrum.lower[k - 1] / spectrum.upper[k] for k in range(1, d)]
    if not ratios or max(ratios) <= 1:
        return None
    above = ratios.index(max(ratios)) + 1
    entries = d * (d + 1) // 2
    cell = _CELL_ROOM * entries / math.sqrt(max(ratios) * size)
    if cell >= 1:
        return None
    # What an error of the subspace lets through from above adds to the directions below.
    leak = spectrum.upper[0] * (d * cell / 2) ** 2
    below = spectrum.upper[above] + leak
    factor = math.sqrt(min(1.0, below / spectrum.lower[above - 1]))
    highest = 2 * max(spectrum.upper[0] * factor**2, below)
    lowest = spectrum.lower[-1] / 2
    return _Gap(above, cell, factor, lowest, highest / lowest)


def _group_size(curator: Curator, epsilon: Fraction, delta: Fraction) -> int:
    """Return the largest groups of which enough can agree, or raise if they hold too few rows."""
    # A value near the edge of a bucket splits the groups among two.
    groups = 2 * groups_for_agreement(epsilon, delta)
    size = curator.n_rows // groups
    least = _LEAST_GROUP * curator.n_columns
    if size < least:
        raise ArgumentError(
            f"method 'unbounded' needs at least {groups * least} rows ({groups} groups of {least}) at this "
            f"budget; the table has {curator.n_rows}. Nothing was spent."
        )
    return size


def _find_spectrum(
    curator: Curator, radius: float, size: int, epsilon: Fraction, delta: Fraction
) -> _Spectrum:
    d = curator.n_columns
    clipping = Clipping(identity_map(d), radius)
    answers = curator.ask(
        EigenvalueBuckets(clipping, size, _RATIO, epsilon=epsilon, delta=delta, purpose="eigenvalues")
    )
    # What the eigenvalues of a group of Gaussian rows are off by.
    spread = math.sqrt(d / size)
    lower, upper = [], []
    for buckets in reversed(answers):
        found = [bucket for bucket in buckets if bucket.lower > 0]
        if not found:
            raise NoAnswerError(
                "groups of rows do not agree on the eigenvalues, or some combination of columns is constant. "
                "Leave a column out, give more budget or use another method; what the question cost is spent."
            )
        lower.append(min(bucket.lower for bucket in found) / (1 + spread) ** 2)
        upper.append(max(bucket.upper for bucket in found) / (1 - spread) ** 2)
    return _Spectrum(tuple(lower), tuple(upper))


def _epsilon(rho: Fraction) -> Fraction:
    """Return an epsilon whose square is at most 2 rho; a hair less, so that rounding cannot exceed it."""
    return Fraction(math.sqrt(2 * rho) * (1 - 1e-12))
