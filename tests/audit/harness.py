"""A black-box audit: runs on two neighbours, and what their frequencies prove about the loss of privacy.

A program is run many times on each of two neighbours and gives a few numbers a run. A first part of the runs
chooses what to look at: thresholds, and the direction that tells the neighbours apart best. The others count
how often each threshold is passed. Clopper and Pearson bound the true probabilities p and q; all bounds of an
audit hold together with probability `CONFIDENCE`. From them follow

* the least epsilon with ``p <= e^epsilon q + delta``, for several deltas;
* the least rho for which the pair (p, q) has a Renyi divergence of at most ``alpha rho`` at all orders; if
  Gaussian differential privacy is claimed, the least ``mu^2 / 2`` whose trade-off curve allows for (p, q).

A claim below either is false, up to an error of ``1 - CONFIDENCE``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from dpcov.core import PrivacyCost
from dpcov.guessing import least_misses

Array = NDArray[np.float64]
Program = Callable[[Array], list[float]]

CONFIDENCE = 0.9999
DELTAS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3)
_THRESHOLDS = 32
_ORDERS = 1 + np.logspace(-2, 1.5, 60)


@dataclass(frozen=True)
class Claim:
    """What one run may cost: (epsilon, delta)-DP if `epsilon` is given, else approximate zCDP or GDP."""

    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    epsilon: Fraction | None = None
    gaussian: bool = False

    def epsilon_at(self, delta: float) -> float:
        """Return the claimed epsilon at `delta`, infinite where nothing is claimed."""
        if self.epsilon is not None:
            return float(self.epsilon) if delta >= self.delta else math.inf
        if delta <= self.delta:
            return math.inf
        return PrivacyCost(self.rho, self.delta, self.gaussian).epsilon(delta)

    def __str__(self) -> str:
        if self.epsilon is not None:
            return f"epsilon={float(self.epsilon):g}" + (
                f", delta={float(self.delta):g}" if self.delta else ""
            )
        return str(PrivacyCost(self.rho, self.delta)) + (", Gaussian" if self.gaussian else "")


@dataclass(frozen=True)
class Case:
    """One program, its worst neighbours and its claim.

    A `note` says why milder mutants than its own cannot be caught, if so. Mutants have as many `runs`, times
    a factor of their own, unless `mutant_runs` says otherwise.
    """

    name: str
    program: Program
    one: Array
    other: Array
    claim: Claim
    runs: int
    mutants: tuple[str, ...]
    neighbours: str = "far row for zero"
    note: str = ""
    mutant_runs: int | None = None


@dataclass(frozen=True)
class Finding:
    """What the runs of a case prove.

    Attributes
    ----------
    rho : float
        The claim in rho is at least this.
    epsilon : float
        The claimed epsilon at `delta` is at least this; the delta where it comes closest to the claim.
    claimed_epsilon, delta : float
        What it is compared with.
    exceeded : bool
        Whether it refutes the claim.
    """

    rho: float
    epsilon: float
    claimed_epsilon: float
    delta: float
    exceeded: bool
    runs: int = field(default=0)


def run_case(case: Case, runs: int, program: Program | None = None) -> Finding:
    """Run a case, or a mutant of its program, and say what it proves."""
    ask = program or case.program
    one = np.array([ask(case.one) for _ in range(runs)], dtype=np.float64)
    other = np.array([ask(case.other) for _ in range(runs)], dtype=np.float64)
    return judge(one, other, case.claim)


def judge(one: Array, other: Array, claim: Claim) -> Finding:
    """Bound the loss from samples of shape (runs, numbers)."""
    pilot = max(len(one) // 5, 20)
    one, other = _with_direction(one, other, pilot)
    events = []
    for k in range(one.shape[1]):
        pooled = np.concatenate([one[:pilot, k], other[:pilot, k]])
        thresholds = np.unique(pooled)
        if len(thresholds) > _THRESHOLDS:
            thresholds = np.unique(np.quantile(pooled, np.linspace(0.0, 0.99, _THRESHOLDS), method="lower"))
        events += [(k, threshold) for threshold in thresholds]
    first, second = one[pilot:], other[pilot:]
    confidence = 1 - (1 - CONFIDENCE) / (8 * len(events))
    rho, best = 0.0, (-math.inf, 0.0, 0.0, DELTAS[0])
    for k, threshold in events:
        hits, misses = int((first[:, k] > threshold).sum()), int((second[:, k] > threshold).sum())
        for a, b in ((hits, misses), (misses, hits), (len(first) - hits, len(second) - misses),
                     (len(second) - misses, len(first) - hits)):  # fmt: skip
            low, high = _bounds(a, b, len(first), confidence)
            rho = max(rho, _least_mu(low, high) ** 2 / 2 if claim.gaussian else _least_rho(low, high))
            for delta in DELTAS:
                claimed = claim.epsilon_at(delta)
                if low > delta and claimed < math.inf:
                    epsilon = math.log((low - delta) / high)
                    best = max(best, (epsilon - claimed, epsilon, claimed, delta))
    compares_rho = claim.epsilon is None and not claim.delta
    exceeded = best[0] > 0 or (compares_rho and rho > claim.rho)
    return Finding(rho, max(best[1], 0.0), best[2], best[3], exceeded, len(one))


def _bounds(hits: int, misses: int, runs: int, confidence: float) -> tuple[float, float]:
    low = float(beta.ppf(1 - confidence, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(confidence, misses + 1, runs - misses)) if misses < runs else 1.0
    return low, high


def _least_rho(low: float, high: float) -> float:
    """Return the least rho for p >= low > high >= q; the divergence decreases as p and q come closer."""
    if not high < low:
        return 0.0
    a = _ORDERS
    with np.errstate(divide="ignore"):
        both = np.logaddexp(
            a * math.log(low) + (1 - a) * math.log(high), a * np.log1p(-low) + (1 - a) * np.log1p(-high)
        )
    return float(np.max(both / (a - 1) / a))


def _least_mu(low: float, high: float) -> float:
    """Return the least mu for p >= low > high >= q: power p at level q needs Phi^-1(p) - Phi^-1(q)."""
    return float(ndtri(low) - ndtri(high)) if high < low else 0.0


@dataclass(frozen=True)
class TradeOff:
    """Errors of threshold tests between two neighbours, and what bounds them from above.

    Attributes
    ----------
    alarms, misses : list of float
        How often the test took the first neighbour for the other, and the other for the first.
    alarms_at_most, misses_at_most : list of float
        Bounds that hold together with probability `CONFIDENCE`.
    """

    alarms: list[float]
    misses: list[float]
    alarms_at_most: list[float]
    misses_at_most: list[float]

    def refutes(self, cost: PrivacyCost) -> bool:
        """Whether a test has smaller errors, even at their bounds, than the claim allows."""
        bounds = zip(self.alarms_at_most, self.misses_at_most, strict=True)
        return any(misses < least_misses(cost, alarms) for alarms, misses in bounds)


def trade_off(one: Array, other: Array) -> TradeOff:
    """Return the errors of tests along the direction that tells the pilots apart best."""
    pilot = max(len(one) // 5, 20)
    first, second = (samples[:, -1] for samples in _with_direction(one, other, pilot))
    pooled = np.concatenate([first[:pilot], second[:pilot]])
    # The direction points to the first: low values are taken for the other.
    thresholds = np.unique(np.quantile(pooled, np.linspace(0.01, 0.99, _THRESHOLDS)))
    confidence = 1 - (1 - CONFIDENCE) / (2 * len(thresholds))
    runs = len(first) - pilot
    alarms = [int((first[pilot:] <= t).sum()) for t in thresholds]
    misses = [int((second[pilot:] > t).sum()) for t in thresholds]
    return TradeOff(
        [count / runs for count in alarms],
        [count / runs for count in misses],
        [_bounds(0, count, runs, confidence)[1] for count in alarms],
        [_bounds(0, count, runs, confidence)[1] for count in misses],
    )


def _with_direction(one: Array, other: Array, pilot: int) -> tuple[Array, Array]:
    """Add the linear combination that tells the two pilots apart best (Fisher), with outliers drawn in."""
    pooled = np.concatenate([one[:pilot], other[:pilot]])
    middle = np.median(pooled, axis=0)
    spread = np.maximum(np.median(np.abs(pooled - middle), axis=0), 1e-300)
    with np.errstate(over="ignore"):
        a, b = np.arcsinh((one - middle) / spread), np.arcsinh((other - middle) / spread)
    within = np.atleast_2d(np.cov(a[:pilot].T) + np.cov(b[:pilot].T)) + 1e-6 * np.eye(a.shape[1])
    direction = np.linalg.solve(within, a[:pilot].mean(axis=0) - b[:pilot].mean(axis=0))
    return np.column_stack([one, a @ direction]), np.column_stack([other, b @ direction])


def finest_bit(value: float) -> float:
    """Return the exponent of the last set bit: what Mironov's attack looks at."""
    if value == 0 or not math.isfinite(value):
        return 2000.0
    mantissa, exponent = math.frexp(value)
    whole = int(mantissa * (1 << 53))
    return float(exponent - 53 + (whole & -whole).bit_length() - 1)
