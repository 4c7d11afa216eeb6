"""Statistics of groups of rows: functions of the groups' exact Gram matrices.

They run inside the core, between a scan and the noise. Each group's number depends on that
group's matrix alone, so replacing a row changes one group's numbers. ``groups.md`` has the proofs.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource


def random_groups(bits: BitSource, n_rows: int, group_size: int) -> tuple[NDArray[np.int64], int]:
    """Split positions into random groups of equal size (Algorithms 3 and 4, line 1).

    Returns
    -------
    groups : ndarray of int64, shape (n_rows,)
        The group of each position; -1 for the remainder that fills no group.
    n_groups : int
    """
    n_groups = n_rows // group_size
    order = random_order(bits, n_rows)
    groups = np.full(n_rows, -1, dtype=np.int64)
    groups[order[: n_groups * group_size]] = np.repeat(np.arange(n_groups), group_size)
    return groups, n_groups


def random_order(bits: BitSource, n_rows: int) -> NDArray[np.int64]:
    """Return the positions below `n_rows` in random order: every order is equally likely."""
    while True:
        words = bits.words(n_rows)
        order: NDArray[np.int64] = np.argsort(words)
        ascending = words[order]
        # Two equal words would be left in an order that is not random: draw again.
        if (ascending[1:] != ascending[:-1]).all():
            return order


def group_eigenvalues(grams: NDArray[np.int64], unit: float) -> NDArray[np.float64]:
    """Return the ascending eigenvalues of each group's matrix times `unit`, at least 0."""
    with np.errstate(all="ignore"):
        values = _eigenvalues(grams.astype(np.float64) * unit)
    positive: NDArray[np.float64] = np.where(values > 0, values, 0.0)
    return positive


SLACK = 1.01
"""Matrices that are found to be within a distance r are within ``SLACK * (1 + r) - 1`` in truth."""

_CERTIFIED = 1e-3
_DIGITS = 50
CHANCE_SHARE = Fraction(1, 100)
"""Of a step's delta: what the choice of compared groups may cost."""


def compared_groups(n_groups: int, delta: Fraction) -> int:
    """Return with how many groups each is compared, itself included: all, or enough to speak for all.

    ``s = 2 ceil(25 L + 14)`` others with ``L = ln((T + 1) / (CHANCE_SHARE delta))``: then groups that agree
    with six of ten of them agree with half of all groups, but with a probability of ``CHANCE_SHARE delta``
    (``multiplicative.md``).
    """
    with localcontext(Context(prec=_DIGITS)):
        chance = CHANCE_SHARE * delta / (n_groups + 1)
        log = Decimal(chance.denominator).ln() - Decimal(chance.numerator).ln()
        half = int((25 * log + 14 + Decimal("1e-20")).to_integral_value(ROUND_CEILING))
    return min(n_groups, 2 * half + 1)


def agreeing_groups(grams: NDArray[np.int64], distance: float, compared: int) -> NDArray[np.int64]:
    """Count for each group with how many it agrees: second moments within `distance` of each other.

    dist is the paper's semimetric (Appendix A): the larger of ``|A^-1/2 B A^-1/2 - I|`` and
    ``|B^-1/2 A B^-1/2 - I|``. With the eigenvalues m of ``A^-1 B`` it is
    ``max(max m, 1 / min m) - 1``; infinite where either matrix is singular, or so close to it that
    float64 cannot certify an eigenvalue.

    Parameters
    ----------
    grams : ndarray of int64, shape (groups, d, d)
        Of groups in random order.
    distance : float
        How close.
    compared : int
        Each group is compared with itself and with the others next to it on a ring, as many before as behind.

    Returns
    -------
    ndarray of int64, shape (groups,)
        At least 1: every group agrees with itself, a singular one with no other.
    """
    n_groups = len(grams)
    everyone = compared == n_groups
    reach = n_groups - 1 if everyone else compared // 2
    scaled = grams.astype(np.float64)
    with np.errstate(all="ignore"):
        roots = [_certified_root(matrix, distance) for matrix in scaled]
        regular = np.array([root is not None for root in roots], dtype=np.bool_)
        if not everyone:
            scaled, regular = (np.concatenate([part, part[:reach]]) for part in (scaled, regular))
        counts = np.ones(len(scaled), dtype=np.int64)
        for t, root in enumerate(roots):
            others = slice(t + 1, t + 1 + reach)
            if root is None:
                continue
            # Singular ones too: a pair's place in the batch must not depend on other groups.
            close = _close(root, scaled[others], distance) & regular[others]
            counts[others] += close
            counts[t] += np.count_nonzero(close)
    # The ring closes: what lies beyond its end is its beginning.
    counts[: len(counts) - n_groups] += counts[n_groups:] - 1
    return counts[:n_groups]


