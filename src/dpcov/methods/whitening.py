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
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Curator, LatticeMap, NoisyGram, Rule, sampled_rows
from dpcov.methods import directions
from dpcov.methods.directions import Frame
from dpcov.methods.estimate import Estimate, nearest_positive_semidefinite
from dpcov.methods.norms import NormHistogram, coarse_grid, find_scale, fine_grid
from dpcov.methods.options import positive

Matrix = NDArray[np.float64]

# Shares of the whole budget.
_LEAST_SHARE = 0.004
_MOST_FOR_A_CHASE = 0.05
_MOST_FOR_DIRECTIONS = 0.6
_MOST_FOR_REFINING = 0.10
_SCALE_SHARE = 0.008
_HISTOGRAM_SHARE = 0.03
_TAIL_SHARE = 0.03
_LEAST_FOR_POLISHING = 0.005
_MOST_FOR_POLISHING = 0.06

# Relative errors of the whitening map that the rounds aim at.
_CHASE_ERROR = 0.35
_REFINED_ERROR = 0.2
_POLISHED_ERROR = 0.07
_USEFUL_POLISH = 0.25

# If the whole budget leaves more noise than this in a direction of a white table, there are too
# few rows to look for directions: one release of the rows as they are tells most.
_FEW_ROWS = 0.25

_MOST_ROUNDS = 25
_MOST_IDLE_ROUNDS = 5
_MOST_POLISHINGS = 4
_EVEN_SPREAD = 2.5
_EXCESS = 2.0
_LONG_TAIL = 6.0
_SAMPLED_ROWS = 200_000
_DROPPING_MARGIN = 1.05
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Round:
    """One query of the method: what for, what it cost, how many directions were resolved after it."""

    purpose: str
    rho: float
    resolved: int


@dataclass
class _Run:
    """The curator, public sizes, and the story so far."""

    curator: Curator
    n: int
    d: int
    rho: float
    rounds: list[Round] = field(default_factory=list)

    @property
    def left(self) -> float:
        """The share of the budget that is left."""
        return float(self.curator.remaining.rho) / self.rho

    def gram(self, clipping: Clipping, share: float, purpose: str, *, every: int = 1) -> NoisyGram:
        """Ask for a Gram matrix."""
        return self.curator.gram(clipping, Fraction(share * self.rho), purpose=purpose, every=every)

    def note(self, purpose: str, share: float, resolved: int) -> None:
        """Remember a round."""
        self.rounds.append(Round(purpose, share * self.rho, resolved))

    def noise(self, rank: int, rows: int, share: float) -> float:
        """Return the noise norm for rows in the unit ball, among `rank` directions."""
        return directions.noise_norm(rank, 1.0) / (rows * math.sqrt(share * self.rho))

    def share_for(self, noise: float, rank: int, rows: int) -> float:
        """Return the share of the budget for which `noise` is the noise norm."""
        return (directions.noise_norm(rank, 1.0) / (rows * noise)) ** 2 / self.rho


