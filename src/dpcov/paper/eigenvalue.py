"""The least eigenvalue of a second-moment matrix: the paper's Algorithm 4.

Subsample and aggregate, with a stability-based histogram (after Kamath, Mouzakis, Singhal, Steinke
and Ullman 2022, Section 3). The curator does the work up to line 7; what is left is to choose among
the buckets that it released.
"""

from __future__ import annotations

from fractions import Fraction

from dpcov.core import (
    ArgumentError,
    Clipping,
    Curator,
    NoAnswerError,
)
from dpcov.maps import identity_map
from dpcov.paper.queries import (
    LeastEigenvalueBuckets,
    approximate_arguments,
    bucket_threshold,
    check_group_size,
)
from dpcov.paper.theory.sample_size import eigenvalue_rows


def check_bucket_groups(group_size: int, n_rows: int, epsilon: Fraction, delta: Fraction) -> None:
    """Raise an `ArgumentError` if a bucket that holds all groups is not even released every other time."""
    n_groups = n_rows // group_size
    if n_groups >= bucket_threshold(epsilon, delta):
        return
    needed = int(eigenvalue_rows(1, float(epsilon), float(delta)).rows)
    advice = (
        f"use groups of at most m={n_rows // needed} rows"
        if n_rows >= needed
        else f"use a table of at least {needed} rows, or a larger budget"
    )
    raise ArgumentError(
        f"{n_groups} groups of m={group_size} rows are too few to find the least eigenvalue at this budget, "
        f"which needs {needed} groups; {advice}. Nothing was spent on it."
    )


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
    check_group_size(group_size, n_rows=curator.n_rows, n_columns=curator.n_columns)
    check_bucket_groups(group_size, curator.n_rows, *approximate_arguments(epsilon, delta))
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
