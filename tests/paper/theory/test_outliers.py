from __future__ import annotations

import math

import numpy as np
import pytest

from dpcov import ArgumentError
from dpcov.paper.theory import (
    log_spaced_gaussian,
    outliers_harmless,
    tolerated_by_aggregate,
    tolerated_by_learner,
    tolerated_by_leverage,
    tolerated_by_recursion,
    tolerates_more_below,
)


def test_tolerated_shares_are_where_the_probabilities_say() -> None:
    assert (1 - tolerated_by_aggregate(300)) ** 300 == pytest.approx(0.5)
    assert (1 - tolerated_by_learner(300, 0.05)) ** 300 == pytest.approx(0.95)
    assert (1 - tolerated_by_recursion(300, 0.1)) ** 300 == pytest.approx(0.95)
    assert tolerated_by_leverage(1000, 0.5) == pytest.approx(1 / 500)


def test_recursion_stands_more_outliers_at_high_accuracy() -> None:
    d, gamma = 10, 0.01
    fine, coarse = d * math.log(d / 0.05) / gamma**2, d * math.log(d / 0.05) * 9
    assert tolerated_by_recursion(coarse, 0.05) > 10 * tolerated_by_aggregate(fine)


def test_the_recursion_stands_more_outliers_below_an_error() -> None:
    law, beta = log_spaced_gaussian(10, 1e6), 0.03
    gamma = tolerates_more_below(law, beta, 0.05)
    recursion = tolerated_by_recursion(law.subsample_size(1 / 3, beta / 2), beta)
    assert tolerated_by_aggregate(law.subsample_size(gamma * 0.99, 0.05)) < recursion
    assert tolerated_by_aggregate(law.subsample_size(gamma * 1.01, 0.05)) > recursion


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
