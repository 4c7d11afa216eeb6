from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcov.core.budget import (
    Budget,
    Charge,
    PrivacyCost,
    Receipt,
    as_fraction,
    resolve_budget,
)
from dpcov.core.conversion import epsilon_from_rho
from dpcov.core.errors import ArgumentError, BudgetError
from dpcov.paper.queries.approximate import approximate_cost

shares = st.fractions(min_value=0, max_value=1, max_denominator=10**6)
costs = st.builds(PrivacyCost, shares, shares)


def test_a_budget_can_be_spent_to_the_last_fraction() -> None:
    # In floats 0.1 + 0.1 + 0.1 exceeds 0.3.
    budget = Budget(PrivacyCost(Fraction(3, 10)))
    for _ in range(3):
        budget.charge(Charge("a third", PrivacyCost(Fraction(1, 10))))
    assert budget.remaining == PrivacyCost(Fraction(0), Fraction(0))
    with pytest.raises(BudgetError):
        budget.charge(Charge("a trifle", PrivacyCost(Fraction(1, 10**100))))


@settings(max_examples=40, derandomize=True)
@given(st.lists(costs, max_size=20))
def test_costs_add_up_exactly(spent: list[PrivacyCost]) -> None:
    budget = Budget(PrivacyCost(Fraction(20), Fraction(20)))
    for cost in spent:
        budget.charge(Charge("query", cost))
    rho, delta = sum(c.rho for c in spent), sum(c.delta for c in spent)
    assert budget.receipt(private=True).spent == PrivacyCost(Fraction(rho), Fraction(delta))
    assert budget.remaining == PrivacyCost(20 - Fraction(rho), 20 - Fraction(delta))


@settings(max_examples=40, derandomize=True)
@given(limit=costs, asked=st.lists(costs, max_size=20))
def test_a_budget_is_never_overspent(limit: PrivacyCost, asked: list[PrivacyCost]) -> None:
    budget = Budget(limit)
    for cost in asked:
        left = budget.remaining
        if cost.fits_within(left):
            budget.charge(Charge("query", cost))
            assert budget.remaining == left - cost
        else:
            with pytest.raises(BudgetError):
                budget.charge(Charge("query", cost))
            assert budget.remaining == left
    assert budget.receipt(private=True).spent.fits_within(limit)


@pytest.mark.parametrize(
    "too_much",
    [
        PrivacyCost(Fraction(3, 4)),
        PrivacyCost(Fraction(0), Fraction(1, 10)),
        PrivacyCost(Fraction(3, 4), Fraction(1, 10)),
    ],
)
def test_refusal_leaves_nothing_charged(too_much: PrivacyCost) -> None:
    budget = Budget(PrivacyCost(Fraction(1), Fraction(1, 100)))
    budget.charge(Charge("first", PrivacyCost(Fraction(1, 2))))
    before = budget.receipt(private=True)
    with pytest.raises(BudgetError):
        budget.charge(Charge("second", too_much))
    assert budget.receipt(private=True) == before
    assert budget.remaining == PrivacyCost(Fraction(1, 2), Fraction(1, 100))
    budget.charge(Charge("what was left", PrivacyCost(Fraction(1, 2), Fraction(1, 100))))


def test_refusal_names_what_was_asked_and_what_is_left() -> None:
    budget = Budget(PrivacyCost(Fraction(1), Fraction(1, 100)))
    budget.charge(Charge("first", PrivacyCost(Fraction(5, 8))))
    with pytest.raises(BudgetError) as refusal:
        budget.charge(Charge("second moment", PrivacyCost(Fraction(3, 4), Fraction(1, 1000))))
    message = str(refusal.value)
    assert "second moment would cost rho=0.75, delta=0.001" in message
    assert "only rho=0.375, delta=0.01 is left of rho=1, delta=0.01" in message
    assert "Nothing was spent" in message


@pytest.mark.parametrize("cost", [PrivacyCost(Fraction(-1, 2)), PrivacyCost(Fraction(0), Fraction(-1, 2))])
def test_a_negative_cost_cannot_refill_the_budget(cost: PrivacyCost) -> None:
    budget = Budget(PrivacyCost(Fraction(1), Fraction(1, 2)))
    with pytest.raises(ArgumentError, match="cannot be negative"):
        budget.charge(Charge("refund", cost))
    assert budget.receipt(private=True).charges == ()


