"""Step 2 begins with a rough frame: rounds of unit rows, which need no scale and no bound.

What one round cannot see is amplified for the next, as long as it is *small*: most rows have it, at about the
same length. A *rare* direction, that few rows have and most have not, shows in no round whose noise exceeds
those rows, however much it is amplified; that would only push its rows out of the region later. A histogram
of the unseen part tells the two apart.
"""

from __future__ import annotations

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import Rule, sampled_rows
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import (
    Frame,
    beyond_reach,
    in_frame,
    least_known,
    limit_gains,
    resolve_more,
)
from dpcov.methods.whitening.run import Run

_MOST_ROUNDS = 25
_MOST_BLIND_ROUNDS = 5
_WORTH_AMPLIFYING = 2.0


def find_rough_frame(run: Run, start: Matrix) -> Frame:
    """See as many directions as rounds of unit rows can."""
    if run.has_few_rows:
        return Frame(start, np.zeros(run.d, dtype=np.bool_))
    # As few rows as leave the noise that is aimed at for the least price.
    enough = run.noise(1, c.ROUND_SHARE) * run.d / c.ROUND_ERROR
    every = max(run.every, min(run.every_quick, int(run.n / enough)))
    share, noise = _price(run, every)
    frame, blind = Frame(start, np.zeros(run.d, dtype=np.bool_)), 0
    for _ in range(_MOST_ROUNDS):
        answer = run.gram(frame.rows, 1.0, share, "directions of the rows", rule=Rule.DIRECTION, every=every)
        forms, signs = in_frame(answer, frame.rows)
        if least_known(frame, signs) < c.DROWNED * noise:
            break
        before = frame
        frame = resolve_more(before, forms, signs, noise)
        if frame.seen.all() and not before.rank:
            # All are in sight as they are, which needs no law of the rows: whitening takes it from there.
            return Frame(start, frame.seen)
        run.note("directions", share, frame.rank)
        if frame.seen.all() or run.left < (1 + c.KEPT_FOR_RELEASE) / 2:
            break
        if frame.rank > before.rank:
            continue
        if every > run.every:
            # What a sample does not show, few rows may have.
            every = run.every
            share, noise = _price(run, every)
            frame = before
            continue
        if not before.rank:
            blind += 1
            if blind == _MOST_BLIND_ROUNDS:
                break
            continue
        gain = _gain_of_small(run, before)
        if gain is None:
            frame = before
            break
        frame = before.amplified(gain)
        if beyond_reach(frame.rows, constant=run.constant):
            break
    return Frame(limit_gains(frame.rows, constant=run.constant), frame.seen)


def _price(run: Run, every: int) -> tuple[float, float]:
    """Return what a round of one row in so many costs, and its noise."""
    rows = sampled_rows(run.n, every)
    share = run.share_for(c.ROUND_ERROR / run.d, rows)
    share = min(max(share, c.ROUND_SHARE), c.MOST_FOR_A_ROUND)
    return share, run.noise(rows, share)


def _gain_of_small(run: Run, frame: Frame) -> float | None:
    """Return what would make the unseen part as long as the seen one; None if it is rare, or long already."""
    unseen, seen = run.look_at_parts(
        [frame.rows[~frame.seen], frame.rows[frame.seen]],
        c.QUICK_LOOK,
        ["norms of what is unseen", "norms of what is seen"],
        frame=frame.rows,
        every=run.every,
    )
    gain = seen.typical / unseen.typical
    small = unseen.found and unseen.far <= c.DENSE * unseen.typical
    return gain if small and gain > _WORTH_AMPLIFYING else None
