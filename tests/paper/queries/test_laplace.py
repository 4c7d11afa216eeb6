from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from dpcov.core.entropy import SeededBits
from dpcov.core.errors import ArgumentError
from dpcov.paper.queries.laplace import (
    discrete_laplace,
    laplace_tail_threshold,
    truncated_laplace,
    truncation_bound,
)

# The probability with which a correct sampler fails one statistical test. Seeds are fixed, so a
# test that passes keeps passing.
ERROR = 1e-9
COUNT = 8000
SCALES = [Fraction(1, 2), Fraction(10, 3), Fraction(50)]
WRONG_SCALE = Fraction(11, 10)

TRUNCATIONS = [
    (1, Fraction(1), Fraction(1, 10**6)),
    (1, Fraction(3), Fraction(1, 10**3)),
    (1, Fraction(1, 10), Fraction(1, 10**9)),
    (3, Fraction(1, 2), Fraction(1, 10**6)),
    (20, Fraction(1), Fraction(1, 10**5)),
    (99, Fraction(1, 3), Fraction(1, 10**8)),
    (5, Fraction(1, 10), Fraction(9, 10)),
]


def seeded() -> SeededBits:
    return SeededBits(np.random.default_rng(20240607))


def p_value(samples: list[int], scale: Fraction, bound: int) -> float:
    """Chi-square of the law exp(-|x| / scale) on the integers up to `bound`, in about 30 cells."""
    values = np.arange(-bound, bound + 1)
    mass = np.exp(-np.abs(values) / float(scale))
    expected = len(samples) * mass / mass.sum()
    observed = np.bincount(np.array(samples) + bound, minlength=len(values))
    assert len(observed) == len(values)
    sums: list[NDArray[np.float64]] = [np.zeros(2)]
    for i, pair in enumerate(np.stack([observed, expected], axis=1)):
        if sums[-1][1] >= len(samples) / 30 and expected[i:].sum() >= len(samples) / 200:
            sums.append(np.zeros(2))
        sums[-1] += pair
    cells = np.array(sums)
    return float(chi2.sf(((cells[:, 0] - cells[:, 1]) ** 2 / cells[:, 1]).sum(), len(cells) - 1))


def reach(scale: Fraction) -> int:
    # A sample beyond 60 scales has probability e^-60.
    return math.ceil(60 * scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_follows_the_exact_law(scale: Fraction) -> None:
    bits = seeded()
    samples = [discrete_laplace(bits, scale) for _ in range(COUNT)]
    assert p_value(samples, scale, reach(scale)) > ERROR


def test_discrete_laplace_ten_percent_off_is_rejected() -> None:
    bits, scale = seeded(), SCALES[-1]
    samples = [discrete_laplace(bits, scale * WRONG_SCALE) for _ in range(COUNT)]
    assert p_value(samples, scale, reach(scale)) < ERROR


@pytest.mark.parametrize(("scale", "bound"), [(Fraction(2), 7), (Fraction(10, 3), 20)])
def test_truncated_laplace_follows_the_exact_law_within_its_bound(scale: Fraction, bound: int) -> None:
    bits = seeded()
    samples = [truncated_laplace(bits, scale, bound) for _ in range(COUNT)]
    assert min(samples) >= -bound
    assert max(samples) <= bound
    assert p_value(samples, scale, bound) > ERROR


def test_truncated_laplace_ten_percent_off_is_rejected() -> None:
    bits, scale, bound = seeded(), Fraction(10, 3), 20
    samples = [truncated_laplace(bits, scale * WRONG_SCALE, bound) for _ in range(COUNT)]
    assert p_value(samples, scale, bound) < ERROR


@pytest.mark.parametrize("bound", [0, 1, 2])
def test_truncated_laplace_reaches_but_never_passes_a_narrow_bound(bound: int) -> None:
    bits = seeded()
    samples = [truncated_laplace(bits, Fraction(5), bound) for _ in range(300)]
    assert set(samples) == set(range(-bound, bound + 1))
    # Moved to the bound instead of drawn anew, two of five would lie at either end.
    assert bound == 0 or p_value(samples, Fraction(5), bound) > ERROR


def exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def truncated_law(scale: Fraction, bound: int) -> dict[int, Decimal]:
    ratio = (-1 / exact(scale)).exp()
    powers = [ratio**k for k in range(bound + 1)]
    total = 2 * sum(powers) - 1
    return {value: powers[abs(value)] / total for value in range(-bound, bound + 1)}


def truncation_delta(sensitivity: int, epsilon: Fraction, bound: int, shift: int) -> Decimal:
    """Greatest excess of an event's probability over e^epsilon times that under the shifted law."""
    law = truncated_law(sensitivity / epsilon, bound)
    # The last digits are rounded: an excess that is none may show as 1e-58.
    factor = exact(epsilon).exp() * (1 + Decimal(10) ** -50)
    excess = (mass - factor * law.get(value + shift, Decimal(0)) for value, mass in law.items())
    return sum((e for e in excess if e > 0), Decimal(0))


def least_passing(passes: Callable[[int], bool], start: int, known: int) -> int:
    """Least integer from `start` to `known` from which on a condition holds, by bisection."""
    low, high = start, known
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle + 1, high)
    return high


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), TRUNCATIONS)
def test_truncation_bound_gives_at_most_the_delta_asked(
    sensitivity: int, epsilon: Fraction, delta: Fraction
) -> None:
    bound = truncation_bound(sensitivity, epsilon, delta)
    assert bound >= sensitivity
    with localcontext(prec=60):
        for shift in {1, sensitivity // 2, sensitivity} - {0}:
            for signed in (shift, -shift):
                assert truncation_delta(sensitivity, epsilon, bound, signed) <= exact(delta)


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), TRUNCATIONS)
def test_delta_of_a_truncation_is_its_outermost_mass(
    sensitivity: int, epsilon: Fraction, delta: Fraction
) -> None:
    bound = truncation_bound(sensitivity, epsilon, delta)
    with localcontext(prec=60):
        law = truncated_law(sensitivity / epsilon, bound)
        outermost = sum(law[value] for value in range(bound - sensitivity + 1, bound + 1))
        measured = truncation_delta(sensitivity, epsilon, bound, sensitivity)
        assert abs(measured - outermost) <= outermost * Decimal("1e-30")


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), TRUNCATIONS)
def test_truncation_bound_is_not_much_larger_than_needed(
    sensitivity: int, epsilon: Fraction, delta: Fraction
) -> None:
    bound = truncation_bound(sensitivity, epsilon, delta)
    scale = float(sensitivity / epsilon)
    with localcontext(prec=60):
        ratio = (-exact(epsilon) / sensitivity).exp()

        def passes(candidate: int) -> bool:
            edge = ratio ** (candidate + 1)
            return edge * (exact(epsilon).exp() - 1) <= exact(delta) * (1 + ratio - 2 * edge)

        least = least_passing(passes, sensitivity, bound)
    # The bound replaces the law's normalisation (1 + r) / (1 - r) < 1 + 2 scale by 1.
    assert least <= bound <= least + 2 + scale * math.log(1 + 2 * scale)


