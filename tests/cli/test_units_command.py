"""The commands where all rows of a person are protected together."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from helpers.command_line import run

import dpcov
from dpcov.ledger import Ledger

N_PATIENTS = 800


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """Visits of patients in no order, as a file and in a database; ids are text."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    patients = rng.permutation(np.repeat(np.arange(N_PATIENTS), rng.integers(1, 9, N_PATIENTS)))
    rows = rng.normal(size=(len(patients), 2)) @ [[2.0, 1.0], [0.0, 1.0]] + [5.0, -3.0]
    table = pl.DataFrame({"a": rows[:, 0], "patient": [f"p{k}" for k in patients], "b": rows[:, 1]})
    table.write_parquet("visits.parquet")
    with duckdb.connect("visits.db") as connection:
        connection.sql("create table visits as select * from 'visits.parquet'")
    return table


OPTIONS = "--privacy-unit patient --rho 2 --seed 3 --not-private"


def test_a_release_of_files_says_whom_it_protects_and_sorts_once(
    visits: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled = importlib.import_module("dpcov.sources.spooled")
    sort, sorted_files = spooled._sort, []

    def counted(inner: object, place: int, folder: Path) -> object:
        sorted_files.append(folder)
        return sort(inner, place, folder)

    monkeypatch.setattr(spooled, "_sort", counted)
    made = run("dpcov release visits.parquet --privacy-unit patient --rho 2 -o out.dpcov")
    assert made.exit_code == 0, made.stderr
    assert len(sorted_files) == 1
    assert "out.dpcov (800 patients, 2 columns)" in made.stdout
    assert "Someone who knows every other patient" in made.stdout
    page = Path("out.html").read_text()
    assert "All rows of one patient are protected together" in page
    assert "800 patients" in page
    for text in (made.stdout, made.stderr, page):
        assert str(len(visits)) not in text
        assert f"{len(visits):,}" not in text


def test_files_and_databases_give_the_release_of_the_table_in_memory(visits: pl.DataFrame) -> None:
    here = dpcov.release(visits, rho=2, privacy_unit="patient", rng=np.random.default_rng(3))
    from_file = run(f"dpcov release visits.parquet {OPTIONS} -o file.dpcov")
    asked = run(f"dpcov release duckdb:///visits.db {OPTIONS} -o base.dpcov --query", "select * from visits")
    assert (from_file.exit_code, asked.exit_code) == (0, 0), asked.stderr
    for name in ("file.dpcov", "base.dpcov"):
        made = dpcov.load(name)
        assert made.unit == here.unit
        assert (made.covariance().values == here.covariance().values).all()


def test_json_and_a_dry_run_tell_the_unit(visits: pl.DataFrame) -> None:
    del visits
    told = json.loads(run(f"dpcov release visits.parquet {OPTIONS} -o out.dpcov --json").stdout)
    assert (told["protected"], told["units"]) == ("patient", N_PATIENTS)
    dry = json.loads(run(f"dpcov release visits.parquet {OPTIONS} --dry-run --json").stdout)
    assert (dry["protected"], dry["units"], dry["columns"]) == ("patient", N_PATIENTS, ["a", "b"])
    assert dry["plan"]["n_units"] == N_PATIENTS
    assert [entry["method"] for entry in dry["plan"]["entries"]] == ["whitening", "gaussian"]


def test_a_ledger_of_patients_pays_for_patients_alone(visits: pl.DataFrame) -> None:
    del visits
    opened = run("dpcov ledger create budget.db --dataset visits --rho 5 --privacy-unit patient")
    assert opened.exit_code == 0, opened.stderr
    assert "in total, for each patient" in opened.stdout
    assert "every other patient" in opened.stdout
    paid = "--rho 1 --ledger budget.db --dataset visits -o"
    made = run(f"dpcov release visits.parquet --privacy-unit patient {paid} out.dpcov")
    assert made.exit_code == 0, made.stderr
    refused = run(f"dpcov release visits.parquet --columns a,b {paid} rows.dpcov")
    assert refused.exit_code != 0
    assert "protects each patient, this release each row by itself" in " ".join(refused.stderr.split())
    dry = run(f"dpcov release visits.parquet --columns a,b {paid} rows.dpcov --dry-run")
    assert dry.exit_code == refused.exit_code
    assert not Path("rows.dpcov").exists()
    shown = json.loads(run("dpcov ledger show budget.db --json").stdout)["datasets"][0]
    assert shown["protected"] == "patient"
    assert Ledger.open("budget.db").account("visits").spent.rho == 1


@pytest.mark.parametrize("name", ["row", " "])
def test_a_ledger_is_not_made_for_a_unit_that_is_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("dpcov ledger create budget.db --dataset visits --rho 5 --privacy-unit", name)
    assert refused.exit_code == 2
    assert "privacy_unit must name whose rows" in " ".join(refused.stderr.split())
    assert not Path("budget.db").exists()
