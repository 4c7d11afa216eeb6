from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from helpers.noise_scales import SMALL
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from dpcov.core.entropy import BitSource, SeededBits, random_integer, uniform_below
from dpcov.core.errors import ArgumentError
from dpcov.core.exponential import exp_enclosure
from dpcov.core.noise import (
    _ACCEPT_BITS,
    _CHUNK,
    _WIDEST_SHARED_STRIP_LOG2,
    _boundaries,
    _choose_strips,
    _decide,
    _exp_floor,
    _exp_table,
    _resolve_strip,
    _Strips,
    _strips,
    discrete_gaussian,
)

# The probability with which a correct sampler fails one statistical test. Seeds are fixed, so a
# test that passes keeps passing; only the comparison with OpenDP draws anew each time.
ERROR = 1e-9
COUNT = 200_000
# sigma 10% too large and 10% too small.
WRONG_VARIANCES = [Fraction(121, 100), Fraction(81, 100)]
ALL_ONES = (1 << 64) - 1

TABLES = [*SMALL, Fraction(10**7, 3), Fraction(2**56), Fraction(2**58 + 1), Fraction(2**80), Fraction(2**115)]
WIDE_TABLES = [variance for variance in TABLES if variance >= 5000]


def seeded(seed: int = 20240607) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def draw(variance: Fraction, count: int = COUNT) -> NDArray[np.int64]:
    return discrete_gaussian(seeded(), variance, count)


class RefusingBits:
    @property
    def private(self) -> bool:
        return False

    def words(self, count: int) -> NDArray[np.uint64]:
        raise AssertionError(f"{count} more words were asked for")


class ScriptedBits:
    """Hands out the given words first, then those of another source."""

    def __init__(self, script: Sequence[int], then: BitSource) -> None:
        self._script = list(script)
        self._then = then

    @property
    def private(self) -> bool:
        return False

    def words(self, count: int) -> NDArray[np.uint64]:
        head, self._script = self._script[:count], self._script[count:]
        if len(head) == count:
            return np.array(head, dtype=np.uint64)
        return np.concatenate([np.array(head, dtype=np.uint64), self._then.words(count - len(head))])


def chi_square_p_value(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact_exp(exponent: Fraction) -> Decimal:
    return (-exact(exponent)).exp()


def exact_cumulative(variance: Fraction, width_log2: int) -> list[Decimal]:
    """Cumulative probabilities of the strips in the current precision, until they reach 1."""
    terms = [Decimal(1)]
    while terms[-1] > Decimal("1e-100"):
        terms.append(exact_exp(Fraction((len(terms) << width_log2) ** 2) / (2 * variance)))
    total = sum(terms)
    sums = []
    below = Decimal(0)
    for term in terms:
        below += term
        sums.append(below / total)
    return sums


def floor_of(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_FLOOR))


def strip_of(uniform: int, length: int, cumulative: list[Decimal]) -> int:
    """Strip of a uniform of so many bits that a strip's end is never among them."""
    return bisect_right([floor_of(2**length * end) for end in cumulative], uniform)


@pytest.mark.parametrize("variance", TABLES, ids=str)
def test_boundaries_are_the_floors_of_the_exact_probabilities(variance: Fraction) -> None:
    width_log2 = _strips(variance).width_log2
    with localcontext(prec=100):
        floors = [floor_of(2**64 * end) for end in exact_cumulative(variance, width_log2)]
    boundaries = _boundaries(variance, width_log2)
    assert boundaries == floors[: len(boundaries)]
    assert boundaries.index(ALL_ONES) == len(boundaries) - 1
    assert _strips(variance).boundaries.tolist() == boundaries


@pytest.mark.parametrize("variance", [v for v in TABLES if v >= 256], ids=str)
def test_strips_are_between_a_sixteenth_and_a_thirty_second_of_sigma(variance: Fraction) -> None:
    width = 1 << _strips(variance).width_log2
    assert (16 * width) ** 2 <= variance < (32 * width) ** 2


