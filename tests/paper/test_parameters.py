from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpcov

Rows = NDArray[np.float64]


def normal_rows(n_rows: int = 20_000, d: int = 3, seed: int = 0) -> Rows:
    return np.random.default_rng(seed).normal(size=(n_rows, d))


def test_a_ball_beats_a_radius_far_from_the_origin() -> None:
    rows = normal_rows() + np.array([100.0, -50.0, 2000.0])
    # Both promises hold with probability 0.99; the seeds are fixed.
    around_zero = dpcov.covering_radius(rows, rho=0.5, rng=np.random.default_rng(0))
    ball = dpcov.enclosing_ball(rows, rho=0.5, rng=np.random.default_rng(0))
    assert (np.linalg.norm(rows, axis=1) > around_zero.radius).sum() <= around_zero.outside_at_most
    assert (np.linalg.norm(rows - ball.centre, axis=1) > ball.radius).sum() <= ball.outside_at_most
    assert 100 * ball.radius < around_zero.radius
    for result in (around_zero, ball):
        assert result.receipt.spent.fits_within(result.receipt.limit)


def test_a_radius_is_that_of_the_one_cluster_problem() -> None:
    rows = normal_rows() * 7
    rows[:5] = np.nan
    result = dpcov.covering_radius(pl.DataFrame(rows, schema=["a", "b", "c"]), epsilon=1, delta=1e-6)
    norms = np.linalg.norm(rows[5:], axis=1)
    # Each with probability 0.99; the seed is fixed.
    seeded = dpcov.covering_radius(rows, rho=0.5, rng=np.random.default_rng(0))
    assert (norms > seeded.radius).sum() <= seeded.outside_at_most
    assert seeded.radius <= 1.1 * norms.max()
    assert 0.5 * norms.max() < result.radius < 2 * norms.max()
    assert result.receipt.epsilon(1e-6) <= 1
    assert result.receipt.private
    assert not seeded.receipt.private


def test_the_least_eigenvalue_of_a_table() -> None:
    rows = normal_rows(60_000) @ np.diag([0.2, 1.0, 5.0])
    truth = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[0])
    result = dpcov.least_eigenvalue(
        rows, m=400, epsilon=1, delta=1e-6, radius=30.0, rng=np.random.default_rng(0)
    )
    assert 0.25 * truth <= result.value <= 1.5 * truth
    assert float(result.receipt.spent.rho) == 0.5
    assert float(result.receipt.spent.delta) == 1e-6
    assert result.receipt.spent == result.receipt.limit


def test_subsamplability_is_told_from_its_lack() -> None:
    rows = normal_rows(60_000)
    heavy = rows * np.exp(4 * np.random.default_rng(1).normal(size=(60_000, 1)))
    options: dict[str, Any] = {"m": 300, "epsilon": 1, "delta": 1e-6, "radius": 1e6}
    # Noise alone fails a good table once in 1,000 draws; the seed is fixed.
    good, bad = (
        dpcov.subsamplability(table, **options, rng=np.random.default_rng(0)) for table in (rows, heavy)
    )
    assert good.passed
    assert not bad.passed
    assert good.groups == 200
    assert 0.8 <= good.at_least <= 1.0
    assert good.at_least <= good.score
    assert good.receipt.spent == good.receipt.limit


def two_heaps(share: float, ratio: float, n_rows: int = 4000) -> Rows:
    """Groups of one row, of which a share has the square 1 and the others `ratio` times that."""
    return np.where(np.arange(n_rows) < share * n_rows, 1.0, math.sqrt(ratio))[:, None]


def answer_for(rows: Rows, **options: Any) -> Any:
    given: dict[str, Any] = {"m": 1, "epsilon": 5, "delta": 1e-6, "radius": 10.0, **options}
    return dpcov.subsamplability(rows, **given, rng=np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [0.5, 0.3])
def test_groups_agree_within_two_alpha_over_one_less_alpha(alpha: float) -> None:
    distance = 2 * alpha / (1 - alpha)
    # Half of the pairs are of the two kinds: they agree, or they do not. Noise is below 0.01.
    assert answer_for(two_heaps(0.5, 0.99 * (1 + distance)), alpha=alpha).score == pytest.approx(1, abs=0.02)
    assert answer_for(two_heaps(0.5, 1.01 * (1 + distance)), alpha=alpha).score == pytest.approx(
        0.5, abs=0.02
    )


