"""Statistics of groups of rows: functions of the groups' exact Gram matrices.

They run inside the core, between a scan and the noise. Each group's number depends on that
group's matrix alone, so replacing a row changes one group's numbers. ``groups.md`` has the proofs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource
from dpcov.core.sampling import random_order


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


def least_eigenvalues(grams: NDArray[np.int64], unit: float) -> NDArray[np.float64]:
    """Return the least eigenvalue of each group's matrix times `unit`, at least 0."""
    with np.errstate(all="ignore"):
        least = _eigenvalues(grams.astype(np.float64) * unit)[:, 0]
    positive: NDArray[np.float64] = np.where(least > 0, least, 0.0)
    return positive


def count_agreeing_pairs(grams: NDArray[np.int64], distance: float) -> int:
    """Count the pairs of groups t < t' with dist(t, t') <= `distance`.

    dist is the paper's semimetric (Appendix A): the larger of ``|A^-1/2 B A^-1/2 - I|`` and
    ``|B^-1/2 A B^-1/2 - I|``. With the eigenvalues m of ``A^-1 B`` it is
    ``max(max m, 1 / min m) - 1``; infinite where either matrix is singular.
    """
    scaled = grams.astype(np.float64)
    roots = [_inverse_root(matrix) for matrix in scaled]
    regular = np.array([root is not None for root in roots], dtype=np.bool_)
    agreeing = 0
    with np.errstate(all="ignore"):
        for t, root in enumerate(roots):
            if root is None:
                continue
            # All later groups, singular ones too: a pair's place in the batch must not depend on
            # other groups.
            eigenvalues = _eigenvalues(root @ scaled[t + 1 :] @ root.T)
            least, greatest = eigenvalues[:, 0], eigenvalues[:, -1]
            # least * (1 + distance) >= 1 says 1/least - 1 <= distance, and is false for least <= 0.
            close = (greatest <= 1 + distance) & (least * (1 + distance) >= 1)
            agreeing += int(np.count_nonzero(close & regular[t + 1 :]))
    return agreeing


def _inverse_root(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    try:
        root: NDArray[np.float64] = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None
    return root if np.isfinite(root).all() else None


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
