from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.runs import start_run
from methods.whitening.test_tail import make_histogram, pareto
from numpy.typing import NDArray

from dpcov.losses import LossLaw
from dpcov.methods.whitening.norms import FineNorms
from dpcov.methods.whitening.radius import cheapest_radius, even_count, lost_beyond, lost_by_reach
from dpcov.methods.whitening.tail import fit_tail

Vector = NDArray[np.float64]


def gaussian_norms(d: int, seed: int) -> Vector:
    rows = np.random.default_rng([seed, d]).standard_normal((40_000, d))
    return np.asarray(np.linalg.norm(rows, axis=1))


def cost(norms: Vector, radius: float, noise: float, agreeing: float) -> float:
    """What noise and clipping at a radius cost together, from the norms themselves."""
    return radius**2 * noise + agreeing * float(np.maximum(norms**2 - radius**2, 0).sum())


def cheapest(histogram: FineNorms, noise: float, agreeing: float, without_law: float = 0.0) -> float:
    """Return the radius for a histogram that may reach as far as it shows rows."""
    told = histogram.radius(noise)
    return cheapest_radius(histogram, told, noise, agreeing, without_law=without_law)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3])
def test_what_clipping_takes_is_that_of_rows_drawn_from_the_law(shape: float) -> None:
    law = LossLaw(np.array([200.0]), np.array([shape]), np.array([0.15]), 1.0)
    # Quantiles of the law stand for its rows, in a table whose unit is 5.
    norms = 5 * law.norms((np.arange(2_000_000) + 0.5) / 2_000_000, 0)
    places = np.array([5.0, 6.0, 7.0])
    direct = [200 * float(np.maximum(norms**2 - place**2, 0).mean()) for place in places]
    np.testing.assert_allclose(lost_beyond(law, 5.0, places)[:, 0], direct, rtol=5e-3)


def test_a_bump_within_the_radius_is_not_clipped_away() -> None:
    # No law of the far rows knows of a bump nearer in; the counts do.
    rng = np.random.default_rng(0)
    norms = np.concatenate([gaussian_norms(3, 0), rng.uniform(6.0, 6.4, 2_000), 6.4 * pareto(300, 12.0, 0)])
    chosen = cheapest(make_histogram(norms, 8.0, 0), 20.0, 1.0)
    assert chosen > 6.2


def test_rows_that_are_seen_are_clipped_if_noise_costs_more() -> None:
    histogram = make_histogram(gaussian_norms(12, 0), 8.0, 0)
    assert cheapest(histogram, 320.0, 0.1) < histogram.radius(320.0)


def test_a_ball_does_not_end_within_a_bin_that_is_full_of_rows() -> None:
    # Bounded rows: a tenth of them at the very edge, in the last part of a bin from 4 to 4.36.
    rng = np.random.default_rng(0)
    norms = np.where(rng.random(60_000) < 0.1, rng.uniform(4.25, 4.3, 60_000), rng.uniform(1.0, 3.5, 60_000))
    for seed in range(6):
        found = cheapest(make_histogram(norms, 8.0, seed), 3.5, 0.8)
        assert cost(norms, found, 3.5, 0.8) < 1.1 * cost(norms, 4.3, 3.5, 0.8)


def test_what_is_lost_falls_with_the_reach_and_is_nothing_without_a_law() -> None:
    norms = pareto(20_000, 4.0, 0)
    histogram = make_histogram(norms, 8.0, 0)
    seen = histogram.radius(20.0)
    lost = lost_by_reach(histogram, seen, np.array([1.0, 2.0]))
    true = [np.maximum(norms**2 - (factor * seen) ** 2, 0).sum() for factor in (1.0, 2.0)]
    # Of a Pareto law with 4 moments, a quarter is left twice as far out; laws of a few rows are vague.
    assert true[0] / 2 < lost[0] < 4 * true[0]
    assert lost[0] / 8 < lost[1] < lost[0] / 2
    lumps = make_histogram(np.repeat([1.0, 4.0, 9.0], [17_000, 2_000, 1_000]), 8.0, 0)
    assert not lost_by_reach(lumps, 9.5, np.array([1.0, 2.0])).any()


@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("noise", [10.0, 60.0])
def test_the_radius_costs_little_more_than_the_best(d: int, noise: float) -> None:
    for seed in range(8):
        norms = gaussian_norms(d, seed)
        histogram = make_histogram(norms, 8.0, seed)
        chosen = cheapest(histogram, noise, 1 / math.sqrt(d))
        best = min(cost(norms, r, noise, 1 / math.sqrt(d)) for r in np.geomspace(1.5, 8, 80).tolist())
        # Where the last rows lie that a histogram shows, the cost is up to twice the best.
        assert cost(norms, chosen, noise, 1 / math.sqrt(d)) < 1.25 * best


def test_more_noise_makes_the_ball_smaller_and_rows_that_agree_make_it_larger() -> None:
    histogram = make_histogram(gaussian_norms(6, 0), 8.0, 0)
    radii = [cheapest(histogram, noise, 0.3) for noise in (5.0, 40.0, 320.0)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] > 1.1 * radii[2]
    agreeing, even = (cheapest(histogram, 40.0, share) for share in (1.0, 0.1))
    assert agreeing > even


def test_rows_that_no_one_has_seen_are_not_followed_far() -> None:
    for seed in range(5):
        histogram = make_histogram(pareto(20_000, 2.2, seed), 8.0, seed)
        assert cheapest(histogram, 1.0, 1.0) <= 1.5001 * histogram.radius(1.0)


def test_without_a_law_the_ball_ends_where_the_rows_do_that_are_seen() -> None:
    norms = np.concatenate([np.full(18_000, 1.0), np.full(2_000, 4.0)])
    histogram = make_histogram(norms, 8.0, 0)
    assert fit_tail(histogram, histogram.radius(10.0)) is None
    assert cheapest(histogram, 10.0, 1.0) == histogram.radius(10.0)
    assert cheapest(histogram, 10.0, 1.0, without_law=9.0) == 9.0


def test_noise_is_worth_so_many_rows() -> None:
    run = start_run(np.ones((1000, 4)), rho=0.5)
    assert even_count(run, 9) == pytest.approx(math.sqrt(2 * 9 / 0.5))
