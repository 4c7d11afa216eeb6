from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import LogNormGrid, NoisyCounts
from dpcov.methods.whitening.constants import CAREFUL_LOOK
from dpcov.methods.whitening.norms import FineNorms, NormLook, column_grid, fine_grid, wide_grid

Vector = NDArray[np.float64]


def counts(norms: Vector, grid: LogNormGrid, sigma: float = 0.0, seed: int = 0) -> NoisyCounts:
    bins = np.searchsorted(grid.edges(), norms, side="right")
    exact = np.bincount(bins, minlength=grid.n_bins).astype(np.int64)
    noise = np.rint(np.random.default_rng(seed).normal(size=grid.n_bins) * sigma).astype(np.int64)
    return NoisyCounts(exact + noise, Fraction(max(sigma, 0.1) ** 2), grid, len(norms))


def gaussian_norms(n_rows: int = 100_000, d: int = 10, scale: float = 1.0) -> Vector:
    rows = np.random.default_rng(1).normal(size=(n_rows, d))
    return np.asarray(np.linalg.norm(rows, axis=1) * scale, dtype=np.float64)


def look(norms: Vector, sigma: float = 10.0, seed: int = 0, **options: float) -> NormLook:
    return NormLook(counts(norms, wide_grid(), sigma, seed), **options)


def fine(norms: Vector, sigma: float = 8.0, seed: int = 0, rows_of_table: int = 0) -> FineNorms:
    whole = rows_of_table or len(norms)
    return FineNorms(counts(norms, fine_grid(3.1, whole), sigma, seed), whole)


@pytest.mark.parametrize("scale", [1.0, 1e-130, 3e130])
def test_the_typical_norm_and_the_end_are_found_at_any_scale(scale: float) -> None:
    norms = gaussian_norms(scale=scale)
    found = look(norms)
    assert found.found
    # Bins are a factor of 1.19 wide.
    assert found.typical == pytest.approx(np.median(norms), rel=0.2)
    # Of 100,000 rows at most some 60 lie beyond: those that two bins at the noise's limit can have.
    assert 0.8 * np.sort(norms)[-60] < found.far < 1.2 * norms.max()


def test_noise_alone_is_not_found() -> None:
    # Once in 2,000 looks; 6 of 400 happen once in 10^7.
    assert sum(look(np.zeros(30), 20, seed).found for seed in range(400)) < 6


@pytest.mark.parametrize(
    ("size", "zeros", "found"), [(4.4, 9_900, False), (4.4, 9_000, True), (4.4, 0, True), (5.6, 9_900, True)]
)
def test_a_doubtful_bulk_has_no_more_rows_than_are_not_zero(size: float, zeros: int, *, found: bool) -> None:
    # Near 1, where a bin has a 25th of all false alarms, three side by side show 4.1 standard deviations of
    # noise, and 5.4 if they seem to have more rows than are not zero: 762 and 970 rows here, beside 100.
    grid, sigma = column_grid(wide=False), 100.0
    assert bump(grid, 1.0, size, sigma, zeros).found is found


def bump(grid: LogNormGrid, scale: float, size: float, sigma: float, zeros: int = 0) -> NormLook:
    """A look without noise at three bins that exceed it so many times, at this scale."""
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    first = int(np.searchsorted(grid.edges(), scale)) - 1
    seen[first : first + 3] = round(size * sigma / math.sqrt(3))
    seen[0] = zeros
    return NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000))


@pytest.mark.parametrize(("scale", "least"), [(1.0, 4.1), (1e6, 4.9), (1e-6, 4.9), (1e100, 5.85)])
def test_the_more_usual_a_scale_is_the_fewer_rows_are_enough(scale: float, least: float) -> None:
    grid = column_grid(wide=False)
    found = bump(grid, scale, 1.03 * least, 1_000.0)
    assert found.found
    assert found.typical == pytest.approx(scale, rel=0.5)
    assert not bump(grid, scale, 0.97 * least, 1_000.0).found


def test_noise_at_an_absurd_scale_does_not_hide_a_column_of_ones() -> None:
    # 5.2 standard deviations at 10^100, which noise has somewhere in one look of 3,000, and 4.6 at 1.
    grid, sigma = column_grid(wide=True), 100.0
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    for scale, height in ((1.0, 4.6), (1e100, 5.2)):
        seen[np.searchsorted(grid.edges(), scale, side="right")] = round(height * sigma)
    found = NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000))
    assert found.found
    assert 1 <= found.typical <= 2


