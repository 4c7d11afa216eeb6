"""What a look at the norms tells at all scales."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.norm_counts import Vector, counts, gaussian_norms

from dpcov.core import LogNormGrid, NoisyCounts
from dpcov.methods.whitening.constants import CAREFUL_LOOK
from dpcov.methods.whitening.looks import NormLook, column_grid, wide_grid


def look(norms: Vector, sigma: float = 10.0, seed: int = 0, **options: float) -> NormLook:
    return NormLook(counts(norms, wide_grid(), sigma, seed), **options)


def bump(grid: LogNormGrid, scale: float, size: float, sigma: float, zeros: int = 0) -> NormLook:
    """A look without noise at three bins that exceed it so many times, at this scale."""
    seen = np.zeros(grid.n_bins, dtype=np.int64)
    first = int(np.searchsorted(grid.edges(), scale)) - 1
    seen[first : first + 3] = round(size * sigma / math.sqrt(3))
    seen[0] = zeros
    return NormLook(NoisyCounts(seen, Fraction(int(sigma) ** 2), grid, 10_000))


def spread_column(sigma: float, seed: int, *, wide: bool) -> NormLook:
    """A look at 5,000 numbers over some ten doublings, as budgets of films are."""
    numbers = np.random.default_rng(7).lognormal(15, 1.6, 5_000)
    return NormLook(counts(numbers, column_grid(wide=wide), sigma, seed))


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


def test_what_a_look_with_more_noise_would_see() -> None:
    norms = np.concatenate([gaussian_norms(20_000), np.full(100, 50.0)])
    seen = look(norms, 10.0)
    assert seen.far > 50
    assert seen.far_under(10.0) == seen.far
    # 100 rows in a bin are 4 standard deviations now.
    assert seen.far_under(25.0) < 10