def test_receipt_lists_charges_in_order() -> None:
    limit = PrivacyCost(Fraction(1), Fraction(1, 100))
    budget = Budget(limit)
    spent = [
        Charge("third", PrivacyCost(Fraction(1, 3))),
        Charge("first", PrivacyCost(Fraction(1, 5), Fraction(1, 1000))),
        Charge("second", PrivacyCost(Fraction(1, 4))),
    ]
    for charge in spent:
        budget.charge(Charge(charge.purpose, charge.cost))
    receipt = budget.receipt(private=True)
    assert receipt == Receipt(limit, tuple(spent), private=True)
    assert receipt.spent == PrivacyCost(Fraction(47, 60), Fraction(1, 1000))
    assert [line.split()[-1] for line in str(receipt).splitlines()[1:]] == ["third", "first", "second"]


def test_receipt_is_not_changed_by_later_charges() -> None:
    budget = Budget(PrivacyCost(Fraction(1)))
    receipt = budget.receipt(private=True)
    budget.charge(Charge("later", PrivacyCost(Fraction(1))))
    assert receipt.charges == ()
    assert receipt.spent == PrivacyCost(Fraction(0))


def test_receipt_says_when_the_noise_was_seeded() -> None:
    budget = Budget(PrivacyCost(Fraction(1)))
    assert "NOT PRIVATE" in str(budget.receipt(private=False))
    assert "NOT PRIVATE" not in str(budget.receipt(private=True))


def test_receipt_epsilon_is_that_of_what_was_spent() -> None:
    budget = Budget(PrivacyCost(Fraction(10), Fraction(1, 10**6)))
    budget.charge(Charge("query", PrivacyCost(Fraction(1, 2), Fraction(1, 10**7))))
    expected = epsilon_from_rho(Fraction(1, 2), Fraction(1e-6) - Fraction(1, 10**7))
    assert budget.receipt(private=True).epsilon(1e-6) == pytest.approx(float(expected), rel=1e-15)


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_thread_switches")
def test_racing_threads_never_overspend() -> None:
    budget = Budget(PrivacyCost(Fraction(1)))
    cost = PrivacyCost(Fraction(1, 1000))
    start = threading.Barrier(16)
    outcomes: list[bool] = []

    def spend() -> None:
        start.wait()
        for _ in range(100):
            try:
                budget.charge(Charge("query", cost))
            except BudgetError:
                outcomes.append(False)
            else:
                outcomes.append(True)

    threads = [threading.Thread(target=spend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1600
    assert sum(outcomes) == 1000
    receipt = budget.receipt(private=True)
    assert len(receipt.charges) == 1000
    assert receipt.spent == receipt.limit
    assert budget.remaining == PrivacyCost(Fraction(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "A budget is needed"),
        ({"delta": 1e-6}, "A budget is needed"),
        ({"rho": 1, "epsilon": 1, "delta": 1e-6}, "Give one of rho, mu, and epsilon"),
        ({"rho": 1, "epsilon": 1}, "Give one of rho, mu, and epsilon"),
        ({"rho": 1, "mu": 1}, "Give one of rho, mu, and epsilon"),
        ({"mu": 1}, "mu is for Gaussian noise only"),
        ({"mu": 1, "delta": 1e-6, "gaussian": True}, "only, without delta"),
        ({"mu": 0, "gaussian": True}, "mu must be greater than 0, got 0"),
        ({"epsilon": 1}, "epsilon needs delta"),
        ({"rho": 0}, "rho must be greater than 0, got 0"),
        ({"rho": -0.5}, "rho must be greater than 0, got -0.5"),
        ({"rho": math.nan}, "rho must be finite"),
        ({"rho": math.inf}, "rho must be finite"),
        ({"rho": -math.inf}, "rho must be finite"),
        ({"rho": np.float64("nan")}, "rho must be finite"),
        ({"rho": "much"}, "rho must be a number, got str"),
        ({"rho": "0.5"}, "rho must be a number, got str"),
        ({"rho": [1]}, "rho must be a number, got list"),
        ({"rho": 1j}, "rho must be a number, got complex"),
        ({"rho": object()}, "rho must be a number, got object"),
        ({"rho": 1, "delta": 1}, "delta must be at least 0 and below 1, got 1"),
        ({"rho": 1, "delta": -1e-6}, "delta must be at least 0 and below 1"),
        ({"rho": 1, "delta": math.nan}, "delta must be finite"),
        ({"epsilon": 0, "delta": 1e-6}, "epsilon must be greater than 0"),
        ({"epsilon": -1, "delta": 1e-6}, "epsilon must be greater than 0"),
        ({"epsilon": math.nan, "delta": 1e-6}, "epsilon must be finite"),
        ({"epsilon": math.inf, "delta": 1e-6}, "epsilon must be finite"),
        ({"epsilon": "1.0", "delta": 1e-6}, "epsilon must be a number, got str"),
        ({"epsilon": 1, "delta": 0}, "delta must lie strictly between 0 and 1, got 0"),
        ({"epsilon": 1, "delta": 1}, "delta must lie strictly between 0 and 1, got 1"),
        ({"epsilon": 1, "delta": -0.1}, "delta must lie strictly between 0 and 1"),
        ({"epsilon": 1, "delta": math.inf}, "delta must be finite"),
        ({"epsilon": 1, "delta": "1e-6"}, "delta must be a number, got str"),
        ({"epsilon": 1, "delta": 1e-6, "approximate_share": Fraction(1)}, "delta must lie strictly between"),
    ],
)
def test_unusable_budgets_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        resolve_budget(**arguments)


def test_rho_is_taken_exactly() -> None:
    assert resolve_budget(rho=0.1) == PrivacyCost(Fraction(0.1))
    assert resolve_budget(rho=Fraction(1, 3)) == PrivacyCost(Fraction(1, 3))
    assert resolve_budget(rho=2, delta=0.25) == PrivacyCost(Fraction(2), Fraction(1, 4))
    assert resolve_budget(rho=2, delta=0) == PrivacyCost(Fraction(2))


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), Decimal("0.5"), Fraction(1, 2), 0.5])
def test_any_kind_of_number_is_a_number(value: Any) -> None:
    assert as_fraction(value, "rho") == Fraction(1, 2)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (8, 1e-3)])
