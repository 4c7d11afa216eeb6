from __future__ import annotations

import math
import os
import pwd
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcov
from dpcov.core import ArgumentError, BudgetError, LedgerError, PrivacyCost, resolve_budget
from dpcov.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("flights", rho=1, delta=1e-6)
    return ledger


def cost(rho: Any, delta: Any = 0) -> PrivacyCost:
    return PrivacyCost(Fraction(rho), Fraction(delta))


def test_charges_add_up_exactly(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.charge("flights", cost("1/10"), method="whitening")
    assert ledger.account("flights").spent == cost(1)
    with pytest.raises(BudgetError):
        ledger.charge("flights", cost(Fraction(1, 10**60)), method="whitening")


def test_delta_is_limited_as_well(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="delta"):
        ledger.charge("flights", cost("1/10", "1/1000"), method="whitening")
    ledger.charge("flights", cost("1/10", "1/2000000"), method="whitening")
    assert ledger.remaining("flights") == cost("9/10", Fraction(1e-6) - Fraction(1, 2000000))


def test_a_refusal_says_what_is_left_and_where_to_look(ledger: Ledger) -> None:
    ledger.charge("flights", cost("2/3"), method="whitening")
    with pytest.raises(BudgetError) as refused:
        ledger.charge("flights", cost("1/2"), method="whitening")
    assert "rho=0.333333, delta=1e-06 left of rho=1, delta=1e-06; this needs rho=0.5" in str(refused.value)
    assert f"dpcov ledger history {ledger.path} --dataset flights" in str(refused.value)
    assert len(ledger.history()) == 1


def test_what_is_left_is_never_rounded_up(ledger: Ledger) -> None:
    ledger.charge("flights", cost("1/3"), method="whitening")
    with pytest.raises(BudgetError, match=r"rho=0\.666666, .* this needs rho=0\.666668\."):
        ledger.charge("flights", cost("0.6666671"), method="whitening")


def test_epsilon_and_delta_are_kept_as_asked_and_as_meant(tmp_path: Path) -> None:
    account = Ledger.create(tmp_path / "budget.db").add_dataset("flights", epsilon=1, delta=1e-6)
    assert account.total == resolve_budget(epsilon=1, delta=1e-6, gaussian=True)
    assert account.asked == (Fraction(1), Fraction(1e-6))
    assert account.total.epsilon(1e-6) <= 1


def test_a_settlement_gives_back_what_was_not_spent_and_only_once(ledger: Ledger) -> None:
    half = ledger.charge("flights", cost("1/2", "1/2000000"), method="whitening", purpose="half")
    half.settle(cost("1/8"))
    assert ledger.account("flights").spent == cost("1/8")
    charge, settlement = ledger.history("flights")
    assert (settlement.kind, settlement.settles) == ("settlement", charge.number)
    assert charge.cost + settlement.cost == cost("1/8")
    assert (settlement.time, settlement.purpose) == (charge.time, "half")
    with pytest.raises(LedgerError, match="settled already"):
        half.settle(cost(0))
    other = ledger.charge("flights", cost("1/8"), method="whitening")
    for wrong in ("1/4", "-1/8"):
        with pytest.raises(ArgumentError, match="between nothing and"):
            other.settle(cost(wrong))


def test_a_negative_charge_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ArgumentError, match="negative"):
        ledger.charge("flights", cost("-1/2"), method="whitening")


def test_a_closed_dataset_takes_settlements_but_no_charges(ledger: Ledger) -> None:
    half = ledger.charge("flights", cost("1/2"), method="whitening")
    account = ledger.close_dataset("flights")
    assert account.closed
    assert account.remaining == cost(0)
    with pytest.raises(BudgetError, match="is closed"):
        ledger.charge("flights", cost("1/8"), method="whitening")
    half.settle(cost("1/4"))
    assert ledger.close_dataset("flights").spent == cost("1/4")
    assert [entry.kind for entry in ledger.history()] == ["charge", "close", "settlement"]


class Clock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 3, 1, 12, 30, 15, 999_999, tzinfo=tz)


def test_the_history_tells_who_when_how_and_what_for(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcov.ledger.book.datetime", Clock)
    ledger.charge("flights", cost("1/8"), method="gaussian", purpose=" Delays, spring ", private=False)
    (entry,) = ledger.history()
    assert entry.time == datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)
    assert (entry.method, entry.purpose, entry.private) == ("gaussian", "Delays, spring", False)
    assert entry.user
    assert not ledger.account("flights").private


def test_the_user_does_not_come_from_the_environment(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "someone else")
    ledger.charge("flights", cost("1/8"), method="gaussian")
    assert ledger.history()[0].user != "someone else"


