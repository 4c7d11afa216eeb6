from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.norm_counts import counts
from helpers.runs import record_every, relative_error, second_moment, shares, start_run
from numpy.typing import NDArray

from dpcov.methods.whitening import constants
from dpcov.methods.whitening import whiten as step
from dpcov.methods.whitening.constants import (
    CAREFUL_LOOK,
    KEPT_FOR_RELEASE,
    KEPT_IN_THE_DARK,
    LEAST_ROUND_BLIND,
    LOOK,
    MOST_ROUND,
)
from dpcov.methods.whitening.fusion import Knowledge
from dpcov.methods.whitening.looks import NormLook, wide_grid
from dpcov.methods.whitening.rough import find_rough_frame
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White, has_lost_rows, look_at_hidden, whiten

Matrix = NDArray[np.float64]

N = 20_000


def gaussian(seed: int, condition: float = 1e6, d: int = 6) -> Matrix:
    rng = np.random.default_rng(seed)
    mixing = np.linalg.qr(rng.normal(size=(d, d))).Q * np.geomspace(1, condition**-0.5, d)
    return np.asarray(rng.normal(size=(N, d)) @ mixing.T, dtype=np.float64)


def whitened(run: Run, rows: Matrix) -> White:
    white = whiten(run, rows)
    assert white is not None
    return white


@pytest.mark.parametrize("condition", [1e2, 1e6])
@pytest.mark.parametrize("start", ["as they are", "rough frame"])
def test_gaussian_rows_are_white_in_the_end(condition: float, start: str) -> None:
    conditions = []
    for seed in range(4):
        rows = gaussian(seed, condition)
        run = start_run(rows, seed=seed)
        white = whitened(
            run, np.eye(6) if start == "as they are" else find_rough_frame(run, np.eye(run.d)).rows
        )
        mapped = rows @ white.rows.T
        moment = second_moment(mapped)
        conditions.append(np.linalg.cond(moment))
        assert white.unit == pytest.approx(math.sqrt(np.trace(moment) / 6), rel=0.15)
        # Few rows are longer than what was seen: a look shows 68 in a bin, and 136 in four.
        assert (np.linalg.norm(mapped, axis=1) > white.far).sum() < 140
        assert run.left > 0.8
        assert run.rounds[-1].resolved == 6
    # A round aims at noise of 0.3 of a direction, and what is seen in all of them is fused.
    assert np.median(conditions) < 1.35
    assert max(conditions) < 2.5


def test_what_invisible_rows_reach_decides_how_far_they_are_stretched() -> None:
    # Columns of 1 and 1e-6: noise at the radius of the first hides the second, which is dense.
    rows = np.random.default_rng(0).normal(size=(N, 2)) * [1.0, 1e-6]
    run = start_run(rows)
    white = whitened(run, np.eye(2))
    assert run.rounds[0].resolved == 1
    assert run.rounds[-1].resolved == 2
    assert shares(run, "norms of what is invisible")
    assert np.linalg.cond(second_moment(rows @ white.rows.T)) < 1.6


@pytest.mark.parametrize("k", [200, 400])
def test_a_rare_column_stays_in_sight(k: int) -> None:
    for seed in range(6):
        rare = np.zeros(N)
        rare[:k] = 1.0
        rows = np.column_stack([np.random.default_rng(seed).normal(size=(N, 4)), rare])
        run = start_run(rows, seed=seed)
        white = whitened(run, find_rough_frame(run, np.eye(run.d)).rows)
        norms = np.linalg.norm(rows @ white.rows.T, axis=1)
        assert np.median(norms[:k]) < white.far
        # As it comes, its variance is k / N of the others': 50 to 100 times smaller. Its rows may just fit
        # into the region of the others, which reaches 3 to 4 times as far as they are long on average.
        assert np.linalg.cond(second_moment(rows @ white.rows.T)) < 10
        # sqrt(n / k) times as long as the others in each direction, not more.
        assert white.far < 1.5 * math.sqrt(N / k) * white.unit + 4 * math.sqrt(5) * white.unit


def test_the_first_look_is_careful_and_rounds_cost_no_more_than_they_may() -> None:
    run = start_run(gaussian(0))
    whitened(run, np.eye(6))
    looks = shares(run, "norms of the rows")
    assert looks[0] == pytest.approx(CAREFUL_LOOK)
    assert max(looks[1:]) < CAREFUL_LOOK
    assert max(shares(run, "whitening")) <= MOST_ROUND * (1 + 1e-12)


