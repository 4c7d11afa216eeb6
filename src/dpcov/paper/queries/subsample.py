"""Subsample and aggregate: Nissim, Raskhodnikova and Smith, "Smooth sensitivity" (STOC 2007).

Split the rows into random groups, compute anything from each group's own rows, and combine the
results privately: a row touches one group, so it changes one result. Algorithm 3 of the paper
combines second moments by a weighted mean, Algorithm 4 and the methods after Kamath et al. 2022
combine by a stability-based histogram, which is here. The proof note is ``groups.md``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core.answers import NoisyBucket
from dpcov.core.budget import Number, PrivacyCost, approximate_arguments, approximate_cost
from dpcov.core.desk import Desk
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.laplace import discrete_laplace, laplace_tail_threshold
from dpcov.core.queries.gram import Clipping
from dpcov.paper.queries.groups import group_eigenvalues, group_projections

Key = TypeVar("Key", bound=Hashable)


def stable_histogram(
    bits: BitSource, results: Iterable[Key], epsilon: Fraction, delta: Fraction
) -> list[tuple[Key, int]]:
    """Return the results that enough groups share, with noisy counts, in a public order.

    Parameters
    ----------
    bits : BitSource
        Where noise comes from.
    results : iterable
        One result a group; they must be sortable.
    epsilon, delta : Fraction
        The guarantee.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP if replacing a row changes one result.
    """
    scale = 2 / epsilon
    threshold = 1 + laplace_tail_threshold(scale, delta / 2)
    counts: dict[Any, int] = {}
    for result in results:
        counts[result] = counts.get(result, 0) + 1
    released = []
    for result in sorted(counts):
        noisy = counts[result] + discrete_laplace(bits, scale)
        if noisy >= threshold:
            released.append((result, noisy))
    return released


def groups_for_agreement(epsilon: Fraction, delta: Fraction) -> int:
    """Return how many groups must share a result for `stable_histogram` to show it, about surely."""
    # Twice the threshold: the noise falls that low with a probability of at most delta / 2.
    return 2 * (1 + laplace_tail_threshold(2 / epsilon, delta / 2))


def bucket_numbers(values: NDArray[np.float64], ratio: float) -> list[tuple[int, int]]:
    """Return a sortable name for the bucket ``[ratio^(k+1), ratio^k)`` of each value; zeros come last."""
    return [
        (0, math.floor(math.log(value) / math.log(ratio))) if value > 0 else (1, 0)
        for value in values.tolist()
    ]


def to_buckets(shared: Sequence[tuple[tuple[int, int], int]], ratio: float) -> tuple[NoisyBucket, ...]:
    """Return the buckets of `bucket_numbers` with their bounds."""
    return tuple(
        NoisyBucket(0.0, 0.0, count) if zero else NoisyBucket(ratio ** (k + 1), ratio**k, count)
        for (zero, k), count in shared
    )


@dataclass(frozen=True, eq=False)
class NoisySubspace:
    """A projection onto a subspace that many groups found up to a cell of the grid.

    Attributes
    ----------
    projection : ndarray of float64, shape (d, d)
        The middle of the cell: symmetric, but a projection up to the size of the cell only.
    count : int
        How many groups found it, with noise.
    """

    projection: NDArray[np.float64]
    count: int


class GroupQueries(Desk):
    """Queries about what random groups of rows have in common."""

    def eigenvalue_buckets(
        self,
        clipping: Clipping,
        group_size: int,
        ratio: float,
        *,
        epsilon: Number,
        delta: Number,
        purpose: str,
    ) -> tuple[tuple[NoisyBucket, ...], ...]:
        """Return, for every eigenvalue from the least on, the buckets that many groups' values share.

        Notes
        -----
        *Formal guarantee.* d stability-based histograms, each (`epsilon`, `delta`)-DP for replacing one
        row, all charged: d times delta-approximate (epsilon^2 / 2)-zCDP (``groups.md``).
        """
        spent = approximate_arguments(epsilon, delta)
        self._check_clipping(clipping)
        if not 0 < ratio < 1:
            raise ArgumentError(f"ratio must lie strictly between 0 and 1, got {ratio:g}.")
        group_size = self.check_group_size(group_size)
        one = approximate_cost(*spent)
        self._budget.charge(PrivacyCost(one.rho * self.n_columns, one.delta * self.n_columns), purpose)
        unit = (clipping.radius / self._lattice.clip) ** 2 / group_size
        values = group_eigenvalues(self._group_grams(clipping, group_size, purpose), unit)
        return tuple(
            to_buckets(stable_histogram(self._bits, bucket_numbers(column, ratio), *spent), ratio)
            for column in values.T
        )

    def shared_subspace(
        self,
        clipping: Clipping,
        group_size: int,
        rank: int,
        cell: float,
        *,
        epsilon: Number,
        delta: Number,
        purpose: str,
    ) -> NoisySubspace | None:
        """Return the subspace of the largest `rank` directions, if many groups agree on it.

        Each group's projection is rounded to a public grid of width `cell`; a stability-based
        histogram tells whether many groups fell into the same cell.

        Returns
        -------
        NoisySubspace or None
            None if no cell was shared by enough groups.

        Notes
        -----
        *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as delta-approximate
        (epsilon^2 / 2)-zCDP (``groups.md``).
        """
        spent = approximate_arguments(epsilon, delta)
        self._check_clipping(clipping)
        d = self.n_columns
        if not 1 <= rank < d:
            raise ArgumentError(f"rank must lie between 1 and {d - 1}, got {rank}.")
        if not 1e-12 < cell < 1:
            raise ArgumentError(f"cell must lie between 1e-12 and 1, got {cell:g}.")
        group_size = self.check_group_size(group_size)
        self._budget.charge(approximate_cost(*spent), purpose)
        projections = group_projections(self._group_grams(clipping, group_size, purpose), rank)
        upper = np.triu_indices(d)
        # Entries of a projection tend to be 0 or 1: a public offset keeps these away from cell edges.
        offset = np.modf(np.arange(1, len(upper[0]) + 1) * (math.sqrt(5) - 1) / 2)[0]
        cells = np.floor(projections[:, upper[0], upper[1]] / cell + offset).astype(np.int64)
        shared = stable_histogram(self._bits, [tuple(line) for line in cells.tolist()], *spent)
        if not shared:
            return None
        place, count = max(shared, key=lambda item: item[1])
        middle = (np.array(place) + 0.5 - offset) * cell
        projection = np.zeros((d, d))
        projection[upper] = middle
        return NoisySubspace(np.triu(projection) + np.triu(projection, 1).T, count)
