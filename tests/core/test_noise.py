from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from helpers.noise_scales import SMALL
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2, norm

from dpcov.core.entropy import SeededBits
from dpcov.core.errors import ArgumentError
from dpcov.core.noise import discrete_gaussian

# The probability with which a correct sampler fails one statistical test. Seeds are fixed, so a
# test that passes keeps passing; only the comparison with OpenDP draws anew each time.
ERROR = 1e-9
COUNT = 200_000
# sigma 10% too large and 10% too small.
WRONG_VARIANCES = [Fraction(121, 100), Fraction(81, 100)]

# 44 is the last scale that shares one word between offset and acceptance, 45 the first that does not.
LARGE_LOG2 = [10, 20, 40, 44, 45, 52]


def seeded(seed: int = 20240607) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def draw(variance: Fraction, count: int = COUNT) -> NDArray[np.int64]:
    return discrete_gaussian(seeded(), variance, count)


def chi_square_p_value(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def cells_of_at_least(least: float, expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number runs of neighbouring values so that each run expects at least `least` samples."""
    cells = np.empty(len(expected), dtype=np.int64)
    cell, filled = 0, 0.0
    for i, value in enumerate(expected):
        if filled >= least and expected[i:].sum() >= least:
            cell, filled = cell + 1, 0.0
        cells[i] = cell
        filled += value
    return cells


def pmf_p_value(samples: NDArray[np.int64], variance: Fraction) -> float:
    reach = math.ceil(12 * math.sqrt(variance)) + 2
    assert np.abs(samples).max() <= reach
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * float(variance)))
    expected = len(samples) * mass / mass.sum()
    cells = cells_of_at_least(len(samples) / 400, expected)
    return chi_square_p_value(
        np.bincount(cells[samples + reach], minlength=cells[-1] + 1),
        np.bincount(cells, weights=expected).astype(np.float64),
    )


def density_p_value(samples: NDArray[np.int64], sigma: float) -> float:
    # Between half-integers the discrete and the normal law agree up to about 1 / sigma^2. The 512
    # cells are several to a strip, which is sigma/32 to sigma/16 wide.
    edges = np.floor(sigma * norm.ppf(np.arange(1, 512) / 512)) + 0.5
    probability = np.diff(norm.cdf(edges / sigma), prepend=0.0, append=1.0)
    probability[0], probability[-1] = norm.cdf(edges[0] / sigma), norm.sf(edges[-1] / sigma)
    observed = np.bincount(np.searchsorted(edges, samples), minlength=512)
    return chi_square_p_value(observed, len(samples) * probability)


def moment_p_value(order: int, samples: NDArray[np.int64], sigma: float) -> float:
    def normal_moment(k: int) -> int:
        return math.prod(range(1, k, 2))

    powers = (samples / sigma) ** order
    deviation = math.sqrt((normal_moment(2 * order) - normal_moment(order) ** 2) / len(samples))
    return float(2 * norm.sf(abs(powers.mean() - normal_moment(order)) / deviation))


def variance_p_value(samples: NDArray[np.int64], sigma: float) -> float:
    return moment_p_value(2, samples, sigma)


def kurtosis_p_value(samples: NDArray[np.int64], sigma: float) -> float:
    return moment_p_value(4, samples, sigma)


def tail_p_value(samples: NDArray[np.int64], sigma: float) -> float:
    """Bonferroni's bound over the tails beyond 2, 3 and 3.5 sigma on either side."""
    beyond = [
        binomtest(
            int((sign * samples > limit).sum()), len(samples), float(norm.sf((limit + 0.5) / sigma))
        ).pvalue
        for limit in (2 * sigma, 3 * sigma, 3.5 * sigma)
        for sign in (1, -1)
    ]
    return float(min(beyond) * len(beyond))


LargeScaleTest = Callable[[NDArray[np.int64], float], float]
LARGE_SCALE_TESTS = [density_p_value, variance_p_value, kurtosis_p_value, tail_p_value]


@pytest.mark.parametrize("variance", SMALL, ids=str)
def test_small_scales_follow_the_exact_law(variance: Fraction) -> None:
    assert pmf_p_value(draw(variance), variance) > ERROR


@pytest.mark.parametrize("wrong", WRONG_VARIANCES, ids=str)
@pytest.mark.parametrize("variance", SMALL, ids=str)
def test_small_scales_ten_percent_off_are_rejected(variance: Fraction, wrong: Fraction) -> None:
    assert pmf_p_value(draw(variance * wrong), variance) < ERROR


@pytest.mark.parametrize("p_value", LARGE_SCALE_TESTS)
@pytest.mark.parametrize("log2", LARGE_LOG2)
def test_large_scales_follow_the_normal_law(log2: int, p_value: LargeScaleTest) -> None:
    assert p_value(draw(Fraction(4**log2)), 2.0**log2) > ERROR


@pytest.mark.parametrize("wrong", WRONG_VARIANCES, ids=str)
@pytest.mark.parametrize("p_value", LARGE_SCALE_TESTS)
@pytest.mark.parametrize("log2", LARGE_LOG2)
def test_large_scales_ten_percent_off_are_rejected(
    log2: int, p_value: LargeScaleTest, wrong: Fraction
) -> None:
    assert p_value(draw(4**log2 * wrong), 2.0**log2) < ERROR


def low_bits_p_value(samples: NDArray[np.int64]) -> float:
    return chi_square_p_value(np.bincount(samples & 255, minlength=256), np.full(256, len(samples) / 256))


@pytest.mark.parametrize("log2", LARGE_LOG2)
def test_low_bits_of_large_samples_are_uniform(log2: int) -> None:
    # They say nothing about the scale, so what must be rejected here is a sampler on even integers.
    samples = draw(Fraction(4**log2))
    assert low_bits_p_value(samples) > ERROR
    assert low_bits_p_value(samples & ~np.int64(1)) < ERROR


def two_sample_p_value(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    low = min(first.min(), second.min())
    counts = [
        np.bincount(samples - low, minlength=int(max(first.max(), second.max()) - low) + 1)
        for samples in (first, second)
    ]
    pooled = (counts[0] + counts[1]) / 2
    cells = cells_of_at_least(len(first) / 50, pooled)
    expected = np.bincount(cells, weights=pooled)
    differences = np.bincount(cells, weights=counts[0]) - np.bincount(cells, weights=counts[1])
    return float(chi2.sf((differences**2 / (2 * expected)).sum(), len(expected) - 1))


@pytest.mark.parametrize("sigma", [Fraction(5, 2), Fraction(100)], ids=str)
def test_samples_agree_with_those_of_opendp(sigma: Fraction) -> None:
    # OpenDP cannot be seeded: one run in 10^9 fails by chance.
    count = 50_000
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * count))
    assert two_sample_p_value(draw(sigma**2, count), theirs) > ERROR
    for wrong in WRONG_VARIANCES:
        assert two_sample_p_value(draw(sigma**2 * wrong, count), theirs) < ERROR


def test_variance_must_leave_room_in_64_bits() -> None:
    with pytest.raises(ArgumentError, match=r"variance must be below 2\^116"):
        discrete_gaussian(seeded(), 2**116, 1)
    samples = discrete_gaussian(seeded(), 2**116 - 1, 10_000)
    assert variance_p_value(samples, 2.0**58) > ERROR
