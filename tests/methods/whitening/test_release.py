from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers.curators import CountingSource
from helpers.runs import relative_error, second_moment, start_run
from numpy.typing import NDArray

from dpcov.core import Budget, Curator, PrivacyCost, SeededBits
from dpcov.losses import KEPT_FAR, KEPT_NEAR
from dpcov.methods.whitening.release import PULL, _shrink, find_and_release, release, release_nothing
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White, whiten
from dpcov.methods.whitening.wrap import Region

Matrix = NDArray[np.float64]

N = 20_000
ROWS = np.random.default_rng(0).normal(size=(N, 4)) * [1.0, 10.0, 0.1, 3.0]


def whitened(run: Run) -> White:
    white = whiten(run, np.eye(run.d))
    assert white is not None
    return white


def test_all_that_is_left_is_spent_in_one_scan() -> None:
    budget, bits = Budget(PrivacyCost(Fraction(1))), SeededBits(np.random.default_rng(0))
    source = CountingSource(ROWS)
    run = Run(Curator(source, budget, bits), N, 4, 1.0)
    white = whitened(run)
    scans, left = source.scans, run.left
    made = release(run, white, Region(6 * white.unit))
    assert source.scans == scans + 1
    receipt = run.curator.receipt()
    assert receipt.spent.rho == receipt.limit.rho
    # Counting the rows beyond costs nothing.
    assert receipt.charges[-1].purpose == "the released matrix"
    assert float(receipt.charges[-1].cost.rho) == pytest.approx(left)
    assert made.diagnostics["released_share"] == pytest.approx(left)


def test_the_matrix_is_that_of_the_rows() -> None:
    for seed in range(5):
        run = start_run(ROWS, 1.0, seed)
        white = whitened(run)
        made = find_and_release(run, white)
        # Noise: R^2 sqrt(2 d) / (n sqrt rho) is about 30 * 2.8 / 20,000 of a direction.
        assert relative_error(made.second_moment, second_moment(ROWS)) < 0.015
        np.testing.assert_array_equal(made.second_moment, made.second_moment.T)
        assert made.diagnostics["predicted_error"] < 0.05


def test_the_noise_law_is_that_of_the_released_matrix() -> None:
    errors = []
    for seed in range(60):
        run = start_run(ROWS, 1.0, seed)
        white = whitened(run)
        norms = np.linalg.norm(ROWS @ white.rows.T, axis=1)
        made = release(run, white, Region(1.01 * float(norms.max())))
        assert made.noise is not None
        back = np.linalg.inv(made.noise.inverse)
        errors.append(back @ (made.second_moment - second_moment(ROWS)) @ back.T / made.noise.sigma)
    deviations = np.sqrt(np.mean(np.square(errors), axis=0))
    # 1 on the diagonal, 1 / sqrt 2 off it; an entry of 60 releases is known to 9% (1 sd).
    expected = np.full((4, 4), math.sqrt(0.5)) + (1 - math.sqrt(0.5)) * np.eye(4)
    np.testing.assert_allclose(deviations, expected, rtol=0.6)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(math.sqrt((4 + 6) / 16), rel=0.2)


@pytest.mark.parametrize("radius", [3.0, 3.5])
def test_rows_beyond_the_region_are_counted(radius: float) -> None:
    run = start_run(ROWS, 1.0)
    white = whitened(run)
    norms = np.linalg.norm(ROWS @ white.rows.T, axis=1) / white.unit
    made = release(run, white, Region(radius * white.unit))
    beyond = made.diagnostics["rows_beyond"]
    # A row that keeps the part k of the squared radius is counted with noise of 1 / sqrt(2 k (1 - k) rho).
    near, far = (
        math.sqrt(1 / (2 * k * (1 - k) * made.diagnostics["released_share"])) for k in (KEPT_NEAR, KEPT_FAR)
    )
    spread = math.hypot(near, far)
    # Seven standard deviations of noise.
    assert abs((norms > radius).sum() - beyond["about"]) < 7 * spread
    assert beyond["at_most"] == pytest.approx(beyond["about"] + 1.645 * spread, rel=0.01)
    # Beyond sqrt 2 times 3 there is 1 normal row of 1,500 in 4 dimensions, beyond 5 next to none.
    assert abs((norms > math.sqrt(2) * radius).sum() + 1.645 * far - beyond["far_at_most"]) < 7 * far
    # What they may hide: each has at most R^2 / n of a variance in the coordinates of the noise law.
    assert made.noise is not None
    assert made.noise.hidden == pytest.approx(beyond["far_at_most"] * (radius * white.unit) ** 2 / N)
    assert made.diagnostics["radius"] == pytest.approx(radius)


