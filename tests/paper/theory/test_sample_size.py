from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import dlaplace

from dpcov import ArgumentError
from dpcov.paper.theory import (
    EllipsoidSurface,
    ParetoBesideDirection,
    ParetoTimesDirection,
    aggregate_groups,
    aggregate_parameters,
    aggregate_rows,
    distribution_rows,
    eigenvalue_rows,
    gaussian_error,
    gaussian_rows,
    log_spaced_gaussian,
    masking_scale,
)
from dpcov.paper.theory.sample_size import GAUSSIAN_NORM


def test_gaussian_rows_and_error_agree() -> None:
    rows = gaussian_rows(0.1, 10, 0.5, radius=5.0, least_eigenvalue=0.01).rows
    assert gaussian_error(int(rows), 10, 0.5, radius=5.0, least_eigenvalue=0.01) <= 0.1
    assert gaussian_error(int(rows) - 1, 10, 0.5, radius=5.0, least_eigenvalue=0.01) > 0.1
    # An error four times less needs four times the rows; a budget four times larger, half of them.
    assert gaussian_rows(0.025, 10, 0.5, radius=5.0, least_eigenvalue=0.01).rows == pytest.approx(
        4 * rows, rel=1e-4
    )
    assert gaussian_rows(0.1, 10, 2.0, radius=5.0, least_eigenvalue=0.01).rows == pytest.approx(
        rows / 2, rel=1e-4
    )


def test_the_masking_noise_keeps_within_a_twelfth() -> None:
    alpha, d, failure = 0.5, 10, 0.1
    eta = masking_scale(alpha, d, failure)
    rng = np.random.default_rng(0)
    noise = np.eye(d) + eta * rng.standard_normal((2000, d, d))
    errors = np.abs(np.linalg.eigvalsh(noise @ noise.transpose(0, 2, 1) - np.eye(d))).max(axis=1)
    # Lemma A.4: at most a share xi / 2; were it that, 40 or fewer of 2000 would show in 1 of 10^12 runs.
    assert np.count_nonzero(errors > alpha / 12) <= 40
    # A constant five times less would not do.
    careless = (noise - np.eye(d)) * 5 + np.eye(d)
    errors = np.abs(np.linalg.eigvalsh(careless @ careless.transpose(0, 2, 1) - np.eye(d))).max(axis=1)
    assert np.count_nonzero(errors > alpha / 12) > 1000
    assert GAUSSIAN_NORM == 2


def test_groups_are_what_the_lemma_asks() -> None:
    d, epsilon, delta, alpha, failure = 10, 0.5, 1e-7, 0.5, 0.05
    eta = masking_scale(alpha, d, failure)
    assert eta == pytest.approx(0.5 / (48 * 2 * (math.sqrt(10) + math.sqrt(math.log(80)))))
    terms = [
        math.sqrt(2 * d * (d + 1 / eta**2) / epsilon),
        8 * d * math.sqrt(math.log(2 / delta)) / epsilon,
        8 * math.log(2 / delta) / epsilon,
        12 * math.sqrt(d * math.log(2 / delta)) / (epsilon * eta),
    ]
    groups = aggregate_groups(d, epsilon, delta, alpha=alpha, failure=failure)
    assert groups == math.ceil(800 * max(terms))
    assert aggregate_rows(7, d, epsilon, delta, alpha=alpha).rows == 7 * groups


def test_agreeing_groups_pass_the_test_of_agreement_with_twice_the_papers_constant() -> None:
    epsilon, delta = 0.5, 1e-7

    def clearance(groups: float) -> float:
        """How far the least possible noisy score of agreeing groups is above what the test asks."""
        bound = 2 / (groups * epsilon) * math.log1p(math.expm1(epsilon) / (2 * delta))
        return (1 - bound) - (0.8 + bound)

    logarithm = math.log1p(math.expm1(epsilon) / (2 * delta))
    assert clearance(800 * logarithm / (40 * epsilon)) == pytest.approx(0, abs=1e-12)
    assert clearance(800 * logarithm / (80 * epsilon)) == pytest.approx(-0.2)
    assert clearance(aggregate_groups(10, epsilon, delta, alpha=0.5)) > 0


