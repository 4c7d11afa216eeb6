"""Step 4, wrap: a region around the rows that reaches further where the rows beyond the bulk lie.

White rows have the same variance in every direction, not the same reach: a rare 0/1 column or one of incomes
sends its rows far out in one direction. A ball that holds them lets noise into all others, a smaller one
takes much of that column's variance away. In white coordinates an ellipsoid P costs about ``sqrt(2
lambda_max(P) tr(P)) / (n sqrt(rho))``, so stretching one direction is much cheaper than a larger ball.

1. The directions of the rows a little beyond the bulk are asked for (`find_heavy`).
2. Each direction in which more rows lie than in most gets a histogram of its own, hence its own reach, and so
   does the norm of what is left. The region is where noise and what clipping takes along these directions are
   least together (`surround`). If all directions are alike, a ball it is, for the price of one look.
3. A last look at the rows in the region's own coordinates: it grows if rows are seen beyond (`enclose`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import NormHistogram, Rule
from dpcov.laws import noise_norm, rarely_exceeded
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import in_frame
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.radius import cheapest_radius, even_count, lost_by_reach
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White

_MOST_LOOKED_AT, _DROPPING_MARGIN = 0.1, 1.05
# How much further a region may reach along heavy directions than rows are seen there.
_FURTHER = np.geomspace(1, 20, 60)


@dataclass(frozen=True, eq=False)
class HeavyDirection:
    """A direction in which many of the far rows lie.

    Attributes
    ----------
    vector : ndarray, shape (d,)
        A unit vector in white coordinates; no row's constant depends on it.
    tilt : float
        How far it is off, about: the sine of an angle.
    share : float
        The part of the far rows that lie along it.
    """

    vector: Vector
    tilt: float
    share: float


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


@dataclass(frozen=True)
class Agreement:
    """How much the rows beyond the bulk lie along one direction.

    Attributes
    ----------
    about, at_most : float
        The share of them that does.
    rows : float
        How many rows beyond the bulk were looked at; infinite if none were.
    """

    about: float = 1.0
    at_most: float = 1.0
    rows: float = math.inf

    def expected(self, rank: int) -> float:
        """Return the share along one of `rank` directions: between all and an even one if unknown."""
        return self.about if math.isfinite(self.rows) else 1 / math.sqrt(rank)

    def along_one(self, beyond: float) -> float:
        """Return how many of so many rows beyond a region lie along one direction at most.

        They are among the rows that were looked at, and may all be of the few that agree: what bounds them is
        the number of those. More rows than were looked at are taken to agree as much.
        """
        return min(beyond, self.at_most * max(self.rows, beyond))


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
    """

    radius: float
    tails: tuple[Tail, ...] = ()
    stretches: tuple[float, ...] = ()
    agreement: Agreement = Agreement()

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


def wrap(run: Run, white: White, histogram: FineNorms) -> Region:
    """Balance what clipping takes away against the noise that a wider region brings."""
    rank = max(white.rank, 1)
    if run.contamination:
        count = directional_count(run, rank)
        # A dropped row takes all it has: a little further out few rows of the bulk are left.
        radius = _DROPPING_MARGIN * histogram.radius(count, ignore_beyond=run.contamination * run.n)
        return Region(radius, (Tail(histogram, radius, rank),))
    # Tails are compared between white directions; coordinates that were not looked for are not white.
    heavy, agreement = ((), Agreement()) if run.has_few_rows else find_heavy(run, white, histogram)
    noise = even_count(run, run.d)
    if heavy:
        told = histogram.radius(noise)
        region = surround(run, white, heavy, told)
        grown = enclose(run, white, region, told)
        # An ellipsoid that had to grow a lot, as it lies across the far rows, may be worse than a ball. One
        # that reaches half as far as rows are seen has lost them: single histograms may miss a few rows.
        wider = grown.radius > math.sqrt(2) * region.radius
        lost = c.APART * grown.radius * max(1.0, *grown.stretches) < told
        around = _noise_of(run.d, told, ())
        if not lost and (not wider or _noise_of(run.d, grown.radius, grown.stretches) <= around):
            return grown
    radius = cheapest_radius(histogram, noise, agreement.expected(rank), without_law=white.far)
    return Region(radius, (Tail(histogram, radius, rank),), agreement=agreement)


