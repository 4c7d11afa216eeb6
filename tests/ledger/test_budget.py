"""Releases that a ledger pays for."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcov
from dpcov.core import (
    Budget,
    Charge,
    Clipping,
    Curator,
    Gram,
    PrivacyCost,
    Query,
    noise,
)
from dpcov.ledger import Ledger
from dpcov.ledger.accounts import OpenCharge
from dpcov.ledger.budget import LedgerBudget
from dpcov.maps import identity_map
from dpcov.opening import opened

ROWS = np.random.default_rng(0).normal(size=(200, 2))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=1)
    return ledger


def release(book: Any, **change: Any) -> dpcov.Release:
    arguments: dict[str, Any] = {
        "rho": 0.25, "method": "gaussian", "radius": 3.0, "ledger": book, "dataset": "people",
    }  # fmt: skip
    return dpcov.release(ROWS, **{**arguments, **change})


def budget(ledger: Ledger, rho: Fraction) -> LedgerBudget:
    return LedgerBudget(PrivacyCost(rho), ledger, "people", method="m", purpose="", private=True)


def test_a_release_is_charged_with_its_purpose(ledger: Ledger) -> None:
    release(ledger, purpose="spring report")
    entry, settlement = ledger.history("people")
    assert (entry.cost.rho, entry.method, entry.purpose) == (Fraction(1, 4), "gaussian", "spring report")
    assert entry.private
    assert (settlement.settles, settlement.cost.rho) == (entry.number, Fraction(0))


def test_a_path_will_do(ledger: Ledger) -> None:
    release(str(ledger.path))
    release(ledger.path)
    assert ledger.remaining("people").rho == Fraction(1, 2)


def test_the_ledger_has_charged_the_whole_limit_before_the_first_noise(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    draw = noise.rounded_gaussian

    def watched(*arguments: Any) -> Any:
        seen.append(Ledger.open(ledger.path).account("people").spent.rho)
        return draw(*arguments)

    monkeypatch.setattr("dpcov.core.queries.gram.rounded_gaussian", watched)
    monkeypatch.setattr("dpcov.core.queries.histogram.rounded_gaussian", watched)
    dpcov.release(ROWS, rho=0.25, ledger=ledger, dataset="people")
    assert len(seen) > 2
    assert set(seen) == {Fraction(1, 4)}


def test_ten_floats_of_a_tenth_fit_into_one(ledger: Ledger) -> None:
    assert 10 * Fraction(0.1) > 1
    for _ in range(10):
        release(ledger, rho=0.1)
    assert ledger.remaining("people").rho == 0
    with pytest.raises(dpcov.BudgetError, match="rho=0 left of rho=1; this needs rho=1e-09"):
        release(ledger, rho=1e-9)


def test_a_refused_release_draws_no_noise_and_charges_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any) -> None:
        pytest.fail("noise was drawn")

    monkeypatch.setattr("dpcov.core.queries.gram.rounded_gaussian", forbidden)
    with pytest.raises(dpcov.BudgetError, match=r"rho=1 left of rho=1; this needs rho=1\.5"):
        release(ledger, rho=1.5)
    assert not ledger.history()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -1}, "radius"),
        ({"method": "nothing"}, "method"),
        ({"columns": ["a"]}, "columns"),
        ({"dataset": None}, "ledger needs dataset"),
        ({"ledger": None}, "need a ledger"),
        ({"ledger": None, "dataset": None, "purpose": "why"}, "need a ledger"),
        ({"purpose": "two\nlines"}, "purpose"),
        ({"rng": np.random.default_rng(0)}, "not private, which a ledger refuses"),
    ],
)
def test_bad_arguments_cost_nothing(ledger: Ledger, change: dict[str, Any], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        release(ledger, **change)
    assert not ledger.history()


def test_a_seeded_release_is_charged_and_stamped_when_asked_for(ledger: Ledger) -> None:
    release(ledger, rng=np.random.default_rng(0), allow_seeded=True)
    assert [entry.private for entry in ledger.history()] == [False, False]
    assert not ledger.account("people").private
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_what_was_not_spent_is_settled_at_the_end(ledger: Ledger) -> None:
    with budget(ledger, Fraction(1, 2)) as spending:
        spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
        spending.charge(Charge("two", PrivacyCost(Fraction(1, 8))))
        assert ledger.remaining("people").rho == Fraction(1, 2)
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_nothing_is_charged_without_a_query(ledger: Ledger) -> None:
    with budget(ledger, Fraction(1, 2)):
        pass
    assert not ledger.history()


def test_a_query_beyond_the_limit_is_refused_before_the_ledger_is_charged(ledger: Ledger) -> None:
    with pytest.raises(dpcov.BudgetError), budget(ledger, Fraction(1, 2)) as spending:
        spending.charge(Charge("too much", PrivacyCost(Fraction(3, 4))))
    assert not ledger.history()


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt, even where tests run in the background, which a shell has ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_a_failure_after_the_first_query_keeps_the_whole_charge_and_says_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Curator.ask

    def interrupted(self: Curator, *queries: Query[Any]) -> Any:
        ask(self, *queries)
        signal.raise_signal(signal.SIGINT)
        return ask(self, *queries)

    monkeypatch.setattr(Curator, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        release(ledger)
    assert caught.value.__notes__ == [
        f"Charged to dataset 'people' of {ledger.path}: rho=0.25. A failed release keeps its charge."
    ]
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_every_release_that_ended_is_settled(ledger: Ledger) -> None:
    def fail() -> None:
        with budget(ledger, Fraction(1, 4)) as spending:
            spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
            raise RuntimeError("broken")

    release(ledger)
    with pytest.raises(RuntimeError, match="broken"):
        fail()
    charges = {entry.number for entry in ledger.history() if entry.kind == "charge"}
    settlements = [entry for entry in ledger.history() if entry.kind == "settlement"]
    assert len(charges) == 2
    assert {entry.settles for entry in settlements} == charges
    assert {entry.cost.rho for entry in settlements} == {0}


def test_nobody_can_give_a_release_back(ledger: Ledger) -> None:
    release(ledger, rho=1)
    (charge, _) = ledger.history()
    # No function of a ledger lowers what a release has spent, whatever it is given.
    lowering = [name for name in vars(Ledger) if "settle" in name and not name.startswith("_")]
    assert lowering == []
    with pytest.raises(dpcov.LedgerError, match="settled already"):
        ledger._settle(charge.number, PrivacyCost(Fraction(0)))
    with pytest.raises(dpcov.BudgetError):
        release(ledger, rho=1)
    assert ledger.account("people").spent.rho == 1


@pytest.mark.parametrize("paid", [True, False], ids=["ledger", "no ledger"])
def test_a_curator_that_was_kept_does_not_answer_any_more(ledger: Ledger, paid: bool) -> None:  # noqa: FBT001
    query = Gram(Clipping(identity_map(2), 3.0), Fraction(1, 8), purpose="late")
    account: dict[str, Any] = {"ledger": ledger, "dataset": "people"} if paid else {}
    with opened(ROWS, PrivacyCost(Fraction(1, 2)), "m", **account) as curator:
        curator.ask(query)
    with pytest.raises(dpcov.BudgetError, match="closed: its release has ended"):
        curator.ask(query)
    assert ledger.account("people").spent.rho == (Fraction(1, 8) if paid else 0)


def test_a_query_that_comes_while_it_is_settled_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    spending = budget(ledger, Fraction(1, 2))
    late = Charge("late", PrivacyCost(Fraction(1, 8)))
    settle = OpenCharge.settle

    def slow(self: OpenCharge, spent: PrivacyCost) -> None:
        # What is settled is known, and not yet written: another thread asks.
        with pytest.raises(dpcov.BudgetError, match="closed"):
            spending.charge(late)
        settle(self, spent)

    monkeypatch.setattr(OpenCharge, "settle", slow)
    with spending:
        spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
    assert ledger.account("people").spent.rho == Fraction(1, 8)


def test_a_forked_child_cannot_settle_its_parents_charge(ledger: Ledger) -> None:
    with budget(ledger, Fraction(1, 2)) as spending:
        spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
        child = os.fork()
        if child == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                spending.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        # The parent goes on to spend, and all of it is shown.
        spending.charge(Charge("two", PrivacyCost(Fraction(1, 4))))
    assert ledger.account("people").spent.rho == Fraction(3, 8)


def test_no_answer_is_an_answer_and_costs_what_it_cost(ledger: Ledger) -> None:
    def no_answer() -> None:
        with budget(ledger, Fraction(1, 2)) as spending:
            spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
            raise dpcov.NoAnswerError("the groups do not agree.")

    with pytest.raises(dpcov.NoAnswerError) as caught:
        no_answer()
    assert caught.value.__notes__ == [f"Charged to dataset 'people' of {ledger.path}: rho=0.125."]
    assert ledger.remaining("people").rho == Fraction(7, 8)


def test_two_releases_at_once_see_each_other(ledger: Ledger) -> None:
    with budget(ledger, Fraction(3, 4)) as first, budget(ledger, Fraction(1, 2)) as second:
        first.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
        # The second was affordable when it began, and is not any more.
        with pytest.raises(dpcov.BudgetError, match=r"rho=0\.25 left"):
            second.charge(Charge("two", PrivacyCost(Fraction(1, 8))))
    assert ledger.account("people").spent.rho == Fraction(1, 8)


def test_when_settling_fails_the_result_is_kept_and_the_charge_stays(ledger: Ledger, tmp_path: Path) -> None:
    moved = tmp_path / "moved.db"

    def release_and_lose_the_ledger() -> str:
        with budget(ledger, Fraction(1, 2)) as spending:
            spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
            ledger.path.rename(moved)
        return "kept"

    with pytest.warns(UserWarning, match=r"keeps the whole charge of rho=0\.5"):
        assert release_and_lose_the_ledger() == "kept"
    assert Ledger.open(moved).remaining("people").rho == Fraction(1, 2)


def test_a_forked_child_cannot_spend_its_parents_charge(ledger: Ledger) -> None:
    with budget(ledger, Fraction(1, 2)) as spending:
        spending.charge(Charge("one", PrivacyCost(Fraction(1, 8))))
        child = os.fork()
        if child == 0:
            try:
                spending.charge(Charge("two", PrivacyCost(Fraction(1, 8))))
            except dpcov.BudgetError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_ledger_budget_is_a_budget_to_the_curator(ledger: Ledger) -> None:
    with budget(ledger, Fraction(1, 2)) as spending:
        assert isinstance(spending, Budget)
        curator = Curator(dpcov.sources.open_source(ROWS), spending, dpcov.core.OSEntropy())
        curator.ask(Gram(Clipping(identity_map(2), 3.0), Fraction(1, 4), purpose="half"))
    assert ledger.remaining("people").rho == Fraction(3, 4)
