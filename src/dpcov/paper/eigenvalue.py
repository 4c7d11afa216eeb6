"""The least eigenvalue of a second-moment matrix: the paper's Algorithm 4.

Subsample and aggregate, with a stability-based histogram (after Kamath, Mouzakis, Singhal, Steinke
and Ullman 2022, Section 3). The curator does the work up to line 7; what is left is to choose among
the buckets that it released.
"""

from __future__ import annotations

from fractions import Fraction

from dpcov.core import (
    Clipping,
    Curator,
    NoAnswerError,
)
from dpcov.maps import identity_map
from dpcov.paper.queries import LeastEigenvalueBuckets


def find_least_eigenvalue(
    curator: Curator, *, group_size: int, alpha: float, radius: float, epsilon: Fraction, delta: Fraction
) -> float:
    """Find a lower estimate of the least eigenvalue of the rows' second moment.

    Parameters
    ----------
    curator : Curator
        Whose rows to ask about.
    group_size : int
        m: a random group of this size keeps the spectrum up to 1 +- alpha.
    alpha : float
        Width of the buckets: each is ``[(1 - alpha)^(k+1), (1 - alpha)^k)``.
    radius : float
        Rows longer than this are shrunk to it, which makes the groups' matrices exact.
    epsilon, delta : Fraction
        What to spend.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as delta-approximate
    (epsilon^2 / 2)-zCDP. *Utility.* If every group's least eigenvalue is within 1 +- alpha of the table's,
    the result is between ``(1 - alpha)^2`` and ``1 + alpha`` times it (the paper overlooks that three
    buckets may fill). Of several buckets the lowest is taken, since the result serves as a lower
    bound; the paper leaves that open.
    """
    clipping = Clipping(identity_map(curator.n_columns), radius)
    buckets = curator.ask(
        LeastEigenvalueBuckets(
            clipping, group_size, 1 - alpha, epsilon=epsilon, delta=delta, purpose="least eigenvalue"
        )
    )
    lowest = min((bucket.lower for bucket in buckets), default=None)
    if lowest is None:
        raise NoAnswerError(
            "no bucket of least eigenvalues held enough groups of rows to be released. "
            "Use smaller groups, a larger alpha or more budget; what this question cost is spent."
        )
    if lowest == 0:
        raise NoAnswerError(
            "the least eigenvalue of many groups of rows is 0: some combination of columns is constant. "
            "Leave a column out; what this question cost is spent."
        )
    return lowest
