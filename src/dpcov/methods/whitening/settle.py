"""Step 3, settle: a careful look at how far rows reach, and one more round if it shows rows that nobody saw.

Rounds of whitening look quickly. A careful look may show rows that they missed: few, and far out, as those of
a rare 0/1 column are once its direction has been stretched. Such rows make one direction much longer than the
others, so the coordinates are not white. A Gram matrix of all rows that are seen now shows which direction it
is, and it is compressed, as the paper's Algorithm 2 (line 10) shrinks what is large. The region rests on the
last of these looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.core import NoisyGram
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.compress import compress_longest
from dpcov.methods.whitening.heavy import FarRows
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.radius import even_count
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White


@dataclass(frozen=True, eq=False)
class Settled:
    """Coordinates in which a careful look shows no direction that is far too long.

    Attributes
    ----------
    white : White
        The coordinates.
    histogram : FineNorms
        The careful look.
    far_rows : NoisyGram, optional
        The directions of the rows beyond the bulk; None if these are not looked at.
    """

    white: White
    histogram: FineNorms
    far_rows: NoisyGram | None = None


def settle(run: Run, white: White) -> Settled:
    """Look carefully, and compress what is far too long.

    The same scan shows where the rows beyond the bulk lie: the look before tells where the bulk ends.
    """
    histogram, far_rows = _look_carefully(run, white)
    for _ in range(c.MOST_RETURNS):
        far = histogram.radius(even_count(run, run.d))
        if far < c.APART * white.far or run.contamination or run.has_few_rows or not white.is_white:
            break
        compressed = compress_longest(run, white, far)
        if compressed is None:
            break
        white = compressed
        histogram, far_rows = _look_carefully(run, white)
    asked = FarRows.worth_a_look(run, white)
    if asked is not None:
        radius = histogram.look_radius(asked.rows)
        # The careful look may be the first one at these coordinates, or show far rows elsewhere.
        if far_rows is None or abs(math.log(radius / far_rows.radius)) > math.log(c.SAME):
            far_rows = run.curator.ask(asked.query(run, white, radius))
            run.note("tail", asked.share, run.d)
    return Settled(white, histogram, far_rows)


def _look_carefully(run: Run, white: White) -> tuple[FineNorms, NoisyGram | None]:
    grid = fine_grid(white.typical, run.n, c.APART * white.far)
    query = run.histogram(white.rows, grid, run.careful_look, "histogram of the norms")
    asked = FarRows.worth_a_look(run, white)
    if asked is None or white.look is None:
        return FineNorms(run.curator.ask(query), run.n, c.APART * white.far), None
    beyond = asked.query(run, white, white.look.radius_exceeded_by(asked.rows / run.n))
    norms, far_rows = run.curator.ask(query, beyond)
    run.note("tail", asked.share, run.d)
    return FineNorms(norms, run.n, c.APART * white.far), far_rows
