"""``dpcov demo`` and ``dpcov compare``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.command_line import run

import dpcov
from dpcov.cli import demo


def test_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("dpcov demo")
    assert shown.exit_code == 0, shown.stderr
    told = shown.stdout
    assert "Another release at epsilon=2 is refused: dataset 'flights' has rho=" in told
    assert "sched_dep_time - 100 hour - minute is below the noise" in told
    facts = json.loads(run("dpcov demo --json").stdout)
    folder = tmp_path / "demo-output"
    assert sorted(path.name for path in folder.iterdir()) == ["budget.db", "flights.dpcov", "report.html"]
    release = dpcov.load(folder / "flights.dpcov")
    assert (release.n_rows, list(release.columns)) == (336_776, demo.COLUMNS)
    assert release.receipt.private
    assert release.receipt.epsilon(1e-6) <= 1
    for line in facts["questions"]["arr_delay regressed"]:
        assert line["private"] == pytest.approx(line["exact"], rel=0.1)
    (entry,) = [
        entry for entry in dpcov.Ledger.open(folder / "budget.db").history() if entry.kind == "charge"
    ]
    assert entry.purpose == "demo"
    assert "336,776" in (folder / "report.html").read_text()


def test_methods_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(3000, 3)) * [1, 10, 100]
    table = pl.DataFrame({name: rows[:, i] for i, name in enumerate("abc")})
    table.write_parquet(tmp_path / "rows.parquet")
    table.write_csv(tmp_path / "rows.csv")
    refused = run("dpcov compare rows.parquet --rho 0.5")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "NOT PRIVATE" in refused.stderr
    asked = "--public --rho 0.5 --runs 1 --methods whitening,gaussian"
    shown = run(f"dpcov compare rows.parquet {asked}")
    assert shown.exit_code == 0, shown.stderr
    assert "NOT PRIVATE" in shown.stdout
    assert "NOT PRIVATE" in shown.stderr
    found = json.loads(run(f"dpcov compare rows.csv --columns a,b,c {asked} --json").stdout)
    assert not found["private"]
    assert [one["method"] for one in found["outcomes"]] == ["whitening", "gaussian"]
    assert found["outcomes"][0]["error"] < 0.2 < found["outcomes"][1]["error"]