def laplace_tail(scale: Fraction, threshold: int) -> Decimal:
    """P[x >= threshold], by adding up both the tail and the whole law."""
    ratio = (-1 / exact(scale)).exp()
    powers = [Decimal(1)]
    while powers[-1] > Decimal("1e-60"):
        powers.append(powers[-1] * ratio)
    return sum(powers[threshold:], Decimal(0)) / (2 * sum(powers) - 1)


@pytest.mark.parametrize("delta", [Fraction(1, 10**12), Fraction(1, 10**6), Fraction(1, 100), Fraction(3, 4)])
@pytest.mark.parametrize("scale", [Fraction(1, 10), *SCALES], ids=str)
def test_tail_threshold_is_passed_with_at_most_the_probability_asked(
    scale: Fraction, delta: Fraction
) -> None:
    threshold = laplace_tail_threshold(scale, delta)
    with localcontext(prec=60):
        assert laplace_tail(scale, threshold) <= exact(delta)
        least = least_passing(lambda t: laplace_tail(scale, t) <= exact(delta), 1, threshold)
    # The bound leaves out a factor 1 + r of at most 2.
    assert 1 <= least <= threshold <= least + 1 + math.log(2) * scale


def test_a_narrower_guarantee_needs_wider_noise() -> None:
    deltas = [Fraction(1, 10**k) for k in (2, 4, 8, 16)]
    bounds = [truncation_bound(2, Fraction(1), delta) for delta in deltas]
    thresholds = [laplace_tail_threshold(Fraction(2), delta) for delta in deltas]
    assert bounds == sorted(set(bounds))
    assert thresholds == sorted(set(thresholds))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_delta_must_lie_strictly_between_zero_and_one(delta: Fraction) -> None:
    with pytest.raises(ArgumentError, match="delta must lie strictly between 0 and 1"):
        truncation_bound(1, Fraction(1), delta)
    with pytest.raises(ArgumentError, match="delta must lie strictly between 0 and 1"):
        laplace_tail_threshold(Fraction(1), delta)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1)])
def test_scale_must_be_positive(scale: Fraction) -> None:
    with pytest.raises(ArgumentError, match="scale must be greater than 0"):
        discrete_laplace(seeded(), scale)
    with pytest.raises(ArgumentError, match="scale must be greater than 0"):
        truncated_laplace(seeded(), scale, 3)


def test_bound_must_not_be_negative() -> None:
    with pytest.raises(ArgumentError, match="bound must be at least 0, got -1"):
        truncated_laplace(seeded(), Fraction(1), -1)
