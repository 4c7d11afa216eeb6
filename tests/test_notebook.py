"""What a notebook shows: tables of every object, with every text escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.linear_tables import NAMES, make_release, make_rows
from helpers.releases import AWKWARD, small_release

import dpcov


class Reader(HTMLParser):
    """Cells and their styles, line by line."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.styles: list[list[str]] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(shown._repr_html_())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.lines.append([])
            self.styles.append([])
        if tag in {"td", "th"}:
            self.lines[-1].append("")
            self.styles[-1].append(dict(attrs).get("style") or "")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.lines and self.lines[-1] and self.lasttag in {"td", "th"}:
            self.lines[-1][-1] += data


def test_a_release_shows_its_guarantee_and_each_column() -> None:
    made = small_release()
    shown = Reader(made)
    assert f"epsilon {made.receipt.epsilon(1e-6):.4g}"[:11] in shown.text
    # All rows are complete. The share is off by 0.1% in one release of three, by 0.4% in one of 20,000.
    shares = r"about (100\.[0-3]|99\.[6-9])% of rows complete \("
    assert re.search("20,000 rows, each protected by itself, " + shares, shown.text)
    assert shown.lines[0] == ["column", "mean", "standard deviation"]
    assert [line[0] for line in shown.lines[1:]] == list(made.columns)
    assert float(shown.lines[2][1]) == pytest.approx(made.mean()["weight"], rel=1e-4)
    assert float(shown.lines[2][2]) == pytest.approx(made.std()["weight"], rel=1e-4)
    assert "img" not in shown.tags
    assert AWKWARD in shown.text


def test_other_releases_are_shown_as_well() -> None:
    assert "NOT PRIVATE (seeded)" in Reader(small_release(private=False)).text
    assert Reader(small_release(intercept=False)).lines[0] == ["column", "root mean square"]
    nothing = dpcov.release(
        np.random.default_rng(0).normal(size=(50, 3)), rho=1e-6, progress=False, force=True
    )
    assert Reader(nothing).lines[1] == ["x0", "below the noise"]


def test_correlations_have_two_decimals_and_colours() -> None:
    correlation = make_release(make_rows(2000), names=NAMES, noise=0.2).correlation()
    shown = Reader(correlation)
    told = correlation.differs_from_zero()
    assert not told.all()
    for i, j in np.ndindex(4, 4):
        assert shown.lines[i + 1][j + 1] == f"{correlation.values[i, j]:.2f}"
        style = shown.styles[i + 1][j + 1]
        colour = "196,60,40" if correlation.values[i, j] > 0 else "40,96,196"
        assert (colour if told[i, j] else "128,128,128") in style


def test_a_covariance_has_numbers_without_colours() -> None:
    shown = Reader(make_release(make_rows(), names=NAMES).covariance())
    assert not any("background" in style for line in shown.styles for style in line)


def test_receipts_ledgers_plans_and_methods_are_tables(tmp_path: Path) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people <1>", rho=2)
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    made = dpcov.release(rows, rho=1, ledger=ledger, dataset="people <1>", progress=False)
    assert Reader(made.receipt).text.startswith("spent rho=1 of rho=1")
    assert "the released matrix" in Reader(made.receipt).text
    assert "NOT PRIVATE" in Reader(small_release(private=False).receipt).text
    assert Reader(ledger).lines[1] == ["people <1>", "row", "rho 2", "50.0%", "2", "1", "1", "0", "open"]
    assert "budget.db" in repr(ledger)
    plan = dpcov.plan(n_rows=1000, n_columns=3, rho=1)
    assert [line[0] for line in Reader(plan).lines[1:]] == [entry.method for entry in plan.entries]
    assert Reader(dpcov.plan(error=0.1, n_columns=3, rho=1)).lines[0][1] == "rows needed"
    assert [line[0] for line in Reader(dpcov.methods()).lines[1:]] == [one.name for one in dpcov.methods()]


def test_components_and_spectra_are_tables() -> None:
    made = make_release(make_rows(), names=NAMES)
    assert "4 of 4 components stand above the noise" in Reader(made.pca()).text
    assert Reader(made.spectrum()).lines[1][0] == "1"
    assert Reader(made.describe()).lines[0][1] == "mean"
