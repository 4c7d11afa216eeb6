"""Step 6, say what cannot be known: what noise and the rows beyond the region can do to the result.

A row beyond the region was shrunk to it, and adds at most ``R^2 / n`` to the released variance of any
direction. One that was less than `FAR` times as long has kept about half of its square, or more. So a
direction whose released variance does not clearly exceed (rows far beyond, at most) ``R^2 / n`` may be much
larger in the table: it is not resolved, whatever its size (`dpcov.laws.least_resolved`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.laws import FAR, LossLaw, NoiseLaw, least_resolved, rarely_exceeded
from dpcov.methods.whitening.heavy import Agreement
from dpcov.methods.whitening.restoration import Counted, Restoration
from dpcov.methods.whitening.tail import law_of_counts, lost_length

CONFIDENCE = 0.95
"""A predicted error holds in this share of releases."""

UPPER = 1.645
"""Standard deviations by which 1 of 20 counts are too low."""

_SEEN = 2.0
"""Standard deviations from which a count tells that there are more rows than expected; noise passes 1 time in
44."""

_END = 1.96
"""Standard deviations from the middle of a normal 95% interval to its end."""

_MOST_EXPOSED = 8
"""Columns whose intervals allow for rows beyond: the laws of more would take too much memory."""

_OUTWEIGHED = 1.0
"""What clipping may have taken from a variance, as a part of what it left. Beyond, the upper half of an
interval would be about rows that nobody has seen."""


@dataclass(frozen=True)
class Beyond:
    """The rows beyond the region, and those of them that lie far beyond.

    Rows that are not far beyond have kept about half of their squares or more, so what they have of a
    variance is known within a factor of about 2. Those far beyond may be of any length.

    Attributes
    ----------
    rows : float
        How many there are, with noise; not negative.
    far : float
        How many lie far beyond (`FAR`), with noise; not negative.
    spread, far_spread : float
        Standard deviations of the two.
    agreement : Agreement
        How many of them may lie along one direction.
    square : float
        What one of them adds at most to a released variance, in clipped coordinates.
    """

    rows: float
    far: float
    spread: float
    far_spread: float
    agreement: Agreement
    square: float

    @classmethod
    def of(cls, counted: Counted, agreement: Agreement, square: float) -> Beyond:
        """Take counts of them."""
        rows, far = max(counted.rows, 0.0), max(counted.far, 0.0)
        return cls(rows, far, counted.spread, counted.far_spread, agreement, square)

    @classmethod
    def none(cls) -> Beyond:
        """Say that no row of interest is there."""
        return cls(0.0, 0.0, 0.0, 0.0, Agreement(), 0.0)

    @property
    def at_most(self) -> float:
        """How many there are at most, 19 of 20 times."""
        return self.rows + UPPER * self.spread

    @property
    def far_at_most(self) -> float:
        """How many lie far beyond at most, 19 of 20 times."""
        return self.far + UPPER * self.far_spread

    @property
    def hidden(self) -> float:
        """What those far beyond have at most of a released variance, in clipped coordinates."""
        return self.agreement.along_one(self.far_at_most) * self.square

    def describe(self, restoration: Restoration) -> dict[str, float | bool]:
        """Return what is known of them, for the diagnostics.

        They are explained unless more are seen far beyond than the law of the tail expects, or it lets them
        have more of a variance than was left of it. The law is fitted to rows inside the region for the most
        part: it cannot tell how long such rows are, which may outweigh all others.

        Parameters
        ----------
        restoration : Restoration
            What the likely laws say of them.
        """
        expected = restoration.far_expected
        seen = self.far - expected > _SEEN * math.sqrt(self.far_spread**2 + expected)
        return {
            "about": self.rows,
            "at_most": self.at_most,
            "far_at_most": self.far_at_most,
            "explained": not seen and restoration.worst <= _OUTWEIGHED,
        }


@dataclass(frozen=True, eq=False)
class Exposed:
    """Columns whose means the rows beyond may have moved by more than noise does.

    Attributes
    ----------
    clearly : tuple of int
        Which columns have more of the far rows than noise would make it seem.
    places : tuple of int
        Which may have more, those with most first; none if a law of the tail explains how many rows lie
        beyond. Intervals follow that law then.
    shares : ndarray, shape (number of places,)
        How likely the rows beyond are those of each: in proportion to how much more of the far rows it seems
        to have than an even share. The rest, in proportion to an even share, is for rows of no column.
    directions : ndarray, shape (d, number of places)
        Where the far rows of each of these lie, in the table's columns.
    law : LossLaw, optional
        How many rows lie beyond, and how far; None if nobody can tell.
    """

    clearly: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    shares: Vector = field(default_factory=lambda: np.zeros(0))
    directions: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    law: LossLaw | None = None

    def laws(self, forms: Matrix, radius: float) -> tuple[LossLaw, ...]:
        """Return what each column may have lost: all rows beyond may be those of one of them.

        The look at far rows tells how likely that is for each.

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
            replace(law, rows=np.where(owners == place, law.rows, 0.0), along=along)
            for place, along in enumerate(units[:-1].T)
        )