def find_heavy(run: Run, white: White, histogram: FineNorms) -> tuple[tuple[HeavyDirection, ...], Agreement]:
    """Ask in which directions the rows beyond the bulk lie, and return those that stand out.

    If all directions are alike, or the rows too few to tell, none does.
    """
    basis = _own_basis(run, white.rows)
    own = basis.shape[1]
    share = min(c.TAIL_SHARE, run.left / 4)
    noise = noise_norm(own, 1 / math.sqrt(share * run.rho))
    if own < 2 or c.ROWS_LOOKED_AT * noise > _MOST_LOOKED_AT * run.n:
        return (), Agreement()
    radius = histogram.look_radius(c.ROWS_LOOKED_AT * noise)
    answer = run.gram(white.rows, radius, share, "directions of the tail", rule=Rule.TAIL)
    _, outer = in_frame(answer, white.rows)
    run.note("tail", share, run.d)
    values, vectors = np.linalg.eigh(basis.T @ outer @ basis * (run.n / radius**2))
    # Half of the directions or more are taken to be ordinary. Their eigenvalues are the lower half, which
    # noise alone, of a semicircle law, puts 4 / (3 pi) of its norm below their mean.
    half = values[: own - own // 2]
    ordinary = max(float(half.mean()) + 4 / (3 * math.pi) * noise, 0.0)
    # 19 of 20 times, noise and chance together bring no ordinary direction beyond this.
    least = rarely_exceeded(own) * noise + 2 * math.sqrt(ordinary)
    rows = max(float(np.trace(outer)) * run.n / radius**2, noise)
    agreement = _agreement(float(values[-1]), noise, own, rows)
    heavy = tuple(
        HeavyDirection(basis @ vector, noise / (2 * (value - ordinary)), min((value - ordinary) / rows, 1.0))
        for value, vector in reversed(list(zip(values, vectors.T, strict=True)))
        if value - ordinary > least
    )
    return heavy, agreement


def _agreement(largest: float, noise: float, n_directions: int, rows: float) -> Agreement:
    """Return how much rows agree whose Gram matrix, in rows, has this largest eigenvalue with noise.

    Noise lifts an eigenvalue t that stands out to ``t + noise^2 / (4 t)`` (Benaych-Georges and Nadakuditi
    2011), which is undone; below what noise alone shows, rows are taken to lie evenly.
    """
    rarely = rarely_exceeded(n_directions) * noise
    about = (largest + math.sqrt(largest**2 - noise**2)) / 2 if largest > rarely else 0.0
    even = 1 / n_directions
    at_most = min(max((largest + rarely) / rows, even), 1.0)
    return Agreement(min(max(about / rows, even), 1.0), at_most, rows)


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
    share = min(c.CAREFUL_LOOK, c.REACHES_SHARE / (len(heavy) + 1))
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
    query = run.histogram(forms, fine_grid(typical, run.n), c.CAREFUL_LOOK, "norms in the region")
    histogram = FineNorms(run.curator.ask(query), run.n, far)
    # Along the furthest direction, noise is worth that many rows of the region's reach.
    rows = math.sqrt(2 * float(squares.sum() / squares.max()) / (run.left * run.rho))
    further = histogram.radius(rows) / region.radius
    return region.grown(further) if further > 1 else region


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


def _own_basis(run: Run, rows: Matrix) -> Matrix:
    """Return an orthonormal basis of the coordinates on which no row's constant depends."""
    if not run.curator.has_constant:
        return np.eye(run.d)
    constant = np.linalg.inv(rows)[-1]
    return np.asarray(np.linalg.qr(constant[:, None], mode="complete").Q[:, 1:])


def _part(run: Run, white: White, part: Matrix, *, rank: int, share: float, far: float) -> NormHistogram:
    """Return the query for a histogram of the norms of a part of the white rows, among `rank` directions."""
    lattice_map = run.map(part @ white.rows, white.rows)
    grid = fine_grid(math.sqrt(rank) * white.unit, run.n, far)
    purpose = "histogram along a heavy direction" if rank == 1 else "histogram beside heavy directions"
    return NormHistogram(lattice_map, grid, run.part(min(share, run.left / 8)), purpose)