def test_the_pass_mark_is_four_fifths() -> None:
    # Of 0.9^2 + 0.1^2 = 0.82 and 0.87^2 + 0.13^2 = 0.774 of all pairs, with noise below 0.01.
    assert answer_for(two_heaps(0.9, 9.0)).passed
    assert not answer_for(two_heaps(0.87, 9.0)).passed


ASK: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "covering_radius": (dpcov.covering_radius, {"rho": 0.5}),
    "enclosing_ball": (dpcov.enclosing_ball, {"rho": 0.5}),
    "least_eigenvalue": (dpcov.least_eigenvalue, {"m": 5, "epsilon": 1, "delta": 1e-6, "radius": 10.0}),
    "subsamplability": (dpcov.subsamplability, {"m": 5, "epsilon": 1, "delta": 1e-6, "radius": 10.0}),
}
BUDGETS = [
    ({"rho": 0}, "rho"), ({"rho": -1}, "rho"), ({"rho": math.nan}, "rho"), ({"rho": None}, "budget"),
    ({"rho": 0.5, "epsilon": 1}, "Give one of rho"), ({"rho": 1e-9}, "spend more"), ({"rng": 3}, "rng"),
    ({"columns": ["a"]}, "columns"), ({"rho": "much"}, "rho"),
]  # fmt: skip
GROUPS = [
    ({"m": 0}, "m must"), ({"m": -1}, "m must"), ({"m": "x"}, "m must"), ({"m": 10**6}, "group_size"),
    ({"m": math.inf}, "m must"), ({"m": 600}, "group_size"), ({"m": 250}, "use groups of at most m="),
    ({"m": 100, "epsilon": 0.01}, "use a table of at least"), ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1}, "epsilon"), ({"epsilon": math.inf}, "epsilon"), ({"epsilon": None}, "epsilon"),
    ({"delta": 0}, "delta"), ({"delta": 1}, "delta"), ({"delta": -1e-6}, "delta"),
    ({"radius": 0}, "radius"), ({"radius": math.nan}, "radius"), ({"radius": 1e200}, "radius"),
    ({"alpha": 0}, "alpha"), ({"alpha": 0.6}, "alpha"), ({"rng": 3}, "rng"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [(name, *bad) for name in ("covering_radius", "enclosing_ball") for bad in BUDGETS]
    + [(name, *bad) for name in ("least_eigenvalue", "subsamplability") for bad in GROUPS],
)
def test_bad_arguments_are_refused_in_words(name: str, change: dict[str, Any], message: str) -> None:
    ask, good = ASK[name]
    with pytest.raises(dpcov.ArgumentError, match=message):
        ask(normal_rows(1000), **{**good, **change})


@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, 1e308, 5e-324])
def test_no_table_gives_a_warning_or_another_error(name: str, value: float) -> None:
    ask, good = ASK[name]
    rows = normal_rows(2000)
    rows[::2] = value
    rows[1] = -value
    with contextlib.suppress(dpcov.NoAnswerError):
        ask(rows, **good)


@pytest.mark.parametrize("name", ASK)
def test_a_neighbour_leaves_the_receipt_alone(name: str) -> None:
    ask, good = ASK[name]
    rows = normal_rows(5000)
    neighbour = rows.copy()
    neighbour[17] = [1e250, -1e250, math.nan]
    # The same noise: what was asked and paid does not depend on one row, and the answer hardly does.
    first, second = (ask(table, **good, rng=np.random.default_rng(1)) for table in (rows, neighbour))
    assert first.receipt.limit == second.receipt.limit
    if name != "enclosing_ball":
        assert first.receipt == second.receipt


def test_a_ledger_pays_and_gets_back_what_was_not_spent(tmp_path: Path) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=2, delta=1e-5)
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
    ball = dpcov.enclosing_ball(normal_rows(), rho=0.5, **paid)
    left = ledger.remaining("people").rho
    assert left == 2 - ball.receipt.spent.rho
    value = dpcov.least_eigenvalue(normal_rows(), m=100, epsilon=1, delta=1e-6, radius=9, **paid)
    assert ledger.remaining("people").rho == left - value.receipt.spent.rho
    with pytest.raises(dpcov.ArgumentError, match="alpha"):
        dpcov.subsamplability(normal_rows(), m=400, epsilon=0.5, delta=1e-6, radius=9, alpha=0.7, **paid)
    with pytest.raises(dpcov.BudgetError, match="people"):
        dpcov.covering_radius(normal_rows(), rho=2, **paid)
    assert [entry.method for entry in ledger.history("people")][-1] == "least eigenvalue"