def find_exposed(
    counted: Counted,
    radius: float,
    noise: NoiseLaw,
    look: NoisyGram | None,
    n_rows: int,
    *,
    explained: bool,
) -> Exposed:
    """Return the columns whose means the rows beyond may have moved by more than noise does.

    Along one direction and on one side, as those of a column of rain, k rows of v times the radius lower a
    mean by about ``k (v - 1/v) R / n`` in its direction; spread over all directions they take next to
    nothing. Whose rows they are is not known, as they are few. But they are the furthest of the rows that the
    wrap asked about, and of these some columns have more than others.

    So columns are exposed if rows are seen beyond, if all of them along one column would move its mean
    beyond its interval, and if this column has clearly more of the far rows than an even share. If no law
    explains how many they are, intervals allow for them along every column that has more at all.

    Parameters
    ----------
    counted : Counted
        How many rows lie beyond the region.
    radius : float
        How far it reaches.
    noise : NoiseLaw
        Of the release, with a constant.
    look : NoisyGram, optional
        Of the directions of far rows; None if nobody asked.
    n_rows : int
        Rows of the table.
    explained : bool
        Whether there are as many rows far beyond as a law of the tail expects.
    """
    if look is None or counted.rows <= _SEEN * counted.spread:
        return Exposed()
    # A mean along a unit vector has noise of ``sigma |e| / sqrt 2``, e being the constant's form.
    end = _END * noise.sigma * float(np.linalg.norm(noise.inverse[-1])) / math.sqrt(2)
    law = law_of_counts(counted.near, counted.far, (counted.near_spread, counted.far_spread), FAR)
    if lost_length(law) * radius / n_rows <= end:
        return Exposed()
    back = np.asarray(np.linalg.inv(look.lattice_map.matrix()), dtype=np.float64)
    # A direction of the table's own is one along which a row keeps its constant.
    constant = back[-1] / np.linalg.norm(back[-1])
    own = np.eye(len(back)) - np.outer(constant, constant)
    forms = back[:-1] @ own
    forms /= np.linalg.norm(forms, axis=1)[:, None]
    moment = look.mean()
    along = np.einsum("ki,ij,kj->k", forms, moment, forms)
    even = float(np.vdot(own, moment)) / len(forms)
    clearly = tuple(np.flatnonzero(along - even > _SEEN * look.sigma).tolist())
    if explained:
        return Exposed(clearly)
    order = np.argsort(-along, kind="stable")[:_MOST_EXPOSED]
    places = order[along[order] > even]
    excess = along[places] - even
    # They may be rows of no column, too, which are given an even share.
    shares = excess / (excess.sum() + max(even, 0.0))
    return Exposed(clearly, tuple(places.tolist()), shares, back @ forms[places].T, law)


def predicted_error(values: Vector, noise: NoiseLaw, restoration: Restoration, exposed: Exposed) -> float:
    """Return what a resolved variance is off by at most, as a share of it, in 19 of 20 releases.

    Parameters
    ----------
    values : ndarray, shape (d,)
        Released variances in clipped coordinates, ascending.
    noise : NoiseLaw
        Its noise.
    restoration : Restoration
        What was given back for clipping, and how certain that is.
    exposed : Exposed
        Columns that the rows beyond may all belong to.
    """
    found = values[values > least_resolved(len(values), noise.sigma, noise.hidden)]
    if not len(found):
        return 1.0
    # Entries of ``W^-1/2 N W^-1/2`` have variances ``sigma^2 / (2 w_i w_j)``, the diagonal twice that; the
    # norm is about twice the root of the largest sum of a row, as that of equal ones is exactly in the
    # limit. If one direction is much smaller than the others, its own noise is all there is of it: the norm
    # varies as that of a matrix of as many directions as make up the sum.
    largest, together = float((1 / found).max()), float((1 / found).sum())
    spread = noise.sigma * math.sqrt(2 * largest * together)
    return rarely_exceeded(together / largest) * spread + _clipping_error(restoration, exposed)


def _clipping_error(restoration: Restoration, exposed: Exposed) -> float:
    """Return what clipping may have taken beyond what was given back, as a share of a resolved variance."""
    if not restoration.laws:
        return 0.0
    errors = []
    for tail, law, factor, at_most in zip(
        restoration.region.tails, restoration.laws, restoration.factors, restoration.at_most, strict=True
    ):
        # A law tells the loss on average over its directions; where the rows agree, one of them has more.
        located = tail.direction is not None or bool(restoration.region.heavy)
        uneven = 1.0 if located else restoration.region.agreement.about * tail.rank
        if exposed.clearly and tail.direction is None:
            # The furthest rows of all may lie along one column, more than those a little beyond the bulk do.
            uneven = float(tail.rank)
        worst = (1 + max(uneven, 1.0) * (at_most - 1)) / factor - 1
        errors.append(0.0 if law is None else worst)
    return max(0.0, *errors)
