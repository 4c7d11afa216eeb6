"""What each method's error is as a function of public numbers; `dpcov.plan` asks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri

from dpcov.core import PrivacyCost
from dpcov.paper.aggregate import RADIUS_SHARE
from dpcov.paper.queries import groups_for_noise, most_groups
from dpcov.paper.theory.bounds import Bound
from dpcov.paper.theory.mixtures import log_spaced_gaussian
from dpcov.paper.theory.prediction import whitening_error
from dpcov.paper.theory.recursion import recursive_error
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, smallest_size

# From about so much noise on the default does not whiten Gaussian rows (benchmarks/results/accuracy.csv).
_FEW_ROWS = 0.1
_LARGEST_LEARNT = 1e6


@dataclass(frozen=True)
class Case:
    """The public numbers of one question, and each method's error as a function of the rows."""

    d: int
    rho: float
    epsilon: float | None
    delta: float | None
    condition: float
    failure: float
    m: float | None
    limit: PrivacyCost
    rows_per_unit: float = 1.0

    def whitening(self, rows: int) -> float:
        """Noise of the last release, with Gaussian rows.

        The joint length of k independent rows of a unit is a mean of k squared lengths in the coordinates in
        which the second moment of a unit is white.
        """
        k = self.rows_per_unit
        predicted = whitening_error(rows, self.d, self.rho, lambda part: float(chdtri(k * self.d, part)) / k)
        # With so few rows the method looks for no small directions, and releases the rows about as they are.
        few = math.sqrt(2 * self.d) / (rows * math.sqrt(self.rho)) * self.d > _FEW_ROWS
        return max(predicted, self.gaussian(rows)) if few else predicted

    def gaussian(self, rows: int) -> float:
        """Noise of one release at the radius of the longest row, in the metric of the second moment."""
        values = np.logspace(0, -math.log10(self.condition), self.d)
        scale = float(np.sum(values**2) / values.sum()) / self.rows_per_unit
        # The squared length is about a multiple of a chi-square variable (Satterthwaite).
        squared = scale * float(chdtri(float(values.sum()) / scale, 1 / max(rows, 2)))
        # So many directions are about as small as the least; the rest hardly matter.
        small = float((values[-1] / values).sum())
        norm = math.sqrt(2 * small) * (1 - 0.5 * math.pow(small, -2 / 3))
        return norm * squared / (rows * math.sqrt(self.rho) * float(values[-1]))

    def recursive(self, rows: int) -> float:
        """Return what the repaired theorem promises."""
        return self._recursive(rows, "repaired")

    def recursive_paper(self, rows: int) -> float:
        """Return what the theorem promises with the constants of the paper."""
        return self._recursive(rows, "paper")

    def _recursive(self, rows: int, constants: str) -> float:
        table = log_spaced_gaussian(self.d, self.condition)
        radius, least = table.radius_of(rows, self.failure / 2), table.least_eigenvalue
        size = (
            self.m
            or smallest_size(
                lambda beta: table.subsample_size(LARGEST_ALPHA, beta),
                LARGEST_ALPHA,
                radius,
                least,
                constants=constants,
            )[0]
        )
        return recursive_error(
            rows,
            self.d,
            self.rho,
            m=size,
            alpha=LARGEST_ALPHA,
            radius=radius,
            least_eigenvalue=least,
            failure=self.failure / 2,
            constants=constants,
        )

    def aggregate(self, rows: int) -> float:
        """Twice the least alpha for which the rows are enough; infinite if none up to 1/2 is."""
        return _least(self.aggregate_rows, rows, LARGEST_ALPHA) * 2

    def aggregate_rows(self, alpha: float) -> float:
        """Return the rows for which groups within 1 +- alpha, and the noise on top, stay within 2 alpha."""
        groups, size = self.aggregate_groups(alpha)
        return groups * size

    def aggregate_groups(self, alpha: float) -> tuple[float, int]:
        """Return how many groups of how many rows; infinitely many if no number can be run.

        By the library's own proof (``paper/queries/multiplicative.md``), which asks for far fewer groups than
        the paper's lemma (`dpcov.theory.aggregate_rows`).
        """
        # A radius is found besides.
        epsilon, delta = math.sqrt(self.limit.rho * (1 - RADIUS_SHARE)), float(self.limit.delta) / 2
        norm = 2 * math.sqrt(self.d) + math.sqrt(2 * math.log(2 / self.failure))
        scale = (math.sqrt(1 + alpha / (1 + alpha)) - 1) / norm
        for_release = groups_for_noise(
            self.d, 2 * alpha / (1 - alpha), Fraction(epsilon), self.limit.delta / 2, scale
        )
        # Noise of the test of agreement is at most a tenth, so that groups that agree pass.
        for_test = 20 / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
        groups = max(for_release, math.ceil(for_test))
        if groups > most_groups(self.d):
            return math.inf, 1
        table = log_spaced_gaussian(self.d, self.condition)
        return groups, table.subsample_size(alpha, self.failure / (2 * groups))

    def rate(self, bound: Callable[[float, int, float, float], Bound]) -> Callable[[int], float] | None:
        """Turn a rate, rows for an error, around."""
        if self.epsilon is None or self.delta is None:
            return None
        epsilon, delta = self.epsilon, self.delta
        return lambda rows: _least(
            lambda error: bound(error, self.d, epsilon, delta).rows, rows, _LARGEST_LEARNT
        )


def _least(needed: Callable[[float], float], rows: int, largest: float) -> float:
    """Return the least value up to `largest` that needs at most `rows`; infinite if there is none."""
    if needed(largest) > rows:
        return math.inf

    def excess(log_value: float) -> float:
        return math.log(min(needed(math.exp(log_value)), 1e300) / rows)

    lowest = math.log(1e-12)
    if excess(lowest) <= 0:
        return math.exp(lowest)
    # Rows grow about like a power, so that a line in logarithms finds the place in few steps.
    found = float(brentq(excess, lowest, math.log(largest), xtol=1e-7))
    while excess(found) > 0:
        found += 1e-7
    return min(math.exp(found), largest)
