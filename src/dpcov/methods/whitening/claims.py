"""Step 6, say what cannot be known: what noise and the rows beyond the region can do to the result.

A row beyond the region was shrunk to it, and adds at most ``R^2 / n`` to the released variance of any
direction. One that was less than `FAR` times as long has kept about half of its square, or more. So a
direction whose released variance does not clearly exceed (rows far beyond, at most) ``R^2 / n`` may be much
larger in the table: it is not resolved, whatever its size (`dpcov.laws.least_resolved`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.arrays import Vector
from dpcov.laws import NoiseLaw, least_resolved, rarely_exceeded
from dpcov.methods.whitening.exposed import Exposed
from dpcov.methods.whitening.heavy import Agreement
from dpcov.methods.whitening.restoration import Counted, Restoration

CONFIDENCE = 0.95
"""A predicted error holds in this share of releases."""

UPPER = 1.645
"""Standard deviations by which 1 of 20 counts are too low."""

_SEEN = 2.0
"""Standard deviations from which a count tells that there are more rows than expected; noise passes 1 time in
44."""

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