def spread_column(sigma: float, seed: int, *, wide: bool) -> NormLook:
    """A look at 5,000 numbers over some ten doublings, as budgets of films are."""
    numbers = np.random.default_rng(7).lognormal(15, 1.6, 5_000)
    return NormLook(counts(numbers, column_grid(wide=wide), sigma, seed))


def test_wide_bins_show_a_column_that_spans_many_doublings() -> None:
    # The noise of a count is 147 rows, a 34th of all. Three of the narrow bins have 1,308 rows, 5.1 standard
    # deviations of theirs; three of the wide ones 2,408, which are 9.4. Noise takes 4.4 away in 1 of 10^5.
    wide = [spread_column(5_000 / 34, seed, wide=True) for seed in range(100)]
    assert all(look.found for look in wide)
    # 83 of 100; 97 or more happen once in 10^5.
    assert sum(spread_column(5_000 / 34, seed, wide=False).found for seed in range(100)) < 97
    truth = math.exp(15 + 1.6**2)
    sizes = np.array([look.size for look in wide])
    # Rows that noise hides are missing in the root mean square.
    assert ((truth / 40 < sizes) & (sizes < 4 * truth)).all()


def test_six_wide_bins_show_what_three_do_not() -> None:
    grid, sigma = column_grid(wide=True), 100.0
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    # Three bins have 4.8 standard deviations, six 6.7.
    seen[500:506] = round(4.8 * sigma / math.sqrt(3))
    assert NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000)).found
    seen[503:506] = 0
    assert not NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000)).found


@pytest.mark.parametrize(("n_bins", "height"), [(1, 5.6), (12, 1.6), (24, 1.15)])
def test_one_wide_bin_or_many_show_what_six_do_not(n_bins: int, height: float) -> None:
    grid, sigma = column_grid(wide=True), 1_000.0
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    # At 2^60 the narrowest windows that have them all exceed the 5.4 standard deviations that show there.
    seen[500 : 500 + n_bins] = round(height * sigma)
    look = NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 100_000))
    assert look.found
    assert grid.edges()[499] / 2 <= look.typical <= grid.edges()[499 + n_bins]
    seen[500 : 500 + n_bins] = round(0.95 * 5 / math.sqrt(n_bins) * sigma)
    assert not NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 100_000)).found


def test_how_many_rows_are_zero_and_how_many_stay_unseen() -> None:
    numbers = np.concatenate([np.zeros(4_000), np.ones(6_000)])
    assert NormLook(counts(numbers, column_grid(wide=True), 10, 0)).zero_share == pytest.approx(0.4, abs=0.01)
    grid, sigma = column_grid(wide=True), 100.0
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    seen[400:403] = 3_000
    share = NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000)).unseen_share
    for part, is_seen in ((0.99, False), (1.01, True)):
        seen[500] = round(part * share * 10_000)
        far = NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000)).far
        assert bool(far > grid.edges()[490]) is is_seen


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("doublings", "seen"), [(3, True), (6, False)])
def test_noise_far_beyond_a_column_is_not_taken_for_its_rows(
    *, wide: bool, doublings: int, seen: bool
) -> None:
    grid, sigma = column_grid(wide=wide), 100.0
    rows = np.zeros(grid.n_bins, dtype=np.int64)
    middle = len(rows) // 2
    rows[middle : middle + 3] = 1_000
    # 5 standard deviations: noise has them in one of 5,000 looks among the 16-fold of most rows, and in one
    # of 2,000 among all bins.
    rows[middle + doublings * (1 if wide else 2)] += 500
    look = NormLook(NoisyCounts(rows, Fraction(int(sigma) ** 2), grid, 10_000))
    assert (look.far > 5 * look.typical) is seen


def test_noise_alone_is_no_wide_bulk() -> None:
    looks = [NormLook(counts(np.zeros(3_000), column_grid(wide=True), 150, seed)) for seed in range(400)]
    # Five tests of 880 bins: once in 1,200 looks; 6 of 400 happen once in 10^6.
    assert sum(look.found for look in looks) < 6


def test_zero_rows_are_not_looked_at() -> None:
    norms = gaussian_norms(5000)
    with_zeros = look(np.concatenate([norms, np.zeros(50_000)]))
    assert with_zeros.typical == look(norms).typical
    assert with_zeros.far == look(norms).far