def test_names_that_look_alike_are_one_dataset(ledger: Ledger) -> None:
    assert ledger.account("  FLIGHTS ").name == "flights"
    assert ledger.account("ｆｌｉｇｈｔｓ").name == "flights"  # noqa: RUF001
    for name in ("Flights", "flights "):
        with pytest.raises(LedgerError, match="already has"):
            ledger.add_dataset(name, rho=5)
    ledger.add_dataset("Straße  9", rho=2)
    assert ledger.account("STRASSE 9").total == cost(2)
    assert [account.name for account in ledger.accounts()] == ["flights", "Straße  9"]


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "bell\a", "x" * 501, 7, "\u2028"])
def test_bad_names_are_refused(ledger: Ledger, name: Any) -> None:
    with pytest.raises(ArgumentError, match="dataset"):
        ledger.add_dataset(name, rho=1)


def test_an_unknown_dataset_is_named_with_a_guess(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"no dataset 'fligths'\. Did you mean 'flights'"):
        ledger.remaining("fligths")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET rho = '0'",
        "DELETE FROM entry",
        "REPLACE INTO entry SELECT number, dataset, kind, settles, 0, 0, 1, '', '', '', '', 1 FROM entry",
        "UPDATE dataset SET rho = '100'",
        "DELETE FROM dataset",
        "INSERT OR REPLACE INTO dataset SELECT key, name, 9, delta, 1, 1, user, time, 1, 1 FROM dataset",
    ],
)
def test_rows_never_change(ledger: Ledger, statement: str) -> None:
    ledger.charge("flights", cost("1/2"), method="whitening")
    before = ledger.history(), ledger.accounts()
    with (
        closing(sqlite3.connect(ledger.path)) as raw,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        raw.execute(statement)
    assert (ledger.history(), ledger.accounts()) == before


def test_a_commit_is_on_the_disk_before_the_call_returns(ledger: Ledger) -> None:
    with ledger._file.writing() as rows:
        assert rows.execute("PRAGMA synchronous").fetchone() == (3,)
        assert rows.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_ledger_switched_to_a_write_ahead_log_is_switched_back(ledger: Ledger) -> None:
    with closing(sqlite3.connect(ledger.path)) as raw:
        assert raw.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    ledger.charge("flights", cost("1/2"), method="whitening")
    assert os.listdir(ledger.path.parent) == ["budget.db"]  # noqa: PTH208


def test_an_existing_file_is_never_replaced(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path)
    other = tmp_path / "notes.txt"
    other.write_text("notes")
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(other)
    assert other.read_text() == "notes"


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger at .*dpcov ledger create"):
        Ledger.open(tmp_path / "nowhere.db")
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(tmp_path)
    (tmp_path / "text").write_text("a text file, long enough to have a header" * 10)
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "other")) as raw:
        raw.execute("CREATE TABLE t (x)")
    for name in ("text", "empty", "other"):
        with pytest.raises(LedgerError, match="is not a dpcov ledger"):
            Ledger.open(tmp_path / name)


def test_another_version_is_refused(ledger: Ledger) -> None:
    with closing(sqlite3.connect(ledger.path)) as raw:
        raw.execute("PRAGMA user_version = 4")
    with pytest.raises(LedgerError, match=r"version 4 .* reads up to 3"):
        Ledger.open(ledger.path)


