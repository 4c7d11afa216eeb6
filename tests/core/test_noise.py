"""The law of the samples, against the exact one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2, norm

from dpcov.core.entropy import SeededBits
from dpcov.core.errors import ArgumentError
from dpcov.core.noise import rounded_gaussian, rounded_variance

# The probability with which a correct sampler fails one statistical test. Seeds are fixed, so a
# test that passes keeps passing.
ERROR = 1e-9
COUNT = 200_000
# sigma 10% too large and 10% too small.
WRONG_VARIANCES = [Fraction(121, 100), Fraction(81, 100)]

SMALL = [
    Fraction(1, 25), Fraction(1, 4), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(10),
    Fraction(337, 10), Fraction(1000), Fraction(5000),
]  # fmt: skip
# 37 has the finest unit, 38 does not: sigma / 64 has 32 bits before the point.
LARGE_LOG2 = [10, 20, 37, 38, 45, 52, 57]


def seeded(seed: int = 20240607) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def draw(variance: Fraction, count: int = COUNT) -> NDArray[np.int64]:
    return rounded_gaussian(seeded(), variance, count)


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


def exact_mass(values: NDArray[np.int64], variance: Fraction) -> NDArray[np.float64]:
    """P[m] = Phi((m + 1/2) / sigma) - Phi((m - 1/2) / sigma), from 40 digits."""
    with mpmath.workdps(40):
        root = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
        # From the side of the tail, so that nothing cancels.
        above = [mpmath.ncdf(-(2 * abs(int(m)) - 1) / (2 * root)) for m in values]
        beyond = [mpmath.ncdf(-(2 * abs(int(m)) + 1) / (2 * root)) for m in values]
        return np.array([float(a - b) for a, b in zip(above, beyond, strict=True)])


def pmf_p_value(samples: NDArray[np.int64], variance: Fraction) -> float:
    reach = math.ceil(8 * math.sqrt(variance)) + 2
    assert np.abs(samples).max() <= reach
    values = np.arange(-reach, reach + 1)
    expected = len(samples) * exact_mass(values, variance)
    cells = cells_of_at_least(min(len(samples) / 400, expected[values != 0].sum() / 3), expected)
    return chi_square_p_value(
        np.bincount(cells[samples + reach], minlength=cells[-1] + 1),
        np.bincount(cells, weights=expected).astype(np.float64),
    )


def density_p_value(samples: NDArray[np.int64], sigma: float) -> float:
    # 2048 cells, cut between integers: several to a strip, which is sigma/64 wide, where most samples are.
    edges = np.floor(sigma * norm.ppf(np.arange(1, 2048) / 2048)) + 0.5
    probability = np.diff(norm.cdf(edges / sigma), prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(edges, samples), minlength=2048)
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


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1, 3), Fraction(1)], ids=str)
def test_the_discrete_gaussian_is_rejected(variance: Fraction) -> None:
    # Not the law that is claimed, although the variance is about the same.
    values = np.arange(-20, 21)
    mass = np.exp(-(values**2) / (2 * float(variance)))
    samples = np.random.default_rng(0).choice(values, COUNT, p=mass / mass.sum())
    assert pmf_p_value(samples, variance) < ERROR


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


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(5, 2), Fraction(100)], ids=str)
def test_samples_agree_with_rounded_normal_numbers_of_numpy(sigma: Fraction) -> None:
    count = 100_000
    theirs = np.rint(np.random.default_rng(0).normal(0.0, float(sigma), count)).astype(np.int64)
    assert two_sample_p_value(draw(sigma**2, count), theirs) > ERROR
    for wrong in WRONG_VARIANCES:
        assert two_sample_p_value(draw(sigma**2 * wrong, count), theirs) < ERROR


def test_tiny_scales_follow_the_exact_law() -> None:
    # sigma 1/8: of two million samples 127 are expected not to be 0; with 10% more 553, with 10% less 18.
    def p_value(variance: Fraction) -> float:
        count = 2_000_000
        others = int(np.count_nonzero(draw(variance, count)))
        return float(binomtest(others, count, 2 * float(norm.sf(4))).pvalue)

    assert p_value(Fraction(1, 64)) > ERROR
    assert p_value(Fraction(121, 6400)) < ERROR
    assert p_value(Fraction(81, 6400)) < ERROR
    assert not draw(Fraction(1, 10**6)).any()


@pytest.mark.parametrize("variance", [Fraction(1, 10**4), Fraction(1, 25), *SMALL], ids=str)
def test_the_variance_of_rounded_noise_is_known(variance: Fraction) -> None:
    reach = math.ceil(9 * math.sqrt(variance)) + 2
    values = np.arange(-reach, reach + 1)
    true = float((exact_mass(values, variance) * values**2).sum())
    told = float(rounded_variance(variance))
    assert told == pytest.approx(max(true, float(variance)), rel=1e-6)


def test_variance_must_leave_room_in_64_bits() -> None:
    with pytest.raises(ArgumentError, match=r"variance must be below 2\^116"):
        rounded_gaussian(seeded(), 2**116, 1)
    samples = rounded_gaussian(seeded(), 2**116 - 1, 10_000)
    assert variance_p_value(samples, 2.0**58) > ERROR
