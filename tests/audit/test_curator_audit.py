"""Black-box audits: does the noise hide a row as well as the budget claims?

Each audit runs a query many times on two neighbours that differ as much as they can, and bounds the
probabilities of threshold events by Clopper and Pearson. If for some event S
``P[S | one] > e^eps P[S | other] + delta`` holds at the stated confidence, the claim is false.
A mutant with a third of the noise must be caught by the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from dpcov.core import Budget, Clipping, Curator, LatticeMap, LogNormGrid, OSEntropy, PrivacyCost
from dpcov.core import curator as curator_module
from dpcov.core.conversion import epsilon_from_rho
from dpcov.core.noise import discrete_gaussian
from dpcov.sources import ArraySource

pytestmark = pytest.mark.audit

RUNS = 20_000
RHO = Fraction(1, 2)
DELTA = Fraction(1, 1000)
# Two bounds at 40 thresholds in both directions: a true claim is rejected once in 10,000 audits.
CONFIDENCE = 1 - 1e-4 / 160

Query = Callable[[Curator], float]


def gram_entry(subject: Curator) -> float:
    answer = subject.gram(Clipping(LatticeMap.identity(2), 1.0), RHO, purpose="audit")
    # The direction in which the neighbours below differ most: z z^T - w w^T = diag(1, -1).
    return float(answer.integers[0, 0] - answer.integers[1, 1])


def bin_difference(subject: Curator) -> float:
    answer = subject.log_norms(LatticeMap.identity(2), LogNormGrid(0, 4, 1), RHO, purpose="audit")
    return float(answer.counts[0] - answer.counts[-1])


NEIGHBOURS: dict[str, tuple[Query, NDArray[np.float64], NDArray[np.float64]]] = {
    "gram": (gram_entry, np.array([[1e9, 0.0], [0.0, 0.0]]), np.array([[0.0, 1e9], [0.0, 0.0]])),
    "histogram": (bin_difference, np.array([[1e9, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 0.0]])),
}


def samples(query: Query, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    source = ArraySource(rows, threads=1)
    budget = PrivacyCost(RHO)
    return np.array([query(Curator(source, Budget(budget), OSEntropy())) for _ in range(RUNS)])


def epsilon_lower_bound(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest epsilon that the samples refute, at the stated confidence."""
    best = 0.0
    for first, second in ((one, other), (other, one)):
        sign = 1.0 if first.mean() > second.mean() else -1.0
        for quantile in np.linspace(0.02, 0.98, 40):
            threshold = np.quantile(sign * second, quantile)
            hits, misses = int((sign * first > threshold).sum()), int((sign * second > threshold).sum())
            low = beta.ppf(1 - CONFIDENCE, hits, RUNS - hits + 1) if hits else 0.0
            high = beta.ppf(CONFIDENCE, misses + 1, RUNS - misses) if misses < RUNS else 1.0
            if low > DELTA and high > 0:
                best = max(best, math.log((low - float(DELTA)) / high))
    return best


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_event_refutes_the_claim(name: str) -> None:
    query, one, other = NEIGHBOURS[name]
    claimed = float(epsilon_from_rho(RHO, DELTA))
    assert epsilon_lower_bound(samples(query, one), samples(query, other)) <= claimed


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_mutant_with_a_third_of_the_noise_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, one, other = NEIGHBOURS[name]
    monkeypatch.setattr(
        curator_module,
        "discrete_gaussian",
        lambda bits, variance, count: discrete_gaussian(bits, Fraction(variance) / 9, count),
    )
    claimed = float(epsilon_from_rho(RHO, DELTA))
    assert epsilon_lower_bound(samples(query, one), samples(query, other)) > claimed
