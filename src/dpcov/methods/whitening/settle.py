"""Step 3, settle: a careful look at how far rows reach, and one more round if it shows rows that nobody saw.

Rounds of whitening look quickly. A careful look may show rows that they missed: few, and far out, as those of
a rare 0/1 column are once its direction has been stretched. Such rows make one direction much longer than the
others, so the coordinates are not white. A Gram matrix of all rows that are seen now shows which direction it
is, and it is compressed, as the paper's Algorithm 2 (line 10) shrinks what is large. The region rests on the
last of these looks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcov.laws import noise_norm
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import in_frame
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.radius import even_count
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White


def settle(run: Run, white: White) -> tuple[White, FineNorms]:
    """Return coordinates in which a careful look shows no direction that is far too long, and that look."""
    histogram = _ask_norms(run, white)
    for _ in range(c.MOST_RETURNS):
        far = histogram.radius(even_count(run, run.d))
        if far < c.APART * white.far or run.contamination or run.has_few_rows:
            break
        compressed = _compress(run, white, far)
        if compressed is None:
            break
        white, histogram = compressed, _ask_norms(run, compressed)
    return white, histogram


def _compress(run: Run, white: White, far: float) -> White | None:
    """Compress the directions that rows up to `far` show to be longer than others; None if there is none."""
    answer = run.gram(white.rows, far, c.MOST_ROUND, "whitening", rule=run.rule)
    run.note("whitening", c.MOST_ROUND, white.rank)
    forms, moment = in_frame(answer, white.rows)
    values, vectors = np.linalg.eigh(moment)
    long = values > white.unit**2 + c.VISIBLE * noise_norm(run.d, answer.sigma)
    if not long.any():
        return None
    gains = np.where(long, white.unit / np.sqrt(np.where(long, values, 1.0)), 1.0)
    rows = gains[:, None] * (vectors.T @ forms)
    return replace(white, rows=rows, far=max(white.far, far * float(gains[long].max())))


def _ask_norms(run: Run, white: White) -> FineNorms:
    grid = fine_grid(white.typical, run.n, c.APART * white.far)
    query = run.histogram(white.rows, grid, c.CAREFUL_LOOK, "histogram of the norms")
    return FineNorms(run.curator.ask(query), run.n, c.APART * white.far)
