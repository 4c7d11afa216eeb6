"""Step 3, settle: a careful look at how far rows reach, and one more round if it shows rows that nobody saw.

Rounds of whitening look quickly. A careful look may show rows that they missed: few, and far out, as those of
a rare 0/1 column are once its direction has been stretched. Such rows make one direction much longer than the
others, so the coordinates are not white. A Gram matrix of all rows that are seen now shows which direction it
is, and it is compressed, as the paper's Algorithm 2 (line 10) shrinks what is large. The region rests on the
last of these looks.
"""

from __future__ import annotations

from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.compress import compress_longest
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.radius import even_count
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White


def settle(run: Run, white: White) -> tuple[White, FineNorms]:
    """Return coordinates in which a careful look shows no direction that is far too long, and that look."""
    histogram = _ask_norms(run, white)
    for _ in range(c.MOST_RETURNS):
        far = histogram.radius(even_count(run, run.d))
        if far < c.APART * white.far or run.contamination or run.has_few_rows or not white.is_white:
            break
        compressed = compress_longest(run, white, far)
        if compressed is None:
            break
        white, histogram = compressed, _ask_norms(run, compressed)
    return white, histogram


def _ask_norms(run: Run, white: White) -> FineNorms:
    grid = fine_grid(white.typical, run.n, c.APART * white.far)
    query = run.histogram(white.rows, grid, run.careful_look, "histogram of the norms")
    return FineNorms(run.curator.ask(query), run.n, c.APART * white.far)