def test_approximate_share_keeps_the_total_guarantee(epsilon: float, delta: float, share: Fraction) -> None:
    limit = resolve_budget(epsilon=epsilon, delta=delta, approximate_share=share)
    total = Fraction(delta)
    assert limit.delta == total * share
    assert limit.epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
    # Both directions search for an order in floats, so they agree up to float rounding.
    assert limit.epsilon(delta) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (1, 1e-2), (8, 1e-3)])
def test_a_budget_spent_in_full_reports_no_more_than_was_asked(epsilon: float, delta: float) -> None:
    budget = Budget(resolve_budget(epsilon=epsilon, delta=delta))
    budget.charge(Charge("everything", budget.limit))
    assert budget.receipt(private=True).epsilon(delta) <= epsilon


def test_more_delta_kept_aside_leaves_less_rho() -> None:
    limits = [
        resolve_budget(epsilon=1, delta=1e-6, approximate_share=Fraction(tenths, 10)) for tenths in range(10)
    ]
    assert all(more.rho < less.rho for less, more in pairwise(limits))


def test_epsilon_of_a_cost_needs_a_delta_above_its_own() -> None:
    cost = PrivacyCost(Fraction(1, 2), Fraction(1, 1000))
    for delta in (Fraction(1, 1000), 1e-4, 0):
        with pytest.raises(ArgumentError, match=r"delta must exceed 0\.001"):
            cost.epsilon(delta)
    assert cost.epsilon(0.0011) > cost.epsilon(0.01) > 0


def test_epsilon_of_a_cost_is_rounded_up() -> None:
    for rho in (Fraction(1, 3), Fraction(1, 7), Fraction(22, 7)):
        exact = epsilon_from_rho(rho, Fraction(1, 10**6))
        rounded = PrivacyCost(rho).epsilon(Fraction(1, 10**6))
        assert exact <= Fraction(rounded) <= Fraction(math.nextafter(float(exact), math.inf))


def test_pure_and_approximate_mechanisms_cost_half_epsilon_squared() -> None:
    assert approximate_cost(Fraction(1, 3), Fraction(1, 9)) == PrivacyCost(Fraction(1, 18), Fraction(1, 9))


def test_cost_fits_only_if_both_parts_fit() -> None:
    limit = PrivacyCost(Fraction(1), Fraction(1, 2))
    assert limit.fits_within(limit)
    assert not PrivacyCost(Fraction(2), Fraction(0)).fits_within(limit)
    assert not PrivacyCost(Fraction(0), Fraction(1)).fits_within(limit)


def test_numpy_integers_do_not_wrap_around() -> None:
    budget = Budget(PrivacyCost(Fraction(250)))
    budget.charge(Charge("first", PrivacyCost(np.uint8(200))))  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        budget.charge(Charge("second", PrivacyCost(np.uint8(200))))  # type: ignore[arg-type]


def test_a_forked_process_cannot_spend_its_parents_budget() -> None:
    budget = Budget(PrivacyCost(Fraction(1)))
    child = os.fork()
    if child == 0:
        try:
            budget.charge(Charge("in the child", PrivacyCost(Fraction(1))))
        except BudgetError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    budget.charge(Charge("in the parent", PrivacyCost(Fraction(1))))
