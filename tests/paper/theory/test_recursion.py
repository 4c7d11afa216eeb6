from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov import ArgumentError
from dpcov.paper.theory import (
    noise_norm_at_most,
    recursion_constants,
    recursion_schedule,
    recursive_error,
    recursive_rows,
)
from dpcov.paper.theory.recursion import PAPER, REPAIRED, RecursionConstants

Matrix = NDArray[np.float64]


def halved(noisy: Matrix, threshold: float, eta: float) -> Matrix:
    """The paper's Pi."""
    values, vectors = np.linalg.eigh(noisy)
    return np.asarray((vectors * np.where(values >= threshold, eta, 1.0)) @ vectors.T)


def least_after_round(
    rows_second_moment: Matrix, kept: Matrix, noise: Matrix, kappa: float, psi: float
) -> float:
    """The least eigenvalue of the kept rows' second moment after one round."""
    mapped = halved(rows_second_moment + noise, psi * kappa, 0.5)
    return float(np.linalg.eigvalsh(8 / 7 * mapped @ kept @ mapped)[0])


def adversary(
    constants: RecursionConstants, kappa: float, alpha: float, angle: float
) -> tuple[Matrix, Matrix, Matrix]:
    """A second moment S >= I, a part P of it with P >= I and P >= (1 - alpha) S, and noise of norm c kappa.

    Noise and S are made for each other: S + noise is diagonal, with its large eigenvalue just at the
    threshold, and the least eigenvector of S leans towards it as far as the noise allows.
    """
    c = constants.noise * kappa
    noise = c * np.array([[math.cos(angle), math.sin(angle)], [math.sin(angle), -math.cos(angle)]])
    large = constants.psi * kappa - noise[0, 0]
    corner = noise[0, 1] ** 2 / (large - 1) + 1
    whole = np.array([[large, -noise[0, 1]], [-noise[0, 1], corner]])
    values, vectors = np.linalg.eigh(whole)
    kept = (vectors * np.maximum((1 - alpha) * values, 1.0)) @ vectors.T
    return whole, np.asarray(kept), noise


def test_the_papers_lemma_on_eigenvalues_is_false() -> None:
    # Lemma 3.4 with m = 1: the least eigenvalue of Pi S Pi is at least 1 - 80 / kappa.
    kappa = 1e6
    whole, _, noise = adversary(PAPER, kappa, 0.0, math.pi / 2)
    assert np.linalg.norm(noise, 2) <= PAPER.noise * kappa * (1 + 1e-12)
    assert np.linalg.eigvalsh(whole)[0] >= 1 - 1e-6
    assert np.linalg.eigvalsh(whole)[-1] <= kappa
    mapped = halved(whole + noise, PAPER.psi * kappa, 0.5)
    assert np.linalg.eigvalsh(mapped @ whole @ mapped)[0] == pytest.approx(0.9559, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.25, 0.5])
@pytest.mark.parametrize("growth", [1.0001, 3.0, 1e4])
def test_the_least_eigenvalue_survives_an_adversary(alpha: float, growth: float) -> None:
    kappa = REPAIRED.stopping * growth
    for angle in np.linspace(0, math.pi, 181):
        whole, kept, noise = adversary(REPAIRED, kappa, alpha, float(angle))
        assert least_after_round(whole, kept, noise, kappa, REPAIRED.psi) >= 1 - 1e-7


def test_a_smaller_stopping_value_does_not_survive_the_adversary() -> None:
    careless = replace(REPAIRED, stopping=60.0)
    assert not careless.keeps_least_eigenvalue(0.5)
    kappa = careless.stopping
    worst = min(
        least_after_round(*adversary(careless, kappa, 0.5, float(angle)), kappa, careless.psi)
        for angle in np.linspace(0, math.pi, 181)
    )
    assert worst < 0.99


def test_random_rounds_keep_the_least_eigenvalue() -> None:
    rng = np.random.default_rng(1)
    kappa, d = REPAIRED.stopping, 5
    for _ in range(300):
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        whole = (basis * np.exp(rng.uniform(0, math.log(kappa), d))) @ basis.T
        whole += (1 - np.linalg.eigvalsh(whole)[0]) * np.eye(d) * (np.linalg.eigvalsh(whole)[0] < 1)
        noise = rng.standard_normal((d, d))
        noise = noise + noise.T
        noise *= REPAIRED.noise * kappa / np.linalg.norm(noise, 2)
        values, vectors = np.linalg.eigh(whole)
        kept = (vectors * np.maximum(values / 2, 1.0)) @ vectors.T
        assert least_after_round(whole, kept, noise, kappa, REPAIRED.psi) >= 1 - 1e-9


