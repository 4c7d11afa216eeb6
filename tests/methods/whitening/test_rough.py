from __future__ import annotations

import numpy as np
import pytest
from helpers.runs import record_every, second_moment, shares, start_run
from numpy.typing import NDArray

from dpcov.core import Rule
from dpcov.methods.whitening import constants
from dpcov.methods.whitening.constants import MOST_FOR_A_ROUND, ROUND_SHARE
from dpcov.methods.whitening.rough import find_rough_frame
from dpcov.methods.whitening.run import Run

Matrix = NDArray[np.float64]

N = 20_000


def mixed(rows: Matrix) -> Matrix:
    d = rows.shape[1]
    return np.asarray(rows @ np.linalg.qr(np.random.default_rng(5).normal(size=(d, d))).Q.T, dtype=np.float64)


def purposes(run: Run) -> list[str]:
    return [charge.purpose for charge in run.curator.receipt().charges]


def test_small_directions_are_amplified_until_they_are_seen() -> None:
    conditions = []
    for seed in range(5):
        rows = mixed(np.random.default_rng(seed).normal(size=(N, 5)) * [1, 1e-1, 1e-3, 1e-5, 1e-6])
        run = start_run(rows, seed=seed)
        frame = find_rough_frame(run, np.eye(run.d))
        assert frame.seen.all()
        conditions.append(np.linalg.cond(frame.rows @ second_moment(rows) @ frame.rows.T))
        assert run.left > 0.9
    # Unit rows tell the shape of a Gaussian table; noise of 0.1 of an even share leaves a factor, and
    # one run in 15 sees a direction at the edge of the noise only.
    assert np.median(conditions) < 4
    assert max(conditions) < 100


def test_rare_directions_are_left_as_long_as_they_are() -> None:
    looked = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        # A round shows one of 8 directions that 1.5 sqrt(16 / (0.004 rho)) = 134 rows have, and a quick look
        # the 320 rows that have any of them.
        rare = np.zeros((N, 8))
        rare[np.arange(320), np.arange(320) % 8] = 1.0
        rows = np.column_stack([rng.normal(size=(N, 12)), rare])
        run = start_run(rows, seed=seed)
        frame = find_rough_frame(run, np.eye(run.d))
        # With 40 rows and the noise of a round one of them may show now and then.
        assert frame.rank <= 13
        looked += "norms of what is unseen" in purposes(run)
        # Their rows stay in reach of the others, unless one showed. If amplified as small directions are,
        # they are 10 to 20 times as long.
        norms = np.linalg.norm(rows @ frame.rows.T, axis=1)
        assert frame.rank == 13 or np.median(norms[:320]) < 3 * np.median(norms[320:])
    assert looked >= 4


def test_a_direction_that_is_nothing_ends_the_search_and_spoils_none() -> None:
    # Amplified, it is as long as the others make it by noise, and a difference of such directions has more
    # noise than each: held against that of one, it was seen in 13 runs of 60.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.normal(size=(N, 3)), np.zeros(N)])
        run = start_run(rows, seed=seed)
        frame = find_rough_frame(run, np.eye(run.d))
        assert frame.seen.tolist().count(True) == 3
        assert run.left > 0.9
        white = (frame.rows @ second_moment(rows) @ frame.rows.T)[np.ix_(frame.seen, frame.seen)]
        assert np.linalg.cond(white) < 2.5


def test_rows_of_zeros_end_it_after_some_blind_rounds() -> None:
    run = start_run(np.zeros((N, 3)))
    frame = find_rough_frame(run, np.eye(run.d))
    assert frame.rank == 0
    assert purposes(run) == ["directions of the rows"] * 5


def test_a_round_costs_what_its_noise_asks_for() -> None:
    charged = {}
    for n_rows in (300, 3000, 30_000):
        run = start_run(np.random.default_rng(0).normal(size=(n_rows, 4)), 1.0)
        find_rough_frame(run, np.eye(run.d))
        charged[n_rows] = float(run.curator.receipt().charges[0].cost.rho)
    # Few rows: noise 0.45 of an even share of the rows, sqrt(2 d) / (n sqrt(rho')) = 0.45 / d.
    assert charged[300] == MOST_FOR_A_ROUND or abs(charged[300] / (8 * (4 / 0.45 / 300) ** 2) - 1) < 1e-9
    assert charged[3000] == charged[30_000] == ROUND_SHARE


def test_long_tables_are_sampled() -> None:
    run = start_run(np.random.default_rng(0).normal(size=(800_000, 2)), 1.0)
    asked = []
    original = run.gram

    def gram(*arguments: object, **options: object) -> object:
        asked.append((options["every"], options["rule"]))
        return original(*arguments, **options)  # type: ignore[arg-type]

    run.gram = gram  # type: ignore[method-assign,assignment]
    assert find_rough_frame(run, np.eye(run.d)).rank == 2
    assert set(asked) == {(8, Rule.DIRECTION)}


def test_a_sample_is_as_long_as_its_noise_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # 30 columns: noise of 0.45 / 30 in unit rows for the least price takes sqrt(60 / 0.004) * 30 / 0.45 rows.
    monkeypatch.setattr(constants, "QUICK_ROWS", 2000)
    run = start_run(np.random.default_rng(0).normal(size=(N, 30)), 1.0)
    asked = record_every(run)
    find_rough_frame(run, np.eye(run.d))
    assert asked["directions of the rows"][0] == int(N / 8165) == 2
    assert shares(run, "directions of the rows")[0] == pytest.approx(ROUND_SHARE)


def test_all_rows_are_read_before_what_a_sample_hides_is_amplified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "QUICK_ROWS", 5000)
    for seed in range(3):
        rare = np.zeros(N)
        rare[:130] = 1.0
        rows = np.column_stack([np.random.default_rng(seed).normal(size=(N, 4)), rare])
        run = start_run(rows, seed=seed)
        asked = record_every(run)
        frame = find_rough_frame(run, np.eye(run.d))
        every = asked["directions of the rows"]
        # All rows show it: 130 of them, where 1.5 sqrt(4 / (0.004 rho)) = 67 are enough.
        assert every == [4] * (len(every) - 1) + [1]
        assert "norms of what is unseen" not in asked
        assert frame.seen.all()
        norms = np.linalg.norm(rows @ frame.rows.T, axis=1)
        assert np.median(norms[:130]) < 60 * np.median(norms[130:])