@pytest.mark.parametrize("variance", TABLES, ids=str)
def test_words_beside_a_boundary_fall_into_the_right_strip(variance: Fraction) -> None:
    strips = _strips(variance)
    boundaries = strips.boundaries.tolist()
    words = {int(word) for word in seeded().words(2000)} | {0, ALL_ONES}
    words |= {edge << 52 for edge in range(1 << 12)} | {((edge + 1) << 52) - 1 for edge in range(1 << 12)}
    words |= {boundary + step for boundary in boundaries for step in (-1, 1)}
    plain = sorted(word for word in words if 0 <= word <= ALL_ONES and word not in boundaries)
    chosen = _choose_strips(RefusingBits(), strips, np.array(plain, dtype=np.uint64))
    assert chosen.tolist() == [bisect_right(boundaries, word) for word in plain]


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(5000), Fraction(2**80)], ids=str)
def test_a_word_on_a_boundary_is_resolved_by_further_bits(variance: Fraction) -> None:
    strips = _strips(variance)
    with localcontext(prec=150):
        cumulative = exact_cumulative(variance, strips.width_log2)
        # From 8 sigma on, several strips may end within one word.
        for strip in range(0, len(strips.boundaries) * 8 // 10, max(1, len(strips.boundaries) // 10)):
            word, second = divmod(floor_of(2**128 * cumulative[strip]), 1 << 64)
            third = floor_of(2**192 * cumulative[strip]) % (1 << 64)
            # Just below and just above the end, in the second word and in the third.
            for script, expected in [
                ([second - 2], strip),
                ([second + 2], strip + 1),
                ([second, third - 2], strip),
                ([second, third + 2], strip + 1),
            ]:
                assert _resolve_strip(ScriptedBits(script, RefusingBits()), strips, word) == expected


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(5000)], ids=str)
def test_the_last_word_is_resolved_by_further_bits(variance: Fraction) -> None:
    strips = _strips(variance)
    seconds = seeded().words(20).tolist()
    with localcontext(prec=150):
        cumulative = exact_cumulative(variance, strips.width_log2)
        expected = [strip_of((ALL_ONES << 64) | second, 128, cumulative) for second in seconds]
    resolved = [_resolve_strip(ScriptedBits([s], RefusingBits()), strips, ALL_ONES) for s in seconds]
    assert resolved == expected
    assert min(resolved) >= len(strips.boundaries) - 1


def resolved_p_value(strips: _Strips, word: int, share_below: float, strip: int) -> float:
    count = 1000
    words = np.full(count, word, dtype=np.uint64)
    chosen = _choose_strips(seeded(), strips, words)
    return float(binomtest(int((chosen <= strip).sum()), count, share_below).pvalue)


@pytest.mark.parametrize("strip", [0, 1, 2])
def test_words_on_a_boundary_are_shared_in_the_right_proportion(strip: int) -> None:
    variance = Fraction(1)
    with localcontext(prec=100):
        end = exact_cumulative(variance, 0)[strip] * 2**64
        word, share = floor_of(end), float(end - floor_of(end))
    assert 0.05 < share < 0.95
    assert resolved_p_value(_strips(variance), word, share, strip) > ERROR
    # A sampler of another scale has its boundaries elsewhere and puts the word into one strip.
    for wrong in WRONG_VARIANCES:
        assert resolved_p_value(_strips(variance * wrong), word, share, strip) < ERROR


@pytest.mark.parametrize("variance", WIDE_TABLES, ids=str)
def test_sure_acceptance_is_below_every_probability_of_its_strip(variance: Fraction) -> None:
    strips = _strips(variance)
    last = (1 << strips.width_log2) - 1
    assert len(strips.surely_accepted) == len(strips.boundaries) + 1
    assert strips.surely_accepted[-1] == 0
    with localcontext(prec=60):
        for strip, surely in enumerate(strips.surely_accepted[:-1].tolist()):
            least = exact_exp(strips.acceptance_exponent(strip, last)) * 2**_ACCEPT_BITS
            assert least - 3 < surely <= least


