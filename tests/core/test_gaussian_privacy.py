"""Gaussian differential privacy: its conversion, its costs, and where it gives way to zCDP."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcov.core import ArgumentError, Budget, BudgetError, Charge, PrivacyCost, Receipt, resolve_budget
from dpcov.core.conversion import _mills_ratio, epsilon_from_rho, gaussian_delta, rho_from_epsilon

EPSILONS = [0.001, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.1]
# A conversion is rounded against us by less than this.
LOOSE = Fraction(1, 10**9)


def exact(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def exact_delta(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The formula as it is written, in 120 digits: 50 are left after all cancellation."""
    with mpmath.workdps(120):
        mu, e = mpmath.sqrt(2 * exact(rho)), exact(epsilon)
        return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_from_epsilon_is_below_the_exact_one_and_near_it(epsilon: float, delta: float) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    rho = rho_from_epsilon(e, d, gaussian=True)
    assert exact_delta(rho, e) <= exact(d)
    assert exact_delta(rho * (1 + LOOSE), e) > exact(d)
    back = epsilon_from_rho(rho, d, gaussian=True)
    assert e * (1 - LOOSE) <= back <= e
    assert rho > rho_from_epsilon(e, d)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-8, 1e-5, 1e-3, 0.03, 0.5, 4.0, 50.0])
def test_epsilon_from_rho_is_above_the_exact_one_and_near_it(rho: float, delta: float) -> None:
    r, d = Fraction(rho), Fraction(delta)
    epsilon = epsilon_from_rho(r, d, gaussian=True)
    assert epsilon <= epsilon_from_rho(r, d)
    if epsilon == 0:
        assert exact_delta(r, Fraction(0)) <= exact(d)
        return
    assert exact_delta(r, epsilon) <= exact(d)
    assert exact_delta(r, epsilon * (1 - LOOSE)) > exact(d)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e6, 1e-6), (1e8, 0.5), (1e-6, 1e-9), (5, 0.9), (1e9, 1e-300)]
)
def test_extreme_budgets_are_converted_as_well(epsilon: float, delta: float) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    rho = rho_from_epsilon(e, d, gaussian=True)
    assert gaussian_delta(rho, e)[1] <= d
    assert e * (1 - LOOSE) <= epsilon_from_rho(rho, d, gaussian=True) <= e


@settings(max_examples=60, derandomize=True, deadline=None)
@given(rho=st.floats(1e-9, 1e3).map(Fraction), share=st.floats(0, 3))
def test_delta_is_enclosed(rho: Fraction, share: float) -> None:
    epsilon = Fraction(share) * (rho + Fraction(math.sqrt(rho)))
    low, high = gaussian_delta(rho, epsilon)
    with mpmath.workdps(120):
        truth = exact_delta(rho, epsilon)
        assert exact(low) <= truth <= exact(high)
        assert exact(high - low) <= truth * mpmath.mpf(10) ** -25 + mpmath.mpf(10) ** -38


@pytest.mark.parametrize(
    "x", ["-30", "-3", "-0.001", "0", "1e-30", "0.5", "2.999", "3", "3.001", "17", "1000"]
)
def test_the_ratio_of_tail_and_density_is_enclosed(x: str) -> None:
    with localcontext(prec=80, Emin=-(10**9), Emax=10**9), mpmath.workdps(100):
        low, high = (mpmath.mpf(str(end)) for end in _mills_ratio(Decimal(x)))
        place = mpmath.mpf(x)
        truth = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(place**2 / 2) * mpmath.erfc(place / mpmath.sqrt(2))
        slack = abs(truth) * mpmath.mpf(10) ** -70
        assert low - slack <= truth <= high + slack
        assert high - low <= truth * mpmath.mpf(10) ** -45


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("rho", [1e-2, 0.5, 5.0])
def test_epsilon_agrees_with_the_numerical_accountant(rho: float, delta: float) -> None:
    ours = float(epsilon_from_rho(Fraction(rho), Fraction(delta), gaussian=True))
    bounds = []
    for pessimistic in (False, True):
        loss = privacy_loss_distribution.from_gaussian_mechanism(
            1 / math.sqrt(2 * rho),
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=ours / 4000,
        )
        bounds.append(float(loss.get_epsilon_for_delta(delta)))
    assert bounds[0] <= ours <= bounds[1] * (1 + 1e-6)
    assert bounds[1] <= bounds[0] * 1.001


@pytest.mark.parametrize(
    ("epsilon", "delta", "ratio"),
    [(0.3, 1e-6, 1.080), (1, 1e-6, 1.072), (3, 1e-6, 1.065), (0.3, 1e-5, 1.095), (1, 1e-5, 1.084)],
)
def test_noise_is_smaller_at_the_same_epsilon(epsilon: float, delta: float, ratio: float) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    gained = rho_from_epsilon(e, d, gaussian=True) / rho_from_epsilon(e, d)
    assert math.sqrt(gained) == pytest.approx(ratio, abs=6e-4)


def test_costs_of_gaussian_noise_stay_gaussian_in_sums_and_others_do_not() -> None:
    noise, other = PrivacyCost(Fraction(1, 4), gaussian=True), PrivacyCost(Fraction(1, 4))
    assert (noise + noise).gaussian
    assert (noise + noise - noise).gaussian
    assert not (noise + other).gaussian
    assert not PrivacyCost(Fraction(1), Fraction(1, 100), gaussian=True).gaussian
    assert PrivacyCost(Fraction(0)).gaussian
    assert noise.fits_within(other)
    assert not other.fits_within(noise)


def test_one_other_charge_makes_the_whole_receipt_one_in_zcdp() -> None:
    noise = Charge("matrix", PrivacyCost(Fraction(1, 4), gaussian=True))
    laplace = Charge("radius", PrivacyCost(Fraction(1, 4)))
    limit = PrivacyCost(Fraction(1))
    whole = Receipt(limit, (noise, noise), private=True)
    mixed = Receipt(limit, (noise, laplace), private=True)
    assert whole.spent.rho == mixed.spent.rho
    assert whole.not_gaussian == ()
    assert mixed.not_gaussian == ("radius",)
    assert whole.epsilon(1e-6) < mixed.epsilon(1e-6)
    assert mixed.epsilon(1e-6) == PrivacyCost(Fraction(1, 2)).epsilon(1e-6)


def test_a_gaussian_budget_refuses_other_noise() -> None:
    budget = Budget(resolve_budget(epsilon=1, delta=1e-6, gaussian=True))
    budget.charge(Charge("matrix", PrivacyCost(Fraction(1, 100), gaussian=True)))
    with pytest.raises(BudgetError, match=r"for Gaussian noise only\. Nothing was spent"):
        budget.charge(Charge("radius", PrivacyCost(Fraction(1, 1000))))
    assert budget.receipt(private=True).spent == PrivacyCost(Fraction(1, 100), gaussian=True)


def test_mu_is_kept_exactly() -> None:
    limit = resolve_budget(mu=Fraction(1, 5), gaussian=True)
    assert limit == PrivacyCost(Fraction(1, 50), gaussian=True)
    with pytest.raises(ArgumentError, match="mu is for Gaussian noise only"):
        resolve_budget(mu=Fraction(1, 5))


def test_a_delta_kept_for_other_queries_leaves_a_budget_in_zcdp() -> None:
    limit = resolve_budget(epsilon=1, delta=1e-6, gaussian=True, approximate_share=Fraction(1, 2))
    assert not limit.gaussian
    assert limit.rho == rho_from_epsilon(Fraction(1), Fraction(1e-6) / 2)
