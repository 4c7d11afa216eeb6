"""The schedule of the paper's Algorithms 1 and 2: thresholds, when to stop, how many releases.

Mahpud and Sheffet, "A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable Input"
(NeurIPS 2025). ``docs/paper.md`` proves the repaired constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.core import ArgumentError

SHRINK = 0.5
"""eta: directions of large eigenvalues are halved (Algorithm 1, line 1)."""

GROWTH = 8 / 7
"""What gives the least eigenvalue back after that (Algorithm 2, line 9)."""

ROUND_FACTOR = 3 / 7
"""kappa and the squared radius fall by this factor in a round (Algorithm 2, line 11)."""


@dataclass(frozen=True)
class ShrinkingConstants:
    """Constants of Algorithm 1, line 1, as multiples of m or of 1/m.

    Attributes
    ----------
    threshold : float
        psi m. Eigenvalues of at least psi kappa are large.
    noise : float
        c m. The theorem needs noise of norm at most c kappa in every round.
    stop : float
        C / m. The last release comes when kappa is at most C.
    """

    threshold: float
    noise: float
    stop: float


CONSTANTS = {
    "paper": ShrinkingConstants(threshold=1 / 10, noise=1 / 80, stop=640),
    # threshold + noise <= 1/18: only tail points shrink. stop: the least eigenvalue stays above 1.
    "repaired": ShrinkingConstants(threshold=2 / 37, noise=1 / 900, stop=600),
}


def find_constants(name: str) -> ShrinkingConstants:
    """Return the constants called `name`, or raise an `ArgumentError`."""
    if name not in CONSTANTS:
        raise ArgumentError(f"constants must be 'paper' or 'repaired', got {name!r}.")
    return CONSTANTS[name]


@dataclass(frozen=True)
class Schedule:
    """The public course of Algorithm 2 before it has seen an answer.

    Attributes
    ----------
    kappa : float
        R^2 / ((1 - alpha) lambda_min): bounds the spectrum of the scaled table.
    rounds : float
        T of Corollary "number of iterations": may be fractional, zero or negative.
    """

    kappa: float
    rounds: float

    @property
    def shrinkings(self) -> int:
        """Rounds that shrink: ``ceil(T)``, or none."""
        return max(0, math.ceil(self.rounds))

    @property
    def releases(self) -> int:
        """Noisy matrices: one a shrinking and a last one. The paper divides its budget by T."""
        return self.shrinkings + 1

    @property
    def last_kappa(self) -> float:
        """The bound on the spectrum, and the squared radius, at the last release."""
        return self.kappa * ROUND_FACTOR**self.shrinkings


def schedule(
    constants: ShrinkingConstants, *, m: float, alpha: float, radius: float, least_eigenvalue: float
) -> Schedule:
    """Return the schedule for a table within `radius` whose least eigenvalue is known.

    Algorithm 1 is stated for a least eigenvalue of 1; dividing rows by its root brings that about.
    """
    kappa = radius**2 / (least_eigenvalue * (1 - alpha))
    stop = constants.stop * m
    rounds = math.log(kappa / stop) / -math.log(ROUND_FACTOR)
    # A kappa that equals C up to rounding is not above it.
    return Schedule(
        kappa, rounds if kappa * ROUND_FACTOR ** math.floor(rounds) > stop else math.floor(rounds)
    )