def test_dropped_outliers_hide_nothing_and_the_rest_is_accurate() -> None:
    spoiled = ROWS.copy()
    spoiled[:200] *= 1000
    run = start_run(spoiled, 1.0, contamination=0.02)
    white = whitened(run)
    made = find_and_release(run, white)
    assert made.noise is not None
    # But what rounding may have.
    assert made.noise.hidden < 1e-9 * made.noise.sigma
    assert relative_error(made.second_moment, second_moment(ROWS[200:])) < 0.02


def test_nothing_is_released_of_nothing() -> None:
    run = start_run(np.zeros((N, 3)))
    assert whiten(run, np.eye(3)) is None
    before = run.left
    made = release_nothing(run)
    assert not made.second_moment.any()
    assert made.noise is None
    assert run.left == before
    assert made.diagnostics["predicted_error"] == 1.0
    assert made.diagnostics["released_share"] == 0.0


def test_what_was_asked_is_told() -> None:
    run = start_run(ROWS, 1.0)
    white = whitened(run)
    facts = find_and_release(run, white).diagnostics
    assert facts["rounds"] == len(facts["history"]) == len(run.rounds)
    assert facts["history"][-1]["purpose"] == "release"
    assert facts["confidence"] == 0.95
    spent = sum(round_["rho"] for round_ in facts["history"])
    # Looks and counts come on top.
    assert 0.7 < spent < 1.0


def test_only_white_rows_are_drawn_towards_white_ones() -> None:
    rows = np.random.default_rng(9).standard_normal((2_000, 4))
    white = White(np.eye(4), typical=2.0, far=4.0, rank=4)
    for is_white in (True, False):
        made = release(start_run(rows, 0.1), replace(white, is_white=is_white), Region(4.0))
        assert (made.diagnostics["shrinkage"] > 0) is is_white


def test_shrinking_leaves_the_means_as_they_are() -> None:
    rng = np.random.default_rng(0)
    part = rng.normal(size=(4, 4))
    moment, constant = np.eye(4) + 0.1 * (part + part.T), np.array([0.0, 0.6, 0.0, 0.8]) * 3
    shrunk, weight = _shrink(np.eye(4), moment, 0.5, constant)
    assert weight > 0.1
    np.testing.assert_allclose(shrunk @ constant, moment @ constant)
    assert np.linalg.norm(shrunk - moment) > 0.01


def test_the_law_of_the_noise_goes_with_the_means_that_are_given_back() -> None:
    # Clipped hard, so that the mean moves by as much as a column varies.
    rows = np.column_stack([np.random.default_rng(1).exponential(size=N), np.full(N, 0.5)])
    rows[:, 1] += np.random.default_rng(2).normal(size=N)
    run = start_run(rows, 5.0, constant=True)
    made = release(run, White(np.eye(3), 1.5, 3.0, 3, is_white=False), Region(1.2))
    assert made.noise is not None
    # Noise of the constant moves what is written as the mean times it: along the released mean.
    mean = made.second_moment[:2, 2] / made.second_moment[2, 2]
    constant = made.noise.inverse[2] / np.linalg.norm(made.noise.inverse[2])
    along = made.noise.inverse @ constant
    before = start_run(rows, 5.0, constant=True)
    plain = release(before, White(np.eye(3), 1.5, 3.0, 3, is_white=False), Region(1.2), PULL)
    assert plain.noise is not None
    old = plain.noise.inverse @ (plain.noise.inverse[2] / np.linalg.norm(plain.noise.inverse[2]))
    old_mean = plain.second_moment[:2, 2] / plain.second_moment[2, 2]
    assert np.abs(mean - old_mean).max() > 0.1
    np.testing.assert_allclose(along[:2] / along[2] - old[:2] / old[2], mean - old_mean, atol=0.05)
