from __future__ import annotations

import html
import json
import math
import tempfile
import webbrowser
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.releases import AWKWARD, small_release

import dpcov
from dpcov.core import Charge, PrivacyCost, Receipt
from dpcov.guessing import least_misses
from dpcov.report import render_page, report_data
from dpcov.report.figures import _colours, spectrum_figure
from dpcov.report.words import guarantee, number, one_in, rounded_up, weakness


@pytest.fixture(scope="module")
def release() -> dpcov.Release:
    return small_release()


def test_the_data_say_what_the_release_answers(release: dpcov.Release) -> None:
    data = report_data(release, "people.dpcov")
    lower, upper = release.mean().interval()
    for i, column in enumerate(data.columns):
        assert column.mean is not None
        assert column.mean.estimate == pytest.approx(release.mean().values[i], rel=1e-5)
        assert column.mean.lower == pytest.approx(lower[i], rel=1e-5)
        assert column.mean.upper == pytest.approx(upper[i], rel=1e-5)
        assert column.spread.estimate == pytest.approx(math.sqrt(release.variance().values[i]), rel=1e-5)
    assert data.correlation is not None
    values, told = data.correlation.arrays()
    np.testing.assert_allclose(values, release.correlation().values, atol=1e-4)
    bounds = release.correlation().interval()
    np.testing.assert_array_equal(told, (bounds.lower > 0) | (bounds.upper < 0))
    (hidden,) = data.unresolved
    assert all(name in hidden for name in ("age", "weight", "sum"))
    assert data.spectrum is not None
    assert data.n_resolved == len(release.columns) - data.n_unresolved == 4
    assert json.loads(json.dumps(data.to_dict(), allow_nan=False))["n_units"] == 20_000


def test_cells_below_the_noise_are_told_apart() -> None:
    # With seeded noise: with true noise, one release in 30 tells all cells from zero.
    data = report_data(small_release(private=False), "people.dpcov")
    assert data.correlation is not None
    told = data.correlation.arrays()[1]
    assert told[0, 3]
    assert not told[1, 4]


def test_the_same_release_gives_the_same_page(release: dpcov.Release) -> None:
    first, second = (render_page(report_data(release, "people.dpcov")) for _ in range(2))
    assert first == second
    assert AWKWARD not in first
    assert "NOT PRIVATE" not in first
    assert "Not vetted" not in first


def test_a_seeded_release_is_stamped() -> None:
    page = render_page(report_data(small_release(private=False), "people.dpcov"))
    assert 'role="alert"><strong>NOT PRIVATE.' in page
    assert "at most a factor" not in page


def test_a_release_without_a_constant_has_no_means() -> None:
    data = report_data(small_release(intercept=False), "people.dpcov")
    assert data.correlation is None
    assert all(column.mean is None for column in data.columns)
    page = render_page(data)
    assert "means are not known" in page
    assert 'id="spectrum"' in page


def test_a_release_of_nothing_but_noise_says_so() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    data = report_data(dpcov.release(rows, rho=1e-6, progress=False, force=True), "few.dpcov")
    assert "noise" in data.problem
    assert "Nothing to show" in render_page(data)


def test_an_unvetted_method_is_marked() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    made = dpcov.release(rows, rho=1, method="exponential", radius=10.0, allow_unvetted=True, progress=False)
    page = render_page(report_data(made, "x.dpcov"))
    assert "<strong>Not vetted.</strong>" in page
    assert "Method: exponential, not vetted" in page


def test_a_seeded_release_of_an_unvetted_method_is_marked_twice() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    made = dpcov.release(rows, rho=1, method="exponential", radius=10.0, allow_unvetted=True, progress=False,
                         rng=np.random.default_rng(0))  # fmt: skip
    page = render_page(report_data(made, "x.dpcov"))
    assert "<strong>NOT PRIVATE.</strong>" in page
    assert "<strong>Not vetted.</strong>" in page


def test_a_vetted_method_is_called_so() -> None:
    made = dpcov.release(np.ones((50, 1)), rho=1, method="gaussian", radius=1.0, progress=False)
    assert "Method: gaussian, vetted" in render_page(report_data(made, "x.dpcov"))


def test_words_of_the_guarantee() -> None:
    cost = dpcov.core.resolve_budget(epsilon=1, delta=Fraction(1, 10**6), gaussian=True)
    guess, promise, *rest = guarantee(Receipt(cost, (Charge("all", cost),), True), Fraction(1, 10**6), 1000)
    assert "at most a factor of e^1 (about 2.72), plus one in a million." in promise
    assert guess.endswith("picks the right candidate at most 54.8% of the time; a coin gets 50%.")
    assert "zCDP" not in " ".join(rest)
    large = PrivacyCost(Fraction(10**8))
    told = guarantee(Receipt(large, (Charge("the search", large),), True), Fraction(1, 10**6), 1000)
    assert "at most 100% of the time" in told[1]
    assert "which is large" in told[2]
    assert told[-1].endswith("because some noise is not Gaussian: the search.")
    assert "protects hardly anyone" in told[0]
    assert "much the same" not in " ".join(told)
    assert one_in(Fraction(1, 30_000)) == "one in 30,000"


