from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.runs import start_run

import dpcov
from dpcov.methods.whitening import columns as step
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.columns import are_asked, standardise
from dpcov.methods.whitening.run import Run

BOUNDS = {"age": dpcov.number(20, 100), "income": dpcov.number(0, 4e6), "height": dpcov.number()}


def people(n_rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rng = np.random.default_rng(0)
    return np.column_stack(
        [rng.uniform(25, 65, n_rows), rng.lognormal(10, 0.5, n_rows), rng.normal(170, 8, n_rows)]
    )


def test_a_short_table_is_not_asked_about_its_columns_and_bounds_stand_in() -> None:
    run = start_run(people(40), constant=True, columns=BOUNDS)
    assert run.has_few_rows
    forms = standardise(run)
    assert not run.curator.receipt().charges
    # (x - 60) / 40 and (x - 2e6) / 2e6; a column without bounds stays as it is.
    expected = np.array([[1 / 40, 0, 0, -1.5], [0, 1 / 2e6, 0, -1], [0, 0, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(forms, expected)
    # Without a constant nothing can be subtracted: the longest value that is possible is 1 then.
    alone = start_run(people(40), columns=BOUNDS)
    np.testing.assert_allclose(standardise(alone), np.diag([1 / 100, 1 / 4e6, 1]))


def test_rows_tell_more_than_bounds_where_asking_is_cheap() -> None:
    run = start_run(people(20_000), constant=True, columns=BOUNDS)
    forms = standardise(run)
    mapped = np.column_stack([people(20_000), np.ones(20_000)]) @ forms.T
    # Bounds would leave incomes at -0.99 with a standard deviation of 0.006.
    assert np.abs(mapped[:, :3].mean(axis=0)).max() < 0.5
    assert (np.abs(np.log2(mapped[:, :3].std(axis=0))) < 1).all()


def test_bounds_that_overflow_tell_nothing() -> None:
    ends = {"all": (-1.7e308, 1.7e308), "tiny": (0, 5e-324), "offset": (1e300, 1.0000000001e300)}
    columns = {name: dpcov.number(*bounds) for name, bounds in ends.items()}
    forms = standardise(start_run(people(40), constant=True, columns=columns))
    assert np.isfinite(forms).all()
    np.testing.assert_array_equal(forms[1:], np.eye(4)[1:])


def test_a_short_table_may_spend_three_tenths_on_its_centres() -> None:
    # A round costs 8% here, and means that are 10^6 times the spread ask for all of them.
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(680, 4)) + 1e6 * np.arange(1, 5)
        run = start_run(rows, 0.09, seed, constant=True)
        standardise(run)
        assert 0.62 < run.left < 0.7


def test_a_column_that_is_one_in_most_rows_keeps_its_scale() -> None:
    # Rows that are 1 lie at their own centre, and the others are too few to be seen: a 14th of the rows where
    # a 34th is the noise of one count.
    rng = np.random.default_rng(8)
    rows = np.column_stack([rng.normal(50, 10, (4_000, 11)), rng.random(4_000) < 0.93])
    spread = rows[:, -1].std()
    for seed in range(10):
        run = start_run(rows, 0.0244, seed, constant=True)
        forms = standardise(run)
        # About 0 the scale is 3.8 times the spread, and bins are a factor of 2 wide.
        assert 0.3 < 1 / forms[11, 11] / spread < 8


def test_zero_is_the_centre_of_a_column_that_has_little_else() -> None:
    rng = np.random.default_rng(3)
    flags = rng.random((20_000, 2)) < [0.3, 0.7]
    run = start_run(np.asarray(flags, dtype=float), constant=True)
    forms = standardise(run)
    assert forms[0, 2] == 0
    assert -forms[1, 2] / forms[1, 1] == pytest.approx(0.7, abs=0.35)
    # The first is looked at once.
    assert 1 / forms[0, 0] == pytest.approx(np.sqrt(0.3), rel=0.5)


def test_rows_with_gaps_do_not_make_zero_the_centre() -> None:
    rng = np.random.default_rng(4)
    rows = np.column_stack([rng.normal(50, 10, 20_000), rng.random(20_000) < 0.2])
    rows[:15_000] = np.nan
    rows[:5_000, 1] = 0.0
    forms = standardise(start_run(rows, constant=True))
    assert -forms[0, 2] / forms[0, 0] == pytest.approx(50, abs=10)
    assert forms[1, 2] == 0


@pytest.mark.parametrize(
    ("sizes", "rounds"), [((1.0, 0.8), 1), ((1.0, 0.6, 0.5), 2), ((1.0, 0.6, 0.1, 0.1), 3)]
)
def test_a_centre_is_looked_for_while_rows_come_closer(
    sizes: tuple[float, ...], rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([SimpleNamespace(found=True, size=size, zero_share=0.0, unseen_share=0.1) for size in sizes])
    moves: list[int] = []

    def move(_run: object, columns: list[object]) -> list[object]:
        moves.append(len(columns))
        return columns

    monkeypatch.setattr(step, "_look", lambda _run, _columns: [next(looks)])
    monkeypatch.setattr(step, "_move", move)
    forms = standardise(start_run(np.ones((1_000, 1)), constant=True))
    assert len(moves) == rounds
    assert 1 / forms[0, 0] == pytest.approx(sizes[rounds])


def test_a_column_keeps_its_scale_if_nothing_is_left_for_its_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(50, 10, (20_000, 2))
    monkeypatch.setattr(c, "MOST_CENTRINGS", 0)
    forms = standardise(start_run(rows, constant=True))
    np.testing.assert_allclose(forms[:2, :2], np.diag(np.diag(forms[:2, :2])))
    assert 1 / forms[0, 0] == pytest.approx(51, rel=0.5)


@pytest.mark.parametrize(("centre", "kept"), [(2013.0, True), (1.0, False)])
def test_a_centre_that_the_budget_cuts_short_stays_where_it_is(
    centre: float, *, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows came closer in each round, and nobody knows whether they have one value: if it is 1, it is that of
    # a 0/1 column with few zeros.
    sizes, left = iter((centre, centre / 20, centre / 400)), iter((1.0, 0.8, 0.6, 0.6))

    def look(_run: object, _columns: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(found=True, size=next(sizes), zero_share=0.0, unseen_share=0.25)]

    monkeypatch.setattr(Run, "left", property(lambda _run: next(left)))
    monkeypatch.setattr(step, "_look", look)
    monkeypatch.setattr(step, "_move", lambda _run, columns: [replace(columns[0], centre=centre)])
    forms = standardise(start_run(np.full((1_000, 1), centre), constant=True))
    assert -forms[0, 1] / forms[0, 0] == pytest.approx(centre)
    assert 1 / forms[0, 0] == pytest.approx(centre / 400 if kept else centre / 2)


def test_bounds_of_all_columns_save_what_asking_would_cost() -> None:
    # 4 (20 / 400)^2 / 0.11 is 9% of the budget for each round.
    rows = np.random.default_rng(0).normal(size=(400, 4))
    names = [f"c{place}" for place in range(4)]
    told = {name: dpcov.number(-5, 5) for name in names}
    assert are_asked(start_run(rows, 0.11))
    assert are_asked(start_run(rows, 0.11, columns=told | {"c1": dpcov.number(0)}))
    assert not are_asked(start_run(rows, 0.11, columns=told))
    assert not are_asked(start_run(rows[:300], 0.11))


def test_more_is_spent_on_columns_where_rows_are_few() -> None:
    shares = {n: _share_of_first_round(n) for n in (400, 700, 1_500, 4_000, 40_000)}
    # Four columns: 4 (34 / n)^2 / rho, between 0.1 and 3%, or 4 (20 / n)^2 / rho if that is more.
    wanted = {400: 0.05, 700: 0.03, 1_500: 4 * (34 / 1_500) ** 2 / 0.2, 4_000: 4 * (34 / 4_000) ** 2 / 0.2}
    assert shares == pytest.approx(wanted | {40_000: 0.001}, rel=1e-6)


def _share_of_first_round(n_rows: int) -> float:
    run = start_run(np.random.default_rng(0).normal(size=(n_rows, 4)), 0.2)
    standardise(run)
    return float(run.curator.receipt().charges[0].cost.rho) / 0.2


def test_a_column_that_spans_many_doublings_is_brought_to_scale() -> None:
    rng = np.random.default_rng(9)
    rows = np.column_stack([rng.normal(50, 10, (5_000, 11)), rng.lognormal(15, 1.6, 5_000)])
    for seed in range(5):
        forms = standardise(start_run(rows, 0.0244, seed, constant=True))
        # Its median is 3 10^6. Narrow bins miss it in 1 of 6 tries, and leave it as it is.
        assert 1e5 < 1 / forms[11, 11] < 1e8
