"""The least eigenvalue of a table, from random groups of its rows: the paper's Algorithm 4 up to line 7.

The proof note is ``groups.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core import BitSource, Clipping
from dpcov.core.budget import Number
from dpcov.core.query import Table
from dpcov.paper.queries.approximate import approximate_arguments
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
class LeastEigenvalueBuckets(GroupQuery):
    """Ask where the least eigenvalues of random groups lie; the answer is a tuple of `NoisyBucket`.

    Random groups of `group_size` rows, the least eigenvalue of each group's second moment, and a
    stability-based histogram over the buckets ``[ratio^(k+1), ratio^k)`` and {0}. The answer holds the
    buckets whose noisy count is large enough.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        Rows of a group.
    ratio : float
        Between 0 and 1.
    epsilon, delta : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as delta-approximate
    (epsilon^2 / 2)-zCDP. The counts move by 2 in l1 norm; non-empty buckets get discrete Laplace noise of
    scale 2/epsilon; a bucket that one table lacks has count 1 in the other and passes with probability at
    most delta/2, and there are at most two (``groups.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.paper.queries import LeastEigenvalueBuckets
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2)) * [1.0, 3.0]
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1, delta=1e-6)), seeded)
    >>> clipping = Clipping(identity_map(2), radius=20.0)
    >>> buckets = curator.ask(
    ...     LeastEigenvalueBuckets(clipping, 200, 0.5, epsilon=1, delta=1e-6, purpose="least eigenvalue")
    ... )
    >>> [(bucket.lower, bucket.upper) for bucket in buckets]
    [(1.0, 2.0), (0.5, 1.0)]
    """

    clipping: Clipping
    group_size: int
    ratio: float
    epsilon: Number
    delta: Number
    purpose: str

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table."""
        super().check(table)
        check_ratio(self.ratio)
        check_histogram(*approximate_arguments(self.epsilon, self.delta))

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> tuple[NoisyBucket, ...]:
        """Add noise to the count of every non-empty bucket, and keep those that pass."""
        least = group_eigenvalues(exact, self.clipping.unit(table.lattice) / self.group_size)[:, 0]
        spent = approximate_arguments(self.epsilon, self.delta)
        return to_buckets(stable_histogram(bits, bucket_numbers(least, self.ratio), *spent), self.ratio)