def test_the_whole_guarantee_of_algorithm_three() -> None:
    inner, small = aggregate_parameters(1.0, 1e-6)
    assert 2 * inner == pytest.approx(1.0)
    assert 4 * math.exp(inner) * small == pytest.approx(1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_third_of_the_groups_is_released(epsilon: float) -> None:
    delta, failure = 1e-6, 0.05
    groups = eigenvalue_rows(1, epsilon, delta, failure=failure).rows
    noise = dlaplace(epsilon / 2)
    threshold = next(t for t in range(1, 10_000) if noise.sf(t - 1) <= delta / 2)
    assert noise.sf(1 + threshold - 1 - groups / 3) >= 1 - failure / 2
    assert noise.sf(1 + threshold - 1 - groups / 6) < 0.5
    assert eigenvalue_rows(50, epsilon, delta, failure=failure).rows == 50 * groups


def test_eigenvalues_within_alpha_can_fill_three_buckets() -> None:
    alpha, least = 0.5, 0.9
    ends = [
        math.floor(math.log(value) / -math.log(1 - alpha))
        for value in (least * 0.5, least * 0.99, least * 1.49)
    ]
    assert len(set(ends)) == 3
    lower = (1 - alpha) ** -ends[0]
    assert (1 - alpha) ** 2 * least <= lower < (1 - alpha) * least


@pytest.mark.parametrize(
    "law",
    [
        EllipsoidSurface(np.diag(np.logspace(0, -6, 10))),
        ParetoTimesDirection(10),
        ParetoBesideDirection(10),
        log_spaced_gaussian(10, 1e4),
    ],
    ids=["ellipsoid", "times", "beside", "gaussian"],
)
def test_rows_for_a_distribution(law: EllipsoidSurface) -> None:
    coarse, fine = distribution_rows(law, 0.2, 0.5), distribution_rows(law, 0.02, 0.5)
    assert coarse.exact
    part = math.sqrt(1.02) - 1
    assert fine.rows >= law.subsample_size(part, 0.0125)
    assert 8 * coarse.rows < fine.rows
    if math.isfinite(law.m1):
        # No row of a sample within 1 - g of its distribution is in the tail.
        m = law.subsample_size(0.5, 0.5)
        assert law.m1**2 / (1 - part) <= 1.5 * m


def test_rows_for_an_ellipsoid_by_hand() -> None:
    # d = 2, half-axes 1 and 0.01: eigenvalues 1/2 and 1/2 * 10^-4, R = 1. m = 3 told, gamma = 0.44: g = 0.2.
    law = EllipsoidSurface(np.diag([1.0, 1e-4]))
    rho, g = 2.0, 0.2
    # The sample's least eigenvalue may be lower by 1 - g, and alpha = 1/2 of a direction be in the tail.
    kappa, rounds = 1.0 / (0.5 * 0.5e-4 * (1 - g)), 0
    while kappa > 550 * 3:
        kappa, rounds = kappa * 3 / 7, rounds + 1
    assert rounds == 5
    share = math.sqrt((rounds + 1) / rho)
    for_release = kappa * (2 + math.sqrt(2 * math.log(2 / 0.0125))) * share / g
    for_rounds = (2 + math.sqrt(2 * math.log(2 / (0.0125 / rounds)))) * share * 3 * 1000
    sample = math.ceil((4 / g**2 + 2 * 3 / (3 * g)) * math.log(4 / 0.0125))
    assert law.subsample_size(g, 0.0125) == sample
    found = distribution_rows(law, (1 + g) ** 2 - 1, rho, m=3).rows
    assert found == pytest.approx(math.ceil(max(sample, for_release, for_rounds)), abs=1)
    assert for_release > max(sample, for_rounds)


def test_a_smaller_m_needs_fewer_rows() -> None:
    law = EllipsoidSurface(np.diag(np.logspace(0, -6, 10)))
    assert distribution_rows(law, 0.1, 0.5, m=law.m1**2).rows < distribution_rows(law, 0.1, 0.5).rows


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="error"):
        distribution_rows(ParetoTimesDirection(3), 5.0, 1.0)
    with pytest.raises(ArgumentError, match="delta"):
        aggregate_groups(10, 1.0, 0.0, alpha=0.5)
    with pytest.raises(ArgumentError, match="m must"):
        eigenvalue_rows(0, 1.0, 1e-6)
    with pytest.raises(ArgumentError, match="radius"):
        gaussian_error(10, 10, 1.0, radius=-1.0)
