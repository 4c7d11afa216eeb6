"""What random groups of rows have in common: all their eigenvalues, and the subspace above a gap.

The groups and the stability-based histogram are those of the paper's Algorithm 4. The proof note is
``shared.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Clipping, PrivacyCost
from dpcov.core.budget import Number
from dpcov.core.query import Table
from dpcov.paper.queries.approximate import approximate_arguments, approximate_cost
from dpcov.paper.queries.group_grams import GroupQuery
from dpcov.paper.queries.groups import group_eigenvalues
from dpcov.paper.queries.subsample import (
    NoisyBucket,
    bucket_numbers,
    check_histogram,
    check_ratio,
    stable_histogram,
    to_buckets,
)


@dataclass(frozen=True, eq=False)
class EigenvalueBuckets(GroupQuery):
    """Ask, for every eigenvalue, which buckets many groups share; a tuple of `NoisyBucket` from the least on.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        Rows of a group.
    ratio : float
        Buckets are ``[ratio^(k+1), ratio^k)`` and {0}.
    epsilon, delta : number
        What to spend on each eigenvalue.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* d stability-based histograms, each (`epsilon`, `delta`)-DP for replacing one row, all
    charged: d times delta-approximate (epsilon^2 / 2)-zCDP (``shared.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import EigenvalueBuckets
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2)) * [1.5, 6.0]
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=2, delta=1e-5)), seeded)
    >>> least, largest = curator.ask(
    ...     EigenvalueBuckets(Clipping(identity_map(2), 50.0), 200, 0.25, epsilon=1, delta=1e-6, purpose="")
    ... )
    >>> [bucket.lower for bucket in least], [bucket.lower for bucket in largest]
    ([1.0], [16.0])
    """

    clipping: Clipping
    group_size: int
    ratio: float
    epsilon: Number
    delta: Number
    purpose: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What one histogram for each column costs."""
        one = approximate_cost(*approximate_arguments(self.epsilon, self.delta))
        d = self.clipping.lattice_map.n_columns
        return (Charge(self.purpose, PrivacyCost(one.rho * d, one.delta * d)),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table."""
        super().check(table)
        check_ratio(self.ratio)
        check_histogram(*approximate_arguments(self.epsilon, self.delta))

    def answer(
        self, exact: NDArray[np.int64], table: Table, bits: BitSource
    ) -> tuple[tuple[NoisyBucket, ...], ...]:
        """Add noise to the count of every non-empty bucket, and keep those that pass."""
        values = group_eigenvalues(exact, self.clipping.unit(table.lattice) / self.group_size)
        spent = approximate_arguments(self.epsilon, self.delta)
        return tuple(
            to_buckets(stable_histogram(bits, bucket_numbers(column, self.ratio), *spent), self.ratio)
            for column in values.T
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


@dataclass(frozen=True, eq=False)
class SharedSubspace(GroupQuery):
    """Ask for the subspace of the largest `rank` directions, if many groups agree on it.

    Each group's projection is rounded to a public grid of width `cell`; a stability-based histogram tells
    whether many groups fell into the same cell. The answer is a `NoisySubspace`, or None if no cell was
    shared by enough groups.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        Rows of a group.
    rank : int
        Less than the number of columns.
    cell : float
        The width of the grid for the entries of a projection.
    epsilon, delta : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as delta-approximate
    (epsilon^2 / 2)-zCDP (``shared.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import SharedSubspace
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2)) * [1.0, 1e-4]
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1, delta=1e-6)), seeded)
    >>> answer = curator.ask(
    ...     SharedSubspace(
    ...         Clipping(identity_map(2), 10.0), 200, 1, 0.01, epsilon=1, delta=1e-6, purpose="subspace"
    ...     )
    ... )
    >>> np.allclose(answer.projection, [[1.0, 0.0], [0.0, 0.0]], atol=0.01)
    True
    """

    clipping: Clipping
    group_size: int
    rank: int
    cell: float
    epsilon: Number
    delta: Number
    purpose: str

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table."""
        d = table.n_columns
        if not 1 <= self.rank < d:
            raise ArgumentError(f"rank must lie between 1 and {d - 1}, got {self.rank}.")
        if not 1e-12 < self.cell < 1:
            raise ArgumentError(f"cell must lie between 1e-12 and 1, got {self.cell:g}.")
        super().check(table)
        check_histogram(*approximate_arguments(self.epsilon, self.delta))

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisySubspace | None:
        """Add noise to the count of every non-empty cell, and keep the fullest of those that pass."""
        d = table.n_columns
        projections = group_projections(exact, self.rank)
        upper = np.triu_indices(d)
        # Entries of a projection tend to be 0 or 1: a public offset keeps these away from cell edges.
        offset = np.modf(np.arange(1, len(upper[0]) + 1) * (math.sqrt(5) - 1) / 2)[0]
        cells = np.floor(projections[:, upper[0], upper[1]] / self.cell + offset).astype(np.int64)
        spent = approximate_arguments(self.epsilon, self.delta)
        shared = stable_histogram(bits, [tuple(line) for line in cells.tolist()], *spent)
        if not shared:
            return None
        place, count = max(shared, key=lambda item: item[1])
        middle = (np.array(place) + 0.5 - offset) * self.cell
        projection = np.zeros((d, d))
        projection[upper] = middle
        return NoisySubspace(np.triu(projection) + np.triu(projection, 1).T, count)


def group_projections(grams: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
    """Return the projection onto the largest `rank` directions of each group's matrix.

    Zero for a matrix that has no computable eigenvectors: no error may depend on rows.
    """
    projections = np.zeros(grams.shape)
    with np.errstate(all="ignore"):
        for group, matrix in enumerate(grams.astype(np.float64)):
            try:
                vectors = np.linalg.eigh(matrix)[1][:, -rank:]
            except np.linalg.LinAlgError:
                continue
            projections[group] = vectors @ vectors.T
    return projections