def test_whitening_ends_while_enough_is_left() -> None:
    # Few rows, and columns each a thousand times smaller than the one before: every round costs the most it
    # may and shows a few more, so that nothing else ends it.
    rows = np.random.default_rng(0).normal(size=(1500, 12)) * 1e3 ** -np.arange(12.0)
    run = start_run(rows, 0.3)
    whiten(run, np.eye(12))
    # The round and the looks that cross the line come on top.
    assert KEPT_IN_THE_DARK - MOST_ROUND - 2 * CAREFUL_LOOK < run.left < KEPT_IN_THE_DARK


def test_it_ends_sooner_where_all_directions_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    # However much every round promises.
    monkeypatch.setattr(constants, "ENOUGH_GAIN", math.inf)
    monkeypatch.setattr(constants, "MOST_ROUNDS", 100)
    run = start_run(gaussian(0))
    whitened(run, np.eye(6))
    assert KEPT_FOR_RELEASE - MOST_ROUND - CAREFUL_LOOK < run.left < KEPT_FOR_RELEASE


def test_rows_that_carried_a_direction_are_missed_if_it_is_far_too_short() -> None:
    # 100 rows of 5 have a variance of 1/8 in a table of 20,000; clipped to 1 they have 1/200.
    rows = np.random.default_rng(0).normal(size=(N, 4)) / 2
    for length, rho, lost in ((5.0, 0.5, False), (1.0, 0.5, True), (1.0, 1e-4, False)):
        rows[:, 3] = 0.0
        rows[:100, 3] = length
        run = start_run(rows, rho)
        answer = run.gram(np.eye(4), 8.0, 0.5, "whitening", rule=run.rule)
        here = White(np.eye(4), 1.0, 8.0, 4)
        # A direction that was made white has a quarter of the others' variance at least.
        assert has_lost_rows(answer, here, 0.5) == lost
        assert not has_lost_rows(answer, here, 0.1)


def test_samples_are_read_while_they_show_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "QUICK_ROWS", 5000)
    rows = gaussian(0, 2.0)
    run = start_run(rows)
    asked = record_every(run)
    white = whitened(run, np.eye(6))
    looks, grams = asked["norms of the rows"], asked["whitening"]
    assert looks[0] == 1
    assert set(looks[1:]) == {4}
    assert grams[0] == 4
    assert len(grams) == len(run.rounds)
    assert white.complete
    assert np.linalg.cond(second_moment(rows @ white.rows.T)) < 2.5


def test_a_sample_is_as_short_as_the_least_price_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "QUICK_ROWS", 1000)
    run = start_run(np.random.default_rng(0).normal(size=(N, 12)), 1.0)
    asked = record_every(run)
    whitened(run, np.eye(12))
    # Noise of 0.3 for 0.01 of the budget: sqrt(24) / (N / every) * (far / unit)^2 / 0.1 = 0.3.
    every = asked["whitening"][0]
    assert 1 < every < 20
    assert shares(run, "whitening")[0] == pytest.approx(LEAST_ROUND_BLIND)


def test_what_a_sample_does_not_show_is_asked_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    # One row in 3 has the noise that is aimed at, and the least direction is 1/13 of the others.
    monkeypatch.setattr(constants, "QUICK_ROWS", 2500)
    rows = np.random.default_rng(0).normal(size=(N, 5)) * [1, 1, 1, 1, 0.28]
    run = start_run(rows)
    asked = record_every(run)
    white = whitened(run, np.eye(5))
    assert asked["whitening"][:2] == [3, 1]
    # All rows showed it, so nothing was stretched in the dark.
    assert "norms of what is invisible" not in asked
    assert white.complete


def test_all_rows_are_read_while_directions_are_invisible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "QUICK_ROWS", 2500)
    for sizes in ([1.0, 1e-6], [1.0, 1e-3, 1e-6, 1e-9]):
        run = start_run(np.random.default_rng(0).normal(size=(N, len(sizes))) * sizes)
        asked = record_every(run)
        whitened(run, np.eye(len(sizes)))
        visible = [round_.resolved for round_ in run.rounds]
        assert visible[0] < len(sizes) == visible[-1]
        blind = visible.index(len(sizes))
        # The first look, and those after rounds that did not show all.
        assert asked["norms of the rows"][: blind + 1] == [1] * (blind + 1)
        assert set(asked["norms of what is invisible"]) == {1}
        # Of the first round alone a sample is tried.
        assert 8 >= asked["whitening"][0] > 1 == asked["whitening"][1]
        assert asked["whitening"][1 : 2 + blind] == [1] * (blind + 1)
        assert asked["norms of the rows"][-1] == 8


