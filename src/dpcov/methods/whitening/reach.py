"""Columns that nobody has seen are kept within reach: their rows must not be pushed out of the region.

A column that is 1 in a few dozen rows shows in no look and in no round, and what is not seen is stretched,
again and again. Its rows would leave the region: it would come out as zero, and the rows beyond the region
would cast doubt on all answers. But how far out its rows lie is known. In coordinates y, let the column have
the scale s: it is ``c + g^T y`` with ``|g| = s``, c its centre. So a row that holds v there is at least
``|v - c| / s`` long, whatever it holds elsewhere. What step 1 has not seen of a column is taken to be 1, the
most common of its kind: if that is further than any rows are seen, the column was stretched too far.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from dpcov.arrays import Bools, Matrix
from dpcov.methods.whitening.frames import centres_and_scales
from dpcov.methods.whitening.run import Run

_RARE = 1.0
# A column is one of some directions if more than half of its square is there.
_MOSTLY = 0.5


class Lengths(Protocol):
    """How long most rows are, and the furthest that are seen."""

    @property
    def typical(self) -> float:
        """How long most rows are."""

    @property
    def far(self) -> float:
        """How far the furthest reach."""


def keep_within(run: Run, rows: Matrix, lengths: Lengths, columns: Bools) -> tuple[Matrix, int]:
    """Compress columns until a row that holds 1 is no longer than others; return also how many that were.

    At the end of the region such rows are worth most: noise is ``sqrt(2 d / rho)`` of them.

    Parameters
    ----------
    run : Run
        The curator.
    rows : ndarray, shape (d, d)
        Coordinates.
    lengths : Lengths
        How far rows reach in these. A row that holds 1 is as long as most in all other columns.
    columns : ndarray of bool, shape (d,)
        Which columns are meant.
    """
    centres, scales = centres_and_scales(rows, constant=run.constant)
    reaches = np.abs(_RARE - centres) / scales
    far = math.sqrt(max(lengths.far**2 - lengths.typical**2, lengths.far**2 / 4))
    long = columns & (reaches > far)
    if not long.any():
        return rows, 0
    # With C^-2 = I + sum a_j u_j u_j^T, what was l long along u_j is ``l / sqrt(1 + a_j)`` long after C, or
    # shorter, and nothing gets longer: where columns add up to nothing, that stays as it is.
    units = rows[:, long] / np.linalg.norm(rows[:, long], axis=0)
    left, sizes, _ = np.linalg.svd(units * np.sqrt((reaches[long] / far) ** 2 - 1), full_matrices=False)
    shorter: Matrix = rows - (left * (1 - 1 / np.hypot(1.0, sizes))) @ (left.T @ rows)
    return shorter, int(long.sum())


def find_hidden(run: Run, rows: Matrix, back: Matrix, hidden: Matrix) -> Bools:
    """Return which columns nobody has seen: neither step 1, nor the rounds so far.

    Parameters
    ----------
    run : Run
        The curator.
    rows : ndarray, shape (d, d)
        Coordinates.
    back : ndarray, shape (d, d)
        Takes others, in which `hidden` is orthonormal, to these.
    hidden : ndarray, shape (d, k)
        The directions that are invisible.
    """
    centres, _ = centres_and_scales(rows, constant=run.constant)
    inverse = np.linalg.inv(rows)
    forms = inverse - np.outer(centres, inverse[-1]) if run.constant else inverse
    mapped = forms @ back
    shares = np.square(mapped @ hidden).sum(axis=1) / np.square(mapped).sum(axis=1)
    found: Bools = never_seen(run) & (shares > _MOSTLY)
    return found


def never_seen(run: Run) -> Bools:
    """Return which columns step 1 has not seen."""
    columns = np.zeros(run.d, dtype=np.bool_)
    columns[list(run.never_seen)] = True
    return columns
