"""What clipping took from the means is measured, trusted as far as it can be true, and given back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.runs import second_moment
from methods.whitening.test_release import start_run, whitened
from methods.whitening.test_tail import make_histogram, pareto
from numpy.typing import NDArray

import dpcov
from dpcov.laws import FAR, loss_strength
from dpcov.methods.whitening.means import Losses, best_reach
from dpcov.methods.whitening.release import release
from dpcov.methods.whitening.tail import lost_length
from dpcov.methods.whitening.wrap import Region, Tail

N = 20_000


def skewed(n_rows: int = N) -> NDArray[np.float64]:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.exponential(size=n_rows), rng.normal(size=(n_rows, 2)) + 1])


def test_means_are_given_back_and_covariances_stay() -> None:
    rows = np.column_stack([skewed(), np.ones(N)])
    true, lost = second_moment(rows), np.array([0.2, -0.1, 0.0, 0.05])
    moving = Losses(lost, 0.0).give_back(
        true - np.outer(lost, [0, 0, 0, 1]) - np.outer([0, 0, 0, 1], lost * [1, 1, 1, 0])
    )
    before = true - np.outer(lost, [0, 0, 0, 1]) - np.outer([0, 0, 0, 1], lost * [1, 1, 1, 0])
    after = moving @ before @ moving.T

    def mean(moment: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(moment[:3, 3] / moment[3, 3])

    def covariance(moment: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(moment[:3, :3] / moment[3, 3] - np.outer(mean(moment), mean(moment)))

    np.testing.assert_allclose(after[:, 3], true[:, 3])
    np.testing.assert_allclose(covariance(after), covariance(before))
    # Without a constant there is no mean to mend.
    empty = np.diag([1.0, 1.0, 1.0, -0.01])
    assert (Losses(lost, 0.0).give_back(empty) == np.eye(4)).all()
    assert (Losses(-lost, 0.0).give_back(np.diag([1.0, 1.0, 1.0, 0.01])) == np.eye(4)).all()


def test_a_measurement_is_trusted_as_far_as_it_can_be_true() -> None:
    measured = Losses(np.array([0.3, 0.0]), 0.1)
    expected = measured.expected(0.2)
    np.testing.assert_allclose(expected.lost, 0.3 * 0.04 / 0.05)
    assert expected.spread == pytest.approx(0.1 * math.sqrt(0.8))
    # What normal laws have: draw what was lost, and measure it.
    rng = np.random.default_rng(0)
    lost = rng.normal(0, 0.2, 200_000)
    found = lost + rng.normal(0, 0.1, 200_000)
    near = np.abs(found - 0.3) < 0.02
    assert lost[near].mean() == pytest.approx(0.24, abs=0.01)
    assert lost[near].std() == pytest.approx(expected.spread, rel=0.05)
    assert not measured.expected(0.0).lost.any()


def test_noise_of_means_is_that_of_the_matrix_and_of_what_is_given_back() -> None:
    constant, sigma, spread = np.array([0.0, 0.6, 0.8]) * 5, 0.3, 2.0
    widening = Losses(np.zeros(3), spread).widening(constant, sigma)
    along = constant / 5
    beside = np.array([[1.0, 0, 0], [0, 0.8, -0.6]])
    # Beside the constant nothing changes.
    np.testing.assert_allclose(beside @ widening, beside)
    # A mean is ``<b, N e>``: entries of N have the variance sigma^2 / 2 off the diagonal.
    factor = float(along @ widening @ along)
    assert sigma**2 / 2 * 25 * factor**2 == pytest.approx(sigma**2 / 2 * 25 + spread**2)
    # Of the constant, no less than both.
    assert sigma**2 * 25**2 * factor**4 >= sigma**2 * 25**2 + spread**2 * 25


def test_released_means_have_the_noise_that_the_law_says() -> None:
    # Rows on both sides, so that all of them together lose nothing.
    rng = np.random.default_rng(5)
    half = rng.standard_t(4, size=(N // 2, 2))
    rows = np.vstack([half, -half])
    off, said = [], []
    for seed in range(60):
        run = start_run(rows, 0.05, seed)
        white = whitened(run)
        made = release(run, white, Region(2.0 * white.unit, agreement=Region(1.0).agreement))
        assert made.noise is not None
        means = made.second_moment[:2, 2] / made.second_moment[2, 2]
        back = made.noise.inverse
        gram = back @ back.T
        said.append(made.noise.sigma * np.sqrt((gram[0, 0] * gram[2, 2] + gram[0, 2] ** 2) / 2))
        off.append(means[0] / said[-1])
    # A standard deviation of 60 draws is off by 28% once in 500.
    assert np.std(off) == pytest.approx(1.0, abs=0.28)
    assert abs(np.mean(off)) < 3.5 / math.sqrt(60)


def test_a_reach_weighs_noise_against_what_is_left_out() -> None:
    run = start_run(skewed(), 0.5)
    constant = np.array([0.0, 0.0, 0.0, 4.0])
    rows = 1 / math.sqrt(run.left * run.rho)
    short, long = (Region(3.0, (Tail(make_histogram(pareto(shape, N)), 3.0, 3),)) for shape in (-0.2, 0.4))
    reaches = []
    for region in (short, long):
        law = region.tails[0].law
        assert law is not None

        def uncertainty(reach: float, law: object = law) -> float:
            noise = math.hypot(rows * 3.0 * 4.0 / math.sqrt(2), rows / loss_strength(reach))
            return math.hypot(noise, lost_length(law, reach))  # type: ignore[arg-type]

        found = best_reach(run, region, 3.0, constant)
        assert all(uncertainty(found) <= uncertainty(other) for other in np.geomspace(FAR, 8.0, 16))
        reaches.append(found)
    assert FAR <= reaches[0] < reaches[1]
    # Where there is no law, nobody can tell, and the shortest has the least noise.
    assert best_reach(run, Region(3.0), 3.0, constant) == FAR


def test_nothing_is_measured_without_a_constant_or_of_units() -> None:
    rows = skewed(4000)
    assert dpcov.release(rows, rho=0.5, intercept=False).diagnostics["reach"] is None
    assert dpcov.release(rows, rho=0.5, contamination=0.01).diagnostics["reach"] is None
    assert dpcov.release(rows, rho=0.5).diagnostics["reach"] >= FAR
    grouped = dpcov.release(rows, rho=0.5, privacy_unit=np.repeat(np.arange(2000), 2))
    assert grouped.diagnostics["reach"] is None


def test_means_of_skewed_columns_are_unbiased() -> None:
    rows, off = skewed(5_000), []
    for seed in range(30):
        made = dpcov.release(rows, rho=0.02, rng=np.random.default_rng(seed), progress=False)
        off.append(float(made.mean().values[0]) - rows[:, 0].mean())
    # Clipped at the same radius without giving anything back, they were 0.1 too low: four standard errors.
    assert abs(np.mean(off)) < 0.03
