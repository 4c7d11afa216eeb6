"""Whose the rows beyond the region are, as far as private answers tell.

Two answers do: the directions of the rows a little beyond the bulk, where they were asked for, and what
clipping took from the means, which comes with the release. Far rows of a column may lie on the line of the
other rows, or be far out in that column alone. Neither answer is sharp, so what is told are probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcov.arrays import Array, Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.losses import FAR, LossLaw
from dpcov.methods.whitening.means import Losses
from dpcov.methods.whitening.restoration import Counted
from dpcov.methods.whitening.tail import given_lengths, law_of_counts

SEEN = 2.0
"""Standard deviations from which a count tells that there are rows; noise passes 1 time in 44."""

_PARTS = np.arange(11) / 10
"""Which parts of the rows that are not far may be a column's, each as likely before anything is measured."""

_TINY = 1e-6


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
    moment : ndarray, shape (d, d)
        The second moment of the clipped rows there, as it was released.
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
    moment: Matrix
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
            prior = by_directions(self.look)[0]
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


def by_directions(look: NoisyGram) -> tuple[Vector, Vector]:
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
    return shares, along - even > SEEN * look.sigma


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
