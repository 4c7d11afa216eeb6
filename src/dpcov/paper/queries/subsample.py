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

from dpcov.core import ArgumentError, BitSource
from dpcov.paper.queries.laplace import discrete_laplace, laplace_tail_threshold

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class NoisyBucket:
    """A bucket [lower, upper) of group statistics whose noisy count passed the threshold."""

    lower: float
    upper: float
    count: int


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
    scale, threshold = 2 / epsilon, bucket_threshold(epsilon, delta)
    counts: dict[Any, int] = {}
    for result in results:
        counts[result] = counts.get(result, 0) + 1
    released = []
    for result in sorted(counts):
        noisy = counts[result] + discrete_laplace(bits, scale)
        if noisy >= threshold:
            released.append((result, noisy))
    return released


def bucket_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Return the noisy count from which on `stable_histogram` shows a result."""
    return 1 + laplace_tail_threshold(2 / epsilon, delta / 2)


def check_histogram(epsilon: Fraction, delta: Fraction) -> None:
    """Raise an `ArgumentError` for numbers that `stable_histogram` does not take."""
    bucket_threshold(epsilon, delta)


def groups_for_agreement(epsilon: Fraction, delta: Fraction) -> int:
    """Return how many groups must share a result for `stable_histogram` to show it, about surely."""
    # Twice the threshold: the noise falls that low with a probability of at most delta / 2.
    return 2 * bucket_threshold(epsilon, delta)


def check_ratio(ratio: float) -> None:
    """Raise an `ArgumentError` for a ratio that makes no buckets."""
    if not 0 < ratio < 1:
        raise ArgumentError(f"ratio must lie strictly between 0 and 1, got {ratio:g}.")


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