@pytest.mark.parametrize("variance", TABLES, ids=str)
def test_exponent_scale_is_a_floor(variance: Fraction) -> None:
    strips = _strips(variance)
    exact_scale = Fraction(4**strips.width_log2, 2) / variance * 2**41
    assert strips.exponent_scale <= exact_scale < strips.exponent_scale + 1


def proposals(strips: _Strips, count: int) -> list[tuple[int, int]]:
    bits = seeded()
    width = 1 << strips.width_log2
    inner = [(uniform_below(bits, len(strips.boundaries)), uniform_below(bits, width)) for _ in range(count)]
    ends = [(strip, offset) for strip in (0, 1, len(strips.boundaries)) for offset in (0, 1, width - 1)]
    return inner + ends


def decide(bits: BitSource, strips: _Strips, cases: Sequence[tuple[int, int, int]]) -> list[bool]:
    strip, offset, uniform = (np.array(column, dtype=np.int64) for column in zip(*cases, strict=True))
    return [bool(accepted) for accepted in _decide(bits, strips, strip, offset, uniform)]


@pytest.mark.parametrize("variance", WIDE_TABLES, ids=str)
def test_acceptance_agrees_with_the_exact_probability(variance: Fraction) -> None:
    strips = _strips(variance)
    near: list[tuple[tuple[int, int, int], bool]] = []
    far: list[tuple[tuple[int, int, int], bool]] = []
    with localcontext(prec=60):
        for strip, offset in proposals(strips, 200):
            threshold = floor_of(exact_exp(strips.acceptance_exponent(strip, offset)) * 2**_ACCEPT_BITS)
            for step in (-1000, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 1000):
                uniform = threshold + step
                if 0 <= uniform < 1 << _ACCEPT_BITS:
                    (far if abs(step) > 4 else near).append(((strip, offset, uniform), step < 0))
    # Beside the threshold further bits may be drawn but cannot matter; farther off none are drawn.
    assert decide(seeded(), strips, [case for case, _ in near]) == [accepted for _, accepted in near]
    assert decide(RefusingBits(), strips, [case for case, _ in far]) == [accepted for _, accepted in far]


@pytest.mark.parametrize("variance", WIDE_TABLES, ids=str)
def test_acceptance_on_the_threshold_is_decided_by_further_bits(variance: Fraction) -> None:
    strips = _strips(variance)
    with localcontext(prec=100):
        for strip, offset in proposals(strips, 30):
            probability = exact_exp(strips.acceptance_exponent(strip, offset))
            uniform, second = divmod(floor_of(probability * 2 ** (_ACCEPT_BITS + 64)), 1 << 64)
            third = floor_of(probability * 2 ** (_ACCEPT_BITS + 128)) % (1 << 64)
            if not all(3 <= word <= ALL_ONES - 3 for word in (second, third)):
                continue
            for script, accepted in [
                ([second - 3], True),
                ([second + 3], False),
                ([second, third - 3], True),
                ([second, third + 3], False),
            ]:
                bits = ScriptedBits(script, RefusingBits())
                assert decide(bits, strips, [(strip, offset, uniform)]) == [accepted]


def test_the_first_integer_of_a_strip_is_always_accepted() -> None:
    strips = _strips(Fraction(2**80))
    cases = [(strip, 0, (1 << _ACCEPT_BITS) - 1) for strip in range(len(strips.boundaries))]
    assert all(decide(RefusingBits(), strips, cases))


def test_exp_floor_is_below_the_exponential_by_less_than_four() -> None:
    bits = seeded()
    exponents = [uniform_below(bits, 1 << 31) for _ in range(3000)]
    exponents += [(i << 15) + step for i in (0, 1, 2, 1000, 30000, 65535) for step in (0, 1, (1 << 15) - 1)]
    floors = _exp_floor(np.array(exponents, dtype=np.int64)).tolist()
    with localcontext(prec=40):
        for exponent, floor in zip(exponents, floors, strict=True):
            assert floor <= 2**31 * exact_exp(Fraction(exponent, 1 << 30)) < floor + 4


