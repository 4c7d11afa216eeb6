"""The sparse vector technique in integers: which of many sums is the first to reach its threshold.

The proof note is ``groups.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dpcov.core import BitSource
from dpcov.paper.queries.laplace import discrete_laplace, laplace_tail_threshold


def first_above(
    bits: BitSource, sums: Iterable[int], thresholds: Iterable[int], *, spread: int, epsilon: Fraction
) -> int | None:
    """Return the first k whose noisy sum reaches its noisy threshold; None if there is none.

    Parameters
    ----------
    bits : BitSource
        Fair bits.
    sums : iterable of int
        Looked at one after another, as long as none passes.
    thresholds : iterable of int
        Public.
    spread : int
        D: replacing a row moves every sum by at most this.
    epsilon : Fraction
        The guarantee.

    Notes
    -----
    *Formal guarantee.* `epsilon`-DP (Dwork and Roth 2014, Algorithm 1): discrete Laplace noise of scale
    ``2 D / epsilon`` on the threshold and ``4 D / epsilon`` on every sum.
    """
    shift = discrete_laplace(bits, 2 * spread / epsilon)
    for k, (total, threshold) in enumerate(zip(sums, thresholds, strict=True)):
        if total + discrete_laplace(bits, 4 * spread / epsilon) >= threshold + shift:
            return k
    return None


def off_by_at_most(sums: int, spread: int, epsilon: Fraction, failure: Fraction) -> int:
    """Return B: but for a probability `failure`, a sum that passes is at least its threshold less B.

    Half for the threshold's noise, half for that of all sums.
    """
    of_threshold = laplace_tail_threshold(2 * spread / epsilon, failure / 2)
    of_sums = laplace_tail_threshold(4 * spread / epsilon, failure / (2 * sums))
    return of_threshold + of_sums - 2
