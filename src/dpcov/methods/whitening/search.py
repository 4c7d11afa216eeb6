"""The search for a table's directions and scale: the first phase of whitening.

A `Run` keeps the curator, the public sizes and the story so far. `find_directions` asks for
rounds of unit rows, `look_at_scale` for the typical norm in a frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import (
    Clipping,
    Curator,
    Gram,
    LatticeMap,
    LogNormGrid,
    NoisyCounts,
    NoisyGram,
    NormHistogram,
    Rule,
    sampled_rows,
)
from dpcov.laws import noise_norm
from dpcov.maps import integer_map
from dpcov.methods.whitening import directions
from dpcov.methods.whitening.directions import Frame
from dpcov.methods.whitening.norms import Scale, coarse_grid, find_scale

Matrix = NDArray[np.float64]

SAMPLED_ROWS = 200_000
"""Rounds that need no more precision read about this many rows of a longer table."""

# Shares of the whole budget.
_LEAST_SHARE = 0.004
_MOST_FOR_A_CHASE = 0.06
_MOST_FOR_DIRECTIONS = 0.7
_MOST_FOR_REFINING = 0.10
_SCALE_SHARE = 0.008
_MOST_FOR_SCALE = 0.3

# Relative errors of the whitening map that the rounds aim at.
_CHASE_ERROR = 0.45
_REFINED_ERROR = 0.2

_MOST_ROUNDS = 25
_MOST_IDLE_ROUNDS = 5
_EXCESS = 2.0


@dataclass(frozen=True)
class Round:
    """One query of the method: what for, what it cost, how many directions were resolved after it."""

    purpose: str
    rho: float
    resolved: int


@dataclass
class Run:
    """The curator, public sizes, and the story so far.

    `unfinished` says that the search for directions stopped early: what it left unresolved may yet
    be found by Gram matrices.
    """

    curator: Curator
    n: int
    d: int
    rho: float
    rounds: list[Round] = field(default_factory=list)
    unfinished: bool = False

    @property
    def left(self) -> float:
        """The share of the budget that is left."""
        return float(self.curator.remaining.rho) / self.rho

    def gram(self, clipping: Clipping, share: float, purpose: str, *, every: int = 1) -> NoisyGram:
        """Ask for a Gram matrix."""
        return self.curator.ask(Gram(clipping, Fraction(share * self.rho), purpose, every))

    def norms(
        self, lattice_map: LatticeMap, grid: LogNormGrid, share: float, purpose: str, *, every: int = 1
    ) -> NoisyCounts:
        """Ask for a histogram of the norms."""
        return self.curator.ask(NormHistogram(lattice_map, grid, Fraction(share * self.rho), purpose, every))

    def note(self, purpose: str, share: float, resolved: int) -> None:
        """Remember a round."""
        self.rounds.append(Round(purpose, share * self.rho, resolved))

    def noise(self, rank: int, rows: int, share: float) -> float:
        """Return the noise norm for rows in the unit ball, among `rank` directions."""
        return noise_norm(rank, 1.0) / (rows * math.sqrt(share * self.rho))

    def share_for(self, noise: float, rank: int, rows: int) -> float:
        """Return the share of the budget for which `noise` is the noise norm."""
        return (noise_norm(rank, 1.0) / (rows * noise)) ** 2 / self.rho


def find_directions(run: Run, least_eigenvalue: float | None) -> Frame:
    """Resolve as many directions as rounds of unit rows can."""
    every = max(1, run.n // SAMPLED_ROWS)
    rows = sampled_rows(run.n, every)
    share = run.share_for(_CHASE_ERROR / run.d, run.d, rows)
    share = min(max(share, _LEAST_SHARE), _MOST_FOR_A_CHASE)
    noise = run.noise(run.d, rows, share)
    frame, idle = directions.initial_frame(run.d), 0
    for _ in range(_MOST_ROUNDS):
        forms, signs = _ask_signs(run, frame.rows, share, every)
        if not directions.is_elliptical(frame, signs, noise):
            frame = directions.without_inversion(frame, forms)
            run.unfinished = True
            run.note("directions", share, frame.rank)
            break
        before = frame.rank
        frame = directions.resolve_more(frame, forms, signs, noise)
        run.note("directions", share, frame.rank)
        if frame.resolved.all():
            break
        idle = idle + 1 if frame.rank == before else 0
        spent = 1 - run.left
        if (
            idle >= _MOST_IDLE_ROUNDS
            or spent + share > _MOST_FOR_DIRECTIONS
            or directions.beyond_reach(frame)
        ):
            break
        if least_eigenvalue is None and not (idle and frame.rank):
            continue
        scale = look_at_scale(run, frame)
        if scale is not None:
            if least_eigenvalue is not None and _all_below(frame, scale, least_eigenvalue):
                break
            excess = scale.excess
            if idle and excess > _EXCESS:
                # Few long rows make up an unresolved direction: amplified until it outweighs all
                # others, it has gone too far.
                factor = np.where(frame.resolved, 1.0, 1 / math.sqrt(excess))
                frame = Frame(frame.rows * factor[:, None], frame.resolved)
                break
    if not frame.resolved.all():
        return directions.limit_gains(frame)
    if noise * run.d > 1.2 * _REFINED_ERROR:
        share = min(run.share_for(_REFINED_ERROR / run.d, run.d, rows), _MOST_FOR_REFINING)
        forms, signs = _ask_signs(run, frame.rows, share, every)
        frame = directions.refine(forms, signs, run.noise(run.d, rows, share))
        run.note("directions, refined", share, frame.rank)
    return frame


def in_frame(answer: NoisyGram, forms: Matrix) -> tuple[Matrix, Matrix]:
    """Return the forms that an answer is really about, and its second moment in them.

    The answer's map is triangular: it is `forms` up to a rotation and rounding. The rotation is undone.
    """
    asked = answer.lattice_map.matrix()
    left, _, right = np.linalg.svd(asked @ np.linalg.inv(forms))
    rotation = left @ right
    return rotation.T @ asked, rotation.T @ answer.mean() @ rotation


def _ask_signs(run: Run, forms: Matrix, share: float, every: int) -> tuple[Matrix, Matrix]:
    """Return the forms that were really asked about and the noisy mean of u u^T in them."""
    clipping = Clipping(integer_map(forms), 1.0, Rule.DIRECTION)
    return in_frame(run.gram(clipping, share, "directions of the rows", every=every), forms)


def _all_below(frame: Frame, scale: Scale, least_eigenvalue: float) -> bool:
    """Whether all unresolved directions are amplified beyond the least eigenvalue to look for."""
    unit = scale.typical / math.sqrt(max(frame.rank, 1))
    gains = np.linalg.norm(frame.rows[~frame.resolved], axis=1)
    return bool(((unit / gains) ** 2 < least_eigenvalue).all())


def look_at_scale(run: Run, frame: Frame, radius: float | None = None) -> Scale | None:
    """Find the typical norm in a frame, whatever it is."""
    every = max(1, run.n // SAMPLED_ROWS)
    enough = (8 / sampled_rows(run.n, every)) ** 2 / run.rho
    share = min(max(enough, _SCALE_SHARE), _MOST_FOR_SCALE, run.left / 2)
    grid = coarse_grid()
    if radius is not None:
        highest = math.ceil(math.log2(radius * float(np.linalg.norm(frame.rows, 2)))) + 1
        grid, share = LogNormGrid(highest - 60, highest, grid.halves), share / 4
    return find_scale(run.norms(integer_map(frame.rows), grid, share, "scale of the norms", every=every))
