from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from methods.whitening.test_tail import make_histogram
from numpy.typing import NDArray

import dpcov
from dpcov.methods.whitening import method as whitening
from dpcov.methods.whitening.heavy import HeavyDirection, Region, Tail

Matrix = NDArray[np.float64]

N, D = 20_000, 6
MIXING = np.random.default_rng(1).standard_normal((D, D))


def one_heavy_column(seed: int, kind: str) -> Matrix:
    rng = np.random.default_rng([seed, 0])
    rows = rng.standard_normal((N, D))
    if kind == "student":
        rows[:, 0] = rng.standard_t(4, N)
    elif kind == "log-normal":
        rows[:, 0] = np.exp(rows[:, 0])
    elif kind == "rare":
        rows[:, 0] = rng.random(N) < 0.01
    return np.asarray(rows @ MIXING.T + 3)


def release(rows: Matrix, seed: int) -> dpcov.Release:
    return dpcov.release(rows, rho=0.5, rng=np.random.default_rng([seed, 1]))


def relative_error(made: dpcov.Release, rows: Matrix) -> float:
    table = np.column_stack([rows, np.ones(len(rows))])
    root = np.linalg.inv(np.linalg.cholesky(table.T @ table / len(rows)))
    return float(np.linalg.norm(root @ made.second_moment().values @ root.T - np.eye(D + 1), 2))


@pytest.mark.parametrize("kind", ["student", "log-normal", "rare"])
def test_one_heavy_column_costs_the_others_little(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [one_heavy_column(seed, kind) for seed in range(9)]
    made = [release(rows, seed) for seed, rows in enumerate(tables)]
    found = [
        (estimate, rows) for estimate, rows in zip(made, tables, strict=True) if estimate.diagnostics["heavy"]
    ]
    assert len(found) >= 7
    for estimate, rows in found:
        first = estimate.diagnostics["heavy"][0]
        # The form that sees the heavy column alone, and the one that was found: white, they are the same.
        alone = rows @ np.linalg.inv(MIXING)[0]
        seen = rows @ np.array(first["direction"])[:D]
        assert abs(np.corrcoef(alone, seen)[0, 1]) > 0.8
        assert first["stretch"] > 1
    monkeypatch.setattr(whitening, "find_heavy", lambda *_: ())
    in_a_ball = [release(rows, seed) for seed, rows in enumerate(tables)]
    errors, errors_in_a_ball = (
        np.median([relative_error(estimate, rows) for estimate, rows in zip(estimates, tables, strict=True)])
        for estimates in (made, in_a_ball)
    )
    assert errors < 0.7 * errors_in_a_ball


def test_intervals_of_a_heavy_column_hold() -> None:
    held, blind = 0, 0
    for seed in range(40):
        rows = one_heavy_column(seed, "log-normal")
        truth = np.var(rows[:, 4])
        made = release(rows, seed)
        for losses in (made.losses, ()):
            lower, upper = replace(made, losses=losses).variance(["x4"]).interval()
            inside = bool(lower[0] <= truth <= upper[0])
            held, blind = (held + inside, blind) if losses else (held, blind + inside)
    # If intervals hold 93% or more, fewer than 31 of 40 happen once in 1,000.
    assert held >= 31
    # Without the laws of what was lost they do not.
    assert blind < 31


def test_light_tables_are_clipped_in_a_ball() -> None:
    rng = np.random.default_rng(0)
    found = [bool(release(rng.standard_normal((N, D)), seed).diagnostics["heavy"]) for seed in range(20)]
    # By chance 1 in 20 at most: more than 5 of 20 happen once in 3,000.
    assert sum(found) <= 5


def test_elliptical_tails_stand_out_in_no_direction() -> None:
    found = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        rows = rng.standard_normal((N, D)) / np.sqrt(rng.chisquare(5, (N, 1)) / 5)
        found.append(bool(release(rows, seed).diagnostics["heavy"]))
    assert sum(found) <= 5


def test_a_single_column_needs_no_ellipsoid() -> None:
    made = release(np.random.default_rng(0).standard_t(3, (N, 1)), 0)
    assert made.diagnostics["heavy"] == []
    # And nothing is spent on looking for one.
    assert "directions of the tail" not in {charge.purpose for charge in made.receipt.charges}


def test_a_region_reaches_as_far_as_it_says() -> None:
    histogram = make_histogram(np.abs(np.random.default_rng(0).standard_normal(1000)), 1.0, 0)
    vector = np.array([3.0, 4.0, 0.0]) / 5
    tails = (Tail(histogram, 2.0, 2), Tail(histogram, 6.0, 1, HeavyDirection(vector, 0.1)))
    region = Region(2.0, tails, (3.0,))
    shape = region.shape(3)
    np.testing.assert_allclose(shape @ vector, 3 * vector)
    across = np.array([4.0, -3.0, 0.0]) / 5
    np.testing.assert_allclose(shape @ across, across)
    np.testing.assert_array_equal(Region(1.0).shape(3), np.eye(3))
    assert math.isclose(np.linalg.det(shape), 3.0)
