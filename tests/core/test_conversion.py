from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from dpcov.core.conversion import epsilon_from_rho, rho_from_epsilon
from dpcov.core.errors import ArgumentError

RHOS = [1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0, 20.0]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-4, 1e-2]
SEARCH_ERROR = Fraction(1, 10**9)
ACCOUNTANT_ROUNDING = 1e-9

rhos = st.floats(1e-4, 20).map(Fraction)
epsilons = st.floats(1e-3, 50).map(Fraction)
deltas = st.floats(-12, -2).map(lambda exponent: Fraction(10.0**exponent))
repeatable = settings(max_examples=60, derandomize=True)


def claimed_epsilon(rho: float, delta: float) -> float:
    return float(epsilon_from_rho(Fraction(rho), Fraction(delta)))


def paper_epsilon(rho: float, delta: float) -> float:
    return rho + math.sqrt(2 * rho * math.log(1 / delta))


def best_order(rho: float, delta: float) -> float:
    def epsilon_at(log_excess: float) -> float:
        a = 1 + math.exp(log_excess)
        return a * rho + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)

    return 1 + math.exp(float(minimize_scalar(epsilon_at, bounds=(-4, 16), options={"xatol": 1e-9}).x))


def least_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Minimise over the order in 60 digits, by ternary search around the float optimum."""
    with localcontext(prec=60):
        exact_rho = Decimal(rho.numerator) / rho.denominator
        log_inverse = -(Decimal(delta.numerator) / delta.denominator).ln()

        def epsilon_at(a: Decimal) -> Decimal:
            return a * exact_rho + (1 - 1 / a).ln() + (log_inverse - a.ln()) / (a - 1)

        excess = Decimal(best_order(float(rho), float(delta))) - 1
        low, high = excess * Decimal("0.999"), excess * Decimal("1.001")
        for _ in range(70):
            third = (high - low) / 3
            if epsilon_at(1 + low + third) < epsilon_at(1 + high - third):
                high -= third
            else:
                low += third
        return max(Fraction(0), Fraction(epsilon_at(1 + (low + high) / 2)))


def accountant_epsilon(rho: float, delta: float) -> float:
    orders = np.append(1 + np.geomspace(0.011, 1e6, 400), best_order(rho, delta))
    accountant = RdpAccountant(orders=orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    return float(accountant.get_epsilon(delta))


def true_gaussian_delta(epsilon: float, rho: float) -> float:
    # Balle and Wang (2018), Theorem 8, for a Gaussian whose sensitivity is a standard deviations.
    a = math.sqrt(2 * rho)
    more_likely = float(log_ndtr(a / 2 - epsilon / a))
    less_likely = epsilon + float(log_ndtr(-a / 2 - epsilon / a))
    return math.exp(more_likely) * -math.expm1(less_likely - more_likely)


def numerical_gaussian_epsilon(rho: float, delta: float, *, pessimistic: bool) -> float:
    # A grid of fixed fineness relative to epsilon, so that small budgets are resolved as well.
    loss = privacy_loss_distribution.from_gaussian_mechanism(
        1 / math.sqrt(2 * rho),
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
        value_discretization_interval=claimed_epsilon(rho, delta) / 2000,
    )
    return float(loss.get_epsilon_for_delta(delta))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_epsilon_equals_that_of_the_rdp_accountant(rho: float, delta: float) -> None:
    ours, theirs = claimed_epsilon(rho, delta), accountant_epsilon(rho, delta)
    assert ours >= theirs * (1 - ACCOUNTANT_ROUNDING)
    assert ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("rho", [1e-4, 1e-2, 0.5, 5.0, 20.0])
def test_epsilon_is_at_least_that_of_the_numerical_accountant(rho: float, delta: float) -> None:
    assert claimed_epsilon(rho, delta) >= numerical_gaussian_epsilon(rho, delta, pessimistic=True)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_gaussian_mechanism_keeps_the_claim_exactly(rho: float, delta: float) -> None:
    assert true_gaussian_delta(claimed_epsilon(rho, delta), rho) <= delta


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.5, 1e-6), (1.0, 1e-9), (5.0, 1e-5)])
def test_paper_conversion_claims_privacy_that_is_not_there(rho: float, delta: float) -> None:
    epsilon = paper_epsilon(rho, delta)
    # Even the numerical accountant's optimistic bound, which is below the truth, is above the paper's.
    assert epsilon < numerical_gaussian_epsilon(rho, delta, pessimistic=False)
    assert true_gaussian_delta(epsilon, rho) > 3 * delta
    assert claimed_epsilon(rho, delta) > epsilon


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_epsilon_is_below_the_textbook_bound(rho: float, delta: float) -> None:
    # Bun and Steinke (2016), Proposition 1.3.
    assert claimed_epsilon(rho, delta) < rho + 2 * math.sqrt(rho * math.log(1 / delta))


@settings(repeatable, max_examples=25)
@given(rho=rhos, delta=deltas)
def test_epsilon_is_at_least_the_exact_minimum_and_near_it(rho: Fraction, delta: Fraction) -> None:
    least = least_epsilon(rho, delta)
    assert least <= epsilon_from_rho(rho, delta) <= least + SEARCH_ERROR


@settings(repeatable, max_examples=25)
@given(epsilon=epsilons, delta=deltas)
def test_rho_never_needs_more_than_the_epsilon_asked(epsilon: Fraction, delta: Fraction) -> None:
    least = least_epsilon(rho_from_epsilon(epsilon, delta), delta)
    assert epsilon * (1 - Fraction(1, 10**6)) <= least <= epsilon


@repeatable
@given(epsilon=epsilons, delta=deltas)
def test_rho_from_epsilon_returns_to_at_most_the_epsilon_asked(epsilon: Fraction, delta: Fraction) -> None:
    back = epsilon_from_rho(rho_from_epsilon(epsilon, delta), delta)
    assert back <= epsilon
    assert back >= epsilon * (1 - Fraction(1, 10**6))


@repeatable
@given(rho=rhos, delta=deltas)
def test_epsilon_from_rho_returns_to_the_rho_asked(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_from_rho(rho, delta)
    assume(epsilon > 0)
    back = rho_from_epsilon(epsilon, delta)
    assert abs(back - rho) <= rho * Fraction(1, 10**6)


@repeatable
@given(rho=rhos, more=st.floats(1, 3).map(Fraction), delta=deltas)
def test_epsilon_grows_with_rho(rho: Fraction, more: Fraction, delta: Fraction) -> None:
    assert epsilon_from_rho(rho, delta) <= epsilon_from_rho(rho * more, delta) + SEARCH_ERROR


@repeatable
@given(rho=rhos, more=st.floats(1, 3).map(Fraction), delta=deltas)
def test_epsilon_falls_with_delta(rho: Fraction, more: Fraction, delta: Fraction) -> None:
    assert epsilon_from_rho(rho, delta * more) <= epsilon_from_rho(rho, delta) + SEARCH_ERROR


@repeatable
@given(epsilon=epsilons, more=st.floats(1, 3).map(Fraction), delta=deltas)
def test_rho_grows_with_epsilon_and_with_delta(epsilon: Fraction, more: Fraction, delta: Fraction) -> None:
    rho = rho_from_epsilon(epsilon, delta)
    assert rho <= rho_from_epsilon(epsilon * more, delta) + SEARCH_ERROR
    assert rho <= rho_from_epsilon(epsilon, delta * more) + SEARCH_ERROR


def test_nothing_spent_costs_nothing() -> None:
    assert epsilon_from_rho(Fraction(0), Fraction(1, 10**6)) == 0


def test_epsilon_is_never_negative() -> None:
    assert epsilon_from_rho(Fraction(1, 10**6), Fraction(9, 10)) == 0


@pytest.mark.parametrize("delta", [1e-300, 1e-6])
@pytest.mark.parametrize("rho", [1e-30, 1e-8, 1e6, 1e9])
def test_extreme_budgets_stay_between_rho_and_the_textbook_bound(rho: float, delta: float) -> None:
    # Beyond float's reach the exact order is lost, so the textbook bound holds up to rounding only.
    epsilon = claimed_epsilon(rho, delta)
    assert epsilon <= (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-9)
    assert epsilon >= rho or rho < 1


@pytest.mark.parametrize("delta", [Fraction(-1, 2), Fraction(0), Fraction(1), Fraction(2)])
def test_delta_must_lie_strictly_between_zero_and_one(delta: Fraction) -> None:
    with pytest.raises(ArgumentError, match="delta must lie strictly between 0 and 1"):
        epsilon_from_rho(Fraction(1), delta)
    with pytest.raises(ArgumentError, match="delta must lie strictly between 0 and 1"):
        rho_from_epsilon(Fraction(1), delta)


def test_rho_must_not_be_negative() -> None:
    with pytest.raises(ArgumentError, match="rho must lie between 0 and 1e9"):
        epsilon_from_rho(Fraction(-1), Fraction(1, 10**6))


def test_absurd_budgets_are_refused() -> None:
    with pytest.raises(ArgumentError, match="rho"):
        epsilon_from_rho(Fraction(10**400), Fraction(1, 10**6))
    with pytest.raises(ArgumentError, match="epsilon"):
        rho_from_epsilon(Fraction(10**400), Fraction(1, 10**6))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_epsilon_must_be_positive(epsilon: Fraction) -> None:
    with pytest.raises(ArgumentError, match="epsilon must be greater than 0"):
        rho_from_epsilon(epsilon, Fraction(1, 10**6))


def test_an_epsilon_too_small_for_any_rho_is_refused() -> None:
    with pytest.raises(ArgumentError, match="leaves no budget"):
        rho_from_epsilon(Fraction(1, 10**30), Fraction(1, 10**30))
