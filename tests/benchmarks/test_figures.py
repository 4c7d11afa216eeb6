"""Figures in texts are those of the results."""

from __future__ import annotations

import re
from pathlib import Path

import figure_tables
import figures
import figures_methods
import figures_privacy
import figures_releases
import pytest

DOCS = figures.ROOT / "docs"
USED = re.compile(r"\{\{ (\w+) \}\}")


def test_the_readme_has_the_figures_of_the_results() -> None:
    text = figures.README.read_text()
    assert len(re.findall("<!-- measured: ", text)) == len(re.findall("<!-- end -->", text)) >= 3
    assert text == figures.filled(text), "run: python benchmarks/figures.py"


@pytest.mark.parametrize("name", ["example_table", "accuracy_table", "world_summary"])
def test_a_figure_that_was_changed_by_hand_is_noticed(name: str) -> None:
    text = figures.README.read_text()
    place = text.index(f"<!-- measured: {name} -->")
    digit = re.compile(r"\d").search(text, text.index("\n", place))
    assert digit is not None
    changed = text[: digit.start()] + str((int(digit[0]) + 1) % 10) + text[digit.end() :]
    assert figures.filled(changed) == text


def test_figures_follow_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (figure_tables.RESULTS / "example.csv").read_text().splitlines()
    parts = lines[1].split(",")
    parts[2] = "123.456"
    (tmp_path / "example.csv").write_text("\n".join([lines[0], ",".join(parts)]))
    monkeypatch.setattr(figure_tables, "RESULTS", tmp_path)
    figure_tables.results.cache_clear()
    try:
        assert "| 123.4560 |" in figures_releases.example_table()
    finally:
        figure_tables.results.cache_clear()


def test_pages_use_every_figure_they_name_by_a_name_that_exists() -> None:
    used = {name for page in DOCS.rglob("*.md") for name in USED.findall(page.read_text())}
    assert used
    assert used <= set(figures.measured())


def test_epsilon_stands_beside_rho_as_it_is() -> None:
    assert (
        f"rho = 0.5, which is epsilon = {figures_privacy.epsilon_of_half()} at" in figures.README.read_text()
    )


def test_the_readme_states_how_many_releases_its_medians_are_of() -> None:
    assert f"(median of {figures_releases.accuracy_runs()} releases" in figures.README.read_text()


def test_the_readme_states_the_guess_at_its_epsilon() -> None:
    assert (
        f"right candidate at most {figures_privacy.guess_at_one()} of the time" in figures.README.read_text()
    )


@pytest.mark.parametrize("name", ["guess_at_one", "guess_at_three"])
def test_no_page_has_a_guess_typed_by_hand(name: str) -> None:
    typed = [page.name for page in DOCS.rglob("*.md") if figures.measured()[name] in page.read_text()]
    assert typed == []


def test_methods_that_refuse_are_told_from_those_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = figure_tables.results("arena")
    found = found.assign(
        error=0.5,
        answered=found["answered"].where(~found["method"].isin(["aggregate", "leverage"]), 0),
        note=found["method"].map({"aggregate": "Too few rows. Nothing was spent.", "leverage": "It failed."}),
    )
    found.to_csv(tmp_path / "arena.csv")
    monkeypatch.setattr(figure_tables, "RESULTS", tmp_path)
    figure_tables.results.cache_clear()
    try:
        lines = {
            line.split(" | ")[0]: line.split(" | ")[1:] for line in figures_methods.arena_table().splitlines()
        }
    finally:
        figure_tables.results.cache_clear()
    assert {cell.strip(" |") for cell in lines["| aggregate (Algorithm 3)"]} == {"refused"}
    assert {cell.strip(" |") for cell in lines["| leverage (2023, unvetted)"]} == {"no answer"}
    assert {cell.strip(" |") for cell in lines["| coinpress"]} == {"0.5"}


@pytest.mark.parametrize(
    ("value", "shown"), [(0.00234, "0.0023"), (5.01, "5"), (38.3, "38"), (1234.5, "1,234"), (5.01e8, "5e8")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert figure_tables.short(value) == shown
