"""What a run of the method carries along: the curator, public sizes, and the story so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import (
    Clipping,
    Curator,
    Gram,
    LatticeMap,
    LogNormGrid,
    NoisyCounts,
    NoisyGram,
    NormHistogram,
    Rule,
    sampled_rows,
)
from dpcov.laws import noise_norm
from dpcov.maps import integer_map
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import centres_and_scales
from dpcov.methods.whitening.looks import NormLook, wide_grid


@dataclass(frozen=True)
class Round:
    """One query of the method: what for, what it cost, how many directions were visible after it."""

    purpose: str
    rho: float
    resolved: int


@dataclass
class Run:
    """The curator, public sizes, and the story so far.

    Attributes
    ----------
    curator : Curator
        All that is known of the rows comes from it.
    n, d : int
        Rows and columns, the constant one included.
    rho : float
        The whole budget; shares below are parts of it.
    contamination : float
        An upper bound on the share of outliers, which far rows may be.
    rounds : list of Round
        What was asked so far.
    mostly_zero : dict of int to float
        Columns that are zero in most rows, and how large the others are: 1 where too few are seen to tell.
    never_seen : set of int
        Those of them of which nothing was seen.
    """

    curator: Curator
    n: int
    d: int
    rho: float
    contamination: float = 0.0
    rounds: list[Round] = field(default_factory=list)
    mostly_zero: dict[int, float] = field(default_factory=dict)
    never_seen: set[int] = field(default_factory=set)

    @property
    def left(self) -> float:
        """The share of the budget that is left."""
        return float(self.curator.remaining.rho) / self.rho

    @property
    def has_few_rows(self) -> bool:
        """Whether even a white table would be mostly noise, so that whitening is no use."""
        return self.noise(self.n, 1.0) * self.d > c.FEW_ROWS

    @property
    def is_short(self) -> bool:
        """Whether whitening is likely to cost more than it brings."""
        return self.noise(self.n, 1.0) * self.d > c.SHORT

    @property
    def every(self) -> int:
        """One row in so many is enough for rounds that look for what few rows have."""
        return max(1, self.n // c.STEERING_ROWS)

    @property
    def every_quick(self) -> int:
        """One row in so many is enough for rounds that look for what most rows have."""
        return max(1, self.n // c.QUICK_ROWS)

    @property
    def every_column(self) -> int:
        """One row in so many is enough for rounds about single columns."""
        return max(1, self.n // c.SAMPLED_ROWS)

    def hold_sample(self) -> None:
        """Draw one sample for all rounds that read a part of the rows, as far as it can be kept.

        If all rows can be, they are read once.
        """
        parts = [every for every in (self.every, self.every_quick, self.every_column) if every > 1]
        fitting = [
            rows for every in parts if (rows := sampled_rows(self.n, every)) * self.d <= c.HELD_ENTRIES
        ]
        whole = self.n <= c.STEERING_ROWS and self.n * self.d <= c.HELD_ENTRIES
        self.curator.hold(max(fitting, default=0), whole=whole)

    @property
    def quick_look(self) -> float:
        """What a look costs that is enough to see again what one before has seen."""
        return self.look_of(c.LOOK)

    @property
    def careful_look(self) -> float:
        """What a look costs that sight of rare rows rests on."""
        return self.look_of(c.CAREFUL_LOOK)

    def look_of(self, share: float) -> float:
        """Return what is left of the share of a look in a table of many columns."""
        return share * min(1.0, c.MANY_DIRECTIONS / self.d)

    @property
    def rule(self) -> Rule:
        """What becomes of rows beyond a radius: outliers are dropped, others shrink."""
        return Rule.DROP if self.contamination else Rule.SHRINK

    @property
    def constant(self) -> bool:
        """Whether the last column is the constant one."""
        return self.curator.has_constant

    def map(self, forms: Matrix, frame: Matrix | None = None) -> LatticeMap:
        """Return the integer map for `forms`, columns brought to the centres and scales that `frame` tells.

        The frame must be invertible; the forms need not be. It is `forms` if it is not given.
        """
        centres, scales = centres_and_scales(forms if frame is None else frame, constant=self.constant)
        return integer_map(forms, scales, centres if self.constant else None)

    def gram(
        self, forms: Matrix, radius: float, share: float, purpose: str, *, rule: Rule, every: int = 1
    ) -> NoisyGram:
        """Ask for the Gram matrix of the rows after `forms`, kept within a radius; for steering only."""
        return self.curator.ask(self.gram_query(forms, radius, share, purpose, rule=rule, every=every))

    def gram_query(
        self, forms: Matrix, radius: float, share: float, purpose: str, *, rule: Rule, every: int = 1
    ) -> Gram:
        """Return the query for that."""
        return Gram(Clipping(self.map(forms), radius, rule), self.part(share), purpose, every, coarse=True)

    def look(
        self, forms: Matrix, share: float, purpose: str, *, frame: Matrix | None = None, every: int = 1
    ) -> NormLook:
        """Ask how long the rows are after `forms`, whatever their scale."""
        return self._seen(self.curator.ask(self._look(forms, share, purpose, frame=frame, every=every)))

    def look_at_parts(
        self, parts: Sequence[Matrix], share: float, purposes: Sequence[str], *, frame: Matrix, every: int
    ) -> list[NormLook]:
        """Ask how long several parts of the rows are, for `share` each and in one scan."""
        queries = [
            self._look(part, share, purpose, frame=frame, every=every)
            for part, purpose in zip(parts, purposes, strict=True)
        ]
        return [self._seen(answer) for answer in self.curator.ask(*queries)]

    def _seen(self, answer: NoisyCounts) -> NormLook:
        return NormLook(answer, ignored_rows=self.contamination * answer.n_rows)

    def _look(
        self, forms: Matrix, share: float, purpose: str, *, frame: Matrix | None, every: int
    ) -> NormHistogram:
        """Return the query for the lengths of the rows.

        Parameters
        ----------
        forms : ndarray, shape (k, d)
            One linear form of the columns a row; fewer than d look at a part of the rows.
        share : float
            What to spend: more where the table is so short that noise would hide its bulk, and a quarter of
            what is left at most.
        purpose : str
            For the receipt.
        frame : ndarray, shape (d, d), optional
            Coordinates that tell the columns' scales, if `forms` are not all of them.
        every : int, default 1
            Look at one row in so many.
        """
        square = np.zeros((self.d, self.d))
        square[: len(forms)] = forms
        return NormHistogram(
            self.map(square, forms if frame is None else frame),
            wide_grid(),
            self.part(self.look_share(share)),
            purpose,
            every,
        )

    def look_share(self, share: float) -> float:
        """Return what a look of this share costs: more in a short table, never more than a quarter of all."""
        enough = (c.ROWS_OF_A_BULK / self.n) ** 2 / self.rho
        return min(max(share, enough), self.left / 4)

    def histogram(self, forms: Matrix, grid: LogNormGrid, share: float, purpose: str) -> NormHistogram:
        """Return the query for a histogram of norms."""
        return NormHistogram(self.map(forms), grid, self.part(min(share, self.left / 4)), purpose)

    def part(self, share: float) -> Fraction:
        """Return a share of the budget as an exact number."""
        return Fraction(share * self.rho)

    def note(self, purpose: str, share: float, resolved: int) -> None:
        """Remember a round."""
        self.rounds.append(Round(purpose, share * self.rho, resolved))

    def noise(self, rows: int, share: float) -> float:
        """Return the noise norm in a mean over so many rows of the unit ball."""
        return noise_norm(self.d, 1.0) / (rows * math.sqrt(share * self.rho))

    def share_for(self, noise: float, rows: int) -> float:
        """Return the share of the budget for which `noise` is the noise norm."""
        return (noise_norm(self.d, 1.0) / (rows * noise)) ** 2 / self.rho