def _close(root: NDArray[np.float64], others: NDArray[np.float64], distance: float) -> NDArray[np.bool_]:
    """Tell which matrices are within `distance` of the one that `root` makes the identity."""
    d = len(root)
    half = (others.reshape(-1, d) @ root.T).reshape(others.shape)
    mapped = (half.transpose(0, 2, 1).reshape(-1, d) @ root.T).reshape(others.shape)
    # Eigenvalues lie within the Frobenius norm of 1, and about the diagonal: most pairs need no more.
    lengths = np.square(mapped - np.eye(d)).sum(axis=(1, 2))
    close: NDArray[np.bool_] = lengths <= (distance / (1 + distance)) ** 2
    diagonal = np.diagonal(mapped, axis1=1, axis2=2)
    apart = (diagonal.max(axis=1) > 1 + distance) | (diagonal.min(axis=1) * (1 + distance) < 1)
    open_ = np.flatnonzero(~close & ~apart)
    eigenvalues = _eigenvalues(mapped[open_])
    least, greatest = eigenvalues[:, 0], eigenvalues[:, -1]
    # least * (1 + distance) >= 1 says 1/least - 1 <= distance, and is false for least <= 0.
    close[open_] = (greatest <= 1 + distance) & (least * (1 + distance) >= 1)
    return close


def _certified_root(matrix: NDArray[np.float64], distance: float) -> NDArray[np.float64] | None:
    """Return R with ``R matrix R^T = I``, or None if rounding could blur an eigenvalue by 0.1%.

    Scaled to a diagonal of about 1, the product ``R B R^T`` of a B within `distance` has an error
    of at most ``16 d^2 eps |R|^2 |B|``: ``groups.md`` adds it up.
    """
    d = len(matrix)
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0).all():
        return None
    # Powers of two: scaling by them is exact.
    powers = np.exp2(-np.rint(np.log2(diagonal) / 2))
    try:
        lower = np.linalg.cholesky(matrix * powers[:, None] * powers)
    except np.linalg.LinAlgError:
        return None
    root = _triangular_inverse(np.asarray(lower, dtype=np.float64))
    error = 16 * d**2 * np.finfo(np.float64).eps * float((root**2).sum()) * 2 * d
    if not error * (1 + distance) ** 2 <= _CERTIFIED:
        return None
    result: NDArray[np.float64] = root * powers
    return result


def _triangular_inverse(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert by substitution: unlike elimination with pivots, its error bound has no growth factor."""
    inverse = np.zeros_like(lower)
    for i, row in enumerate(lower):
        inverse[i, i] = 1.0
        inverse[i] = (inverse[i] - (row[:i, None] * inverse[:i]).sum(axis=0)) / row[i]
    return inverse


def _eigenvalues(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending eigenvalues, zeros for a matrix that has none: no error may depend on rows."""
    finite = matrices.copy()
    finite[~np.isfinite(finite).all(axis=(1, 2))] = 0.0
    try:
        return np.asarray(np.linalg.eigvalsh(finite), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.array([_eigenvalues_of_one(matrix) for matrix in finite])


def _eigenvalues_of_one(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    try:
        return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros(len(matrix))
