"""Whose rows lie beyond the region: a column that all of them belong to has lost far more than others.

Rows of one column that are long on one side, as those of incomes, take much from its mean and its variance.
They may lie on the line of the other rows, and then others go with it as they do in the bulk; or they may be
far out in that column alone, as those of the largest cities are in their density. Whose rows they are, and in
which of the two ways, is told by two private answers: the directions of the rows a little beyond the bulk,
where they were asked for, and what clipping took from the means, which comes with the release. Neither is
sharp. So intervals allow for each as far as the answers leave it likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array, Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.laws import FAR, LossLaw, NoiseLaw
from dpcov.methods.whitening.means import Losses
from dpcov.methods.whitening.restoration import Counted
from dpcov.methods.whitening.tail import given_lengths, law_of_counts, lost_length, lost_squares

_SEEN = 2.0
"""Standard deviations from which a count tells that there are rows; noise passes 1 time in 44."""

_END = 1.96
"""Standard deviations from the middle of a normal 95% interval to its end."""

_MOST_EXPOSED = 16
"""So much that intervals allow for, eight columns in two ways each: more laws would take too much memory."""

_PARTS = np.arange(11) / 10
"""Which parts of the rows that are not far may be a column's, each as likely before anything is measured."""

_TINY = 1e-6

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


@dataclass(frozen=True, eq=False)
class Owners:
    """Whose the rows beyond a region are.

    Attributes
    ----------
    likely : ndarray, shape (2 p,)
        How likely they lie along each of `Clipped.directions`; the rest is for rows of no column.
    evidence : ndarray, shape (2 p,)
        The logarithm of how much likelier the measured losses are then than if they were no column's.
    logs : ndarray, shape (2 p, number of parts, number of laws)
        The same for each part of the near rows and each law.
    """

    likely: Vector
    evidence: Vector
    logs: Array


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
    look : NoisyGram, optional
        The directions of far rows; None if nobody asked.
    losses : Losses, optional
        What they took from the means; None if that was not measured.
    """

    counted: Counted
    radius: float
    forms: Matrix
    n_rows: int
    look: NoisyGram | None = None
    losses: Losses | None = None

    @cached_property
    def laws(self) -> tuple[LossLaw, ...]:
        """How many rows are a column's, and how far out, if it has all far ones and a part of the others.

        As the counts have it, for each of `_PARTS`: rows that are not far may be the ends of other columns.
        """
        counted, measured = self.counted, self.losses is not None
        return tuple(
            replace(
                law_of_counts(
                    part * counted.near,
                    counted.far,
                    (max(part * counted.near_spread, _TINY), counted.far_spread),
                    FAR,
                ),
                measured=measured,
            )
            for part in _PARTS.tolist()
        )

    @property
    def law(self) -> LossLaw:
        """How many there are in all, and how far out."""
        return self.laws[-1]

    @cached_property
    def given_back(self) -> Matrix:
        """What the mean of a direction that they lie along is given back, for each part and each law."""
        lengths = np.array([given_lengths(law) for law in self.laws])
        return np.asarray(lengths * self.radius / self.n_rows)

    @property
    def largest_loss(self) -> float:
        """Its root mean square over the laws."""
        return math.sqrt(float(np.square(self.given_back[-1]).mean()))

    @cached_property
    def directions(self) -> Matrix:
        """Unit vectors along which the far rows of each column may lie: on the line of others, or alone."""
        return np.vstack([_on_the_line(self.forms), _alone(self.forms)])

    @cached_property
    def owners(self) -> Owners:
        """Whose the rows are, as far as the private answers tell."""
        columns = len(self.forms) - 1
        prior = np.full(columns, 1 / (columns + 1))
        if self.look is not None:
            prior = _by_directions(self.look)[0]
        prior = np.concatenate([prior, prior]) / 2
        logs = _log_likelihoods(self, self.directions)
        evidence = _log_mean(logs.reshape(len(prior), -1))
        largest = max(float(evidence.max()), 0.0)
        likely = prior * np.exp(evidence - largest)
        total = float(likely.sum()) + max(1 - float(prior.sum()), 0.0) * math.exp(-largest)
        return Owners(likely / total, evidence, logs)

    @property
    def expected(self) -> Losses | None:
        """What the means are expected to have lost, given what was measured; None if nothing was."""
        if self.losses is None:
            return None
        return self.losses.expected(self.largest_loss, float(self.owners.likely.sum()))


def find_exposed(clipped: Clipped, noise: NoiseLaw) -> Exposed:
    """Return the columns that rows beyond may belong to.

    What is given back of a column's squares is what goes with the measured loss of its mean, times the
    probability that it is the column's, as far as this loss is evidence of it.

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
        seen = clipped.counted.rows > _SEEN * clipped.counted.spread
        if seen and lost_length(clipped.law) * clipped.radius / clipped.n_rows > end:
            clearly = tuple(np.flatnonzero(_by_directions(clipped.look)[1]).tolist())
    if len(clipped.forms) == 2:
        # All that is lost is the only column's, and other laws tell of it.
        return Exposed(clearly)
    likely = owners.likely
    order = np.argsort(-likely, kind="stable")[:_MOST_EXPOSED]
    places = order[likely[order] > _LEAST_SHARE]
    along = np.asarray(np.linalg.solve(clipped.forms, directions[places].T), dtype=np.float64)
    shown = -np.expm1(-np.maximum(owners.evidence, 0.0))
    restored = (likely * shown * _lost_squares(clipped, directions))[places]
    owned = tuple(_joined(clipped.laws, _draw_parts(owners.logs[place])) for place in places)
    columns = places % (len(clipped.forms) - 1)
    return Exposed(clearly, tuple(columns.tolist()), likely[places], owned, restored, along)


