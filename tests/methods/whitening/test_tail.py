from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import NoisyCounts
from dpcov.losses import LossLaw
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.tail import (
    expected_loss,
    fit_tail,
    largest_loss,
    law_of_counts,
    restored_quantile,
)

Vector = NDArray[np.float64]


def make_histogram(norms: Vector, sigma: float, seed: int) -> FineNorms:
    grid = fine_grid(float(np.median(norms)), len(norms))
    edges = grid.edges()
    counts = np.bincount(np.searchsorted(edges, norms, side="right"), minlength=grid.n_bins)
    noise = np.rint(np.random.default_rng(seed).normal(0, sigma, grid.n_bins)).astype(np.int64)
    return FineNorms(NoisyCounts(counts + noise, Fraction(sigma) ** 2, grid, len(norms)), len(norms))


def pareto(n: int, index: float, seed: int) -> Vector:
    return np.asarray(np.random.default_rng(seed).random(n) ** (-1 / index))


@pytest.mark.parametrize("index", [4.0, 6.0])
def test_the_loss_of_a_pareto_tail_is_found(index: float) -> None:
    n, radius = 20_000, 20_000 ** (1 / index) / 60 ** (1 / index)
    inside = 0
    for seed in range(40):
        norms = pareto(n, index, seed)
        law = fit_tail(make_histogram(norms, 8.0, seed), radius)
        assert law is not None
        # Half of the laws expect more rows beyond, half less; the truth is hardly ever outside all but 2%.
        low, high = np.quantile(law.rows, [0.01, 0.99])
        inside += int(low - 8 <= (norms > radius).sum() <= high + 8)
    # 60 rows beyond, each law right 98% of the time at least: fewer than 34 of 40 once in 10^5.
    assert inside >= 34


def test_what_is_restored_comes_near_the_loss() -> None:
    n, index, d = 20_000, 5.0, 6
    ratios = []
    for seed in range(60):
        norms = pareto(n, index, seed)
        radius = (n / 60) ** (1 / index)
        law = fit_tail(make_histogram(norms, 8.0, seed), radius)
        assert law is not None
        scaled = LossLaw(law.rows, law.shape, law.spread, radius)
        restored = expected_loss(scaled, n, d, 0.5, has_constant=False).restored
        lost = np.maximum(norms**2 - radius**2, 0).sum() / (n * d)
        ratios.append(restored / lost)
    # Without restoring the ratio is 0, with twice the rows it is 2.
    assert 0.6 < np.median(ratios) < 1.5


def test_a_histogram_that_follows_no_tail_is_refused() -> None:
    rng = np.random.default_rng(0)
    lumps = np.concatenate([np.full(20_000, 1.0), np.full(700, 3.0), np.full(600, 5.0), np.full(500, 9.0)])
    assert fit_tail(make_histogram(lumps + 0.01 * rng.random(len(lumps)), 3.0, 0), 4.0) is None


def test_a_light_tail_loses_little() -> None:
    norms = np.linalg.norm(np.random.default_rng(0).standard_normal((20_000, 7)), axis=1)
    radius = float(np.sort(norms)[-50])
    law = fit_tail(make_histogram(norms, 8.0, 0), radius)
    assert law is not None
    scaled = LossLaw(law.rows, law.shape, law.spread, radius)
    assert expected_loss(scaled, 20_000, 7, 0.5, has_constant=True).restored < 2e-3


def test_little_is_restored_where_noise_drowns_the_far_counts() -> None:
    norms = np.linalg.norm(np.random.default_rng(0).standard_normal((1000, 7)), axis=1)
    assert restored_quantile(make_histogram(norms, 0.5, 0)) == 0.5
    noisy = make_histogram(norms, 18.0, 0)
    assert restored_quantile(noisy) == 0.25
    law = fit_tail(noisy, float(np.sort(norms)[-50]))
    assert law is not None
    low, middle = (expected_loss(law, 1000, 7, level, has_constant=True) for level in (0.25, 0.5))
    assert low.restored < middle.restored


