"""Step 4, wrap: a region around the rows that reaches further where the rows beyond the bulk lie.

White rows have the same variance in every direction, not the same reach: a rare 0/1 column or one of incomes
sends its rows far out in one direction. A ball that holds them lets noise into all others, a smaller one
takes much of that column's variance away. In white coordinates an ellipsoid P costs about ``sqrt(2
lambda_max(P) tr(P)) / (n sqrt(rho))``, so stretching one direction is much cheaper than a larger ball.

1. The last look has brought the directions of the rows a little beyond the bulk. Those in which more of them
   lie than noise and chance explain are heavy (``heavy.py``).
2. If an ellipsoid may save more noise than the looks for it cost, each direction in which more rows lie than
   in most gets a histogram of its own, hence its own reach, and so does the norm of what is left. The region
   is where noise and what clipping takes along these directions are least together (`surround`). Otherwise a
   ball it is, for the price of one look.
3. A last look at the rows in the region's own coordinates: it grows if rows are seen beyond (`enclose`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import NoisyGram, NormHistogram
from dpcov.laws import RESOLVED
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.heavy import Agreement, HeavyDirection, find_heavy
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.radius import cheapest_radius, even_count, lost_by_reach
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.settle import Settled
from dpcov.methods.whitening.whiten import White

_DROPPING_MARGIN = 1.05
# How much further a region may reach along heavy directions than rows are seen there.
_FURTHER = np.geomspace(1, 20, 60)


@dataclass(frozen=True, eq=False)
class Tail:
    """A histogram of the rows' norms, or of their parts along a direction, and where they were clipped.

    Attributes
    ----------
    histogram : FineNorms
        In white coordinates.
    radius : float
        Beyond this, rows were shrunk.
    rank : int
        How many directions the norm has.
    direction : HeavyDirection, optional
        The only one, if it is one.
    """

    histogram: FineNorms
    radius: float
    rank: int
    direction: HeavyDirection | None = None


@dataclass(frozen=True, eq=False)
class Region:
    """Where rows are clipped: a ball after stretches along some directions.

    Attributes
    ----------
    radius : float
        Of the ball.
    tails : tuple of Tail
        What is known of the rows beyond; empty if nothing is.
    stretches : tuple of float
        How much further the region reaches along the direction of each tail that has one.
    agreement : Agreement
        How much the rows beyond lie along one direction.
    far_rows : NoisyGram, optional
        The directions of the rows beyond the bulk; None if they were not looked at.
    """

    radius: float
    tails: tuple[Tail, ...] = ()
    stretches: tuple[float, ...] = ()
    agreement: Agreement = field(default_factory=Agreement)
    far_rows: NoisyGram | None = None

    @property
    def heavy(self) -> tuple[HeavyDirection, ...]:
        """The directions along which it reaches further."""
        return tuple(tail.direction for tail in self.tails if tail.direction is not None)

    def shape(self, d: int) -> Matrix:
        """Return the map that stretches the ball to the region."""
        matrix = np.eye(d)
        for direction, stretch in zip(self.heavy, self.stretches, strict=True):
            matrix += (stretch - 1) * np.outer(direction.vector, direction.vector)
        return matrix

    def grown(self, factor: float) -> Region:
        """Return the region with all its radii so many times as long."""
        tails = tuple(replace(tail, radius=factor * tail.radius) for tail in self.tails)
        return replace(self, radius=factor * self.radius, tails=tails)


def wrap(run: Run, settled: Settled) -> Region:
    """Balance what clipping takes away against the noise that a wider region brings."""
    white, histogram, far_rows = settled.white, settled.histogram, settled.far_rows
    rank = max(white.rank, 1)
    if run.contamination:
        count = directional_count(run, rank)
        # A dropped row takes all it has: a little further out few rows of the bulk are left.
        radius = _DROPPING_MARGIN * histogram.radius(count, ignore_beyond=run.contamination * run.n)
        return Region(radius, (Tail(histogram, radius, rank),))
    heavy, agreement = ((), Agreement()) if far_rows is None else find_heavy(run, white, far_rows)
    noise = even_count(run, run.d)
    told = histogram.radius(noise, within=max(_affordable_radius(run, white), white.far))
    if heavy and _pays(run, white, len(heavy), told):
        region = surround(run, white, heavy, told)
        grown = enclose(run, white, region, told)
        # An ellipsoid that had to grow a lot, as it lies across the far rows, may be worse than a ball. One
        # that reaches half as far as rows are seen has lost them: single histograms may miss a few rows.
        wider = grown.radius > math.sqrt(2) * region.radius
        lost = c.APART * grown.radius * max(1.0, *grown.stretches) < told
        around = _noise_of(run.d, told, ())
        if not lost and (not wider or _noise_of(run.d, grown.radius, grown.stretches) <= around):
            return replace(grown, far_rows=far_rows)
    # Where rows end as at a cliff, they follow no law, and none is missed: looks before had wider bins.
    before = 0.0 if histogram.ends_at(told) else white.far
    radius = cheapest_radius(histogram, told, noise, agreement.expected(rank), without_law=before)
    return Region(radius, (Tail(histogram, radius, rank),), agreement=agreement, far_rows=far_rows)


def _pays(run: Run, white: White, n_heavy: int, far: float) -> bool:
    """Whether an ellipsoid around rows up to `far` may save more noise than the looks for it cost.

    At best it clips nothing beside heavy directions that is longer than most rows are.
    """
    typical = math.sqrt(max(white.rank - n_heavy, 1)) * white.unit
    reach = math.sqrt(max(far**2 - typical**2, 0.0))
    best = _fit(run.d, typical, typical, [reach] * n_heavy, white.unit)
    cost = min(run.look_of(c.REACHES_SHARE), (n_heavy + 1) * run.careful_look) + run.careful_look
    dearer = math.sqrt(run.left / max(run.left - cost, cost))
    return dearer * best.cost < _noise_of(run.d, far, ())


def surround(run: Run, white: White, heavy: tuple[HeavyDirection, ...], far: float) -> Region:
    """Return the region in which noise and what clipping takes along heavy directions are least together.

    Each of the directions is paid a histogram, and so is the rest. The norms of whole rows would not do: if
    one direction has a long tail, they follow all the others near the bulk, and that one only far out.

    Parameters
    ----------
    run : Run
        The curator.
    white : White
        The coordinates.
    heavy : tuple of HeavyDirection
        Where the region may reach further.
    far : float
        How far any rows are seen.
    """
    vectors = np.array([direction.vector for direction in heavy])
    rank = max(white.rank - len(heavy), 1)
    beside = np.eye(run.d) - vectors.T @ vectors
    share = min(run.careful_look, run.look_of(c.REACHES_SHARE) / (len(heavy) + 1))
    answers = run.curator.ask(
        _part(run, white, beside, rank=rank, share=share, far=far),
        *(_part(run, white, np.outer(vector, vector), rank=1, share=share, far=far) for vector in vectors),
    )
    rest, *along = (FineNorms(answer, run.n, far) for answer in answers)
    typical = math.sqrt(rank) * white.unit
    inner = rest.radius(directional_count(run, rank))
    clipped = c.CLIPPED_ALONG * even_count(run, run.d)
    seen = [histogram.radius(clipped) for histogram in along]
    # All reach further by the same factor.
    lost = [lost_by_reach(histogram, reach, _FURTHER) for histogram, reach in zip(along, seen, strict=True)]
    fits = [_fit(run.d, inner, typical, [far * reach for reach in seen], white.unit) for far in _FURTHER]
    rows = math.sqrt(2 / (run.left * run.rho))
    costs = rows * np.array([fit.cost for fit in fits]) + np.max(lost, axis=0)
    best = fits[int(np.argmin(costs))]
    room = math.sqrt(best.radius**2 - typical**2)
    tails = [Tail(rest, math.sqrt(best.radius**2 - len(heavy) * white.unit**2), rank)]
    tails += [
        Tail(histogram, stretch * room, 1, direction)
        for histogram, stretch, direction in zip(along, best.stretches, heavy, strict=True)
    ]
    return Region(best.radius, tuple(tails), best.stretches)


@dataclass(frozen=True)
class _Fit:
    """An ellipsoid: its radius, its stretches, and the noise it lets in."""

    radius: float
    stretches: tuple[float, ...]
    cost: float


def _fit(d: int, inner: float, typical: float, reaches: list[float], unit: float) -> _Fit:
    """Return the cheapest ellipsoid that holds rows which are long in one way, and as most are in the others.

    Parameters
    ----------
    d : int
        The number of directions.
    inner, typical : float
        How long rows are beside the heavy directions, at most and typically.
    reaches : list of float
        How long they are along each of these.
    unit : float
        Root mean square of a white coordinate.
    """
    fits = []
    for factor in np.geomspace(1.0, 4.0, 29).tolist():
        # A row that is long beside the heavy directions has a unit along each of them.
        radius = factor * math.sqrt(max(inner, 1.05 * typical) ** 2 + len(reaches) * unit**2)
        room = math.sqrt(radius**2 - typical**2)
        stretches = tuple(max(reach / room, 1.0) for reach in reaches)
        fits.append(_Fit(radius, stretches, _noise_of(d, radius, stretches)))
    return min(fits, key=lambda fit: fit.cost)


def enclose(run: Run, white: White, region: Region, far: float) -> Region:
    """Look once more, in the region's own coordinates: it grows if rows are seen beyond."""
    squares = np.linalg.eigvalsh(region.shape(run.d)) ** 2
    forms = np.asarray(np.linalg.solve(region.shape(run.d), white.rows), dtype=np.float64)
    typical = white.unit * math.sqrt(float((1 / squares).sum()))
    grid = fine_grid(typical, run.n, c.APART * region.radius)
    query = run.histogram(forms, grid, run.careful_look, "norms in the region")
    histogram = FineNorms(run.curator.ask(query), run.n, far)
    # Along the furthest direction, noise is worth that many rows of the region's reach.
    rows = math.sqrt(2 * float(squares.sum() / squares.max()) / (run.left * run.rho))
    noise = _noise_of(run.d, region.radius, region.stretches) / _noise_of(run.d, region.radius, ())
    within = max(_affordable_radius(run, white) / math.sqrt(noise), region.radius)
    further = histogram.radius(rows, within=within) / region.radius
    return region.grown(further) if further > 1 else region


