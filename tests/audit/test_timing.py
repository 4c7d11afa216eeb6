"""How long the sampler takes, against what it drew: measured and reported, as no claim is made about time."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from audit.record import record
from scipy.stats import spearmanr

from dpcov.core import OSEntropy
from dpcov.core.noise import rounded_gaussian
from dpcov.paper.queries.laplace import discrete_laplace

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("name", ["rounded Gaussian, sd 1", "rounded Gaussian, sd 2^40", "discrete Laplace"])
def test_time_of_a_draw_is_reported(name: str) -> None:
    bits, runs = OSEntropy(), 20_000
    times, values = np.empty(runs), np.empty(runs)
    for k in range(runs):
        started = time.perf_counter_ns()
        if name.startswith("discrete Laplace"):
            value = discrete_laplace(bits, Fraction(10))
        else:
            value = int(rounded_gaussian(bits, Fraction(1 if name.endswith("sd 1") else 4**40), 1)[0])
        times[k], values[k] = time.perf_counter_ns() - started, abs(value)
    found = spearmanr(times, values)
    record("timing", name, draws=runs, median_microseconds=round(float(np.median(times)) / 1000, 2),
           rank_correlation_with_magnitude=round(float(found.statistic), 4))  # fmt: skip
    assert len(times) == runs