def estimate_whitening(
    curator: Curator,
    *,
    contamination: float = 0.0,
    radius: float | None = None,
    least_eigenvalue: float | None = None,
    m: float | None = None,
    alpha: float | None = None,
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
    m, alpha : float, optional
        Of an (m, alpha, beta)-subsamplable table: the last radius is then sqrt(m (1 + alpha)) after
        whitening, beyond which only points of the paper's tail lie, and no histogram is needed.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row, whatever the rows and
    options are: every step is a query of the curator, chosen from earlier answers, and the
    budget is a filter. *Reference.* ``docs/whitening.md``.
    """
    _check(contamination, m, alpha)
    known_radius = None if radius is None else positive(radius, "radius")
    least = None if least_eigenvalue is None else positive(least_eigenvalue, "least_eigenvalue")
    run = _Run(curator, curator.n_rows, curator.n_columns, float(curator.remaining.rho))
    few_rows = run.noise(run.d, run.n, 1.0) * run.d > _FEW_ROWS
    frame = directions.resolved_frame(run.d) if few_rows else _find_directions(run, least)
    frame, typical, histogram = _polish(run, frame, contamination, known_radius)
    if m is not None:
        clip = math.sqrt(m * (1 + (alpha or 0.0))) * typical / math.sqrt(max(frame.rank, 1))
    else:
        clip = _choose_radius(run, frame, histogram, contamination)
    return _release(run, frame, typical, histogram, clip, contamination)


def _check(contamination: float, m: float | None, alpha: float | None) -> None:
    if not 0 <= contamination < 0.5:
        raise ArgumentError(f"contamination must be at least 0 and below 0.5, got {contamination}.")
    if m is not None:
        positive(m, "m")
    if alpha is not None and not 0 < alpha <= 0.5:
        raise ArgumentError(f"alpha must be greater than 0 and at most 1/2, got {alpha}.")
    if alpha is not None and m is None:
        raise ArgumentError("alpha needs m as well.")


def _find_directions(run: _Run, least_eigenvalue: float | None) -> Frame:
    """Resolve as many directions as rounds of unit rows can."""
    every = max(1, run.n // _SAMPLED_ROWS)
    rows = sampled_rows(run.n, every)
    share = run.share_for(_CHASE_ERROR / run.d, run.d, rows)
    share = min(max(share, _LEAST_SHARE), _MOST_FOR_A_CHASE)
    noise = run.noise(run.d, rows, share)
    frame, idle = directions.initial_frame(run.d), 0
    for _ in range(_MOST_ROUNDS):
        forms, signs = _ask_signs(run, frame.rows, share, every)
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
        if least_eigenvalue is not None and _all_below(run, frame, least_eigenvalue, every):
            break
        if idle and frame.rank:
            excess = _look_at_scale(run, frame, every).excess
            if excess > _EXCESS:
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


def _ask_signs(run: _Run, forms: Matrix, share: float, every: int) -> tuple[Matrix, Matrix]:
    """Return the forms that were really asked about and the noisy mean of u u^T in them."""
    lattice_map = LatticeMap.from_matrix(forms)
    answer = run.gram(
        Clipping(lattice_map, 1.0, Rule.DIRECTION), share, "directions of the rows", every=every
    )
    asked = lattice_map.matrix()
    # The map is triangular: the forms up to a rotation and rounding. Undo the rotation.
    rotation = np.linalg.qr(asked @ np.linalg.inv(forms)).Q
    return rotation.T @ asked, rotation.T @ answer.mean() @ rotation


def _all_below(run: _Run, frame: Frame, least_eigenvalue: float, every: int) -> bool:
    """Whether all unresolved directions are amplified beyond the least eigenvalue to look for."""
    typical = _look_at_scale(run, frame, every).typical
    unit = typical / math.sqrt(max(frame.rank, 1))
    gains = np.linalg.norm(frame.rows[~frame.resolved], axis=1)
    return bool(((unit / gains) ** 2 < least_eigenvalue).all())


def _look_at_scale(run: _Run, frame: Frame, every: int, radius: float | None = None) -> Any:
    lattice_map = LatticeMap.from_matrix(frame.rows)
    grid, share = coarse_grid(), _SCALE_SHARE
    if radius is not None:
        highest = math.ceil(math.log2(radius * float(np.linalg.norm(frame.rows, 2)))) + 1
        grid, share = type(grid)(highest - 60, highest, grid.halves), _SCALE_SHARE / 4
    answer = run.curator.log_norms(
        lattice_map, grid, Fraction(share * run.rho), purpose="scale of the norms", every=every
    )
    return find_scale(answer)


def _ask_norms(run: _Run, frame: Frame, typical: float, every: int = 1) -> NormHistogram:
    answer = run.curator.log_norms(
        LatticeMap.from_matrix(frame.rows),
        fine_grid(typical, run.n),
        Fraction(_HISTOGRAM_SHARE * run.rho),
        purpose="histogram of the norms",
        every=every,
    )
    return NormHistogram(answer)


def _polish(
    run: _Run, frame: Frame, contamination: float, radius: float | None
) -> tuple[Frame, float, NormHistogram]:
    """Whiten by Gram matrices of clipped rows, as long as they are precise enough to help.

    Returns the frame, a typical norm in it, and a histogram of the norms in it.
    """
    every = max(1, run.n // (2 * _SAMPLED_ROWS))
    rows = sampled_rows(run.n, every)
    typical = _look_at_scale(run, frame, max(1, run.n // _SAMPLED_ROWS), radius).typical
    best = frame.rank
    for attempt in range(_MOST_POLISHINGS + 1):
        histogram = _ask_norms(run, frame, typical)
        rank = max(frame.rank, 1)
        clip = histogram.radius(_directional_count(run, rank, run.left), ignore_beyond=contamination * run.n)
        whole = run.noise(rank, rows, 1.0) * clip**2 / (typical**2 / rank)
        share = min(max((whole / _POLISHED_ERROR) ** 2, _LEAST_FOR_POLISHING), _MOST_FOR_POLISHING)
        hopeless = whole / math.sqrt(share) > _USEFUL_POLISH
        distorted = not frame.resolved.all() and clip > _LONG_TAIL * typical
        if attempt == _MOST_POLISHINGS or (hopeless and not distorted):
            break
        lattice_map = LatticeMap.from_matrix(frame.rows)
        rule = Rule.DROP if contamination else Rule.SHRINK
        answer = run.gram(Clipping(lattice_map, clip, rule), share, "whitening", every=every)
        noise = directions.noise_norm(run.d, answer.sigma)
        values, vectors = np.linalg.eigh(answer.mean())
        found = values > directions.RESOLVED * noise
        level = np.where(found, values, directions.UNRESOLVED_LEVEL * noise)
        whitened = Frame((vectors.T @ lattice_map.matrix()) / np.sqrt(level)[:, None], found)
        frame = directions.limit_gains(whitened)
        run.note("whitening", share, frame.rank)
        typical = math.sqrt(max(frame.rank, 1))
        spread = values[found].max() / values[found].min() if found.any() else math.inf
        best = max(best, frame.rank)
        if spread < _EVEN_SPREAD and frame.rank == best:
            histogram = _ask_norms(run, frame, typical)
            break
    return frame, typical, histogram


def _directional_count(run: _Run, rank: int, share: float) -> float:
    """How many rows to clip when their excess may lie in few directions.

    Clipping k rows in one direction costs k times their excess, a wider radius costs
    sqrt(2 rank / rho) times as much in noise; the root of the rank in between is a compromise.
    """
    return math.sqrt(2 * rank / (share * run.rho)) * math.sqrt(rank)


def _choose_radius(run: _Run, frame: Frame, histogram: NormHistogram, contamination: float) -> float:
    """Balance what clipping takes away against the noise that a wider radius brings."""
    rank = max(frame.rank, 1)
    ignore = contamination * run.n
    narrow_count = 1.6 * rank * math.sqrt(2 * rank / (run.left * run.rho))
    wide = histogram.radius(_directional_count(run, rank, run.left), ignore_beyond=ignore)
    narrow = histogram.radius(narrow_count, ignore_beyond=ignore)
    if contamination:
        # A dropped row takes all it has: a little further out few rows of the bulk are left.
        return _DROPPING_MARGIN * wide
    if wide <= 1.02 * narrow:
        return wide
    between = histogram.radius(_directional_count(run, rank, run.left) * rank**0.25)
    if 1.6 * rank < 9:
        return between
    # The directions of the rows beyond the narrow radius: if they agree, clipping there would bias
    # one direction; if not, it takes the same from all, which the correction gives back.
    answer = run.gram(
        Clipping(LatticeMap.from_matrix(frame.rows), narrow, Rule.TAIL), _TAIL_SHARE, "directions of the tail"
    )
    largest = float(np.linalg.eigvalsh(answer.mean())[-1]) / narrow**2 * run.n
    noise = directions.noise_norm(run.d, answer.sigma) / narrow**2 * run.n
    run.note("tail", _TAIL_SHARE, frame.rank)
    if largest > 1.4 * noise + narrow_count / rank:
        return wide
    return narrow if (wide / narrow) ** 2 < 1.4 else between


def _release(  # noqa: PLR0917 - the story so far
    run: _Run, frame: Frame, typical: float, histogram: NormHistogram, clip: float, contamination: float
) -> Estimate:
    """Spend what is left on the Gram matrix of the whitened rows, and map it back."""
    lattice_map = LatticeMap.from_matrix(frame.rows)
    share = run.left
    rule = Rule.DROP if contamination else Rule.SHRINK
    answer = run.curator.gram(
        Clipping(lattice_map, clip, rule), run.curator.remaining.rho, purpose="the released matrix"
    )
    run.note("release", share, frame.rank)
    if contamination:
        factor = histogram.dropping_correction(clip, _directional_count(run, max(frame.rank, 1), share) / 2)
    else:
        factor = histogram.correction(clip)
    white = answer.mean() * factor
    inverse = np.asarray(np.linalg.inv(lattice_map.matrix()), dtype=np.float64)
    matrix = inverse @ nearest_positive_semidefinite(white) @ inverse.T
    sigma = answer.sigma * factor
    return Estimate(
        (matrix + matrix.T) / 2,
        _diagnostics(run, inverse, white, sigma, {"radius": clip / typical, "correction": factor}),
    )


def _diagnostics(
    run: _Run, inverse: Matrix, white: Matrix, sigma: float, facts: dict[str, float]
) -> dict[str, Any]:
    """Facts about the release, from private answers only."""
    noise = directions.noise_norm(run.d, sigma)
    # Tracy-Widom: 19 of 20 noise matrices have a norm below this.
    bound = noise * (1 + 0.73 * run.d ** (-2 / 3))
    values, vectors = np.linalg.eigh(white)
    found = values > directions.RESOLVED * noise
    unresolved = []
    for value, vector in zip(values[~found], vectors[:, ~found].T, strict=True):
        form = inverse @ vector
        length = float(np.linalg.norm(form))
        unresolved.append(
            {"direction": (form / length).tolist(), "variance_at_most": (max(value, 0.0) + bound) * length**2}
        )
    predicted = bound / float(values[found].min()) if found.any() else 1.0
    return {
        "rounds": len(run.rounds),
        "history": [asdict(round_) for round_ in run.rounds],
        "resolved": int(found.sum()),
        "unresolved": unresolved,
        "predicted_error": predicted,
        "confidence": _CONFIDENCE,
        "released_share": run.rounds[-1].rho / run.rho,
        **facts,
    }
