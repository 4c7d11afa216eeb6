from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from world import Outcome, evaluate, summarise
from world_answers import Tally, check, fit_raw, flagged_entries
from world_judge import Truth, measure_truth, resolved_columns
from world_records import read_outcomes, write_outcomes
from world_tables import WorldTable

import dpcov

AMPLE = 1e4


def make_table(*, copied: bool = False, rho: float = AMPLE) -> WorldTable:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((5_000, 3)) + 1, rng.random(5_000) < 0.3])
    if copied:
        rows[:, 2] = rows[:, 0] - rows[:, 1]
    rows[:50, 1] = np.nan
    flags = np.array([False, False, False, True])
    return WorldTable("made", 0, rows, rho, ("a", "b", "c", "flag"), flags)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return measure_truth(make_table(), cache=None)


def test_an_honest_release_passes(truth: Truth) -> None:
    outcome = evaluate(make_table(), truth=truth)
    assert outcome.error < 0.01
    assert outcome.trimmed_error <= outcome.resolved_error == pytest.approx(outcome.error)
    assert not outcome.exceeded
    assert outcome.resolved_columns == 4
    assert outcome.false_zeros == ()
    assert outcome.means.asked == outcome.variances.asked == 4
    assert outcome.regressions == 3
    assert outcome.refused == outcome.singular == 0
    assert outcome.due == 3


@pytest.mark.parametrize(("place", "name"), [(2, "c"), (3, "flag")])
def test_a_release_that_loses_a_column_silently_is_caught(truth: Truth, place: int, name: str) -> None:
    def lossy(rows: Any, **arguments: Any) -> dpcov.Release:
        shrunk = rows.copy()
        shrunk[:, place] *= 0.3
        return dpcov.release(shrunk, **arguments)

    outcome = evaluate(make_table(), lossy, truth=truth)
    assert outcome.exceeded
    assert outcome.false_zeros == (name,)
    # 1 - 0.3^2 in the direction of the column alone.
    assert 0.9 < outcome.error < 1.5
    assert outcome.means.held < outcome.means.asked


def test_a_method_that_refuses_is_recorded(truth: Truth) -> None:
    def refuse(_: Any, **__: Any) -> dpcov.Release:
        raise dpcov.ArgumentError("too few rows")

    outcome = evaluate(make_table(), refuse, truth=truth)
    assert outcome.failure == "ArgumentError: too few rows"
    assert math.isinf(outcome.ratio)


def test_collinear_columns_are_left_out_of_what_is_resolved() -> None:
    table = make_table(copied=True)
    outcome = evaluate(table, truth=measure_truth(table, cache=None))
    assert outcome.unresolved == 1
    assert outcome.resolved_columns == 3
    assert outcome.resolved_error < 0.01


def test_calling_collinear_columns_resolved_is_an_exceeded_claim() -> None:
    table = make_table(copied=True)

    def careless(rows: Any, **arguments: Any) -> dpcov.Release:
        noisy = rows + 0.1 * np.random.default_rng(1).standard_normal(rows.shape)
        return dpcov.release(noisy, **arguments)

    outcome = evaluate(table, careless, truth=measure_truth(table, cache=None))
    assert outcome.unresolved == 0
    assert math.isinf(outcome.resolved_error)
    assert outcome.exceeded


def test_columns_that_the_release_does_not_invert_are_not_resolved() -> None:
    def whiten(columns: list[str]) -> None:
        if {"b", "c"} <= set(columns):
            raise dpcov.UnresolvedError("no")

    release: Any = SimpleNamespace(columns=("a", "b", "c", "d"), unresolved=(), whiten=whiten)
    assert resolved_columns(release) == [0, 1, 3]


def test_the_oracle_is_kept_for_the_same_table_only(tmp_path: Path) -> None:
    table = make_table()
    first = measure_truth(table, cache=tmp_path)
    assert (tmp_path / "0.json").exists()
    assert measure_truth(table, cache=tmp_path).oracle == first.oracle
    assert measure_truth(replace(table, rho=AMPLE / 100), cache=tmp_path).oracle > 5 * first.oracle


def test_notes_flag_the_columns_that_they_name() -> None:
    names = ["x1", "x10", "x2"]
    assert flagged_entries(SimpleNamespace(notes=("rows beyond could move x1.",)), names).tolist() == [
        True,
        False,
        False,
    ]
    assert flagged_entries(SimpleNamespace(notes=("some rows lie beyond.",)), names).all()
    assert not flagged_entries(SimpleNamespace(notes=()), names).any()


def test_intervals_are_counted_apart() -> None:
    answer = SimpleNamespace(
        values=np.zeros(4),
        notes=("b may be off.",),
        limits=(0.0, 1.0),
        interval=lambda: (np.array([0.1, 0.1, 0.1, 0.0]), np.array([0.2, 0.2, 0.2, 1.0])),
    )
    raw = np.array([0.15, 0.15, 0.3, 0.5])
    assert check(answer, raw, np.ones(4), ["a", "b", "c", "d"]) == Tally(
        asked=2, held=1, flagged=1, flagged_held=1, refused=1
    )


def test_raw_regressions_are_least_squares() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 4)) * [1, 1e-6, 1e6, 1] + [0, 1, 0, 5]
    fit = fit_raw(rows, 3, [1, 0, 2])
    design = np.column_stack([rows[:, [1, 0, 2]], np.ones(200)])
    scale = np.abs(design).max(axis=0)
    expected = np.linalg.lstsq(design / scale, rows[:, 3])[0] / scale
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-6)
    left = rows[:, 3] - design @ fit.coefficients
    assert fit.r_squared == pytest.approx(1 - left.var() / rows[:, 3].var())
    assert not fit.singular
    rows[:, 2] = rows[:, 0] + 3
    assert fit_raw(rows, 3, [0, 2]).singular


def test_outcomes_survive_a_file_and_are_summarised(truth: Truth, tmp_path: Path) -> None:
    outcome = evaluate(make_table(), truth=truth)
    lost = replace(outcome, seed=1, ratio=30.0, exceeded=True, false_zeros=("a", "c"))
    write_outcomes([outcome, lost], tmp_path / "world.csv")
    assert read_outcomes(Outcome, tmp_path / "world.csv") == [outcome, lost]
    text = summarise([outcome, lost])
    assert "2 tables, 2 releases" in text
    assert "max 30" in text
    assert "exceeded, all tables: 50.0% of 2" in text
    assert "false zeros: 2 in 8 columns" in text
