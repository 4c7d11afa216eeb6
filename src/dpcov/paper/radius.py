"""A covering radius, and an enclosing ball with a free centre (Appendix B of the paper).

The paper points to the 1-cluster problem of Nissim, Stemmer and Vadhan (2016), Nissim and Stemmer
(2017), and to the minimum enclosing ball of Mahpud and Sheffet (2022). Both functions solve it
for t = n rows with zCDP, on the curator's queries:

- `find_covering_radius`: centre 0. A private binary search over a public grid of norms.
- `find_enclosing_ball`: the centre moves to a noisy mean of the rows, round by round, and then, as
  in Mahpud and Sheffet's scheme, towards the mean of the rows that a smaller ball would leave out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcov.arrays import Vector
from dpcov.core import (
    ArgumentError,
    Clipping,
    Curator,
    Gram,
    LatticeMap,
    LogNormGrid,
    NoAnswerError,
    RowsBeyond,
    Rule,
)
from dpcov.maps import identity_map, integer_map, map_rounding

_FAILURE = 0.01
_LOWEST, _HIGHEST = -440, 440
_HALVES = 4

# Shares of the budget of an enclosing ball.
_START_SHARE = Fraction(1, 5)
_MEAN_SHARE = Fraction(1, 25)
_SEARCH_SHARE = Fraction(1, 25)

_MOST_MEANS = 4
_MOST_PULLS = 6
_MOST_SEARCHES = 1 + _MOST_MEANS + _MOST_PULLS
_WORTHWHILE = 0.9
_NARROW_DOUBLINGS = 24
_NEGLIGIBLE = 2.0**-18
# Takes the constant column out of norms whose scale is not known yet.
_NO_CONSTANT = 2.0**-500
_TAIL_START = 0.8


@dataclass(frozen=True)
class Ball:
    """A ball that holds nearly all rows.

    Attributes
    ----------
    centre : ndarray, shape (d,)
        In the table's columns.
    radius : float
        Its radius.
    outside_at_most : int
        With probability 0.99 no more rows than this lie outside.
    """

    centre: Vector
    radius: float
    outside_at_most: int


def find_covering_radius(curator: Curator, rho: Fraction) -> Ball:
    """Find a ball around the origin that holds nearly all rows.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row. With probability 0.99 at most
    ``outside_at_most = O(sqrt(1 / rho))`` rows lie outside, and (for up to 1000 columns) the radius is at
    most 1.1 times the length of the longest row, or 2^-439 if all are shorter: the 1-cluster problem with
    Delta = outside_at_most, omega = 1.1 and the centre held at 0. If more rows than the noise hides are
    longer than 2^440, there is no answer.

    *Proof.* The search asks for the number of rows beyond an edge at most 13 times. With
    probability 0.99 every answer is off by less than b. The edge it ends at was found to have at
    most b rows beyond it, so it has at most 2b; the one below was found to have more than b, so some row is
    longer than that. Edges are 2^(1/8) apart; `_View` adds what rounding does to a norm.
    """
    d = curator.n_columns
    view = _View(np.zeros(d), np.eye(d), identity_map(d))
    return _start(curator, view, rho, _FAILURE, 0)


def find_enclosing_ball(curator: Curator, outside: int = 0) -> Ball:
    """Find a ball with a free centre that holds nearly all rows, with what the budget has left.

    Parameters
    ----------
    curator : Curator
        With a constant column, which is not part of the ball.
    outside : int, default 0
        So many rows may lie outside, n - t of the 1-cluster problem: fewer than half.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row. With probability 0.99
    at most ``outside_at_most`` rows lie outside. The mean of points lies within twice the least radius
    of each of them, so a noiseless mean gives a 2-approximation; noise adds its own length, and
    pulling the centre towards far rows only ever keeps a smaller ball. Rows are read with 26 bits, so
    no ball is smaller than about 10^-6 of its distance from the origin. With `outside`, means are those of
    the rows within the last ball. How close its radius comes to the least one is then measured, not proved.
    """
    if not curator.has_constant:
        raise ArgumentError("an enclosing ball needs a curator with a constant column.")
    total = curator.remaining.rho
    d = curator.n_columns - 1
    failure = _FAILURE / _MOST_SEARCHES
    _off_by(curator, _grid(0, _NARROW_DOUBLINGS), total * _SEARCH_SHARE, failure)
    best = _start(curator, _centred(np.zeros(d), _NO_CONSTANT), total * _START_SHARE, failure, outside)
    # Rows that may lie outside do not pull.
    rule = Rule.DROP if outside else Rule.SHRINK
    for _ in range(_MOST_MEANS):
        shift, _weight = _mean(curator, best, best.radius, rule, total)
        moved = _around(curator, best.centre + shift, best.radius, total * _SEARCH_SHARE, failure, outside)
        if moved is None:
            break
        worthwhile = moved.radius <= _WORTHWHILE * best.radius
        best = moved if moved.radius < best.radius else best
        if not worthwhile:
            break
    for pull in range(0 if outside else _MOST_PULLS):
        shift, weight = _mean(curator, best, _TAIL_START * best.radius, Rule.TAIL, total)
        if weight < best.outside_at_most:
            break
        centre = best.centre + shift / (pull + 2)
        moved = _around(curator, centre, best.radius, total * _SEARCH_SHARE, failure, 0)
        if moved is not None and moved.radius < best.radius:
            best = moved
    return best


@dataclass(frozen=True)
class _View:
    """A public map whose norms tell how far rows are from a centre.

    Attributes
    ----------
    centre : ndarray, shape (d,)
    wanted : ndarray
        A matrix whose image of a row is at least as long as its distance.
    lattice_map : LatticeMap
        The same, up to a rotation of its output and to rounding.
    """

    centre: Vector
    wanted: Vector
    lattice_map: LatticeMap

    def reach(self, edge: float) -> float:
        """Return a distance from the centre beyond which every row's norm is at least `edge`.

        A row at distance r has entries of at most those of the centre plus r, so rounding takes at most
        ``rounding(centre) + r * rounding(1)`` from its norm. Infinite where that drowns the distance.
        """
        columns = self.lattice_map.n_columns
        own = np.arange(columns) < len(self.centre)
        ones = np.where(own, 0.0, 1.0)
        ones[own] = np.abs(self.centre)
        of_centre, of_distance = (
            map_rounding(self.lattice_map, ones),
            map_rounding(self.lattice_map, own * 1.0),
        )
        kept = 1 - 2.0**-24 * columns - of_distance
        return (edge + of_centre) / kept if kept > 0.5 else math.inf


def _centred(centre: Vector, last: float, near: float = 1.0) -> _View:
    """Return a view of (x - centre, last), for rows about `near` from the centre."""
    d = len(centre)
    wanted = np.eye(d + 1)
    wanted[:d, d] = -centre
    wanted[d, d] = last
    # The constant's size is what makes its column of the map no larger than the others.
    far = float(np.abs(centre).max())
    sizes = np.append(np.abs(centre) + near, (far + near) / max(far, last))
    return _View(centre, wanted, integer_map(wanted, sizes))


def _start(curator: Curator, view: _View, rho: Fraction, failure: float, outside: int) -> Ball:
    """Find the radius around the origin, whatever its scale."""
    whole = _LOWEST, _HIGHEST
    ball = _search(curator, view, whole, rho, failure, outside=outside, purpose="covering radius")
    if ball is None:
        raise NoAnswerError(
            "many rows are longer than 1e132; divide the columns by a public number first. "
            "What this question cost is spent."
        )
    return ball


def _mean(curator: Curator, ball: Ball, radius: float, rule: Rule, total: Fraction) -> tuple[Vector, float]:
    """Return the noisy mean offset of rows from the centre, and how many rows it weighs.

    Every row is (x - centre, radius), clipped; its last entry times the others sums to the offset.
    """
    d = len(ball.centre)
    view = _centred(ball.centre, radius, radius)
    clipping = Clipping(view.lattice_map, math.sqrt(2) * radius, rule)
    answer = curator.ask(Gram(clipping, total * _MEAN_SHARE, "centre of the ball"))
    # The map is the wanted one up to a rotation of its output.
    back = view.wanted @ np.linalg.inv(view.lattice_map.matrix())
    gram = back @ answer.mean() @ back.T
    weight = float(gram[d, d]) / radius**2
    if weight * curator.n_rows < 1:
        return np.zeros(d), 0.0
    return gram[:d, d] / (radius * weight), weight * curator.n_rows


def _around(  # noqa: PLR0917
    curator: Curator, centre: Vector, near: float, rho: Fraction, failure: float, outside: int
) -> Ball | None:
    """Find the radius around `centre`, if it is at most about `near`."""
    view = _centred(centre, near * _NEGLIGIBLE, near)
    highest = max(math.ceil(math.log2(near)) + 1, _LOWEST + 1)
    narrow = max(highest - _NARROW_DOUBLINGS, _LOWEST), highest
    return _search(curator, view, narrow, rho, failure, outside=outside, purpose="radius around the centre")


def _search(
    curator: Curator,
    view: _View,
    exponents: tuple[int, int],
    rho: Fraction,
    failure: float,
    *,
    outside: int,
    purpose: str,
) -> Ball | None:
    """Find the least edge beyond which few rows are; None if it is the last, of which nothing is known."""
    grid = _grid(*exponents)
    edges, steps = grid.edges(), _steps(grid)
    bound = _off_by(curator, grid, rho, failure)
    # Edge k has bins k + 1 and later beyond it.
    low, high = 0, len(edges) - 1
    while low < high:
        middle = (low + high) // 2
        answer = curator.ask(RowsBeyond(view.lattice_map, grid, middle + 1, rho / steps, purpose))
        if answer.count <= outside + bound:
            high = middle
        else:
            low = middle + 1
    radius = math.inf if high == len(edges) - 1 else view.reach(float(edges[high]))
    return Ball(view.centre, radius, outside + math.ceil(2 * bound)) if radius < math.inf else None


def _grid(lowest: int, highest: int) -> LogNormGrid:
    return LogNormGrid(lowest=lowest, highest=highest, halves=_HALVES)


def _steps(grid: LogNormGrid) -> int:
    """Questions of a binary search over the edges."""
    return (grid.n_bins - 2).bit_length()


def _off_by(curator: Curator, grid: LogNormGrid, rho: Fraction, failure: float) -> float:
    """Return what every answer of a search is off by at most, or raise if that says nothing."""
    steps = _steps(grid)
    # Sub-Gaussian tails, both sides, all steps.
    bound = math.sqrt(steps / (2 * float(rho))) * math.sqrt(2 * math.log(2 * steps / failure))
    if 4 * bound > curator.n_rows:
        raise ArgumentError(
            f"the budget tells a radius only up to {math.ceil(2 * bound)} rows, too many of "
            f"{curator.n_rows}; spend more, or give a radius."
        )
    return bound
