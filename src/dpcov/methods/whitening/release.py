"""Step 5, release: all that is left buys the Gram matrix of the rows in the region, and is mapped back.

With it come, at no cost, the numbers of rows beyond the region: what is claimed about the release rests on
them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import Clipping, Gram, LatticeMap, NoisyGram
from dpcov.laws import NoiseLaw, nearest_positive_semidefinite
from dpcov.losses import FAR, KEPT_FAR, KEPT_LOSING, KEPT_NEAR
from dpcov.maps import rounding_variance
from dpcov.methods.estimate import Estimate, shrink_towards
from dpcov.methods.whitening.claims import CONFIDENCE, Beyond, predicted_error
from dpcov.methods.whitening.exposed import Exposed, find_exposed
from dpcov.methods.whitening.frames import in_frame
from dpcov.methods.whitening.means import Losses
from dpcov.methods.whitening.owners import Clipped
from dpcov.methods.whitening.queries.clipped import ClippedGram, NoisyClippedGram, Pull
from dpcov.methods.whitening.rare import compress_rare_columns
from dpcov.methods.whitening.restoration import (
    Counted,
    raise_beside_constant,
    restore_columns,
    restore_dropped,
    restore_shrunk,
)
from dpcov.methods.whitening.room import make_room
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.settle import settle
from dpcov.methods.whitening.whiten import White
from dpcov.methods.whitening.wrap import Region, directional_count, wrap

# The root of what a float64 rounds off a square.
_ROUNDED = 2.0**-25

PULL = Pull(FAR, Fraction(KEPT_NEAR).limit_denominator(100), Fraction(KEPT_FAR).limit_denominator(100))
"""What is left of rows beyond the region that are counted."""


def find_and_release(run: Run, white: White) -> Estimate:
    """Settle the coordinates, find the region, and release."""
    return release(run, *find_region(run, white))


def find_region(run: Run, white: White) -> tuple[White, Region]:
    """Take steps 3 and 4: return the settled coordinates, and the region in these."""
    settled = settle(run, white)
    compressed = compress_rare_columns(run, settled.white, settled.histogram)
    if compressed is not None:
        settled = settle(run, compressed)
    return settled.white, wrap(run, settled)


def release(run: Run, white: White, region: Region, pull: Pull | None = None) -> Estimate:
    """Spend what is left, and say what is known about the result.

    Parameters
    ----------
    run : Run
        The curator.
    white : White
        The coordinates.
    region : Region
        Where rows are clipped.
    pull : Pull, optional
        What is left of rows beyond it, if that is not what the default leaves.
    """
    shape = region.shape(run.d)
    inside = np.asarray(np.linalg.solve(shape, white.rows), dtype=np.float64)
    has_constant = run.curator.has_constant
    room = make_room(inside, region.radius, constant=has_constant and not run.curator.grouped)
    wanted = room.stretch @ inside
    dropped = directional_count(run, max(white.rank, 1))
    share = run.left
    answer, found = _ask(run, Clipping(run.map(wanted), room.radius, run.rule), pull or _pull(run))
    counted = None if found is None else Counted.of(found)
    run.note("release", share, run.d)
    forms, moment = in_frame(answer, wanted)
    inverse = np.asarray(np.linalg.inv(forms), dtype=np.float64)
    losses = None if found is None else Losses.of(found, forms)
    # White coordinates: heavy directions have no part of the constant, so these two commute.
    back = np.asarray(np.linalg.solve(room.stretch, shape), dtype=np.float64)
    restoration = (
        restore_dropped(region, dropped)
        if counted is None
        else restore_shrunk(
            region,
            run.n,
            back @ moment @ back.T,
            counted,
            has_constant=has_constant,
            measured=losses is not None,
        )
    )
    shrinkage = 0.0
    if white.complete and white.is_white and not run.has_few_rows:
        # The rounds before say that the rows are about white here, and they cost budget too.
        ball = np.asarray(np.linalg.inv(back.T @ back), dtype=np.float64)
        moment, shrinkage = _shrink(ball, moment, answer.sigma, inverse[-1] if has_constant else None)
    matrix = inverse @ nearest_positive_semidefinite(moment) @ inverse.T
    clipped = (
        None
        if counted is None
        else Clipped(counted, room.radius, forms, moment, run.n, region.far_rows, losses)
    )
    expected = None if clipped is None else clipped.expected
    moving, widening, overstated = np.eye(run.d), np.eye(run.d), 1.0
    if expected is not None:
        moving, widening = expected.give_back(matrix, inverse), expected.widening(inverse[-1], answer.sigma)
        overstated = expected.widened(inverse[-1], answer.sigma) ** 2
        matrix = moving @ matrix @ moving.T
    most, extra = math.sqrt(restoration.factor) * np.eye(run.d), restoration.beyond_most(run.d)
    # Only what is not a multiple of the identity takes the way through the frame, which rounds.
    raising = most + inverse @ extra @ forms
    if has_constant:
        raising = raise_beside_constant(matrix, raising, restoration.constant)
    matrix, raising = raising @ matrix @ raising.T, raising @ moving
    # Outliers lie beyond on purpose.
    beyond = (
        Beyond.none() if counted is None else Beyond.of(counted, region.agreement, room.radius**2 / run.n)
    )
    # The rounding of rows may be all that is left of a direction, too.
    rounding = rounding_variance(answer.lattice_map, _sizes(matrix, answer.lattice_map))
    # Shrinking lowers the error on average over entries. But what it draws back is not noise alone: the
    # means, which are entries of one line, were off by more than noise narrowed by its weight.
    law = NoiseLaw(raising @ inverse @ widening, answer.sigma, beyond.hidden + rounding, overstated)
    narrowed = np.linalg.solve(widening, most + extra)
    raised = narrowed @ moment @ narrowed.T
    told = beyond.describe(restoration)
    exposed = find_exposed(clipped, law) if has_constant and clipped is not None else Exposed()
    error = predicted_error(np.asarray(np.linalg.eigvalsh(raised), np.float64), law, restoration, exposed)
    facts = {
        "predicted_error": error,
        "released_share": share,
        "radius": region.radius / white.unit,
        "rows_beyond": told | {"columns": [run.curator.columns[place] for place in exposed.clearly]},
        "correction": restoration.factor,
        "shrinkage": shrinkage,
        "heavy": [
            {"direction": _unit_length(direction.vector @ white.rows), "stretch": stretch}
            for direction, stretch in zip(region.heavy, region.stretches, strict=True)
        ],
    }
    laws = restoration.located_laws(raising @ inverse, run.d - has_constant)
    of_columns = exposed.laws(forms, room.radius)
    matrix = restore_columns(matrix, of_columns)
    return Estimate((matrix + matrix.T) / 2, story(run) | facts, law, laws + of_columns)


def _shrink(ball: Matrix, moment: Matrix, sigma: float, constant: Vector | None) -> tuple[Matrix, float]:
    """Shrink a noisy second moment to that of a ball, and return the weight; the means stay as they are.

    Where the rows are centred is no reason to expect their means there: those of skewed columns are not.
    """
    if constant is None:
        return shrink_towards(ball, moment, sigma)
    own = np.linalg.qr(constant[:, None], mode="complete").Q[:, 1:]
    part = own.T @ moment @ own
    shrunk, weight = shrink_towards(own.T @ ball @ own, part, sigma)
    return moment + own @ (shrunk - part) @ own.T, weight


def _pull(run: Run) -> Pull:
    """Return what is left of rows beyond a region.

    Losses of units of several rows have no proof, and without a constant there are no means.
    """
    if not run.curator.has_constant or run.curator.grouped:
        return PULL
    return replace(PULL, kept_losing=Fraction(KEPT_LOSING).limit_denominator(100))


def _ask(run: Run, clipping: Clipping, pull: Pull) -> tuple[NoisyGram, NoisyClippedGram | None]:
    """Ask for the released matrix and what clipping did; outliers are dropped, and not counted."""
    left, purpose = run.curator.remaining.rho, "the released matrix"
    if run.contamination:
        return run.curator.ask(Gram(clipping, left, purpose)), None
    found = run.curator.ask(ClippedGram(clipping, pull, left, purpose))
    return found.gram, found


def release_nothing(run: Run) -> Estimate:
    """Return zero: the rows are too few, or all zero, for this budget. What is left is not charged."""
    return Estimate(np.zeros((run.d, run.d)), story(run) | {"predicted_error": 1.0, "released_share": 0.0})


def story(run: Run) -> dict[str, Any]:
    """Return what was asked, for the diagnostics."""
    return {
        "rounds": len(run.rounds),
        "history": [asdict(round_) for round_ in run.rounds],
        "confidence": CONFIDENCE,
    }


def _sizes(matrix: Matrix, lattice_map: LatticeMap) -> Vector:
    """Return the root mean squares of the columns about the centres that a map subtracts."""
    centres = lattice_map.centres
    about = np.diag(matrix) - 2 * centres * matrix[:, -1] + centres**2 * matrix[-1, -1]
    # The difference of such sums is rounded by 2^-52 of them.
    sizes: Vector = np.sqrt(np.maximum(about, (_ROUNDED * centres) ** 2))
    return sizes


def _unit_length(form: Matrix) -> list[float]:
    result: list[float] = (form / np.linalg.norm(form)).tolist()
    return result
