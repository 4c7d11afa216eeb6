"""Whitening, the default method: accurate in every direction that it can see, with nothing told to it.

It goes further along the road of the paper's Algorithm 2 (Mahpud and Sheffet 2025), which halves large
directions round by round:

1. *Columns.* Each is brought to a common centre and scale, whatever its own are (``columns.py``).
2. *Whiten.* Unit rows give a rough frame (``rough.py``, ``frames.py``). Gram matrices of the rows then
   compress what they show, and stretch what they do not show until its rows just fit; each answer is fused
   with those before (``whiten.py``, ``fusion.py``). Directions of far rows that noise may have tilted away
   from a column's are taken to be the column's (``align.py``), and columns that nobody has seen are not
   stretched until rows that hold a 1 leave the region (``reach.py``). In a short table, in which that would
   take more than it brings, what is too long is compressed, and the rest is left (``compress.py``).
3. *Settle.* A careful look at how far the rows reach, and at the directions of the furthest; a direction that
   rare rows make too long is compressed (``settle.py``). So are columns that are mostly zero, if a region
   around their other rows would drown all else (``rare.py``).
4. *Wrap.* Where rows lie far out in single directions, the region reaches further there (``heavy.py``,
   ``wrap.py``).
5. *Release* with all that is left (``release.py``). What clipping took from the means comes with it, and is
   given back (``means.py``); what it took from variances is given back in expectation (``restoration.py``).
6. *Say what you cannot know.* Rows beyond the region are counted, and what they could hide is not called
   resolved (``claims.py``). Intervals allow for columns that these rows may belong to (``exposed.py``).

``docs/whitening.md`` has the objective, the privacy proof, measured accuracy and limits.
"""

from __future__ import annotations

from dpcov.checks import number
from dpcov.core import ArgumentError, Curator
from dpcov.methods.estimate import Estimate
from dpcov.methods.whitening.columns import are_scaled, standardise
from dpcov.methods.whitening.compress import compress
from dpcov.methods.whitening.release import find_and_release, release_nothing
from dpcov.methods.whitening.rough import find_rough_frame
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.told import Told, release_told
from dpcov.methods.whitening.whiten import White, whiten


def estimate_whitening(
    curator: Curator,
    *,
    contamination: float = 0.0,
    m: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> Estimate:
    """Release the second moment of the rows, accurately in every direction.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent.
    contamination : float, default 0
        An upper bound on the share of outliers. Rows beyond the bulk are then dropped, up to
        this share, and the result is the second moment of the rest.
    m, alpha, beta : float, optional
        The table is (m, alpha, beta)-subsamplable: every m or more random rows keep the second moment up to
        1 +- alpha (1/2 by default) with probability 1 - beta. Then no region is looked for: only rows of the
        paper's tail are clipped. ``diagnostics["guaranteed_error"]`` is what that promises if it is true, and
        ``diagnostics["guarantee"]`` says so in words, or why nothing is promised. If more rows lie beyond the
        region than such a table can have, m is not used. Without `beta` the largest that Lemma 3.8 allows
        for is assumed.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows and
    options are: every step is a query of the curator, chosen from earlier answers, and the
    budget is a filter. *Reference.* ``docs/whitening.md``.
    """
    if number(contamination, "contamination", at_least=0) >= 0.5:
        raise ArgumentError(f"contamination must be at least 0 and below 0.5, got {contamination}.")
    told = Told.checked(m, alpha, beta)
    run = Run(curator, curator.n_rows, curator.n_columns, float(curator.remaining.rho), contamination)
    white = find_coordinates(run)
    if white is None:
        return release_nothing(run)
    return find_and_release(run, white) if told is None else release_told(run, white, told)


def find_coordinates(run: Run) -> White | None:
    """Take steps 1 and 2; None if all that can be seen of the rows is noise."""
    run.hold_sample()
    start = standardise(run)
    may_fail = run.has_few_rows or (run.is_short and are_scaled(run))
    return (compress(run, start) if may_fail else None) or whiten(run, find_rough_frame(run, start).rows)
