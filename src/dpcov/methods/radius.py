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
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Curator, LatticeMap, LogNormGrid, Rule

Vector = NDArray[np.float64]

_FAILURE = 0.01
_WHOLE_GRID = (-440, 440)
_HALVES = 4

# Shares of the budget of an enclosing ball.
_START_SHARE = Fraction(1, 5)
_MEAN_SHARE = Fraction(1, 25)
_SEARCH_SHARE = Fraction(1, 25)

_MOST_MEANS = 4
_MOST_PULLS = 6
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
    ``outside_at_most = O(sqrt(1 / rho))`` rows lie outside, and the radius is at most 2^(1/8) times
    that of the longest row: the 1-cluster problem with Delta = outside_at_most, omega = 1.1 and the
    centre held at 0.

    *Proof.* The search asks for the number of rows beyond an edge at most 13 times. With
    probability 0.99 every answer is off by less than b. The edge it ends at was found to have at
    most b rows beyond it, so it has at most 2b; the one below was found to have more than b, so some row is
    longer than that.
    """
    lattice_map = LatticeMap.identity(curator.n_columns)
    radius, outside = _search(curator, lattice_map, _WHOLE_GRID, rho, "covering radius")
    return Ball(np.zeros(curator.n_columns), radius, outside)


def find_enclosing_ball(curator: Curator) -> Ball:
    """Find a ball with a free centre that holds nearly all rows, with what the budget has left.

    Parameters
    ----------
    curator : Curator
        With a constant column, which is not part of the ball.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho, for replacing one row. With probability 0.99
    at most ``outside_at_most`` rows lie outside. The mean of points lies within twice the least radius
    of each of them, so a noiseless mean gives a 2-approximation; noise adds its own length, and
    pulling the centre towards far rows only ever keeps a smaller ball.
    """
    if not curator.has_constant:
        raise ArgumentError("an enclosing ball needs a curator with a constant column.")
    total = curator.remaining.rho
    d = curator.n_columns - 1
    _off_by(curator, _grid(0, _NARROW_DOUBLINGS), total * _SEARCH_SHARE)
    origin = LatticeMap.from_matrix(_centring(np.zeros(d), _NO_CONSTANT))
    start, outside = _search(curator, origin, _WHOLE_GRID, total * _START_SHARE, "covering radius")
    best = Ball(np.zeros(d), start, outside)
    for _ in range(_MOST_MEANS):
        shift, _weight = _mean(curator, best, best.radius, Rule.SHRINK, total)
        moved = _around(curator, best.centre + shift, best.radius, total)
        if moved is None:
            break
        worthwhile = moved.radius <= _WORTHWHILE * best.radius
        best = moved if moved.radius < best.radius else best
        if not worthwhile:
            break
    for pull in range(_MOST_PULLS):
        shift, weight = _mean(curator, best, _TAIL_START * best.radius, Rule.TAIL, total)
        if weight < outside:
            break
        moved = _around(curator, best.centre + shift / (pull + 2), best.radius, total)
        if moved is not None and moved.radius < best.radius:
            best = moved
    return best


def _centring(centre: Vector, last: float) -> NDArray[np.float64]:
    """Return the matrix of (x, 1) -> (x - centre, last)."""
    d = len(centre)
    matrix = np.eye(d + 1)
    matrix[:d, d] = -centre
    matrix[d, d] = last
    return matrix


def _mean(curator: Curator, ball: Ball, radius: float, rule: Rule, total: Fraction) -> tuple[Vector, float]:
    """Return the noisy mean offset of rows from the centre, and how many rows it weighs.

    Every row is (x - centre, radius), clipped; its last entry times the others sums to the offset.
    """
    d = len(ball.centre)
    wanted = _centring(ball.centre, radius)
    lattice_map = LatticeMap.from_matrix(wanted)
    clipping = Clipping(lattice_map, math.sqrt(2) * radius, rule)
    answer = curator.gram(clipping, total * _MEAN_SHARE, purpose="centre of the ball")
    # The map is `wanted` up to a rotation of its output.
    back = wanted @ np.linalg.inv(lattice_map.matrix())
    gram = back @ answer.mean() @ back.T
    weight = float(gram[d, d]) / radius**2
    if weight * curator.n_rows < 1:
        return np.zeros(d), 0.0
    return gram[:d, d] / (radius * weight), weight * curator.n_rows


def _around(curator: Curator, centre: Vector, near: float, total: Fraction) -> Ball | None:
    """Find the radius around `centre`, if it is at most about `near`."""
    lattice_map = LatticeMap.from_matrix(_centring(centre, near * _NEGLIGIBLE))
    highest = math.ceil(math.log2(near)) + 1
    narrow = (highest - _NARROW_DOUBLINGS, highest)
    radius, outside = _search(curator, lattice_map, narrow, total * _SEARCH_SHARE, "radius around the centre")
    # At the end of the grid nothing was found: the true radius may be anything beyond.
    return None if radius >= 2.0**highest else Ball(centre, radius, outside)


def _search(
    curator: Curator, lattice_map: LatticeMap, exponents: tuple[int, int], rho: Fraction, purpose: str
) -> tuple[float, int]:
    """Return the least edge beyond which few rows were found, and how many there are at most."""
    grid = _grid(*exponents)
    edges, steps = grid.edges(), _steps(grid)
    bound = _off_by(curator, grid, rho)
    # Edge k has bins k + 1 and later beyond it. The highest edge is right whatever the rows are
    # for the whole grid, since longer rows are hostile to float64.
    low, high = 0, len(edges) - 1
    while low < high:
        middle = (low + high) // 2
        answer = curator.rows_beyond(lattice_map, grid, middle + 1, rho / steps, purpose=purpose)
        if answer.count <= bound:
            high = middle
        else:
            low = middle + 1
    return float(edges[high]), math.ceil(2 * bound)


def _grid(lowest: int, highest: int) -> LogNormGrid:
    return LogNormGrid(lowest=lowest, highest=highest, halves=_HALVES)


def _steps(grid: LogNormGrid) -> int:
    """Questions of a binary search over the edges."""
    return (grid.n_bins - 2).bit_length()


def _off_by(curator: Curator, grid: LogNormGrid, rho: Fraction) -> float:
    """Return what every answer of a search is off by at most, or raise if that says nothing."""
    steps = _steps(grid)
    # Sub-Gaussian tails, both sides, all steps.
    bound = math.sqrt(steps / (2 * float(rho))) * math.sqrt(2 * math.log(2 * steps / _FAILURE))
    if 4 * bound > curator.n_rows:
        raise ArgumentError(
            f"the budget tells a radius only up to {math.ceil(2 * bound)} rows, too many of "
            f"{curator.n_rows}; spend more, or give a radius."
        )
    return bound
