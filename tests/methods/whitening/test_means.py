"""What clipping took from the means is measured, trusted as far as it can be true, and given back."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.runs import second_moment, start_run
from methods.whitening.test_release import whitened
from numpy.typing import NDArray

import dpcov
from dpcov.core import Clipping
from dpcov.losses import given_back, loss_strength
from dpcov.methods.whitening.means import Losses
from dpcov.methods.whitening.queries.clipped import ClippedGram
from dpcov.methods.whitening.release import PULL, release
from dpcov.methods.whitening.wrap import Region

N = 20_000


def skewed(n_rows: int = N) -> NDArray[np.float64]:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.exponential(size=n_rows), rng.normal(size=(n_rows, 2)) + 1])


def test_means_are_given_back_and_covariances_stay() -> None:
    before = second_moment(np.column_stack([skewed(), np.ones(N)])) * 0.9
    inverse = np.triu(np.random.default_rng(0).normal(size=(4, 4)))
    lost = np.array([0.2, -0.1, 0.0, 0.0])
    moving = Losses(lost, 0.0).give_back(before, inverse)
    after = moving @ before @ moving.T

    def mean(moment: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(moment[:3, 3] / moment[3, 3])

    def covariance(moment: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(moment[:3, :3] / moment[3, 3] - np.outer(mean(moment), mean(moment)))

    full = before[:, 3] + inverse @ lost
    np.testing.assert_allclose(mean(after), full[:3] / full[3])
    np.testing.assert_allclose(covariance(after), covariance(before), atol=1e-12)
    # How much of the constant is lost, others tell better.
    assert after[3, 3] == before[3, 3]
    # Without a constant there is no mean to mend.
    for constant in (-0.01, 0.01):
        empty = np.diag([1.0, 1.0, 1.0, constant])
        assert (Losses(np.array([0, 0, 0, -1.0]), 0.0).give_back(empty, np.eye(4)) == np.eye(4)).all()


def test_losses_are_those_of_the_rows() -> None:
    run = start_run(skewed(), 1e6, constant=True)
    forms = np.array([[1.0, 0.5, 0, 0.2], [0, 1.0, 0, -0.3], [0, 0.3, 1.0, 0], [0.1, 0, 0, 0.7]])
    pull = replace(PULL, kept_losing=Fraction(4, 5))
    answer = run.curator.ask(ClippedGram(Clipping(run.map(forms), 3.0), pull, Fraction(10**6), "release"))
    found = Losses.of(answer, forms)
    assert found is not None
    y = np.column_stack([skewed(), np.ones(N)]) @ forms.T
    norms = np.maximum(np.linalg.norm(y, axis=1) / 3.0, 1.0)
    # Of a row and its constant, in the direction of the row.
    lost = (np.where(norms > 1, given_back(norms), 0.0) / norms) @ y / N
    np.testing.assert_allclose(found.lost, lost, atol=1e-4)
    assert found.spread == pytest.approx(3.0 / loss_strength() / N / 1e3, rel=1e-3)
    again = start_run(skewed(), 1.0, constant=True)
    counting = again.curator.ask(ClippedGram(Clipping(again.map(forms), 3.0), PULL, 1, "release"))
    assert Losses.of(counting, forms) is None


def test_a_measurement_is_trusted_as_far_as_it_can_be_true() -> None:
    measured = Losses(np.array([0.3, 0.0]), 0.1)
    expected = measured.expected(0.2, 1.0)
    np.testing.assert_allclose(expected.lost, [0.3 * 0.04 / 0.05, 0.0])
    assert expected.spread == pytest.approx(0.1 * math.sqrt(0.8))
    # What normal laws have: draw what was lost, and measure it.
    rng = np.random.default_rng(0)
    lost = rng.normal(0, 0.2, 200_000)
    found = lost + rng.normal(0, 0.1, 200_000)
    near = np.abs(found - 0.3) < 0.02
    assert lost[near].mean() == pytest.approx(0.24, abs=0.01)
    assert lost[near].std() == pytest.approx(expected.spread, rel=0.05)
    assert not measured.expected(0.0, 1.0).lost.any()
    # If nobody may own the rows, what exceeds noise counts: 0.09 of which 0.02 are noise.
    np.testing.assert_allclose(measured.expected(0.2, 0.1).lost, (1 - 0.02 / 0.09) * expected.lost)
    np.testing.assert_allclose(Losses(measured.lost / 3, 0.1).expected(0.2, 0.1).lost[0], 0.1 * 0.1 * 0.8)


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
    # Of the constant, more than N alone, which is all that there is: the law says by how much.
    assert Losses(np.zeros(3), spread).widened(constant, sigma) ** 2 == pytest.approx(factor**2)
    assert sigma**2 * 25**2 * factor**4 >= sigma**2 * 25**2 + spread**2 * 25


def test_released_means_have_the_noise_that_the_law_says() -> None:
    # A seventh of these rows lie beyond the region, none of them far.
    half = np.random.default_rng(5).uniform(-1, 1, size=(N // 2, 2))
    rows = np.vstack([half, -half])
    off, said = [], []
    for seed in range(60):
        run = start_run(rows, 0.05, seed, constant=True)
        white = whitened(run)
        made = release(run, white, Region(1.9 * white.unit))
        assert made.noise is not None
        means = made.second_moment[:2, 2] / made.second_moment[2, 2]
        back = made.noise.inverse
        gram = back @ back.T
        said.append(made.noise.sigma * np.sqrt((gram[0, 0] * gram[2, 2] + gram[0, 2] ** 2) / 2))
        off.append(means[0] / said[-1])
        # The constant has none of the noise of what is given back, which the law counts all the same.
        assert made.noise.overstated > 1.1
    # A standard deviation of 60 draws is off by 28% once in 500.
    assert np.std(off) == pytest.approx(1.0, abs=0.28)
    assert abs(np.mean(off)) < 3.5 / math.sqrt(60)


def test_nothing_is_measured_without_a_constant_or_of_units() -> None:
    rows = skewed(4000)

    def measured(**options: Any) -> list[bool]:
        made = dpcov.release(rows, rho=0.5, rng=np.random.default_rng(0), progress=False, **options)
        return [law.measured for law in made.losses]

    assert any(measured())
    assert all(measured())
    assert not any(measured(intercept=False))
    assert not any(measured(contamination=0.01))
    assert not any(measured(privacy_unit=np.repeat(np.arange(2000), 2)))


def test_means_of_skewed_columns_are_unbiased() -> None:
    rows, off = skewed(5_000), []
    for seed in range(30):
        made = dpcov.release(rows, rho=0.02, rng=np.random.default_rng(seed), progress=False)
        off.append(float(made.mean().values[0]) - rows[:, 0].mean())
    # Clipped at the same radius without giving anything back, they were 0.1 too low: four standard errors.
    assert abs(np.mean(off)) < 0.03