def test_a_damaged_file_is_refused(ledger: Ledger) -> None:
    for _ in range(40):
        ledger.charge("flights", cost("1/100"), method="whitening", purpose="x" * 400)
    content = bytearray(ledger.path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge("flights", cost("1/100"), method="whitening")


@pytest.mark.parametrize("amount", ["2", "-1", "much"])
def test_amounts_that_cannot_be_are_refused(ledger: Ledger, amount: str) -> None:
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as raw:
        raw.execute(
            "INSERT INTO entry (dataset, kind, rho, delta, private, method, purpose, user, time) "
            "VALUES ('flights', 'charge', ?, '0', 1, '', '', '', '2026-01-01T00:00:00+00:00')",
            (amount,),
        )
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge("flights", cost("1/100"), method="whitening")


def test_a_ledger_in_use_is_waited_for_and_then_named(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpcov.ledger.file._PATIENCE_SECONDS", 0.1)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.charge("flights", cost("1/100"), method="whitening")
    ledger.charge("flights", cost("1/100"), method="whitening")


def test_a_read_only_ledger_can_be_read_but_not_charged() -> None:
    with tempfile.TemporaryDirectory() as folder, no_superuser(folder):
        ledger = Ledger.create(Path(folder) / "budget.db")
        ledger.add_dataset("flights", rho=1)
        ledger.path.chmod(stat.S_IRUSR)
        assert ledger.remaining("flights").rho == 1
        with pytest.raises(LedgerError, match="read-only"):
            ledger.charge("flights", cost("1/100"), method="whitening")
        ledger.path.chmod(0)
        with pytest.raises(LedgerError, match="cannot be opened"):
            ledger.remaining("flights")


def test_a_ledger_in_a_read_only_folder_cannot_be_charged() -> None:
    with tempfile.TemporaryDirectory() as folder, no_superuser(folder):
        ledger = Ledger.create(Path(folder) / "budget.db")
        ledger.add_dataset("flights", rho=1)
        Path(folder).chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(LedgerError, match="folder is read-only"):
            ledger.charge("flights", cost("1/100"), method="whitening")
        with pytest.raises(LedgerError, match="cannot be created"):
            Ledger.create(Path(folder) / "other.db")
        Path(folder).chmod(stat.S_IRWXU)


@contextmanager
def no_superuser(folder: str) -> Iterator[None]:
    """Own `folder` as an ordinary user: the superuser may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, nobody, -1)
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_ledger_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "no such folder" / "budget.db")
    assert not list(tmp_path.iterdir())


@settings(max_examples=20)
@given(
    steps=st.lists(st.tuples(st.fractions(0, 1), st.one_of(st.none(), st.fractions(0, 1))), max_size=8),
    total=st.fractions(Fraction(1, 100), 2),
)
def test_whatever_is_charged_and_settled_the_sum_is_exact(
    tmp_path: Path, steps: list[tuple[Fraction, Fraction | None]], total: Fraction
) -> None:
    ledger = Ledger.create(tmp_path / f"{len(list(tmp_path.iterdir()))}.db")
    ledger.add_dataset("d", rho=total)
    expected = Fraction(0)
    for amount, share in steps:
        if expected + amount > total:
            with pytest.raises(BudgetError):
                ledger.charge("d", cost(amount), method="m")
            continue
        charged = ledger.charge("d", cost(amount), method="m")
        expected += amount
        if share is not None:
            charged.settle(cost(amount * share))
            expected -= amount * (1 - share)
    assert ledger.account("d").spent.rho == expected <= total
    assert math.isclose(float(ledger.remaining("d").rho), float(total - expected), abs_tol=1e-12)


def test_a_share_of_delta_can_be_kept_for_methods(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    account = ledger.add_dataset("split", epsilon=3, delta=1e-6, delta_share=Fraction(1, 2))
    assert account.total.delta == Fraction(1e-6) / 2
    assert account.asked == (Fraction(3), Fraction(1e-6))
    assert account.total.epsilon(1e-6) <= 3
    ledger.charge(
        "split", resolve_budget(epsilon=1, delta=1e-6, approximate_share=Fraction(1, 2)), method="m"
    )
    with pytest.raises(BudgetError, match="Its delta is what is short: give a smaller delta"):
        ledger.charge("split", PrivacyCost(Fraction(1, 1000), Fraction(1, 10**6)), method="m")
    for share in (-0.1, 1, math.nan, "half"):
        with pytest.raises(ArgumentError, match="delta_share"):
            ledger.add_dataset("other", epsilon=3, delta=1e-6, delta_share=share)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="delta_share goes with epsilon"):
        ledger.add_dataset("other", rho=1, delta_share=0.5)


def test_a_dataset_without_a_delta_says_so_and_which_epsilon_is_left(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("plain", epsilon=3, delta=1e-6)
    ledger.charge("plain", resolve_budget(epsilon=1, delta=1e-6, gaussian=True), method="m")
    with pytest.raises(BudgetError, match="opened without a delta for methods") as refused:
        ledger.check("plain", PrivacyCost(Fraction(1, 1000), Fraction(1, 10**7)))
    assert "delta_share beside epsilon" in str(refused.value)
    assert "(enough for epsilon=2.77 at delta=1e-06)" in str(refused.value)
    ledger.check("plain", resolve_budget(epsilon=2.77, delta=1e-6, gaussian=True))
    with pytest.raises(BudgetError):
        ledger.check("plain", resolve_budget(epsilon=2.78, delta=1e-6, gaussian=True))


def first_format(path: Path) -> None:
    """Make a ledger as the first format had it: opened with epsilon 1, and charged once."""
    old = PrivacyCost(resolve_budget(epsilon=1, delta=1e-6).rho)
    ledger = Ledger.create(path)
    ledger.add_dataset("old", epsilon=1, delta=1e-6)
    ledger.charge("old", PrivacyCost(old.rho / 2, gaussian=True), method="whitening")
    with closing(sqlite3.connect(path)) as raw:
        for trigger in ("dataset_never_changes", "entry_never_changes"):
            definition = raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,)).fetchone()[0]
            raw.execute(f"DROP TRIGGER {trigger}")
            if trigger.startswith("dataset"):
                raw.execute("UPDATE dataset SET rho = ?", (str(old.rho),))
            raw.execute(definition)
        raw.execute("ALTER TABLE dataset DROP COLUMN unit")
        for table in ("dataset", "entry"):
            raw.execute(f"ALTER TABLE {table} DROP COLUMN gaussian")
        raw.execute("PRAGMA user_version = 1")
        raw.commit()


def test_a_ledger_of_the_first_format_opens_and_shows_no_more_than_it_allows(tmp_path: Path) -> None:
    first_format(tmp_path / "old.db")
    before = (tmp_path / "old.db").read_bytes()
    ledger = Ledger.open(tmp_path / "old.db")
    account = ledger.account("old")
    in_zcdp = resolve_budget(epsilon=1, delta=1e-6)
    assert account.total == in_zcdp
    assert not account.total.gaussian
    # What was spent had no Gaussian noise, and is not converted as if it had.
    assert account.spent == PrivacyCost(in_zcdp.rho / 2)
    assert account.remaining.rho == in_zcdp.rho / 2
    assert (tmp_path / "old.db").read_bytes() == before


def test_a_ledger_of_the_first_format_takes_charges_and_keeps_its_lines(tmp_path: Path) -> None:
    first_format(tmp_path / "old.db")
    ledger = Ledger.open(tmp_path / "old.db")
    half = resolve_budget(epsilon=1, delta=1e-6).rho / 2
    with pytest.raises(BudgetError, match=r"rho=0\.0121779 left"):
        ledger.check("old", PrivacyCost(half * Fraction(101, 100), gaussian=True))
    ledger.charge("old", PrivacyCost(half / 2, gaussian=True), method="whitening")
    ledger.charge("old", PrivacyCost(half / 4), method="adaptive")
    assert [entry.cost.gaussian for entry in ledger.history("old")] == [False, True, False]
    assert ledger.account("old").spent == PrivacyCost(half + half / 2 + half / 4)
    with closing(sqlite3.connect(ledger.path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (3,)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute("UPDATE entry SET gaussian = 1")


def test_an_account_in_epsilon_has_the_room_of_gaussian_noise_and_is_for_it_alone(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    account = ledger.add_dataset("people", epsilon=1, delta=1e-6)
    in_zcdp = resolve_budget(epsilon=1, delta=1e-6)
    assert account.total.rho > Fraction(115, 100) * in_zcdp.rho
    assert 1 - 1e-9 < account.total.epsilon(1e-6) <= 1
    with pytest.raises(BudgetError, match="opened for methods whose noise is all Gaussian"):
        ledger.charge("people", PrivacyCost(Fraction(1, 1000)), method="adaptive")
    half = ledger.charge("people", resolve_budget(epsilon=0.5, delta=1e-6, gaussian=True), method="whitening")
    half.settle(PrivacyCost(Fraction(1, 1000), gaussian=True))
    assert ledger.account("people").spent == PrivacyCost(Fraction(1, 1000), gaussian=True)
    assert ledger.remaining("people") == account.total - PrivacyCost(Fraction(1, 1000), gaussian=True)


def test_an_account_in_rho_or_with_a_share_of_delta_takes_all_noise(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    assert not ledger.add_dataset("in rho", rho=1).total.gaussian
    shared = ledger.add_dataset("shared", epsilon=1, delta=1e-6, delta_share=0.5)
    assert shared.total == resolve_budget(epsilon=1, delta=1e-6, approximate_share=Fraction(1, 2))
    for dataset in ("in rho", "shared"):
        ledger.charge(dataset, PrivacyCost(Fraction(1, 1000)), method="adaptive")
    in_mu = ledger.add_dataset("in mu", mu=Fraction(1, 5))
    assert in_mu.total == PrivacyCost(Fraction(1, 50), gaussian=True)


def test_a_release_pays_with_gaussian_noise(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", epsilon=1, delta=1e-6)
    rows = np.random.default_rng(0).normal(size=(500, 2))
    dpcov.release(rows, epsilon=1, delta=1e-6, ledger=ledger, dataset="people")
    spent = ledger.account("people").spent
    assert spent.gaussian
    assert spent.epsilon(1e-6) <= 1
    with pytest.raises(BudgetError):
        dpcov.release(rows, mu=0.01, ledger=ledger, dataset="people")


def test_a_path_alone_makes_no_ledger() -> None:
    with pytest.raises(ArgumentError, match=r"use Ledger\.open\('budget\.db'\)"):
        Ledger("budget.db")  # type: ignore[arg-type]
