"""What is said about guesses holds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpcov
from dpcov.core import PrivacyCost, resolve_budget
from dpcov.guessing import greatest_guess, guessing_sentence, least_misses, mu_of, percent


def test_the_guess_is_that_of_the_best_test_between_two_gaussians() -> None:
    limit = resolve_budget(epsilon=1, delta=1e-6, gaussian=True)
    assert greatest_guess(limit) == pytest.approx(0.5471, abs=5e-5)
    for mu in (1e-6, 0.01, 0.2, 1.0, 5.0):
        cost = PrivacyCost(Fraction(mu) ** 2 / 2, gaussian=True)
        assert norm.cdf(mu / 2) <= greatest_guess(cost) <= norm.cdf(mu / 2) * (1 + 1e-11)
        assert mu_of(cost) == pytest.approx(mu, rel=1e-15)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 3.0, 100.0])
def test_zcdp_alone_says_less(rho: float) -> None:
    known, unknown = PrivacyCost(Fraction(rho), gaussian=True), PrivacyCost(Fraction(rho))
    assert greatest_guess(known) < greatest_guess(unknown) <= 1 or greatest_guess(unknown) == 1
    assert mu_of(unknown) is None
    for alarms in (0.0, 0.01, 0.3, 0.9, 1.0):
        assert least_misses(known, alarms) >= least_misses(unknown, alarms) - 1e-12


def test_randomized_response_is_within_the_bound_of_its_zcdp() -> None:
    # epsilon-DP is epsilon^2 / 2-zCDP; randomised response shows the truth e^eps / (1 + e^eps) of the time.
    for epsilon in (0.01, 0.3, 1.0, 3.0):
        right = np.exp(epsilon) / (1 + np.exp(epsilon))
        assert right <= greatest_guess(PrivacyCost(Fraction(epsilon) ** 2 / 2))


def test_nothing_spent_leaves_a_coin() -> None:
    assert greatest_guess(PrivacyCost(Fraction(0))) == 0.5
    assert greatest_guess(PrivacyCost(Fraction(0), Fraction(1, 10))) == pytest.approx(0.55)
    assert least_misses(PrivacyCost(Fraction(0)), 0.25) == pytest.approx(0.75)


def test_percentages_are_rounded_up() -> None:
    assert [percent(x) for x in (0.5, 0.50001, 0.5471057, 0.6, 0.99991)] == [
        "50%",
        "50.1%",
        "54.8%",
        "60%",
        "100%",
    ]


def test_the_sentence_speaks_of_the_unit() -> None:
    sentence = guessing_sentence(PrivacyCost(Fraction(1, 2), gaussian=True), "patient")
    assert sentence.startswith("Someone who knows every other patient, and two candidates for the last one")
    assert "at most 69.2% of the time" in sentence


def test_the_trade_off_is_that_of_its_gaussians() -> None:
    # Threshold tests on x ~ N(0, 1) against N(mu, 1): the curve is theirs.
    cost, thresholds = PrivacyCost(Fraction(1, 2), gaussian=True), np.linspace(-3, 4, 30)
    for t in thresholds:
        assert least_misses(cost, float(norm.sf(t))) == pytest.approx(float(norm.cdf(t - 1)), abs=1e-9)


def test_mu_is_taken_everywhere_a_budget_is() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 2))
    seeded = np.random.default_rng(1)
    made = dpcov.release(rows, mu=0.5, rng=seeded)
    assert made.receipt.limit == PrivacyCost(Fraction(1, 8), gaussian=True)
    assert made.receipt.spent.gaussian
    assert dpcov.covering_radius(rows, mu=0.5, rng=seeded).receipt.limit == made.receipt.limit
    assert dpcov.enclosing_ball(rows, mu=0.5, rng=seeded).receipt.limit == made.receipt.limit
    plan = dpcov.plan(n_rows=2000, n_columns=3, mu=0.5)
    assert plan.rho == 0.125
    assert plan.mu == pytest.approx(0.5)
    assert plan["whitening"].error == dpcov.plan(n_rows=2000, n_columns=3, rho=0.125)["whitening"].error


@pytest.mark.parametrize("method", ["adaptive", "unbounded", "aggregate", "recursive"])
def test_mu_is_refused_by_methods_of_other_noise(method: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "adaptive": {"radius": 10.0},
        "aggregate": {"m": 10, "alpha": 0.2},
        "recursive": {"m": 10},
    }
    rows = np.random.default_rng(0).normal(size=(2000, 2))
    with pytest.raises(
        dpcov.ArgumentError, match=f"method '{method}' has noise that is not Gaussian, so it has no mu"
    ):
        dpcov.release(rows, mu=0.5, method=method, **options.get(method, {}))


def test_every_method_that_says_so_has_gaussian_noise_alone() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    options: dict[str, dict[str, Any]] = {
        "recursive": {"m": 6, "radius": 10.0, "least_eigenvalue": 1e-3}, "gaussian": {"radius": 10.0},
        "coinpress": {"largest_eigenvalue": 100.0}, "separate": {"radius": 10.0},
        "preconditioning": {"largest_eigenvalue": 100.0, "least_eigenvalue": 1e-4},
    }  # fmt: skip
    for method in dpcov.methods():
        if not method.gaussian:
            continue
        made = dpcov.release(
            rows, rho=40, method=method.name, rng=np.random.default_rng(1), **options.get(method.name, {})
        )
        assert made.receipt.limit.gaussian
        assert made.receipt.not_gaussian == ()


def test_other_noise_makes_the_report_say_why() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    made = dpcov.release(rows, rho=40, method="adaptive", radius=10.0)
    assert made.receipt.not_gaussian == ("clipping radius",)
    assert not made.receipt.limit.gaussian
