from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from dpcov.core import ArgumentError
from dpcov.linear import uncertainty
from dpcov.linear.loss_draws import LossDraws
from dpcov.linear.responses import Response
from dpcov.linear.uncertainty import ErrorLaw
from dpcov.losses import LossLaw

Array = NDArray[np.float64]


def make_response(noise: float, own: float, cross: float, trace: float, constant: float) -> Response:
    return Response(*(np.array([part]) for part in (noise, own, cross, trace, constant)))


def make_law(rows: float = 30.0, directions: int = 5, restored: float = 0.0) -> LossLaw:
    return LossLaw(
        rows=np.full(128, rows),
        shape=np.full(128, 0.1),
        spread=np.full(128, 0.2),
        radius=6.0,
        directions=directions,
        restored=restored,
    )


def test_noise_alone_gives_normal_intervals() -> None:
    law = ErrorLaw(0.5, 1000.0, None)
    response = make_response(4.0, 1.0, 0.5, 1.0, 0.0)
    assert law.standard_error(response, sampling=False) == pytest.approx([1.0])
    lower, upper = law.interval(np.array([3.0]), response, 0.9, sampling=False)
    assert (upper - lower) / 2 == pytest.approx([norm.ppf(0.95)])
    with_sampling = law.standard_error(response, sampling=True)
    assert with_sampling == pytest.approx([math.sqrt(1.0 + (2 * 1.0 + 4 * 0.5) / 1000)])


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, math.nan, "wide"])
def test_levels_that_are_none(level: float) -> None:
    with pytest.raises(ArgumentError, match="level"):
        ErrorLaw(1.0, 10.0, None).interval(np.zeros(1), make_response(1, 1, 0, 0, 0), level, sampling=False)


