"""What fine bins around the bulk tell."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.norm_counts import Vector, counts, gaussian_norms

from dpcov.core import NoisyCounts
from dpcov.methods.whitening.norms import FineNorms, fine_grid


def fine(norms: Vector, sigma: float = 8.0, seed: int = 0, rows_of_table: int = 0) -> FineNorms:
    whole = rows_of_table or len(norms)
    return FineNorms(counts(norms, fine_grid(3.1, whole), sigma, seed), whole)


@pytest.mark.parametrize("beyond", [20, 50])
def test_a_radius_leaves_about_as_many_rows_beyond_as_wanted(beyond: int) -> None:
    norms = gaussian_norms(5000)
    outside = [(norms > fine(norms, 2.0, seed).radius(beyond)).sum() for seed in range(20)]
    # A window of 8 bins has noise of 5.7 rows, and is met where it first falls below.
    assert beyond / 2.5 < np.median(outside) < 1.6 * beyond
    assert max(outside) < beyond + 30


def test_a_radius_reaches_the_furthest_rows_that_are_seen() -> None:
    norms = gaussian_norms(5000)
    for seed in range(20):
        # 8 bins show 26 rows, with noise of 6: more than 26 + 6 sd and a bin's own rows are not left out.
        assert (norms > fine(norms, 2.0, seed).radius(1000)).sum() < 100


def test_a_far_bump_is_kept_inside_unless_it_may_be_ignored() -> None:
    norms = gaussian_norms()
    norms[:400] = 200.0
    histogram = fine(norms)
    assert histogram.radius(50) > 200
    assert histogram.radius(50, ignore_beyond=600) < 7
    assert histogram.radius(50, ignore_beyond=100) > 200


def test_noise_in_empty_bins_does_not_move_the_radius() -> None:
    norms = gaussian_norms(5000)
    exact = fine(norms, 0.0).radius(60)
    for seed in range(40):
        assert fine(norms, seed=seed).radius(60) == pytest.approx(exact, rel=0.2)


def test_the_noise_of_empty_bins_is_not_taken_for_far_rows() -> None:
    norms = gaussian_norms()
    grid = fine_grid(3.0, len(norms))
    exact = counts(norms, grid).counts
    noise = np.rint(np.random.default_rng(0).normal(size=(2000, grid.n_bins)) * 8).astype(np.int64)
    radii = [
        FineNorms(NoisyCounts(exact + row, Fraction(64), grid, len(norms)), len(norms)).radius(20)
        for row in noise
    ]
    # FALSE_ALARM is 1 of 1,000: 17 of 2,000 or more happen once in 10^10. At 3.5 sd, hundreds would.
    assert sum(radius > 2 * norms.max() for radius in radii) < 17


def test_noise_does_not_keep_few_outliers_inside() -> None:
    norms = gaussian_norms()
    norms[:100] = 3e4
    grid = fine_grid(3.1, len(norms) * 1000)
    for seed in range(300):
        histogram = FineNorms(counts(norms, grid, sigma=18, seed=seed), len(norms))
        assert histogram.radius(50, ignore_beyond=150) < 20


def test_where_to_look_for_far_rows() -> None:
    norms = gaussian_norms()
    for rows in (100, 1000):
        # Noise of the bins from the furthest that are seen on, and the width of a bin.
        assert 0.5 * rows < (norms > fine(norms).look_radius(rows)).sum() < 2 * rows + 100
    # In a sample, rows stand for more.
    assert fine(norms[::10], 2.0, rows_of_table=len(norms)).look_radius(1000) == pytest.approx(
        fine(norms).look_radius(1000), rel=0.1
    )


def test_the_correction_gives_back_what_clipping_takes() -> None:
    norms = gaussian_norms()
    histogram = fine(norms, 3.0)
    for radius in (3.5, 4.0, 4.5):
        exact = (norms**2).mean() / (np.minimum(norms, radius) ** 2).mean()
        assert histogram.correction(radius) == pytest.approx(exact, rel=0.03)
    assert histogram.correction(6.5) == pytest.approx(1.0, abs=1e-3)


def test_dropping_far_rows_is_corrected_for_their_number() -> None:
    norms = gaussian_norms()
    norms[:5000] = 300.0
    radius = 6.0
    kept = norms[norms <= radius]
    exact = (norms[5000:] ** 2).mean() / ((kept**2).sum() / len(norms))
    assert fine(norms, 3.0).dropping_correction(radius, 0.0) == pytest.approx(exact, rel=2e-3)


def test_a_sample_of_the_rows_serves_for_the_whole_table() -> None:
    norms = gaussian_norms()
    part = fine(norms[::10], 2.0, rows_of_table=len(norms))
    assert part.part == pytest.approx(0.1)
    assert part.radius(100) == pytest.approx(fine(norms, 20.0).radius(100), rel=0.05)


def test_rows_seen_before_are_seen_again_in_smaller_numbers() -> None:
    # 26 rows in one bin, noise of 5: 5.2 sd. Far out noise alone must pass 5.8 sd, where rows were seen 4.5.
    norms = np.concatenate([gaussian_norms(5000), np.full(26, 60.0)])
    grid = fine_grid(3.1, len(norms), 60.0)
    exact = counts(norms, grid, sigma=0.0)
    answer = NoisyCounts(exact.counts, Fraction(25), grid, len(norms))
    assert FineNorms(answer, len(norms)).radius(10) < 10
    assert FineNorms(answer, len(norms), seen=60.0).radius(10) > 60


def test_a_grid_reaches_beyond_rows_that_were_seen() -> None:
    assert fine_grid(3.0, 1000).edges()[-1] < 1e4 <= fine_grid(3.0, 1000, 1e4).edges()[-1]


def test_what_clipping_takes_is_that_of_rows_anywhere_in_their_bins() -> None:
    norms = np.linspace(1.0, 4.0, 200_001)
    histogram = fine(norms, sigma=0.0)
    places = np.array([1.5, 2.9, 3.05, 3.1, 3.9, 3.99])
    exact = [np.maximum(norms**2 - place**2, 0).sum() for place in places]
    # Within bins of 9% the density is even, as it is assumed to be.
    np.testing.assert_allclose(histogram.lost_inside(places, 4.0), exact, rtol=3e-3)
    # Rows beyond the radius are not its concern, and beyond all rows nothing is lost.
    assert histogram.lost_inside(np.array([3.0]), 3.0)[0] == 0
    assert (np.diff(histogram.lost_inside(np.linspace(3, 4, 50), 4.0)) < 0).all()


def test_rows_that_lie_thinly_over_a_long_way_are_seen() -> None:
    # 40 in every doubling, of a noise of 8: narrow bins have 5 each, and windows of four 20 of a noise of 16.
    far = np.exp2(np.linspace(4, 9, 200))
    norms = np.concatenate([gaussian_norms(), math.sqrt(10) * far])
    radii = [fine(norms, 8.0, seed).radius(10.0) for seed in range(20)]
    assert np.median(radii) > math.sqrt(10) * 2**8
    # Noise alone reaches into a wide bin in one histogram of 100 or so.
    assert max(fine(gaussian_norms(), 8.0, seed).radius(10.0) for seed in range(20)) < 10


def test_rows_beyond_a_limit_stay_outside() -> None:
    norms = np.concatenate([gaussian_norms(), np.full(500, 20.0), np.full(500, 300.0)])
    histogram = fine(norms, 8.0)
    assert histogram.radius(10.0) > 299
    # A wide bin ends at 32.
    assert 20 <= histogram.radius(10.0, within=100.0) <= 32
    assert histogram.radius(10.0, within=15.0) < 15


def test_noise_seldom_leads_on_through_wide_bins() -> None:
    # Rows up to the first wide bin, at 16. Noise exceeds 2.5 sd in one histogram of 160, and would double the
    # radius.
    near = np.random.default_rng(0).uniform(12, 15.9, 400)
    norms = np.concatenate([gaussian_norms(), near])
    further = sum(fine(norms, 8.0, seed).radius(10.0) > 17 for seed in range(100))
    assert further <= 3


def test_rows_end_as_at_a_cliff_or_do_not() -> None:
    rng = np.random.default_rng(0)
    edges = fine_grid(3.1, 20_000).edges()
    end = float(edges[edges > 3.3][0])
    sphere = np.full(20_000, 3.3)
    assert fine(sphere).ends_at(end)
    # 400 rows beyond are more than a 64th of those inside; so may be the noise beside few rows.
    assert not fine(np.append(sphere, np.full(400, 1.2 * end))).ends_at(end)
    assert not fine(sphere[:300]).ends_at(end)
    # Normal rows thin out, wherever one looks.
    normal = np.linalg.norm(rng.standard_normal((20_000, 8)), axis=1)
    assert not any(fine(normal).ends_at(float(edge)) for edge in edges[(edges > 2.5) & (edges < 5)])