def test_exp_table_is_below_the_exponential_by_hardly_more_than_one() -> None:
    with localcontext(prec=40):
        for i, entry in enumerate(_exp_table().tolist()):
            if i % 7 == 0:
                assert entry <= 2**31 * exact_exp(Fraction(i, 1 << 15)) < entry + 1 + Decimal(2) ** -40


@pytest.mark.parametrize("precision", [1, 23, 64, 87, 160, 1000])
def test_exp_enclosures_enclose(precision: int) -> None:
    bits = seeded()
    exponents = [Fraction(random_integer(bits, 60), 1 + random_integer(bits, 60)) for _ in range(60)]
    exponents += [Fraction(1, 10**40), Fraction(1, 2), Fraction(1), Fraction(500), Fraction(10**30)]
    with localcontext(prec=500):
        for exponent in exponents:
            low, high = exp_enclosure(exponent, precision)
            assert low <= exact_exp(exponent) * 2**precision <= high
            assert high - low <= 3
            assert low >= 0
            assert high <= 1 << precision
    assert exp_enclosure(Fraction(0), precision) == (1 << precision, 1 << precision)


def test_offset_and_acceptance_share_no_bit_of_a_word() -> None:
    # The sign takes the first bit, acceptance the next ones, the offset the last ones.
    assert 1 + _ACCEPT_BITS + _WIDEST_SHARED_STRIP_LOG2 <= 64
    assert _strips(Fraction(4**44)).width_log2 == _WIDEST_SHARED_STRIP_LOG2
    assert _strips(Fraction(4**45)).width_log2 == _WIDEST_SHARED_STRIP_LOG2 + 1


@pytest.mark.parametrize("variance", [Fraction(1, 1000), *TABLES], ids=str)
def test_words_of_ones_only_do_no_harm(variance: Fraction) -> None:
    count = 3
    # All words of the first round are ones: each strip is beyond the last boundary.
    words_each = 2 if _strips(variance).width_log2 <= _WIDEST_SHARED_STRIP_LOG2 else 3
    bits = ScriptedBits([ALL_ONES] * (words_each * (count + 8)), seeded())
    samples = discrete_gaussian(bits, variance, count)
    assert samples.shape == (count,)
    assert np.all(np.abs(samples / math.sqrt(variance)) < 20 + 1 / math.sqrt(variance))


def test_a_first_word_of_ones_lands_beyond_nine_sigma() -> None:
    bits = ScriptedBits([ALL_ONES] * 18, seeded())
    assert discrete_gaussian(bits, Fraction(1), 1)[0] < -8


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000, _CHUNK, _CHUNK + 1, 3 * _CHUNK])
def test_as_many_samples_as_asked(count: int) -> None:
    for variance in (Fraction(1, 4), Fraction(2**80)):
        samples = discrete_gaussian(seeded(), variance, count)
        assert samples.shape == (count,)
        assert samples.dtype == np.int64


def test_the_same_seed_gives_the_same_samples() -> None:
    assert draw(Fraction(100)).tolist() == draw(Fraction(100)).tolist()
    assert draw(Fraction(100)).tolist() != discrete_gaussian(seeded(1), 100, COUNT).tolist()


@pytest.mark.parametrize("variance", [0, -1, Fraction(-1, 10**9)])
def test_variance_must_be_positive(variance: Fraction | int) -> None:
    with pytest.raises(ArgumentError, match="variance must be greater than 0"):
        discrete_gaussian(seeded(), variance, 1)


def test_tiny_variance_gives_zeros() -> None:
    assert not discrete_gaussian(seeded(), Fraction(1, 1000), 1000).any()