def test_noise_alone_moves_the_end_of_a_thousandth_of_looks() -> None:
    norms = np.full(20_000, 3.1)
    end = look(norms, 0.1).far
    # Where most rows lie is known up to a bin.
    alarms = sum(look(norms, 20, seed).far > 1.2 * end for seed in range(1000))
    # FALSE_ALARM is 1 of 1,000: 13 or more happen once in 10^10.
    assert alarms < 13


@pytest.mark.parametrize("rho", [0.1, 2.0])
def test_a_bump_is_seen_from_the_documented_number_of_rows_on(rho: float) -> None:
    # A histogram of a share rho_i has noise of 1 / sqrt(rho_i) rows.
    sigma = 1 / math.sqrt(CAREFUL_LOOK * rho)
    bulk = np.full(20_000, 3.1)

    def bump(rows: float) -> Vector:
        return np.concatenate([bulk, np.full(round(rows), 31.0)])

    documented = 25 / math.sqrt(rho)
    seen = [look(bump(documented), sigma, seed).far > 31 for seed in range(400)]
    # Half of them or more; less than 140 of 400 happen once in 10^9.
    assert sum(seen) >= 140
    # Seven standard deviations above: one miss in 10^12.
    for seed in range(200):
        found = look(bump(documented + 7 * sigma), sigma, seed)
        assert 31 < found.far < 31 * 1.2
    # A fifth of that: 3.4 sd below what counts, so 1 of 3,000, and 1 of 1,000 for other bins.
    assert sum(look(bump(documented / 5), sigma, seed).far > 31 for seed in range(400)) < 12


def test_rows_much_further_out_take_a_little_more() -> None:
    norms = np.concatenate([np.full(20_000, 3.1), np.full(160, 1e7)])
    # 8 sd; 6.5 count among all 1,760 bins. A miss has 10% at most, 100 of 200 happen never.
    seen = [look(norms, 20, seed).far > 1e7 for seed in range(200)]
    assert sum(seen) > 100


def test_a_bump_over_several_bins_is_seen() -> None:
    # 100 rows over four bins: 1.25 sd in each, 2.5 in all; 400 rows: 10 in all, 5 in each.
    spread = np.geomspace(31, 31 * 1.9, 280)
    norms = np.concatenate([np.full(20_000, 3.1), spread])
    # 3.5 sd in each bin, 7 in a window of four.
    assert sum(look(norms, 20, seed).far > 31 for seed in range(100)) > 95


def test_outliers_beyond_the_bulk_are_ignored_if_they_may_be() -> None:
    norms = gaussian_norms()
    norms[:400] = 200.0
    assert look(norms).far > 200
    assert look(norms, ignored_rows=100).far > 200
    # As many of the bulk's own furthest rows may go with them.
    assert 4.5 < look(norms, ignored_rows=600).far < 1.2 * norms[400:].max()


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


@pytest.mark.parametrize("every", [1, 4])
def test_a_look_tells_which_length_a_share_of_the_rows_exceeds(every: int) -> None:
    norms = gaussian_norms()
    for rows in (300, 3000):
        # A bin is 2^(1/4) wide, in which the numbers of a normal tail fall by a factor of 8.
        radius = look(norms[::every]).radius_exceeded_by(rows / len(norms))
        assert 0.8 * rows < (norms > radius).sum() < 8 * rows
    # Of more rows than lie beyond the mode, the mode is the end.
    assert look(norms).radius_exceeded_by(0.9) < np.quantile(norms, 0.9)


@pytest.mark.parametrize("every", [1, 4, 16])
@pytest.mark.parametrize("length", [9.6, 10.4, 11.2])
def test_rows_of_one_length_lie_beyond_what_they_exceed(every: int, length: float) -> None:
    # Those of a 0/1 column do. In a bin from 9.5 to 11.3 they may lie anywhere.
    norms = gaussian_norms(400_000)
    norms[::100] = length
    radius = look(np.random.default_rng(0).permutation(norms)[::every]).radius_exceeded_by(200 / len(norms))
    assert (norms > radius).sum() >= 4000


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


def test_what_a_look_with_more_noise_would_see() -> None:
    norms = np.concatenate([gaussian_norms(20_000), np.full(100, 50.0)])
    seen = look(norms, 10.0)
    assert seen.far > 50
    assert seen.far_under(10.0) == seen.far
    # 100 rows in a bin are 4 standard deviations now.
    assert seen.far_under(25.0) < 10


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