def test_norms_of_a_law_have_its_quantiles() -> None:
    law = LossLaw(np.ones(2), np.array([0.25, 0.0]), np.array([0.5, 0.5]), radius=1.0)
    upper = np.array([1.0, 0.5, 0.01])
    np.testing.assert_allclose(law.norms(upper, 0), 1 + 0.5 * (upper**-0.25 - 1) / 0.25)
    np.testing.assert_allclose(law.norms(upper, 1), 1 - 0.5 * np.log(upper))


def test_a_tail_that_ends_before_the_radius_has_laws_too() -> None:
    # Some likely laws have no rows beyond, and no limit far inside: no NaN, no infinity, no warning.
    for seed in range(10):
        norms = np.random.default_rng(seed).uniform(0.5, 1.0, 20_000)
        for radius in (1.05, 1.2, 2.0, 1e20):
            law = fit_tail(make_histogram(norms, 8.0, seed), radius)
            assert law is None or np.isfinite(law.rows).all()


@pytest.mark.parametrize(("near", "far"), [(340.0, 60.0), (88.0, 2.0), (42.0, -12.0), (-14.0, 4.0)])
def test_laws_of_counts_have_about_these_counts(near: float, far: float) -> None:
    law = law_of_counts(near, far, (8.0, 8.0), 1.5)
    assert np.isfinite(law.spread).all()
    assert (law.rows >= 0).all()
    assert (law.spread > 0).all()
    # As spread out as the noise, cut off at zero.
    assert np.median(law.rows) == pytest.approx(max(near, 0.0) + max(far, 0.0), abs=10.0)
    beyond = law.rows * law.beyond(1.5)
    assert np.median(beyond) == pytest.approx(max(far, 0.0), abs=8.0)
    if far > 30:
        assert beyond.std() == pytest.approx(8.0, rel=0.2)
        # The two counts have noise of their own, and a sum has that of both.
        assert abs(np.corrcoef(law.rows - beyond, beyond)[0, 1]) < 0.3
        assert law.rows.std() == pytest.approx(8.0 * math.sqrt(2), rel=0.2)


def test_an_uneven_loss_is_restored_as_most_directions_have_it() -> None:
    law = LossLaw(np.full(8, 50.0), np.zeros(8), np.full(8, 0.2), 5.0, evenness=1.0)
    whole = expected_loss(
        LossLaw(law.rows, law.shape, law.spread, 5.0, evenness=1e6), 1000, 6, 0.5, has_constant=False
    )
    # The median of an exponential variable.
    uneven = expected_loss(law, 1000, 6, 0.5, has_constant=False)
    assert uneven.restored == pytest.approx(np.log(2) * whole.restored, rel=1e-4)
    alone = expected_loss(law, 1000, 1, 0.5, has_constant=False)
    assert alone.restored == pytest.approx(6 * whole.restored, rel=1e-4)


def test_a_long_tail_may_take_much_more_than_its_laws_expect() -> None:
    light, heavy = (
        LossLaw(np.full(128, 20.0), np.full(128, shape), np.full(128, 0.4), 5.0) for shape in (-0.4, 0.45)
    )
    for law, least, most in ((light, 1.0, 1.3), (heavy, 3.0, 9.0)):
        expected = expected_loss(law, 1000, 1, 0.5, has_constant=False).restored
        assert least < largest_loss(law, 1000, 0.975) / expected < most
    # About as drawn row by row: evenly spaced places leave some of the chance out.
    rng = np.random.default_rng(0)
    drawn = [25 * np.sum(heavy.norms(1 - rng.random(20), 0) ** 2 - 1) / 1000 for _ in range(2000)]
    for quantile in (0.5, 0.9):
        assert largest_loss(heavy, 1000, quantile) == pytest.approx(np.quantile(drawn, quantile), rel=0.25)
    nobody = LossLaw(np.zeros(128), np.zeros(128), np.ones(128), 5.0)
    assert largest_loss(nobody, 1000, 0.975) == 0
