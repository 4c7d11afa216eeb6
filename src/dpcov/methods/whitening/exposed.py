"""Whose rows lie beyond the region: a column that all of them belong to has lost far more than others.

Rows of one column that are long on one side, as those of incomes, take much from its mean and its variance,
and next to nothing from other columns. Whose rows they are is told by two private answers: the directions of
the rows a little beyond the bulk, where they were asked for, and what clipping took from the means, which
comes with the release. Neither is sharp. So intervals allow for each column as far as the answers leave it
likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.laws import FAR, LossLaw, NoiseLaw
from dpcov.methods.whitening.means import Losses
from dpcov.methods.whitening.restoration import Counted
from dpcov.methods.whitening.tail import given_lengths, law_of_counts, lost_length, lost_squares

_SEEN = 2.0
"""Standard deviations from which a count tells that there are rows; noise passes 1 time in 44."""

_END = 1.96
"""Standard deviations from the middle of a normal 95% interval to its end."""

_MOST_EXPOSED = 8
"""Columns whose intervals allow for rows beyond: the laws of more would take too much memory."""

_LEAST_SHARE = 0.005
"""What is less likely moves no end of a 99% interval."""


@dataclass(frozen=True, eq=False)
class Exposed:
    """Columns that the rows beyond may all belong to.

    Attributes
    ----------
    clearly : tuple of int
        Those with more of the far rows than noise would make it seem, whose means these may move by more than
        intervals say.
    places : tuple of int
        Those that intervals allow for, the likeliest first.
    shares : ndarray, shape (number of places,)
        How likely all rows beyond are those of each; the rest is for rows of no column.
    restored : ndarray, shape (number of places,)
        What is given back of the mean square along each, in clipped coordinates.
    directions : ndarray, shape (d, number of places)
        Where the rows of each of these lie, in the table's columns.
    law : LossLaw, optional
        How many rows lie beyond, and how far; None if nobody can tell.
    """

    clearly: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    shares: Vector = field(default_factory=lambda: np.zeros(0))
    restored: Vector = field(default_factory=lambda: np.zeros(0))
    directions: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    law: LossLaw | None = None

    def laws(self, forms: Matrix, radius: float) -> tuple[LossLaw, ...]:
        """Return what each column may have lost: all rows beyond may be those of one of them.

        Parameters
        ----------
        forms : ndarray, shape (d, d)
            The coordinates that were clipped, of which the constant's column is the last.
        radius : float
            Where.
        """
        if self.law is None:
            return ()
        # A sequence of irrational steps stands for independent draws: methods make no random numbers.
        drawn = (np.arange(len(self.law.rows)) + 0.5) * math.sqrt(3) % 1.0
        owners = np.searchsorted(np.cumsum(self.shares), drawn)
        # On top of what other laws say of all directions.
        law = replace(self.law, radius=radius, directions=0)
        units = self.directions / np.linalg.norm(forms @ self.directions, axis=0)
        return tuple(
            replace(law, rows=np.where(owners == place, law.rows, 0.0), along=along, restored=restored)
            for place, (along, restored) in enumerate(zip(units[:-1].T, self.restored.tolist(), strict=True))
        )


@dataclass(frozen=True, eq=False)
class Clipped:
    """What is known of the rows beyond a region.

    Attributes
    ----------
    counted : Counted
        How many there are.
    radius : float
        How far the region reaches.
    forms : ndarray, shape (d, d)
        In these coordinates.
    n_rows : int
        Rows of the table.
    agreeing : float
        Which part of them lies along one direction.
    look : NoisyGram, optional
        The directions of far rows; None if nobody asked.
    losses : Losses, optional
        What they took from the means; None if that was not measured.
    """

    counted: Counted
    radius: float
    forms: Matrix
    n_rows: int
    agreeing: float
    look: NoisyGram | None = None
    losses: Losses | None = None

    @cached_property
    def law(self) -> LossLaw:
        """How many there are, and how far out, as the counts have it."""
        spreads = (self.counted.near_spread, self.counted.far_spread)
        law = law_of_counts(self.counted.near, self.counted.far, spreads, FAR)
        return replace(law, measured=self.losses is not None)

    @cached_property
    def given_back(self) -> Vector:
        """What the mean of a direction that all of them lie along is given back, for each of the laws."""
        return given_lengths(self.law) * self.radius / self.n_rows

    @property
    def largest_loss(self) -> float:
        """Its root mean square over the laws, if as many of them agree in direction as seem to."""
        return self.agreeing * math.sqrt(float(np.square(self.given_back).mean()))

    @property
    def expected(self) -> Losses | None:
        """What the means are expected to have lost, given what was measured; None if nothing was."""
        return None if self.losses is None else self.losses.expected(self.largest_loss)


def find_exposed(clipped: Clipped, noise: NoiseLaw) -> Exposed:
    """Return the columns that the rows beyond may all belong to.

    What is given back of a column's squares is what goes with the measured loss of its mean, times the
    probability that this loss has added. What was likely before is no evidence: all columns are, where nobody
    looked.

    Along one direction and on one side, as those of a column of rain, rows far beyond lower a mean by what
    was not given back; spread over all directions they take next to
    nothing. A column is clearly exposed if rows are seen beyond, if all of them along it would move its mean
    beyond its interval, and if it has more of the far rows than an even share, by more than noise.

    Parameters
    ----------
    clipped : Clipped
        What is known of the rows beyond.
    noise : NoiseLaw
        Of the release, with a constant.
    """
    law, directions = clipped.law, _directions_of_columns(clipped.forms)
    prior = np.full(len(directions), 1 / (len(directions) + 1))
    clearly: tuple[int, ...] = ()
    if clipped.look is not None:
        prior, most = _by_directions(clipped.look)
        # A mean along a unit vector has noise of ``sigma |e| / sqrt 2``, e being the constant's form.
        end = _END * noise.sigma * float(np.linalg.norm(noise.inverse[-1])) / math.sqrt(2)
        seen = clipped.counted.rows > _SEEN * clipped.counted.spread
        if seen and lost_length(law) * clipped.radius / clipped.n_rows > end:
            clearly = tuple(np.flatnonzero(most).tolist())
    likely = prior * _likelihoods(clipped, directions)
    likely /= likely.sum() + max(1 - float(prior.sum()), 0.0)
    order = np.argsort(-likely, kind="stable")[:_MOST_EXPOSED]
    places = order[likely[order] > _LEAST_SHARE]
    along = np.asarray(np.linalg.solve(clipped.forms, directions[places].T), dtype=np.float64)
    restored = (np.maximum(likely - prior, 0.0) * _lost_squares(clipped, directions))[places]
    return Exposed(clearly, tuple(places.tolist()), likely[places], restored, along, law)


def _directions_of_columns(forms: Matrix) -> Matrix:
    """Return the unit vectors along which a row that keeps its constant moves each column most."""
    inverse = np.linalg.inv(forms)
    constant = inverse[-1] / np.linalg.norm(inverse[-1])
    own = inverse[:-1] - np.outer(inverse[:-1] @ constant, constant)
    return np.asarray(own / np.linalg.norm(own, axis=1)[:, None], dtype=np.float64)


def _by_directions(look: NoisyGram) -> tuple[Vector, Vector]:
    """Return how likely each column owns the far rows by their directions alone, and whether clearly so.

    In proportion to how much more of them it has than an even share; an even share is that of no column.
    """
    directions = _directions_of_columns(look.lattice_map.matrix())
    moment = look.mean()
    along = np.einsum("ki,ij,kj->k", directions, moment, directions)
    back = np.linalg.inv(look.lattice_map.matrix())[-1]
    constant = back / np.linalg.norm(back)
    even = (float(np.trace(moment)) - float(constant @ moment @ constant)) / len(directions)
    excess = np.maximum(along - even, 0.0)
    total = float(excess.sum()) + max(even, 0.0)
    shares = excess / total if total > 0 else excess
    return shares, along - even > _SEEN * look.sigma


def _likelihoods(clipped: Clipped, directions: Matrix) -> Vector:
    """Return how likely the measured losses are if all rows beyond are a column's, relative to no column's.

    They lie on one side of it, whichever, and each of the laws is as likely.
    """
    losses = clipped.losses
    if losses is None:
        return np.ones(len(directions))
    measured = directions @ losses.lost
    expected = clipped.given_back
    agreeing = np.outer(np.concatenate([measured, -measured]), expected)
    ratios = np.exp(np.minimum((agreeing - expected**2 / 2) / losses.spread**2, 500.0))
    result: Vector = ratios.reshape(2, len(directions), -1).mean(axis=(0, 2))
    return result


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
