from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError, Budget, Curator, NoAnswerError, PrivacyCost, SeededBits
from dpcov.core.lattice import MappedRows, times_power
from dpcov.paper.radius import _NEGLIGIBLE, _centred, find_covering_radius, find_enclosing_ball
from dpcov.sources import ArraySource

Rows = NDArray[np.float64]


def curator(rows: Rows, rho: float = 1.0, seed: int = 0, *, constant: bool = False) -> Curator:
    bits = SeededBits(np.random.default_rng(seed))
    return Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(rho))), bits, constant=constant)


def normal_rows(n_rows: int = 20_000, d: int = 3, seed: int = 0) -> Rows:
    return np.random.default_rng(seed).normal(size=(n_rows, d))


@pytest.mark.parametrize("scale", [1e-120, 1e-3, 1.0, 1e120])
def test_a_covering_radius_covers_and_is_not_much_too_large(scale: float) -> None:
    rows = normal_rows() * scale
    norms = np.linalg.norm(rows, axis=1)
    for seed in range(20):
        subject = curator(rows, seed=seed)
        ball = find_covering_radius(subject, Fraction(1))
        # Each holds with probability 0.99; the seeds are fixed. A third of the noise bound would fail.
        assert (norms > ball.radius).sum() <= ball.outside_at_most
        assert ball.radius <= 1.1 * norms.max()
        assert ball.outside_at_most < 25
        assert subject.remaining.rho >= 0
        assert (ball.centre == 0).all()


def test_a_search_keeps_its_promise_with_the_stated_probability() -> None:
    # Three rows a bin, so that the edge found depends on the noise.
    lengths = np.exp2(np.arange(1000) / 24)[:, None]
    balls = [find_covering_radius(curator(lengths, seed=seed), Fraction(1)) for seed in range(300)]
    outside = [(int((lengths[:, 0] > ball.radius).sum()), ball.outside_at_most) for ball in balls]
    # Fails 1% of the time at most: more than 12 of 300 once in 10,000 sets of seeds.
    assert sum(rows > promised for rows, promised in outside) <= 12
    # A promise of a quarter of that would be broken.
    assert sum(rows > promised / 4 for rows, promised in outside) > 12


def test_edges_are_on_the_safe_side_of_rounding() -> None:
    # Every row a hair longer than an edge: a radius of just that edge would leave all of them outside.
    for exponent in range(-8, 8):
        rows = np.full((500, 1), 2.0 ** (exponent / 8) * (1 + 1e-9))
        ball = find_covering_radius(curator(rows), Fraction(1))
        assert rows[0, 0] <= ball.radius <= 1.1 * rows[0, 0]


@pytest.mark.parametrize("value", [0.0, np.nan, 1e-200])
def test_tables_of_nothing_have_the_least_radius(value: float) -> None:
    rows = np.full((1000, 2), value)
    least = find_covering_radius(curator(rows), Fraction(1)).radius
    assert 2.0**-440 <= least < 2.0**-439
    ball = find_enclosing_ball(curator(rows, constant=True))
    assert ball.radius < 2.0**-439
    assert np.abs(ball.centre).max() < 1e-130


def test_rows_beyond_the_grid_get_no_answer() -> None:
    rows = np.full((1000, 2), 1e200)
    with pytest.raises(NoAnswerError, match="longer than 1e132"):
        find_covering_radius(curator(rows), Fraction(1))
    with pytest.raises(NoAnswerError, match="longer than 1e132"):
        find_enclosing_ball(curator(rows, constant=True))
    # Fewer than the noise hides make no difference.
    few = normal_rows()
    few[:3] = 1e200
    assert find_covering_radius(curator(few), Fraction(1)).radius < 10


FAR: dict[str, list[float]] = {
    "near": [0.0, 0.0, 0.0],
    "one column": [1e5, 0.0, 0.0],
    "uneven": [1e5, 1.0, 1e-5],
    "all": [2000.0, -2000.0, 2000.0],
    "far": [1e6, 1e6, 1e6],
}


@pytest.mark.parametrize("centre", FAR.values(), ids=FAR)
def test_an_enclosing_ball_finds_tables_far_from_the_origin(centre: list[float]) -> None:
    rows = normal_rows() + centre
    for seed in range(3):
        subject = curator(rows, seed=seed, constant=True)
        ball = find_enclosing_ball(subject)
        distances = np.linalg.norm(rows - ball.centre, axis=1)
        assert (distances > ball.radius).sum() <= ball.outside_at_most
        assert subject.remaining.rho >= 0
        # The least ball of a normal table is about its mean; twice that is what a mean alone promises.
        assert ball.radius <= 2 * np.linalg.norm(rows - rows.mean(axis=0), axis=1).max()


