"""A dataset's ledger knows what it protects, and takes charges for nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcov
from dpcov import learn
from dpcov.core import ArgumentError, BudgetError, PrivacyCost
from dpcov.ledger import Ledger


def patients(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(3 * n, 2)), columns=["a", "b"]).assign(patient=np.arange(3 * n) % n)


def test_a_dataset_of_persons_takes_charges_for_these_persons_only(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    assert ledger.add_dataset("visits", rho=4, privacy_unit="patient").unit == "patient"
    assert ledger.add_dataset("people", rho=4).unit == "row"
    table = patients()
    paid: dict[str, Any] = {"rho": 1, "ledger": ledger, "dataset": "visits"}
    dpcov.release(table, privacy_unit="patient", **paid)
    spent = ledger.account("visits").spent
    assert spent.rho == 1
    rows = "dataset 'visits' protects each patient, this release each row by itself"
    with pytest.raises(BudgetError, match=rows):
        dpcov.release(table, **paid)
    with pytest.raises(BudgetError, match="protects each patient, this release each a"):
        dpcov.release(table, privacy_unit="a", **paid)
    with pytest.raises(BudgetError, match="this release each person"):
        dpcov.release(table[["a", "b"]], privacy_unit=table["patient"].to_numpy(), **paid)
    with pytest.raises(BudgetError, match=rows):
        ledger.charge("visits", PrivacyCost(Fraction(1, 100)), method="own")
    with pytest.raises(BudgetError, match="'people' protects each row by itself, this release each patient"):
        dpcov.release(table, privacy_unit="patient", **(paid | {"dataset": "people"}))
    assert ledger.account("visits").spent == spent
    assert ledger.account("people").spent.rho == 0
    assert len(ledger.history()) == 2


def test_an_estimator_with_groups_is_paid_from_a_dataset_of_persons(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("visits", rho=1, privacy_unit="person")
    table = patients()
    estimator = learn.PrivateCovariance(rho=1, ledger=ledger, dataset="visits")
    with pytest.raises(BudgetError, match="protects each person, this release each row by itself"):
        estimator.fit(table[["a", "b"]])
    estimator.fit(table[["a", "b"]], groups=table["patient"])
    assert ledger.remaining("visits").rho == 0


@pytest.mark.parametrize("name", ["", " ", "row", 3])
def test_a_unit_that_is_none_is_refused(tmp_path: Path, name: Any) -> None:
    ledger = Ledger.create(tmp_path / "budget.db")
    with pytest.raises(ArgumentError, match="privacy_unit must"):
        ledger.add_dataset("visits", rho=1, privacy_unit=name)
    assert ledger.accounts() == ()


def second_format(path: Path) -> None:
    ledger = Ledger.create(path)
    ledger.add_dataset("old", rho=1)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("ALTER TABLE dataset DROP COLUMN unit")
        raw.execute("PRAGMA user_version = 2")
        raw.commit()


def test_a_ledger_of_the_second_format_is_of_rows(tmp_path: Path) -> None:
    second_format(tmp_path / "old.db")
    ledger = Ledger.open(tmp_path / "old.db")
    assert ledger.account("old").unit == "row"
    with pytest.raises(BudgetError, match="'old' protects each row by itself"):
        ledger.charge("old", PrivacyCost(Fraction(1, 2)), method="own", unit="patient")
    ledger.charge("old", PrivacyCost(Fraction(1, 2)), method="own")
    assert ledger.add_dataset("new", rho=1, privacy_unit="patient").unit == "patient"
    assert (ledger.account("old").unit, ledger.account("old").spent.rho) == ("row", Fraction(1, 2))
