"""Step 2 in a short table: compress what is longer than the rest, and leave it at that.

A round of whitening costs a few percent, so its noise is several times that of the release. Where it exceeds
a direction of average length by far, rounds show what is long, and nothing else: stretching the rest would
take most of the budget, and noise would steer it. But columns have been brought to a common centre and scale.
So rounds compress what is still too long, as the paper's Algorithm 2 (line 10) does, and what is left of the
budget goes into the release. Most questions about a few columns are answered then, if not every direction.

In a table that is too short even to ask about its columns, these stay in their own units. What is far longer
than the rest is compressed there too: whitening would spend half of the budget, and end in noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.laws import noise_norm
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import in_frame
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White

# Standard deviations by which a column is longer than others; noise passes in one of 16 once in 270 rounds.
_CLEARLY_LONGER = 3.5


def compress(run: Run, rows: Matrix) -> White | None:
    """Compress the directions of a short table that are too long; None if whitening would see enough.

    Parameters
    ----------
    run : Run
        The curator.
    rows : ndarray, shape (d, d)
        Coordinates, one for each column: most with a common centre and scale, if these are known.
    """
    here = _look(run, rows, run.careful_look)
    if here is None or run.noise(run.n, c.MOST_ROUND) * (here.far / here.unit) ** 2 < c.BLIND:
        return None
    for _ in range(c.MOST_COMPRESSIONS):
        shorter = compress_longest(run, here, here.far, columns=True)
        share = run.careful_look if here.has_rare_rows else run.quick_look
        after = None if shorter is None else _look(run, shorter.rows, share)
        if after is None:
            break
        before, here = here, after
        if 1 <= (here.far / here.typical) / (before.far / before.typical) < c.APART:
            break
    return here


def compress_longest(run: Run, here: White, far: float, *, columns: bool = False) -> White | None:
    """Compress what rows up to `far` show to be longer than other directions; None if there is nothing.

    Parameters
    ----------
    run : Run
        The curator.
    here : White
        The coordinates.
    far : float
        Rows beyond are shrunk to this length.
    columns : bool, default False
        Whether each coordinate is that of a column, for the most part. One by one they are tested first: the
        noise of a variance is less than the largest in any direction.
    """
    answer = run.gram(here.rows, far, c.MOST_ROUND, "whitening", rule=run.rule)
    run.note("whitening", c.MOST_ROUND, here.rank)
    forms, moment = in_frame(answer, here.rows)
    gains = np.ones(run.d)
    if columns:
        gains = _gains(np.diag(moment), here.unit, _CLEARLY_LONGER * answer.sigma)
        moment, forms = gains[:, None] * moment * gains, gains[:, None] * forms
    values, vectors = np.linalg.eigh(moment)
    more = _gains(values, here.unit, c.VISIBLE * noise_norm(run.d, answer.sigma))
    used = [float(gain) for gain in (*gains, *more) if gain < 1]
    if not used:
        return None
    # Turned back, coordinates stay those of the columns.
    rows = (vectors * more) @ (vectors.T @ forms)
    return replace(here, rows=rows, far=max(here.far, far * max(used)), look=None)


def _gains(variances: Vector, unit: float, noise: float) -> Vector:
    """Return what brings variances that exceed the square of the unit by more than noise down to it."""
    long = variances > unit**2 + noise
    result: Vector = np.where(long, unit / np.sqrt(np.where(long, variances, 1.0)), 1.0)
    return result


def _look(run: Run, rows: Matrix, share: float) -> White | None:
    """Ask how far the rows reach; None if they are not seen."""
    look = run.look(rows, share, "norms of the rows", every=run.every)
    return replace(White.seen(rows, look, run.d), is_white=False) if look.found else None