def test_a_ball_too_far_for_its_size_still_covers() -> None:
    rows = normal_rows() + 1e12
    ball = find_enclosing_ball(curator(rows, constant=True))
    assert (np.linalg.norm(rows - ball.centre, axis=1) > ball.radius).sum() <= ball.outside_at_most
    assert ball.radius < 1e-5 * np.linalg.norm(ball.centre)


def test_pulls_centre_a_ball_between_unequal_lumps() -> None:
    # 90% of the rows at -1, 10% at +1: the mean is at -0.8, the least ball at 0 with radius 1.
    rows = np.repeat([[-1.0, 0.0], [1.0, 0.0]], [18_000, 2000], axis=0)
    rows += normal_rows(20_000, 2) / 100
    ball = find_enclosing_ball(curator(rows, rho=10, constant=True))
    assert ball.radius < 1.5
    assert (np.linalg.norm(rows - ball.centre, axis=1) > ball.radius).sum() <= ball.outside_at_most


@given(st.integers(0, 2**32), st.integers(1, 8), st.floats(-3, 10), st.floats(-2, 2), st.sampled_from("ABC"))
@settings(max_examples=60)
def test_no_row_is_further_than_its_norm_says(seed: int, d: int, far: float, near: float, kind: str) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=d) * 10**far * (10 ** (-6 * rng.random(d)) if kind == "A" else 1.0)
    if kind == "B":
        centre[1:] = 0.0
    rows = centre + rng.normal(size=(40, d)) * 10**near * 10 ** rng.uniform(-4, 0.5)
    view = _centred(centre, 10**near * _NEGLIGIBLE, 10**near)
    mapped = MappedRows(view.lattice_map, 40)
    mapped.load(rows.T, constant=True)
    norms = np.sqrt(mapped.squares) * times_power(1.0 / view.lattice_map.scale, mapped.shift)
    # The centre as float64 has it: rows minus centre round to 1e-16 of the centre.
    distances = np.linalg.norm(rows - centre, axis=1) * (1 - 1e-9) - 1e-15 * np.linalg.norm(centre)
    for norm, distance in zip(norms.tolist(), distances, strict=True):
        assert distance <= view.reach(norm)


@pytest.mark.parametrize("rho", [1e-9, 1e-4])
def test_a_budget_that_says_nothing_is_refused_before_it_is_spent(rho: float) -> None:
    rows = normal_rows(500)
    plain, centred = curator(rows, rho=rho), curator(rows, rho=rho, constant=True)
    with pytest.raises(ArgumentError, match="spend more"):
        find_covering_radius(plain, plain.remaining.rho)
    with pytest.raises(ArgumentError, match="spend more"):
        find_enclosing_ball(centred)
    assert plain.receipt().charges == centred.receipt().charges == ()


def test_an_enclosing_ball_needs_a_constant_column() -> None:
    subject = curator(normal_rows())
    with pytest.raises(ArgumentError, match="constant column"):
        find_enclosing_ball(subject)
    assert subject.receipt().charges == ()


def test_the_receipt_says_where_the_budget_went() -> None:
    subject = curator(normal_rows() + 100, constant=True)
    find_enclosing_ball(subject)
    receipt = subject.receipt()
    assert receipt.spent.rho <= 1
    assert receipt.spent.delta == 0
    assert {charge.purpose for charge in receipt.charges} == {
        "covering radius", "centre of the ball", "radius around the centre",
    }  # fmt: skip


@pytest.mark.parametrize(("share", "far"), [(0.9, 300.0), (0.7, 1e4)])
def test_a_ball_around_most_rows_leaves_the_others_out(share: float, far: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 3)) + np.array([5.0, -3.0, 2.0])
    inside = int(20_000 * share)
    rows[inside:] = far * rng.normal(size=(20_000 - inside, 3)) + np.array([far, 0.0, 0.0])
    # The seed is fixed; each promise holds with probability 0.99.
    ball = dpcov.enclosing_ball(rows, t=inside, rho=2, rng=np.random.default_rng(1))
    lengths = np.linalg.norm(rows - ball.centre, axis=1)
    assert np.count_nonzero(lengths > ball.radius) <= ball.outside_at_most < 20_000 - inside + 400
    least = np.linalg.norm(rows[:inside] - rows[:inside].mean(axis=0), axis=1).max()
    assert ball.radius < 3 * least
    whole = dpcov.enclosing_ball(rows, rho=2, rng=np.random.default_rng(1))
    assert whole.radius > 20 * ball.radius


@pytest.mark.parametrize("t", [0, 500, 1001, "many", 700.5])
def test_a_ball_around_no_majority_is_refused(t: object) -> None:
    with pytest.raises(dpcov.ArgumentError, match="t must"):
        dpcov.enclosing_ball(np.ones((1000, 2)), t=t, rho=100)  # type: ignore[arg-type]
