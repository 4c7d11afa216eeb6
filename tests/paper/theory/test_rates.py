from __future__ import annotations

import math

import pytest

from dpcov.paper.theory import aggregate_rate, cluster_loss_rate, cluster_rate, learner_rows, recursive_rate


def test_rates_of_the_paper() -> None:
    assert aggregate_rate(0.1, 1000, 10, 0.5).rows == pytest.approx(10 * 1000 / 0.05)
    found = recursive_rate(0.1, 10, 0.5, m=500, sample=3000, condition=1e6, failure=0.05).rows
    log = math.log(1e6)
    assert found == pytest.approx(3000 + 5000 * math.sqrt(20 * log) * math.log(log / 0.05))
    cluster = cluster_rate(10**6, 10, 1.0, 1e-6, domain=2.0**64)
    assert not cluster.exact
    assert cluster.rows > cluster_loss_rate(10**6, 10, 1.0, 1e-6, domain=2.0**64).rows
    # log* of 2 * 2^64 * sqrt(10) is 5: 66.7, 6.06, 2.6, 1.38, 0.46.
    without_stars = math.log(20) * math.log(20e6) * 10**0.6
    assert cluster_loss_rate(10**6, 10, 1.0, 1e-6, domain=2.0**64).rows == pytest.approx(without_stars * 9**5)


def test_a_learner_needs_a_clean_subsample() -> None:
    assert learner_rows(100, 1e-4, 0.05).rows == 100
    assert learner_rows(1000, 1e-4, 0.05).rows == math.inf
