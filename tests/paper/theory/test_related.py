from __future__ import annotations

import math

import numpy as np
import pytest

from dpcov import ArgumentError
from dpcov.paper.theory import (
    outliers_harmless,
    tolerated_by_aggregate,
    tolerated_by_learner,
    tolerated_by_leverage,
    tolerated_by_recursion,
)
from dpcov.paper.theory.related import (
    aden_ali_rows,
    aggregate_rate,
    alabi_rows,
    brown_rows,
    cluster_loss_rate,
    cluster_rate,
    kothari_rows,
    learner_rows,
    recursive_rate,
)

RATES = [brown_rows, aden_ali_rows, kothari_rows, alabi_rows]


@pytest.mark.parametrize("rate", RATES)
def test_rates_say_that_they_are_rates(rate: type) -> None:
    found = rate(0.1, 10, 1.0, 1e-6)
    assert not found.exact
    assert found.place
    assert rate(0.05, 10, 1.0, 1e-6).rows > found.rows
    assert rate(0.1, 10, 0.5, 1e-6).rows > found.rows


@pytest.mark.parametrize(
    ("rate", "power"), [(brown_rows, 1.5), (aden_ali_rows, 2), (kothari_rows, 8), (alabi_rows, 2)]
)
def test_growth_with_the_dimension(rate: type, power: float) -> None:
    ratio = rate(1e-3, 2_000_000, 1.0, 1e-6).rows / rate(1e-3, 1_000_000, 1.0, 1e-6).rows
    assert math.log2(ratio) == pytest.approx(power, abs=0.01)


def test_an_outlier_raises_the_leverage() -> None:
    assert brown_rows(0.1, 10, 1.0, 1e-6, leverage=1e6).rows > 1e4 * brown_rows(0.1, 10, 1.0, 1e-6).rows


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


def test_tolerated_shares_are_where_the_probabilities_say() -> None:
    assert (1 - tolerated_by_aggregate(300)) ** 300 == pytest.approx(0.5)
    assert (1 - tolerated_by_learner(300, 0.05)) ** 300 == pytest.approx(0.95)
    assert (1 - tolerated_by_recursion(300, 0.1)) ** 300 == pytest.approx(0.95)
    assert tolerated_by_leverage(1000, 0.5) == pytest.approx(1 / 500)


def test_recursion_stands_more_outliers_at_high_accuracy() -> None:
    d, gamma = 10, 0.01
    fine, coarse = d * math.log(d / 0.05) / gamma**2, d * math.log(d / 0.05) * 9
    assert tolerated_by_recursion(coarse, 0.05) > 10 * tolerated_by_aggregate(fine)


def test_harmless_outliers() -> None:
    base = np.diag([1.0, 1e-4])
    eta = 0.05
    limit = 1 / (7 * eta) + 1
    assert outliers_harmless(base, limit * 0.999 * base, eta)
    assert not outliers_harmless(base, limit * 1.001 * base, eta)
    assert not outliers_harmless(base, np.diag([0.0, 1e-3]), eta)
    assert not outliers_harmless(base, 0 * base, 0.2)
    mixture = (1 - eta) * base + eta * limit * base
    assert np.linalg.eigvalsh(base - 7 / 8 * mixture)[0] == pytest.approx(0, abs=1e-12)
    with pytest.raises(ArgumentError, match="inliers"):
        outliers_harmless(np.zeros((2, 2)), base, eta)


def test_a_harmless_outlier_can_spoil_larger_subsamples() -> None:
    # One outlier of n rows carries 1/8 of a direction: harmless by Section 4.2, and eta = 1/n is small.
    n, subsample = 1000, 100
    inlier, outlier = 1.0, n / 7
    assert outliers_harmless(np.array([[inlier]]), np.array([[outlier]]), 1 / n)
    whole = (1 - 1 / n) * inlier + outlier / n
    with_outlier = (1 - 1 / subsample) * inlier + outlier / subsample
    assert with_outlier > 1.5 * whole
    assert 1 - (1 - 1 / n) ** subsample > 0.09