def _on_the_line(forms: Matrix) -> Matrix:
    """Return the unit vectors along which a row that keeps its constant moves each column most.

    In white coordinates such a row moves the other columns as the bulk does, by what they regress on this
    one: far rows then lie on the line of the others.
    """
    inverse = np.linalg.inv(forms)
    constant = inverse[-1] / np.linalg.norm(inverse[-1])
    own = inverse[:-1] - np.outer(inverse[:-1] @ constant, constant)
    return np.asarray(own / np.linalg.norm(own, axis=1)[:, None], dtype=np.float64)


def _alone(forms: Matrix) -> Matrix:
    """Return the unit vectors along which a row moves each column, and no other."""
    own = forms[:, :-1].T
    return np.asarray(own / np.linalg.norm(own, axis=1)[:, None], dtype=np.float64)


def _by_directions(look: NoisyGram) -> tuple[Vector, Vector]:
    """Return how likely each column owns the far rows by their directions alone, and whether clearly so.

    In proportion to how much more of them it has than an even share; an even share is that of no column.
    """
    directions = _on_the_line(look.lattice_map.matrix())
    moment = look.mean()
    along = np.einsum("ki,ij,kj->k", directions, moment, directions)
    back = np.linalg.inv(look.lattice_map.matrix())[-1]
    constant = back / np.linalg.norm(back)
    even = (float(np.trace(moment)) - float(constant @ moment @ constant)) / len(directions)
    excess = np.maximum(along - even, 0.0)
    total = float(excess.sum()) + max(even, 0.0)
    shares = excess / total if total > 0 else excess
    return shares, along - even > _SEEN * look.sigma


def _log_likelihoods(clipped: Clipped, directions: Matrix) -> Array:
    """Return how likely the measured losses are if rows beyond are a column's, relative to nobody's.

    They lie on one side of it, whichever. Along the axes: the columns, which part of the rows is the
    column's, and the laws of the rows.
    """
    shape = (len(directions), len(_PARTS), len(clipped.law.rows))
    losses = clipped.losses
    if losses is None:
        return np.zeros(shape)
    measured = np.abs(directions @ losses.lost) / losses.spread
    expected = clipped.given_back / losses.spread
    agreeing = measured[:, None, None] * expected
    # The mean of both sides, from the likelier.
    result: Array = agreeing - expected**2 / 2 + np.log1p(np.exp(-2 * agreeing)) - math.log(2)
    return result


def _log_mean(logs: Matrix) -> Vector:
    """Return the logarithm of the mean of each row's exponentials."""
    largest = logs.max(axis=1)
    result: Vector = largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1))
    return result


def _draw_parts(logs: Matrix) -> NDArray[np.intp]:
    """Return which part of the rows is a column's under each law, drawn as likely as it is."""
    sums = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
    drawn = (np.arange(logs.shape[1]) + 0.5) * math.sqrt(5) % 1.0
    chosen: NDArray[np.intp] = (sums < drawn * sums[-1]).sum(axis=0)
    return chosen


def _joined(laws: Sequence[LossLaw], chosen: NDArray[np.intp]) -> LossLaw:
    """Return the laws that are chosen, one in each place."""
    place = np.arange(len(chosen))
    rows, shape, spread = (
        np.array([getattr(law, name) for law in laws])[chosen, place] for name in ("rows", "shape", "spread")
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