@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.5])
def test_repaired_constants_are_proved(alpha: float) -> None:
    assert REPAIRED.shrinks_tail_only(alpha)
    assert REPAIRED.keeps_least_eigenvalue(alpha)


def test_which_constants_are_not_proved() -> None:
    assert not PAPER.shrinks_tail_only(0.5)
    assert not PAPER.keeps_least_eigenvalue(0.5)
    coarse = RecursionConstants(eta=0.5, psi=1 / 20, noise=1 / 240, stopping=960)
    assert coarse.shrinks_tail_only(0.5)
    assert not coarse.keeps_least_eigenvalue(0.5)
    assert replace(coarse, stopping=1360).keeps_least_eigenvalue(0.5)


def test_step_one_bounds_the_leverage_of_a_shrunk_row() -> None:
    # A row is shrunk from |x_perp|^2 > kappa / 6 on, however it splits; not from 3/7 on, as the paper has it.
    share = np.linspace(0, 1, 100_001)
    length = 8 / 7 * ((1 - share) / 4 + share)
    assert share[length > 3 / 7].min() == pytest.approx(1 / 6, abs=1e-4)


def test_schedule_counts_the_rounds_that_the_algorithm_makes() -> None:
    for radius in (1.0, 50.0, 1e3, 1e6, 1e9):
        made = recursion_schedule(10, 0.5, radius)
        kappa, rounds = 2 * radius**2, 0
        while kappa > 5500:
            kappa, rounds = kappa * 3 / 7, rounds + 1
        assert (made.shrinking_rounds, made.releases) == (rounds, rounds + 1)
        assert made.last == pytest.approx(kappa)
        assert made.shrinking_rounds == max(0, math.ceil(math.log(2 * radius**2 / 5500, 7 / 3)))


def test_schedule_is_about_the_ratio_to_the_least_eigenvalue() -> None:
    assert recursion_schedule(10, 0.5, 1e3, 1.0) == recursion_schedule(10, 0.5, 1.0, 1e-6)
    assert recursion_schedule(10, 0.5, 1e3, constants="paper").last <= 6400


@pytest.mark.parametrize("d", [1, 5, 40])
def test_noise_norm_holds_with_its_probability(d: int) -> None:
    rng = np.random.default_rng(d)
    square = rng.standard_normal((2000, d, d))
    norms = np.abs(np.linalg.eigvalsh((square + square.transpose(0, 2, 1)) / 2)).max(axis=1)
    # If it failed more often than 5%, fewer than 1 of 10^6 such tests would see at most 40 of 2000.
    assert np.count_nonzero(norms > noise_norm_at_most(d, 0.05)) <= 40
    assert np.count_nonzero(norms > noise_norm_at_most(d, 0.05) / 3) > 200


def test_rows_and_error_agree() -> None:
    case = {"m": 100.0, "alpha": 0.5, "radius": 1e4, "least_eigenvalue": 0.5}
    for constants in ("paper", "repaired"):
        needed = recursive_rows(0.05, 10, 0.5, constants=constants, **case)
        assert needed.exact
        n = int(needed.rows)
        assert recursive_error(n, 10, 0.5, constants=constants, **case) <= 0.05
        assert recursive_error(n - 1, 10, 0.5, constants=constants, **case) > 0.05


def test_rows_by_hand() -> None:
    # m = 10, R^2 = 10^4, alpha = 1/2: kappa = 20000, 3673 after two rounds; three releases.
    norm = math.sqrt(20) + math.sqrt(2 * math.log(2 / 0.025))
    rounds = math.sqrt(20) + math.sqrt(2 * math.log(2 / 0.0125))
    split = math.sqrt(3 / 0.5)
    expected = max(rounds * 10 * 1000 * split, 20000 * (3 / 7) ** 2 * norm * split / 0.1)
    found = recursive_rows(0.1, 10, 0.5, m=10, alpha=0.5, radius=100.0)
    assert found.rows == math.ceil(expected)


def test_too_few_rows_promise_nothing() -> None:
    assert recursive_error(10_000, 10, 0.5, m=100, alpha=0.5, radius=1e4) == math.inf
    assert recursive_error(99, 10, 0.5, m=100, alpha=0.5, radius=1.0) == math.inf


def test_bad_arguments() -> None:
    assert recursion_constants("paper") is PAPER
    with pytest.raises(ArgumentError, match="constants"):
        recursion_constants("other")
    with pytest.raises(ArgumentError, match="alpha"):
        recursion_schedule(10, 0.7, 1.0)
    with pytest.raises(ArgumentError, match="rho"):
        recursive_error(100, 10, 0.0, m=10, alpha=0.5, radius=1.0)
