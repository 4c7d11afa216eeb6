from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.runs import second_moment, start_run
from numpy.typing import NDArray

from dpcov.methods.whitening import settle as step
from dpcov.methods.whitening.compress import compress_longest
from dpcov.methods.whitening.constants import CAREFUL_LOOK, MOST_ROUND, TAIL_SHARE
from dpcov.methods.whitening.heavy import FarRows
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
    settled = settle(run, unaware())
    white, histogram = settled.white, settled.histogram
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
        ("directions of the tail", TAIL_SHARE),
    ]


def test_ordinary_rows_cost_one_look_and_their_far_ones_another() -> None:
    rows = np.random.default_rng(4).standard_normal((N, D))
    run = start_run(rows, seed=2)
    before = unaware()
    assert settle(run, before).white is before
    assert charges(run) == [("histogram of the norms", CAREFUL_LOOK), ("directions of the tail", TAIL_SHARE)]


def test_rows_that_whitening_saw_are_not_compressed() -> None:
    run = start_run(stretched_rows(), seed=1)
    before = replace(unaware(), far=250.0)
    assert settle(run, before).white is before
    assert len(run.curator.receipt().charges) == 2


def test_columns_that_were_only_scaled_cost_one_look() -> None:
    run = start_run(stretched_rows(), seed=1)
    before = replace(unaware(), is_white=False)
    settled = settle(run, before)
    assert settled.white is before
    assert settled.far_rows is None
    assert len(run.curator.receipt().charges) == 1


def test_outliers_are_not_for_compressing() -> None:
    run = start_run(stretched_rows(), seed=1)
    run.contamination = 0.05
    before = unaware()
    assert settle(run, before).white is before
    assert len(run.curator.receipt().charges) == 1


@pytest.mark.parametrize("every", [1, 4])
def test_the_look_before_tells_where_the_bulk_ends_so_that_one_scan_is_enough(every: int) -> None:
    rows = np.random.default_rng(4).standard_normal((N, D))
    run = start_run(rows, seed=2)
    white = White.seen(np.eye(D), run.look(np.eye(D), 0.03, "look", every=every), D)
    expected = FarRows.worth_a_look(run, white)
    assert expected is not None
    scans = []
    inner = run.curator.ask

    def counted(*queries: Any) -> Any:
        scans.append(len(queries))
        return inner(*queries)

    run.curator.ask = counted  # type: ignore[method-assign]
    settled = settle(run, white)
    assert scans == [2]
    assert settled.white is white
    assert settled.far_rows is not None
    # The look has bins of 2^(1/4), in which the numbers of a normal tail fall by a factor of 8.
    beyond = (np.linalg.norm(rows, axis=1) > settled.far_rows.radius).sum()
    assert 0.5 * expected.rows < beyond < 8 * expected.rows


@pytest.mark.parametrize("further", [True, False])
def test_far_rows_are_looked_at_again_where_the_careful_look_shows_them_elsewhere(*, further: bool) -> None:
    tables = [np.random.default_rng(4).standard_normal((N, D)) for _ in range(2)]
    # 400 rows, less than twice as far out as others.
    tables[0][:400] *= 8 / np.linalg.norm(tables[0][:400], axis=1)[:, None]
    rows, seen = tables if further else tables[::-1]
    look = start_run(seen, seed=2).look(np.eye(D), 0.03, "look")
    run = start_run(rows, seed=2)
    settled = settle(run, White.seen(np.eye(D), look, D))
    assert [purpose for purpose, _ in charges(run)].count("directions of the tail") == 2
    assert settled.far_rows is not None
    assert (6 < settled.far_rows.radius < 8.5) == further


def test_few_rows_are_not_worth_a_look_at_the_far_ones() -> None:
    # The noise of a look at directions is sqrt(2 * 4 / (0.03 * 0.5)) = 23 rows; 8 times that are looked at.
    for n_rows, worth in ((2000, True), (1700, False)):
        run = start_run(np.random.default_rng(0).standard_normal((n_rows, 4)), 0.5)
        assert (FarRows.worth_a_look(run, unaware(4)) is not None) == worth


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
    settled = settle(run, before)
    assert len(asked) == 1
    assert settled.white is before
