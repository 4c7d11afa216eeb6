"""Whitening: near-oracle accuracy in every direction, with nothing told to it.

The default method. It goes further along the road of the paper's Algorithm 2 (Mahpud and
Sheffet 2025), which halves large directions round by round:

1. *Directions.* Rounds that look at unit rows find every direction and its relative scale.
2. *Polish.* Gram matrices of rows clipped at a private radius make the table white.
3. *Radius.* A private histogram of norms tells how far out the last clipping should be.
4. *Release.* All that is left of the budget buys the Gram matrix of the whitened, clipped
   rows; the inverse map brings it back.

`docs/whitening.md` has the algorithm, its privacy proof, its utility, and what is heuristic.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.checks import positive
from dpcov.core import ArgumentError, Clipping, Curator, Gram, Rule, sampled_rows
from dpcov.laws import NoiseLaw, least_resolved, nearest_positive_semidefinite, noise_norm, rarely_exceeded
from dpcov.maps import integer_map
from dpcov.methods.estimate import Estimate, shrink_towards
from dpcov.methods.whitening import directions
from dpcov.methods.whitening.directions import Frame
from dpcov.methods.whitening.heavy import HISTOGRAM_SHARE, Region, Tail, find_heavy, surround
from dpcov.methods.whitening.norms import NormHistogram, fine_grid
from dpcov.methods.whitening.restoration import raise_beside_constant, restore_dropped, restore_shrunk
from dpcov.methods.whitening.search import SAMPLED_ROWS, Run, find_directions, in_frame, look_at_scale

Matrix = NDArray[np.float64]

# Shares of the whole budget.
_LEAST_FOR_POLISHING = 0.005
_MOST_FOR_POLISHING = 0.06
_LEAST_FOR_RELEASE = 0.4

# Relative errors of the whitening map that the rounds aim at.
_POLISHED_ERROR = 0.07
_USEFUL_POLISH = 0.25

# If the whole budget leaves more noise than this in a direction of a white table, there are too
# few rows to look for directions: one release of the rows as they are tells most.
_FEW_ROWS = 0.25

_MOST_POLISHINGS = 4
_EVEN_SPREAD = 2.5
_EXCESS = 2.0
_DROPPING_MARGIN = 1.05
_DIRECTIONAL_MARGIN = 1.1
_CONFIDENCE = 0.95


def estimate_whitening(
    curator: Curator,
    *,
    contamination: float = 0.0,
    radius: float | None = None,
    least_eigenvalue: float | None = None,
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
    radius : float, optional
        A bound on the length of a row, if one is known. It narrows the search for the scale.
    least_eigenvalue : float, optional
        Directions of less variance are not looked for.
    m, alpha, beta : float, optional
        Of an (m, alpha, beta)-subsamplable table: the last radius is then sqrt(m (1 + alpha)) after
        whitening, beyond which only points of the paper's tail lie, and no histogram is needed. With
        beta the diagnostics state the share of rows that the tail has at most.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows and
    options are: every step is a query of the curator, chosen from earlier answers, and the
    budget is a filter. *Reference.* ``docs/whitening.md``.
    """
    _check(contamination, m, alpha, beta)
    known_radius = None if radius is None else positive(radius, "radius")
    least = None if least_eigenvalue is None else positive(least_eigenvalue, "least_eigenvalue")
    # Beyond this many times the root mean square of a coordinate lie only points of the tail.
    tail_radius = None if m is None else math.sqrt(m * (1 + (alpha or 0.0)))
    run = Run(curator, curator.n_rows, curator.n_columns, float(curator.remaining.rho))
    frame = directions.resolved_frame(run.d) if _few_rows(run) else find_directions(run, least)
    scale = look_at_scale(run, frame, known_radius)
    if scale is None:
        return _nothing(run)
    plan = _polish(run, _Plan(frame, scale.typical), contamination, tail_radius)
    if tail_radius is None:
        region = _choose_region(run, plan, contamination)
    else:
        region = Region(tail_radius * plan.unit)
    estimate = _release(run, plan, region, contamination)
    if m is None or beta is None:
        return estimate
    # Claim "bad points fraction" of the paper.
    tail = {"tail_share_at_most": (beta + beta**2) / m}
    return replace(estimate, diagnostics={**estimate.diagnostics, **tail})


def _check(contamination: float, m: float | None, alpha: float | None, beta: float | None) -> None:
    if not isinstance(contamination, int | float) or not 0 <= contamination < 0.5:
        raise ArgumentError(f"contamination must be at least 0 and below 0.5, got {contamination}.")
    if m is not None:
        positive(m, "m")
    if alpha is not None and not 0 < positive(alpha, "alpha") <= 0.5:
        raise ArgumentError(f"alpha must be greater than 0 and at most 1/2, got {alpha}.")
    if beta is not None and not 0 < positive(beta, "beta") < 1:
        raise ArgumentError(f"beta must lie strictly between 0 and 1, got {beta}.")
    if m is None and (alpha is not None or beta is not None):
        raise ArgumentError("alpha and beta need m as well.")