@pytest.mark.parametrize("value", [0.88441, 1.0, 2.00001, 12345.6, 0.000123456])
def test_promises_are_rounded_up(value: float) -> None:
    assert value <= rounded_up(value) <= value * 1.001


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.5678, "1,235"), (-0.5, "-0.5000"), (1e-9, "1.000e-09"), (math.nan, "unknown")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_colours_tell_sign_strength_and_noise() -> None:
    values = np.array([[1.0, -0.5], [0.1, math.nan]])
    told = np.array([[True, True], [True, False]])
    (strong, negative), (weak, hidden) = _colours(values, told).tolist()
    assert strong[0] > strong[2]
    assert negative[2] > negative[0]
    assert strong[3] > negative[3] > weak[3]
    assert hidden[0] == hidden[1] == hidden[2]


def test_the_spectrum_figure_marks_what_is_lost(release: dpcov.Release) -> None:
    spectrum = report_data(release, "x").spectrum
    assert spectrum is not None
    assert spectrum_figure(spectrum).count('class="point lost"') == 1


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.5, "would have come out much the same"),
        (2, "could well have come out the same"),
        (8, "could still have come out the same, if less likely,"),
        (1000, "might have come out quite differently"),
    ],
)
def test_words_follow_the_number(epsilon: float, words: str) -> None:
    delta = Fraction(1, 10**6)
    cost = dpcov.core.resolve_budget(epsilon=epsilon, delta=delta)
    told = guarantee(Receipt(cost, (Charge("all", cost),), True), delta, 1000)
    assert words in " ".join(told)
    assert ("protects hardly anyone" in told[0]) == (epsilon > 10)


@pytest.mark.parametrize(
    ("budget", "n_rows", "weak"),
    [
        ({"epsilon": 10, "delta": Fraction(1, 10**6)}, 100, False),
        ({"epsilon": 10.5, "delta": Fraction(1, 10**6)}, 100, True),
        ({"epsilon": 1, "delta": Fraction(1, 100)}, 100, False),
        ({"epsilon": 1, "delta": Fraction(1, 99)}, 100, True),
        ({"rho": 1}, 10**9, False),
        ({"rho": 2}, 10**9, True),
    ],
)
def test_a_budget_that_protects_hardly_anyone_is_told(
    budget: dict[str, Any], n_rows: int, *, weak: bool
) -> None:
    cost = dpcov.core.resolve_budget(**budget)
    assert ("protects hardly anyone" in weakness(cost, budget.get("delta"), n_rows)) == weak


def test_a_release_opens_its_page(
    release: dpcov.Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = release.report()
    assert opened == [page.as_uri()]
    assert page.read_text().startswith("<!doctype html>")
    written = release.report(tmp_path / "people.html")
    assert "people.dpcov" in written.read_text()
    assert len(opened) == 1


def test_the_trade_off_is_never_better_than_the_promise() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    made = dpcov.release(rows, mu=0.5)
    data = report_data(made, "r.dpcov")
    assert data.mu == 0.5
    assert data.trade_off[0] == (0.0, 1.0)
    assert data.trade_off[-1] == (1.0, 0.0)
    for alarms, misses in data.trade_off:
        assert misses <= least_misses(made.receipt.spent, alarms) <= misses + 1e-4
    assert "mu = 0.5" in render_page(data)
    assert '<svg id="trade-off"' in render_page(data)


def test_other_noise_has_no_mu_and_a_weaker_curve() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    made = dpcov.release(rows, rho=0.125, method="adaptive", radius=10.0)
    data = report_data(made, "r.dpcov")
    assert data.mu is None
    assert data.guarantee[-1].endswith("because some noise is not Gaussian: clipping radius.")
    gaussian = PrivacyCost(made.receipt.spent.rho, gaussian=True)
    assert all(misses <= least_misses(gaussian, alarms) + 1e-9 for alarms, misses in data.trade_off)


def test_a_budget_is_told_as_its_custodian_gave_it(release: dpcov.Release, tmp_path: Path) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", epsilon=3, delta=1e-6)
    quarter = PrivacyCost(ledger.account("people").total.rho / 4, gaussian=True)
    ledger.charge("people", quarter, method="whitening", purpose="wages")
    data = report_data(release, "people.dpcov", ledger.account("people"), ledger.history("people"))
    assert data.account is not None
    assert data.account.asked == (3.0, 1e-6)
    assert data.account.spent_share == pytest.approx(0.25)
    assert [line.share for line in data.account.history] == [pytest.approx(0.25)]
    page = render_page(data)
    assert "is epsilon 3 at delta 1e-06 in total. So far 25% of it is spent" in page


def test_the_example_is_about_columns_above_the_noise(release: dpcov.Release) -> None:
    data = report_data(release, "people.dpcov")
    assert 'r.regress("age", on=["weight"])' in html.unescape(render_page(data))
    assert data.spectrum is not None
    hidden = replace(data, spectrum=replace(data.spectrum, left_out=("age", "ratio")))
    assert 'r.regress("weight", on=["sum"])' in html.unescape(render_page(hidden))