def _affordable_radius(run: Run, white: White) -> float:
    """Return how far a ball may reach before its noise hides most directions of a white table.

    Rows further out may be all that one direction has. But what it would gain, all others would lose.
    """
    return white.unit / math.sqrt(RESOLVED * run.noise(run.n, run.left))


def _noise_of(d: int, radius: float, stretches: tuple[float, ...]) -> float:
    """Return the noise that an ellipsoid lets into a white table, up to a factor.

    It is ``sqrt(lambda_max(P) tr(P))``.
    """
    squares = np.ones(d)
    squares[: len(stretches)] = np.square(stretches)
    return radius**2 * math.sqrt(float(squares.max() * squares.sum()))


def directional_count(run: Run, rank: int) -> float:
    """Return how many rows to clip when their excess may lie in few of `rank` directions or in all.

    If they lie in all, each loses only its part: the root of the rank is a compromise.
    """
    return even_count(run, rank) * math.sqrt(rank)


def _part(run: Run, white: White, part: Matrix, *, rank: int, share: float, far: float) -> NormHistogram:
    """Return the query for a histogram of the norms of a part of the white rows, among `rank` directions."""
    lattice_map = run.map(part @ white.rows, white.rows)
    grid = fine_grid(math.sqrt(rank) * white.unit, run.n, far)
    purpose = "histogram along a heavy direction" if rank == 1 else "histogram beside heavy directions"
    return NormHistogram(lattice_map, grid, run.part(min(share, run.left / 8)), purpose)