def _few_rows(run: Run) -> bool:
    return run.noise(run.d, run.n, 1.0) * run.d > _FEW_ROWS


def _ask_norms(run: Run, plan: _Plan, every: int = 1) -> NormHistogram:
    grid, share = fine_grid(plan.typical, run.n), min(HISTOGRAM_SHARE, run.left / 4)
    answer = run.norms(integer_map(plan.frame.rows), grid, share, "histogram of the norms", every=every)
    return NormHistogram(answer, run.n)


@dataclass(frozen=True, eq=False)
class _Plan:
    """A frame, a typical norm in it, and a histogram of the norms in it if there is one."""

    frame: Frame
    typical: float
    histogram: NormHistogram | None = None

    @property
    def rank(self) -> int:
        return max(self.frame.rank, 1)

    @property
    def unit(self) -> float:
        """Root mean square of a white coordinate."""
        return self.typical / math.sqrt(self.rank)


def _polish(run: Run, plan: _Plan, contamination: float, tail_radius: float | None) -> _Plan:
    """Whiten by Gram matrices of clipped rows, as long as they are precise enough to help."""
    every = max(1, run.n // (2 * SAMPLED_ROWS))
    rows = sampled_rows(run.n, every)
    best = run.d if run.unfinished else plan.frame.rank
    for attempt in range(_MOST_POLISHINGS + 1):
        if tail_radius is not None:
            clip = tail_radius * plan.unit
        else:
            histogram = _ask_norms(run, plan, every)
            plan = replace(plan, histogram=histogram)
            clip = histogram.radius(
                _directional_count(run, plan.rank, run.left), ignore_beyond=contamination * run.n
            )
        whole = run.noise(plan.rank, rows, 1.0) * (clip / plan.unit) ** 2
        share = min(max((whole / _POLISHED_ERROR) ** 2, _LEAST_FOR_POLISHING), _MOST_FOR_POLISHING)
        hopeless = whole / math.sqrt(share) > _USEFUL_POLISH
        # Few long rows outweigh all others: their direction was amplified too far, however
        # noisy the answer, it tells that.
        distorted = plan.histogram is not None and plan.histogram.excess(plan.typical) > _EXCESS
        spent_up = run.left < _LEAST_FOR_RELEASE
        if attempt == _MOST_POLISHINGS or spent_up or (hopeless and not distorted):
            return plan
        lattice_map = integer_map(plan.frame.rows)
        rule = Rule.DROP if contamination else Rule.SHRINK
        answer = run.gram(Clipping(lattice_map, clip, rule), share, "whitening", every=every)
        noise = noise_norm(run.d, answer.sigma)
        values, vectors = np.linalg.eigh(answer.mean())
        found = values > directions.RESOLVED * noise
        # What the answer cannot tell from noise is small, or as it was before if noise is larger.
        level = np.where(found, values, min(directions.UNRESOLVED_LEVEL * noise, plan.unit**2))
        resolved = found | (plan.frame.resolved.all() & (noise > plan.unit**2))
        whitened = Frame((vectors.T @ lattice_map.matrix()) / np.sqrt(level)[:, None], resolved)
        frame = directions.limit_gains(whitened)
        plan = _Plan(frame, math.sqrt(max(frame.rank, 1)))
        run.note("whitening", share, frame.rank)
        spread = values[found].max() / values[found].min() if found.any() else math.inf
        best = max(best, frame.rank)
        if spread < _EVEN_SPREAD and frame.rank == best and not hopeless:
            return plan if tail_radius is not None else replace(plan, histogram=_ask_norms(run, plan))
    return plan


def _directional_count(run: Run, rank: int, share: float) -> float:
    """How many rows to clip when their excess may lie in few directions.

    Clipping k rows in one direction costs k times their excess, a wider radius costs
    sqrt(2 rank / rho) times as much in noise; the root of the rank in between is a compromise.
    """
    return math.sqrt(2 * rank / (share * run.rho)) * math.sqrt(rank)


def _choose_region(run: Run, plan: _Plan, contamination: float) -> Region:
    """Balance what clipping takes away against the noise that a wider radius brings."""
    histogram = plan.histogram
    if histogram is None:
        histogram = _ask_norms(run, plan)
    if contamination:
        count = _directional_count(run, plan.rank, run.left)
        # A dropped row takes all it has: a little further out few rows of the bulk are left.
        radius = _DROPPING_MARGIN * histogram.radius(count, ignore_beyond=contamination * run.n)
        return Region(radius, (Tail(histogram, radius, plan.rank),))
    # Tails are compared between white directions; a frame that was not looked for is not white.
    heavy = () if _few_rows(run) else find_heavy(run, plan.frame, histogram)
    if heavy:
        region = surround(run, plan.frame, plan.unit, heavy, partial(_ball_radius, run))
        if region is not None:
            return region
        # Far rows agree: clipping as many as the histogram can tell would bias one direction.
        radius = _DIRECTIONAL_MARGIN * histogram.radius(_directional_count(run, plan.rank, run.left))
    else:
        radius = _ball_radius(run, histogram, plan.rank)
    return Region(radius, (Tail(histogram, radius, plan.rank),))


def _ball_radius(run: Run, histogram: NormHistogram, rank: int) -> float:
    """Choose the radius of a ball for rows that are long in no direction more than in others."""
    count = _directional_count(run, rank, run.left)
    wide = histogram.radius(count)
    narrow = histogram.radius(1.6 * rank * math.sqrt(2 * rank / (run.left * run.rho)))
    if wide <= 1.02 * narrow:
        return wide
    # Clipping at the narrow radius takes the same from all directions, which is given back.
    return narrow if 1.6 * rank >= 9 and (wide / narrow) ** 2 < 1.4 else histogram.radius(count * rank**0.25)


def _release(run: Run, plan: _Plan, region: Region, contamination: float) -> Estimate:
    """Spend what is left on the Gram matrix of the whitened rows, and map it back."""
    shape = region.shape(run.d)
    wanted = np.asarray(np.linalg.solve(shape, plan.frame.rows), dtype=np.float64)
    share = run.left
    rule = Rule.DROP if contamination else Rule.SHRINK
    clipping = Clipping(integer_map(wanted), region.radius, rule)
    answer = run.curator.ask(Gram(clipping, run.curator.remaining.rho, "the released matrix"))
    run.note("release", share, plan.frame.rank)
    forms, white = in_frame(answer, wanted)
    has_constant = run.curator.has_constant
    restoration = (
        restore_dropped(region, _directional_count(run, plan.rank, share))
        if contamination
        else restore_shrunk(region, run.n, shape @ white @ shape, has_constant=has_constant)
    )
    shrinkage = 0.0
    if plan.frame.resolved.all() and not _few_rows(run):
        # The rounds before say that the rows are about white here, and they cost budget too.
        ball = np.asarray(np.linalg.inv(shape @ shape), dtype=np.float64)
        white, shrinkage = shrink_towards(ball, white, answer.sigma)
    inverse = np.asarray(np.linalg.inv(forms), dtype=np.float64)
    matrix = inverse @ nearest_positive_semidefinite(white) @ inverse.T
    most, extra = math.sqrt(restoration.factor) * np.eye(run.d), restoration.beyond_most(run.d)
    # Only what is not a multiple of the identity takes the way through the frame, which rounds.
    raising = most + inverse @ extra @ forms
    if has_constant:
        raising = raise_beside_constant(matrix, raising, restoration.constant)
    matrix = raising @ matrix @ raising.T
    facts: dict[str, Any] = {
        "radius": region.radius / plan.unit,
        "correction": restoration.factor,
        "shrinkage": shrinkage,
        "heavy": [
            {"direction": _unit_length(direction.vector @ plan.frame.rows), "stretch": stretch}
            for direction, stretch in zip(region.heavy, region.stretches, strict=True)
        ],
    }
    raised = (most + extra) @ white @ (most + extra)
    diagnostics = _diagnostics(run, raised, answer.sigma * restoration.factor, facts)
    # What is left of the noise after shrinking, on average over entries.
    noise = NoiseLaw(raising @ inverse, answer.sigma * math.sqrt(1 - shrinkage))
    laws = restoration.located_laws(raising @ inverse, run.d - has_constant)
    return Estimate((matrix + matrix.T) / 2, diagnostics, noise, laws)


def _nothing(run: Run) -> Estimate:
    """Return zero: the rows are too few, or all zero, for this budget. What is left is not charged."""
    return Estimate(
        np.zeros((run.d, run.d)),
        {
            "rounds": len(run.rounds),
            "history": [asdict(round_) for round_ in run.rounds],
            "predicted_error": 1.0,
            "confidence": _CONFIDENCE,
            "released_share": 0.0,
        },
    )


def _diagnostics(run: Run, white: Matrix, sigma: float, facts: dict[str, Any]) -> dict[str, Any]:
    """Facts about the release, from private answers only."""
    values: Matrix = np.linalg.eigvalsh(white).astype(np.float64)
    found = values > least_resolved(run.d, sigma)
    error = rarely_exceeded(run.d) * _relative_noise(values[found], sigma) if found.any() else 1.0
    return {
        "rounds": len(run.rounds),
        "history": [asdict(round_) for round_ in run.rounds],
        "predicted_error": error,
        "confidence": _CONFIDENCE,
        "released_share": run.rounds[-1].rho / run.rho,
        **facts,
    }


def _relative_noise(values: Matrix, sigma: float) -> float:
    """Return about the norm of ``W^-1/2 N W^-1/2``, for noise N and W with these eigenvalues.

    Its entries have variances ``sigma^2 / (2 w_i w_j)``, the diagonal twice that; the norm is about twice the
    root of the largest sum of a row, as that of equal ones is exactly in the limit.
    """
    return sigma * math.sqrt(2 * (1 / values).max() * (1 / values).sum())


def _unit_length(form: Matrix) -> list[float]:
    result: list[float] = (form / np.linalg.norm(form)).tolist()
    return result
