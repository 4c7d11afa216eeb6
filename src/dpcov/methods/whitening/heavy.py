"""Directions with longer tails than the others, and an ellipsoid to clip in instead of a ball.

White rows have the same variance in every direction, not the same tails: a single column of incomes or
delays sends its rows far out in one direction. A ball that holds them lets noise into all others, a smaller
one takes much of that column's variance away. So

1. the directions of the rows a little beyond the bulk are asked for (`find_heavy`);
2. each direction in which more rows lie than in most gets a histogram of its own, hence its own radius, and
   so does the norm of what is left (`surround`);
3. the rows are clipped in an ellipsoid that reaches as far in each.

``docs/whitening.md`` (Ellipsoid) has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core import Clipping, Rule
from dpcov.laws import noise_norm, rarely_exceeded
from dpcov.maps import integer_map
from dpcov.methods.whitening import directions
from dpcov.methods.whitening.directions import Frame
from dpcov.methods.whitening.norms import NormHistogram, fine_grid
from dpcov.methods.whitening.search import Run, in_frame
from dpcov.methods.whitening.tail import radius_beyond

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# Shares of the whole budget.
HISTOGRAM_SHARE = 0.03
_TAIL_SHARE = 0.03

_MOST_DIRECTIONS = 3
# In units of the noise norm.
_ROWS_LOOKED_AT = 8.0
_MOST_LOOKED_AT = 0.1
# How many rows to clip, in units of sqrt(2 rank / rho).
_CLIPPED_ALONG = 2.0
# What the heavy directions add to the squared radius, in units of that of the rest.
_ROOM = 0.6


@dataclass(frozen=True, eq=False)
class HeavyDirection:
    """A direction in which many of the far rows lie.

    Attributes
    ----------
    vector : ndarray, shape (d,)
        A unit vector in the frame's coordinates; no row's constant depends on it.
    tilt : float
        How far it is off, about: the sine of an angle.
    """

    vector: Vector
    tilt: float


@dataclass(frozen=True, eq=False)
class Tail:
    """A histogram of the rows' norms, or of their parts along a direction, and where they were clipped.

    Attributes
    ----------
    histogram : NormHistogram
        In the frame's coordinates.
    radius : float
        Beyond this, rows were shrunk.
    rank : int
        How many directions the norm has.
    direction : HeavyDirection, optional
        The only one, if it is one.
    """

    histogram: NormHistogram
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
    """

    radius: float
    tails: tuple[Tail, ...] = ()
    stretches: tuple[float, ...] = ()

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


def find_heavy(run: Run, frame: Frame, histogram: NormHistogram) -> tuple[HeavyDirection, ...]:
    """Ask in which directions the rows beyond the bulk lie, and return those that stand out.

    If all directions are alike, or the rows too few to tell, none does.
    """
    basis = _own_basis(run, frame)
    own, resolved = basis.shape[1], frame.rank - run.curator.has_constant
    share = min(_TAIL_SHARE, run.left / 4)
    noise = noise_norm(own, 1 / math.sqrt(share * run.rho))
    if resolved < 2 or _ROWS_LOOKED_AT * noise > _MOST_LOOKED_AT * run.n:
        return ()
    radius = histogram.radius(_ROWS_LOOKED_AT * noise)
    clipping = Clipping(integer_map(frame.rows), radius, Rule.TAIL)
    _, outer = in_frame(run.gram(clipping, share, "directions of the tail"), frame.rows)
    run.note("tail", share, frame.rank)
    values, vectors = np.linalg.eigh(basis.T @ outer @ basis * (run.n / radius**2))
    # Half of the resolved directions or more are taken to be ordinary. Their eigenvalues are the lower half,
    # which noise alone, of a semicircle law, puts 4 / (3 pi) of its norm below their mean.
    half = values[own - resolved : own - resolved // 2]
    ordinary = max(float(half.mean()) + 4 / (3 * math.pi) * noise, 0.0)
    # 19 of 20 times, noise and chance together bring no ordinary direction beyond this.
    least = rarely_exceeded(own) * noise + 2 * math.sqrt(ordinary)
    return tuple(
        HeavyDirection(basis @ vector, noise / (2 * (value - ordinary)))
        for value, vector in list(zip(values, vectors.T, strict=True))[: -_MOST_DIRECTIONS - 1 : -1]
        if value - ordinary > least
    )


def surround(
    run: Run,
    frame: Frame,
    unit: float,
    heavy: tuple[HeavyDirection, ...],
    rest_radius: Callable[[NormHistogram, int], float],
) -> Region | None:
    """Return an ellipsoid around nearly all rows; None if a ball reaches as far as the heavy ones do.

    Parameters
    ----------
    run : Run
        Pays for a histogram for each of the directions and one for the rest.
    frame : Frame
        White coordinates.
    unit : float
        Root mean square of a white coordinate.
    heavy : tuple of HeavyDirection
        At least one.
    rest_radius : callable
        Chooses a radius by a histogram of norms among so many directions.
    """
    vectors = np.array([direction.vector for direction in heavy])
    rank = max(frame.rank - round(float(np.square(vectors[:, frame.resolved]).sum())), 1)
    beside = np.eye(run.d) - vectors.T @ vectors
    rest = _ask_histogram(run, frame, beside, unit * math.sqrt(rank), "histogram beside heavy directions")
    along = [
        _ask_histogram(run, frame, np.outer(vector, vector), unit, "histogram along a heavy direction")
        for vector in vectors
    ]
    inner = rest_radius(rest, rank)
    clipped = _CLIPPED_ALONG * math.sqrt(2 * frame.rank / (run.left * run.rho))
    reaches = [radius_beyond(histogram, histogram.radius(clipped), clipped) for histogram in along]
    if max(reaches) <= inner:
        return None
    # A row as long as `inner` beside a heavy direction and as long as its reach along it just fits in.
    room = math.sqrt(_ROOM) * inner
    radius = math.hypot(inner, room)
    stretches = tuple(max(reach / room, 1.0) for reach in reaches)
    # A row that is long in one way is as most rows are in the others.
    reach = math.sqrt(max(radius**2 - rank * unit**2, room**2))
    tails = [Tail(rest, math.sqrt(max(radius**2 - len(heavy) * unit**2, inner**2)), rank)]
    tails += [
        Tail(histogram, stretch * reach, 1, direction)
        for histogram, stretch, direction in zip(along, stretches, heavy, strict=True)
    ]
    return Region(radius, tuple(tails), stretches)


def _own_basis(run: Run, frame: Frame) -> Matrix:
    """Return an orthonormal basis of the coordinates on which no row's constant depends."""
    if not run.curator.has_constant:
        return np.eye(run.d)
    constant = np.linalg.inv(frame.rows)[-1]
    return np.asarray(np.linalg.qr(constant[:, None], mode="complete").Q[:, 1:])


def _ask_histogram(run: Run, frame: Frame, part: Matrix, typical: float, purpose: str) -> NormHistogram:
    """Ask for a histogram of the norms of a part of the white rows."""
    lattice_map = integer_map(part @ frame.rows, directions.column_scales(frame.rows))
    share = min(HISTOGRAM_SHARE, run.left / 8)
    answer = run.norms(lattice_map, fine_grid(typical, run.n), share, purpose)
    return NormHistogram(answer, run.n)
