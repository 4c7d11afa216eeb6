"""Directions that noise tilts are put right where they are those of columns.

A noisy Gram matrix that shows a direction by t rows, under noise of norm v, shows it tilted by about ``v / (2
t)``: some 10 degrees for what is barely visible. A row that lies 60 units out along it would then still be 10
units off in all others, and no ellipsoid holds it. But most long tails belong to a column: a rare 0/1 column,
or one of incomes. A row that is far out in column j alone lies along ``L e_j`` in coordinates L, which is
public and exact. So a direction that an answer does not tell from that of a column is taken to be the
column's.
"""

from __future__ import annotations

import math

import numpy as np

from dpcov.arrays import Matrix, Vector

# The norm of k standard normal variables is rarely, 1 time in 50, more than this beyond the root of k.
_RARELY_MORE = 1.5


def align(found: Matrix, columns: Matrix, moment: Matrix, noise: float) -> Matrix:
    """Return orthonormal directions in place of `found`: those of columns where noise may explain the tilt.

    Columns are tried by how much the answer shows of them. Each takes its part out of the others, so that
    columns which nearly agree count once. What they leave of the span of `found` stays as it is.

    Parameters
    ----------
    found : ndarray, shape (k, m)
        Orthonormal directions that stand out of the noise.
    columns : ndarray, shape (k, p)
        The directions of the columns, of any length.
    moment : ndarray, shape (k, k)
        The noisy answer, less what all directions have.
    noise : float
        The norm of its noise. Noise moves the direction of t by the norm of its entries beside it, which have
        a standard deviation of ``noise / (2 sqrt(k))``, over t.
    """
    size, wanted = found.shape
    allowed = noise / 2 * (1 + _RARELY_MORE / math.sqrt(max(size - wanted, 1)))
    chosen = np.zeros((size, 0))
    while chosen.shape[1] < wanted:
        own, shown = _beside(chosen, columns, moment)
        tilt = np.linalg.norm(own - found @ (found.T @ own), axis=0)
        fits = (tilt * shown <= allowed) & (tilt**2 < 0.5)
        if not fits.any():
            break
        chosen = np.column_stack([chosen, own[:, np.argmax(np.where(fits, shown, -np.inf))]])
    left = wanted - chosen.shape[1]
    if not left:
        return chosen
    # The directions of the span that the columns leave most of.
    others = np.linalg.svd(found - chosen @ (chosen.T @ found)).U[:, :left]
    return np.column_stack([chosen, others])


def _beside(chosen: Matrix, columns: Matrix, moment: Matrix) -> tuple[Matrix, Vector]:
    """Return unit vectors along what columns have beside chosen directions, and what a moment shows of them.

    A column that has less than half of its square there is a mixture of those that were chosen, and left out.
    """
    units = columns / np.linalg.norm(columns, axis=0)
    rest = units - chosen @ (chosen.T @ units)
    squares = np.square(rest).sum(axis=0)
    own = rest[:, squares > 0.5] / np.sqrt(squares[squares > 0.5])
    return own, np.einsum("ki,kl,li->i", own, moment, own)
