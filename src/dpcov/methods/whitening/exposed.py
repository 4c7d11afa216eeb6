"""What columns have lost that the rows beyond the region belong to: far more than others.

Rows of one column that are long on one side, as those of incomes, take much from its mean and its variance.
They may lie on the line of the other rows, and then others go with it as they do in the bulk; or they may be
far out in that column alone, as those of the largest cities are in their density. Whose rows they are, and in
which of the two ways, is not certain (``owners.py``). So intervals allow for each as far as it is likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.laws import NoiseLaw, noise_norm
from dpcov.losses import LossLaw
from dpcov.methods.whitening.caution import least_error
from dpcov.methods.whitening.owners import SEEN, Clipped, by_directions
from dpcov.methods.whitening.tail import given_lengths, lost_length, lost_squares

_END = 1.96
"""Standard deviations from the middle of a normal 95% interval to its end."""

_MOST_EXPOSED = 16
"""So much that intervals allow for, eight columns in two ways each: more laws would take too much memory."""

_LEAST_SHARE = 0.0025
"""What is less likely moves no end of a 99% interval: a column may lie in two ways, with so much for each."""


@dataclass(frozen=True, eq=False)
class Exposed:
    """Columns that the rows beyond may belong to.

    Attributes
    ----------
    clearly : tuple of int
        Those with more of the far rows than noise would make it seem, whose means these may move by more than
        intervals say.
    places : tuple of int
        Those that intervals allow for, the likeliest first. A column may be there twice: its far rows may lie
        on the line of the others, or move it alone.
    shares : ndarray, shape (number of places,)
        How likely it is that rows beyond are those of each, and lie there; the rest is for rows of no column.
    owned : tuple of LossLaw
        How many rows they then are, and how far out, for each place.
    restored : ndarray, shape (number of places,)
        What is given back of the mean square along each, in clipped coordinates.
    directions : ndarray, shape (d, number of places)
        Where the rows of each of these lie, in the table's columns.
    """

    clearly: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    shares: Vector = field(default_factory=lambda: np.zeros(0))
    owned: tuple[LossLaw, ...] = ()
    restored: Vector = field(default_factory=lambda: np.zeros(0))
    directions: Matrix = field(default_factory=lambda: np.zeros((0, 0)))

    def laws(self, forms: Matrix, radius: float) -> tuple[LossLaw, ...]:
        """Return what each column may have lost: rows beyond may be those of one of them.

        Parameters
        ----------
        forms : ndarray, shape (d, d)
            The coordinates that were clipped, of which the constant's column is the last.
        radius : float
            Where.
        """
        if not self.owned:
            return ()
        # A sequence of irrational steps stands for independent draws: methods make no random numbers.
        drawn = (np.arange(len(self.owned[0].rows)) + 0.5) * math.sqrt(3) % 1.0
        owners = np.searchsorted(np.cumsum(self.shares), drawn)
        units = self.directions / np.linalg.norm(forms @ self.directions, axis=0)
        each = zip(self.owned, units[:-1].T, self.restored.tolist(), strict=True)
        # On top of what other laws say of all directions.
        return tuple(
            replace(
                law,
                rows=np.where(owners == place, law.rows, 0.0),
                radius=radius,
                directions=0,
                along=along,
                restored=restored,
            )
            for place, (law, along, restored) in enumerate(each)
        )


def find_exposed(clipped: Clipped, noise: NoiseLaw) -> Exposed:
    """Return the columns that rows beyond may belong to.

    A column's squares are expected to have lost what goes with the measured loss of its mean, times the
    probability that it is the column's, and that it is not noise. How much of that is given back is a matter
    of caution (``caution.py``).

    Along one direction and on one side, as those of a column of rain, rows far beyond lower a mean by what
    was not given back; spread over all directions they take next to nothing. A column is clearly exposed if
    rows are seen beyond, if all of them along it would move its mean beyond its interval, and if it has more
    of the far rows than an even share, by more than noise.

    Parameters
    ----------
    clipped : Clipped
        What is known of the rows beyond.
    noise : NoiseLaw
        Of the release, with a constant.
    """
    directions, owners = clipped.directions, clipped.owners
    clearly: tuple[int, ...] = ()
    if clipped.look is not None:
        # A mean along a unit vector has noise of ``sigma |e| / sqrt 2``, e being the constant's form.
        end = _END * noise.sigma * float(np.linalg.norm(noise.inverse[-1])) / math.sqrt(2)
        seen = clipped.counted.rows > SEEN * clipped.counted.spread
        if seen and lost_length(clipped.law) * clipped.radius / clipped.n_rows > end:
            clearly = tuple(np.flatnonzero(by_directions(clipped.look)[1]).tolist())
    if len(clipped.forms) == 2:
        # All that is lost is the only column's, and other laws tell of it.
        return Exposed(clearly)
    likely = owners.likely
    order = np.argsort(-likely, kind="stable")[:_MOST_EXPOSED]
    places = order[likely[order] > _LEAST_SHARE]
    along = np.asarray(np.linalg.solve(clipped.forms, directions[places].T), dtype=np.float64)
    # Noise makes one of m directions L times likelier than nobody's with a probability of m / L at most.
    shown = -np.expm1(np.minimum(math.log(len(directions)) - owners.evidence, 0.0))
    expected = (likely * shown * _lost_squares(clipped, directions))[places]
    left = _left_along(directions[places], clipped.moment, noise.sigma)
    restored = left * least_error(expected / left)
    owned = tuple(_drawn(clipped.laws, owners.logs[place]) for place in places)
    columns = places % (len(clipped.forms) - 1)
    return Exposed(clearly, tuple(columns.tolist()), likely[places], owned, restored, along)


def _left_along(directions: Matrix, moment: Matrix, sigma: float) -> Vector:
    """Return what clipping left of each direction's variance, given all others; or noise, if that is more.

    A loss l along u makes the largest relative error ``l u^T M^-1 u``.
    """
    values, vectors = np.linalg.eigh(moment)
    inverse = np.square(directions @ vectors) / np.maximum(values, noise_norm(len(moment), sigma))
    result: Vector = 1 / inverse.sum(axis=1)
    return result


def _drawn(laws: Sequence[LossLaw], logs: Matrix) -> LossLaw:
    """Return as many laws as each part of the rows has, drawn as likely as the measured losses make them.

    Parameters
    ----------
    laws : sequence of LossLaw
        For each part of the rows that a column may own.
    logs : ndarray, shape (number of parts, number of laws)
        The logarithm of how likely each is.
    """
    sums = np.cumsum(np.exp(logs - logs.max()))
    drawn = (np.arange(logs.shape[1]) + 0.5) * math.sqrt(5) % 1.0
    chosen = np.searchsorted(sums, drawn * sums[-1])
    rows, shape, spread = (
        np.concatenate([getattr(law, name) for law in laws])[chosen] for name in ("rows", "shape", "spread")
    )
    return replace(laws[-1], rows=rows, shape=shape, spread=spread)


def _lost_squares(clipped: Clipped, directions: Matrix) -> Vector:
    """Return what goes with the expected loss of each mean, of the mean square along its direction.

    Rows of v radii on one side lose ``v^2 - k`` of a square, and are given back ``v - k / v`` of a mean. How
    many there are does not matter.
    """
    expected = clipped.expected
    if expected is None:
        return np.zeros(len(directions))
    given_back = given_lengths(clipped.law)
    there = given_back > 0
    ratio = float(np.median(lost_squares(clipped.law)[there] / given_back[there])) if there.any() else 0.0
    result: Vector = ratio * clipped.radius * np.abs(directions @ expected.lost)
    return result
