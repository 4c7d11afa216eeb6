"""Rare 0/1 columns: where a region around them would drown all others, they are compressed until they fit.

A white column that is 1 in k of n rows sends these rows ``sqrt(n / k)`` units out. A ball around those of
several such columns may let in so much noise that nothing is resolved, and to find their directions a look at
far rows needs more rows than whitening does. But if public bounds say that a column holds 0 and 1, it is
known where they lie: in coordinates L, a 1 in column j moves a row by ``L e_j``. So these columns are
compressed until a 1 moves a row by the length of most rows. Their own errors stay about the same, as their
rows still fill the region; those of all other directions fall with it.

When it happens was chosen on random tables that were told which columns hold 0 and 1 (seeds 31000 to 31199 of
`benchmarks/world.py`), with a form that left columns alone whose rows lie further out than any that are seen.
In 38 releases a region around all rows would have left white directions above the noise: 33 of these were off
by more with it. The other 17 are those that it is used for: 11 were off by less with it, 291 of 583 columns
were resolved instead of 117, and 2 of 51 due regressions were refused instead of 13. On seeds 32000 to 32199,
which nothing was chosen on, it is used in 12 releases of 7 tables: 236 of 403 columns were resolved instead
of 37, and none of 33 due regressions was refused instead of 9.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcov.arrays import Vector
from dpcov.laws import RESOLVED
from dpcov.methods.whitening.norms import FineNorms
from dpcov.methods.whitening.radius import even_count
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White

# How far rows reach then, in units of a typical length: most of them sqrt 2, and a 1 adds one across.
_REACH = math.sqrt(3)


def compress_rare_flags(run: Run, white: White, histogram: FineNorms) -> White | None:
    """Compress 0/1 columns whose rows lie too far out; None if a region around all rows will do.

    It will not if its noise would hide every white direction, and rows are seen where those of a 0/1 column
    lie.

    Parameters
    ----------
    run : Run
        The curator.
    white : White
        The coordinates.
    histogram : FineNorms
        Of the norms of rows in these.
    """
    if run.contamination or not white.is_white:
        return None
    seen = histogram.radius(even_count(run, run.d))
    if RESOLVED * run.noise(run.n, run.left) * (seen / white.unit) ** 2 < 1:
        return None
    reaches = _reaches(run, white)
    long = (reaches > white.typical) & np.isfinite(reaches)
    if not ((reaches > seen / 2) & (reaches < 2 * seen)).any():
        return None
    columns = white.rows[:, : len(reaches)][:, long]
    units = columns / np.linalg.norm(columns, axis=0)
    # With C^-2 = I + sum a_j v_j v_j^T, a vector l v_j has at most the length l / sqrt(1 + a_j) after C.
    shape = np.eye(run.d) + (units * ((reaches[long] / white.typical) ** 2 - 1)) @ units.T
    values, vectors = np.linalg.eigh(shape)
    compressing = (vectors / np.sqrt(values)) @ vectors.T
    rows = compressing @ white.rows
    return replace(white, rows=rows, far=_REACH * white.typical, is_white=False, look=None)


def _reaches(run: Run, white: White) -> Vector:
    """Return how far a 1 moves a row, for each column; infinite unless its bounds are 0 and 1."""
    bounds = run.curator.bounds
    lengths = np.linalg.norm(white.rows[:, : len(bounds)], axis=0)
    reaches: Vector = np.where((bounds == (0.0, 1.0)).all(axis=1), lengths, np.inf)
    return reaches