def direct_losses(loss: LossLaw, quadratic: Array, n_rows: int, draws: int) -> Array:
    """What clipping takes from ``<Q, .>``, by drawing whole rows."""
    rng = np.random.default_rng(7)
    lost = np.zeros(draws)
    for draw in range(draws):
        count = rng.poisson(loss.rows[0])
        norms = loss.radius * loss.norms(1 - rng.random(count), 0)
        directions = rng.standard_normal((count, len(quadratic)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows = norms[:, None] * directions
        clipped = loss.radius * directions
        lost[draw] = np.sum((rows.T @ rows - clipped.T @ clipped) * quadratic) / n_rows
    return lost


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_simulated_losses_have_the_law_of_whole_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Directions of whole rows are uniform; uncertain shares come on top of that.
    loss, n_rows = replace(make_law(), evenness=1e6), 1000
    a, b = rng.standard_normal((2, 5))
    quadratic = (np.outer(a, b) + np.outer(b, a)) / 2
    expected = direct_losses(loss, quadratic, n_rows, 4000)
    response = make_response(0.0, float(np.square(quadratic).sum()), 0.0, float(np.trace(quadratic)), 0.0)
    found = LossDraws([loss], n_rows, has_constant=False).missing(response)[0]
    # 512 draws: the mean is off by 4.5 standard errors once in 10^5, the sd by 30% less often still.
    assert abs(found.mean() - expected.mean()) < 4.5 * expected.std() / math.sqrt(len(found))
    assert found.std() == pytest.approx(expected.std(), rel=0.3)
    wrong = LossDraws([make_law(rows=60.0)], n_rows, has_constant=False).missing(response)[0]
    assert abs(wrong.std() / expected.std() - 1) > 0.2


def heavy_response(quadratic: Array, vector: Array) -> Response:
    along = float(vector @ quadratic @ vector)
    beside = float(np.linalg.norm(quadratic @ vector - along * vector))
    plain = make_response(0.0, float(np.square(quadratic).sum()), 0.0, float(np.trace(quadratic)), 0.0)
    return replace(plain, along=np.array([[along]]), beside=np.array([[beside]]))


def test_losses_along_a_heavy_direction_are_those_of_its_rows() -> None:
    loss = replace(make_law(directions=1), along=np.eye(5)[0])
    rng, n_rows, vector = np.random.default_rng(0), 1000, np.eye(5)[0]
    a = np.array([0.6, 0.8, 0.0, 0.0, 0.0])
    found = LossDraws([loss], n_rows, has_constant=True).missing(heavy_response(np.outer(a, a), vector))[0]
    expected = np.zeros(4000)
    for draw in range(len(expected)):
        norms = loss.norms(1 - rng.random(rng.poisson(loss.rows[0])), 0)
        expected[draw] = 0.36 * loss.radius**2 * np.sum(norms**2 - 1) / n_rows
    # 512 draws: the mean is off by 4.5 standard errors once in 10^5; without the 0.36 it would be by 28.
    assert abs(found.mean() - expected.mean()) < 4.5 * expected.std() / math.sqrt(len(found))
    assert found.std() == pytest.approx(expected.std(), rel=0.3)
    across = LossDraws([loss], n_rows, has_constant=True).missing(
        heavy_response(np.diag([0, 1.0, 0, 0, 0]), vector)
    )
    assert not across.any()


def test_a_tilt_widens_what_lies_beside_a_heavy_direction() -> None:
    straight = replace(make_law(directions=1), along=np.eye(5)[0])
    pair = np.zeros((5, 5))
    pair[0, 1] = pair[1, 0] = 0.5
    spreads = [
        LossDraws([replace(straight, tilt=tilt)], 1000, has_constant=True).missing(
            heavy_response(pair, np.eye(5)[0])
        )[0].std()
        for tilt in (0.0, 0.1, 0.2)
    ]  # fmt: skip
    assert spreads[0] == 0
    assert spreads[2] == pytest.approx(2 * spreads[1]) != 0
    # To first order rows along v + 0.1 w take 0.2 w^T Q v, here 0.1 w, times what they lost. Of 512 draws the
    # spread is off by a quarter with probability below 1e-4.
    lost, _ = LossDraws([straight], 1000, has_constant=True).located
    assert spreads[1] == pytest.approx(0.1 * math.sqrt(np.square(lost).mean()), rel=0.25)


def test_a_mean_loses_across_a_heavy_direction() -> None:
    loss = replace(make_law(directions=1), along=np.eye(5)[0])
    losses = LossDraws([loss], 1000, has_constant=True)
    zero, one = np.zeros(1), np.ones((1, 1))
    nowhere = Response(zero, zero, zero, zero, zero)
    assert not losses.missing(nowhere).any()
    found = losses.missing(replace(nowhere, across=one / 2))[0]
    # Which side the rows lie on is not known: as much up as down, and more than if they cancelled.
    assert abs(found.mean()) < 4.5 * found.std() / math.sqrt(len(found))
    norms = loss.norms((np.arange(1000) + 0.5) / 1000, 0)
    cancelled = loss.radius / 1000 * math.sqrt(loss.rows[0] * np.square(norms - 1 / norms).mean())
    assert found.std() > 1.5 * cancelled


def test_where_the_loss_is_less_even_directions_are_less_certain() -> None:
    plain = make_response(0.0, 1.0, 0.0, 1.0, 0.0)
    draws = [
        LossDraws([replace(make_law(rows=3000.0), evenness=evenness)], 100_000, has_constant=True).missing(
            plain
        )[0]
        for evenness in (8.0, 0.5)
    ]
    # A gamma variable of shape k has mean 1 and variance 1 / k; 512 draws tell a standard deviation to 10%.
    assert draws[0].std() / draws[0].mean() == pytest.approx(math.sqrt(1 / 8), rel=0.3)
    assert draws[1].std() / draws[1].mean() == pytest.approx(math.sqrt(2.0), rel=0.3)


def test_rows_may_lean_to_one_side_and_take_the_mean_with_them() -> None:
    zero, loss, n_rows = np.zeros(1), replace(make_law(rows=3000.0), evenness=1e6), 100_000
    across = Response(zero, zero, np.array([0.25]), zero, zero)
    found = LossDraws([loss], n_rows, has_constant=True).missing(across)[0]
    norms = loss.norms((np.arange(1000) + 0.5) / 1000, 0)
    lengths = float(np.mean((1 - norms**-2.0) * np.sqrt((loss.radius * norms) ** 2 - 1)))
    # All of the length times a uniform variable times a coordinate of one of five directions: the root mean
    # square is 1 / sqrt(3 * 5). Rows that lean to no side would have 1 / sqrt(3000 * 5).
    expected = 3000 * lengths / n_rows / math.sqrt(15)
    assert found.std() == pytest.approx(expected, rel=0.2)
    assert abs(found.mean()) < 4.5 * found.std() / math.sqrt(len(found))


def test_many_answers_near_heavy_directions_have_about_the_intervals_of_each_alone() -> None:
    laws = [make_law(), replace(make_law(rows=3.0, directions=1), along=np.eye(5)[0], tilt=0.1)]
    law = ErrorLaw(0.02, 1000.0, LossDraws(laws, 10_000, has_constant=True))
    own = np.geomspace(1e-2, 1e2, 600)
    zero, along = np.zeros_like(own), np.sqrt(own)[:, None] * 0.5
    response = Response(np.ones_like(own), own, zero, zero, zero, along, along / 2)
    together = law.interval(zero, response, 0.9, sampling=False)
    for i in range(0, 600, 60):
        single = law.interval(np.zeros(1), response.select(np.array([i])), 0.9, sampling=False)
        width = together[1][i] - together[0][i]
        assert width == pytest.approx(float(single[1][0] - single[0][0]), rel=0.25)


def test_what_was_restored_is_no_longer_missing() -> None:
    response = make_response(0.0, 5.0, 0.0, 5.0, 0.0)
    plain = LossDraws([make_law()], 1000, has_constant=False).missing(response)
    restored = LossDraws([make_law(restored=0.01)], 1000, has_constant=False).missing(response)
    np.testing.assert_allclose(plain - restored, 0.01 * 5.0)


def test_intervals_with_losses_are_quantiles_of_noise_and_loss_together() -> None:
    loss, n_rows, sigma = make_law(), 1000, 0.02
    response = make_response(1.0, 1.0, 0.0, 1.0, 0.0)
    losses = LossDraws([loss], n_rows, has_constant=False)
    lower, upper = ErrorLaw(sigma, n_rows, losses).interval(np.zeros(1), response, 0.95, sampling=False)
    shifts = losses.missing(response)[0]
    inside = norm.cdf((upper - shifts) / sigma) - norm.cdf((lower - shifts) / sigma)
    assert inside.mean() == pytest.approx(0.95, abs=1e-9)
    above = 1 - norm.cdf((upper - shifts) / sigma)
    assert above.mean() == pytest.approx(0.025, abs=1e-9)


def test_loss_without_noise_has_its_own_quantiles() -> None:
    losses = LossDraws([make_law()], 1000, has_constant=False)
    response = make_response(0.0, 1e12, 0.0, 1e6, 0.0)
    lower, upper = ErrorLaw(0.5, 1000.0, losses).interval(np.zeros(1), response, 0.8, sampling=False)
    low, high = np.quantile(losses.missing(response), [0.1, 0.9])
    np.testing.assert_allclose([lower[0], upper[0]], [low, high], rtol=0.02)


def test_many_answers_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "_CHUNK", 64)
    law = ErrorLaw(0.1, 100.0, LossDraws([make_law()], 1000, has_constant=True))
    one = np.ones((10, 10))
    response = Response(one, one, one, one, one)
    lower, upper = law.interval(np.zeros((10, 10)), response, 0.95, sampling=False)
    assert lower.shape == (10, 10)
    assert np.unique(lower).size == np.unique(upper).size == 1


def test_many_answers_without_a_trace_have_the_intervals_that_each_has_alone() -> None:
    law = ErrorLaw(0.02, 1000.0, LossDraws([make_law()], 10_000, has_constant=True))
    own = np.append(np.geomspace(1e-8, 1e8, 600), [0.0, math.nan])
    zero = np.zeros_like(own)
    together = law.interval(zero, Response(np.ones_like(own), own, zero, zero, zero), 0.9, sampling=False)
    for i in [*range(0, 600, 50), 600, 601]:
        alone = law.interval(np.zeros(1), make_response(1, own[i], 0, 0, 0), 0.9, sampling=False)
        for many, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(many[i], one[0], rtol=2e-3)


def test_rows_along_a_heavy_direction_may_all_lie_on_one_side() -> None:
    loss = replace(make_law(rows=300.0, directions=1), along=np.ones(1))
    zero = np.zeros(1)
    across = Response(zero, zero, zero, zero, zero, np.zeros((1, 1)), np.zeros((1, 1)), np.full((1, 1), 0.5))
    found = LossDraws([loss], 10_000, has_constant=True).missing(across)[0]
    norms = loss.norms((np.arange(1000) + 0.5) / 1000, 0)
    every = 300 * loss.radius * float(np.mean(norms - 1 / norms)) / 10_000
    np.testing.assert_allclose(np.quantile(np.abs(found), [0.05, 0.5, 0.95]), every, rtol=0.3)
    assert 0.35 < (found > 0).mean() < 0.65


def test_clipping_counts_where_it_is_half_as_uncertain_as_noise() -> None:
    losses = LossDraws([make_law()], 1000, has_constant=False)
    response = make_response(1.0, 1.0, 0.0, 1.0, 0.0)
    low, high = np.quantile(losses.missing(response), [0.025, 0.975])
    even = (high - low) / (2 * norm.ppf(0.975))
    for sigma, counts in ((1.9 * even, True), (2.1 * even, False), (math.nan, True)):
        assert ErrorLaw(sigma, 1000.0, losses).ruled_by_clipping(response, sampling=False) == [counts]
    assert ErrorLaw(1.0, 1000.0, None).ruled_by_clipping(response, sampling=False) == [True]


def test_intervals_hold_what_noise_alone_allows_if_clipping_may_have_moved_nothing() -> None:
    response, values = make_response(1e-4, 1.0, 0.0, 1.0, 0.0), np.array([1.0])
    moved = ErrorLaw(0.1, 1000.0, LossDraws([make_law(rows=300.0)], 1000, has_constant=False))
    either, alone = moved.perhaps_unmoved(), ErrorLaw(0.1, 1000.0, None)
    ends = {law: law.interval(values, response, 0.95, sampling=False) for law in (moved, either, alone)}
    # Clipping took something for sure, and the noise is small.
    assert ends[moved][0] > ends[alone][1]
    assert (ends[either][0], ends[either][1]) == (ends[alone][0], ends[moved][1])
    # What zero is called agrees with intervals: here it is as far off as noise allows, below what was lost.
    point = np.array([0.001])
    assert moved.p_values(point, response, sampling=False) < 1e-6
    expected = alone.p_values(point, response, sampling=False)
    assert either.p_values(point, response, sampling=False) == pytest.approx(expected)
    assert either.after_fitting(2).interval(values, response, 0.95, sampling=False)[0] == ends[alone][0]
    assert either.without_sampling().interval(values, response, 0.95, sampling=False)[0] == ends[alone][0]


def test_rows_that_are_not_far_take_nothing_from_means_that_were_measured() -> None:
    # A law without rows far beyond: lengths end at 1.2 radii.
    near = LossLaw(np.full(64, 40.0), np.full(64, -0.5), np.full(64, 0.1), 4.0, directions=3)
    far = replace(near, spread=np.full(64, 2.0))
    plain = make_response(0.0, 0.0, 0.25, 0.0, 0.0)
    heavy = replace(plain, cross=np.zeros(1), across=np.full((1, 1), 0.5), along=np.zeros((1, 1)))
    heavy = replace(heavy, beside=np.zeros((1, 1)))

    def moved(law: LossLaw, response: Response) -> float:
        return float(np.abs(LossDraws([law], 1000, has_constant=True).missing(response)).max())

    for response, along in ((plain, None), (heavy, np.array([1.0, 0.0, 0.0]))):
        for law, is_far in ((near, False), (far, True)):
            located = replace(law, along=along)
            assert moved(located, response) > 1e-3
            assert (moved(replace(located, measured=True), response) > 1e-3) is is_far
        # Of squares they take what they did, and a little more.
        squares = make_response(0.0, 1.0, 0.0, 1.0, 0.0)
        if along is not None:
            squares = replace(squares, along=np.ones((1, 1)), beside=np.zeros((1, 1)))
        assert moved(replace(near, along=along, measured=True), squares) > moved(
            replace(near, along=along), squares
        )


def test_what_is_known_without_derivatives_takes_the_place_of_what_they_say() -> None:
    along = np.array([1.0, 0.0])
    law = replace(make_law(), directions=0, along=along)
    draws = LossDraws([law], 1_000, has_constant=True)
    squares, lengths = draws.located
    places = {"along": np.array([[2.0]]), "beside": np.array([[0.0]]), "across": np.array([[3.0]])}
    response = replace(make_response(0, 0, 0, 0, 0), **places)
    np.testing.assert_allclose(draws.missing(response), 2 * squares + 6 * lengths)
    moved = np.linspace(0, 1, squares.shape[1])[None]
    np.testing.assert_allclose(draws.missing(replace(response, moved=moved)), moved)
