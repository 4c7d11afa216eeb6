from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.runs import second_moment, start_run
from numpy.typing import NDArray

from dpcov.methods.whitening import settle as step
from dpcov.methods.whitening.compress import compress_longest
from dpcov.methods.whitening.constants import CAREFUL_LOOK, MOST_ROUND
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.settle import settle
from dpcov.methods.whitening.whiten import White

Matrix = NDArray[np.float64]

N, D, RARE = 20_000, 5, 200
# What a rare direction was stretched to: the others have a root mean square of 1.
STRETCHED = 20.0


def stretched_rows(rare: float = STRETCHED) -> Matrix:
    """Rows that are white but for a direction that few of them have."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((N, D))
    rows[:, 0] *= 0.01
    rows[:RARE, 0] += rare * np.sqrt(N / RARE)
    return np.asarray(rows)


def unaware(d: int = D) -> White:
    """Coordinates in which nobody has seen the rare rows."""
    return White(np.eye(d), typical=np.sqrt(d), far=5.0, rank=d)


def charges(run: Run) -> list[tuple[str, float]]:
    return [
        (charge.purpose, round(float(charge.cost.rho) / run.rho, 6))
        for charge in run.curator.receipt().charges
    ]


def test_a_direction_that_rare_rows_make_long_is_compressed() -> None:
    rows = stretched_rows()
    run = start_run(rows, seed=1)
    white, histogram = settle(run, unaware())
    moment = second_moment(rows @ white.rows.T)
    # It was 400 times as long as the others; a round with 4% of the budget tells it roughly.
    assert np.linalg.cond(moment) < 20
    longest = np.linalg.norm(rows @ white.rows.T, axis=1)
    assert histogram.radius(3.0) == pytest.approx(longest.max(), rel=0.15)
    assert 0.5 * longest.max() < white.far < 2 * longest.max()
    assert charges(run) == [
        ("histogram of the norms", CAREFUL_LOOK),
        ("whitening", MOST_ROUND),
        ("histogram of the norms", CAREFUL_LOOK),
    ]


def test_ordinary_rows_cost_one_look() -> None:
    rows = np.random.default_rng(4).standard_normal((N, D))
    run = start_run(rows, seed=2)
    before = unaware()
    white, _ = settle(run, before)
    assert white is before
    assert charges(run) == [("histogram of the norms", CAREFUL_LOOK)]


def test_rows_that_whitening_saw_cost_one_look() -> None:
    run = start_run(stretched_rows(), seed=1)
    before = replace(unaware(), far=250.0)
    assert settle(run, before)[0] is before
    assert len(run.curator.receipt().charges) == 1


def test_columns_that_were_only_scaled_cost_one_look() -> None:
    run = start_run(stretched_rows(), seed=1)
    before = replace(unaware(), is_white=False)
    assert settle(run, before)[0] is before
    assert len(run.curator.receipt().charges) == 1


def test_outliers_are_not_for_compressing() -> None:
    run = start_run(stretched_rows(), seed=1)
    run.contamination = 0.05
    before = unaware()
    assert settle(run, before)[0] is before


def test_far_rows_without_a_direction_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(5).standard_normal((N, 20))
    # Far out in all directions alike: too few in any of them to show.
    rows[:80] *= 30 / np.linalg.norm(rows[:80], axis=1)[:, None]
    run = start_run(rows, seed=3)
    asked: list[float] = []
    inner = compress_longest

    def counted(run: Run, white: White, far: float) -> White | None:
        asked.append(far)
        return inner(run, white, far)

    monkeypatch.setattr(step, "compress_longest", counted)
    before = unaware(20)
    white, _ = settle(run, before)
    assert len(asked) == 1
    assert white is before