def test_all_rows_are_read_on_where_a_sample_would_miss_the_furthest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "QUICK_ROWS", 1000)
    rows = np.random.default_rng(0).normal(size=(N, 5))
    # A quick look at all rows shows 87 of them in a bin, so one at a sample shows 1,740.
    rows[:300] *= 6
    run = start_run(rows)
    asked = record_every(run)
    whitened(run, np.eye(5))
    assert set(asked["norms of the rows"]) == {1}
    assert set(asked["whitening"]) == {1}


def test_rows_of_zeros_are_noise() -> None:
    run = start_run(np.zeros((N, 3)))
    assert whiten(run, np.eye(3)) is None
    assert shares(run, "whitening") == []


def test_white_rows_are_left_after_one_round() -> None:
    run = start_run(np.random.default_rng(0).normal(size=(N, 6)))
    whitened(run, np.eye(6))
    assert len(run.rounds) <= 2
    assert run.left > 0.92


def noise_matrices(d: int, sigma: float) -> Matrix:
    """Symmetric, with sigma on the diagonal and sigma / sqrt 2 off it."""
    draws = np.random.default_rng(0).normal(size=(500, d, d)) * sigma
    lower = np.tril(draws, -1) / math.sqrt(2)
    return np.asarray(lower + np.swapaxes(lower, 1, 2) + draws * np.eye(d), dtype=np.float64)


@pytest.mark.parametrize(
    ("values", "too_large"),
    # Exact for many equal directions, with 6% for finite d; an upper bound for few uneven ones.
    [(np.full(30, 2.0), 1.1), (np.array([0.5, 1.0, 2.0, 4.0]), 1.8)],
    ids=["even", "uneven"],
)
def test_the_expected_error_is_that_of_a_release(values: NDArray[np.float64], too_large: float) -> None:
    run = start_run(np.zeros((2000, len(values))))
    expected = step._expected_error(run, 3.0, values)
    sigma = 9.0 / (2000 * math.sqrt(0.5))
    exact = np.diag(values)
    errors = [relative_error(exact + noise, exact) for noise in noise_matrices(len(values), sigma)]
    assert np.mean(errors) < expected < too_large * np.mean(errors)
    assert math.isinf(step._expected_error(run, 3.0, np.array([-0.1, 1.0])))


@pytest.mark.parametrize(("k", "careful"), [(110, True), (200, False)])
def test_looks_stay_careful_unless_a_quick_one_surely_sees_as_far(k: int, *, careful: bool) -> None:
    run = start_run(np.zeros((100_000, 6)), 0.5)
    norms = np.linalg.norm(np.random.default_rng(0).normal(size=(100_000, 6)), axis=1)
    norms[:k] = 700.0
    look = NormLook(counts(norms, wide_grid(), sigma=0.0))
    # A quick look has a noise of 15.8 rows and sees 100 of them in one bin every other time.
    _, care = step._care_for(run, look)
    assert (care == CAREFUL_LOOK) == careful


def test_what_is_invisible_is_looked_at_carefully_before_it_is_stretched_a_lot() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 3)) * [1.0, 1.0, 0.01]
    # Seen from there, the third column is short, but for 60 rows that a quick look misses.
    rows[:60, 2] = 1.0
    for far, careful in ((30.0, True), (7.0, False)):
        run = start_run(rows)
        here = White(np.eye(3), 1.0, far, 2)
        found = look_at_hidden(run, here, np.array([[0.0, 0.0, 1.0]]), LOOK)
        assert [share > LOOK for share in shares(run, "norms of what is invisible")] == [False, True][
            : 1 + careful
        ]
        assert (found.far > 0.5) == careful


def test_a_direction_of_which_nothing_is_seen_stays_as_long_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(N, 3)) * [1.0, 3.0, 0.0]
    run = start_run(rows)
    monkeypatch.setattr(run, "look", lambda *_, **__: NormLook(counts(np.zeros(9), wide_grid(), 5.0)))
    here = White(np.eye(3), 3.0, 12.0, 0)
    knowledge = Knowledge([run.gram(here.rows, here.far, 0.04, "whitening", rule=run.rule)])
    following = step._follow(run, here, knowledge, LOOK)
    assert following.visible.sum() == 2
    assert np.linalg.norm(following.rows[~following.visible]) == pytest.approx(1)
    # The others are as long as the longest of them was.
    moment = second_moment(rows @ following.rows[following.visible].T)
    np.testing.assert_allclose(np.diag(moment), following.unit**2, rtol=0.1)
    assert following.unit == pytest.approx(3, rel=0.1)
