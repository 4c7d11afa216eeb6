"""Every decision of the sampler, against exact arithmetic, and its slow paths, forced."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from dpcov.core import noise
from dpcov.core.entropy import BitSource, SeededBits, random_integer
from dpcov.core.errors import ArgumentError
from dpcov.core.noise import (
    _ACCEPT_BITS,
    _CHUNK,
    _LAST_TABULATED_STRIP,
    _STRIP_BITS,
    _accept_exactly,
    _choose_strips,
    _cumulative,
    _decide,
    _exp_floor,
    _exp_table,
    _resolve_strip,
    _Scale,
    _strips,
    exp_enclosure,
    rounded_gaussian,
)

# The probability with which a correct sampler fails one statistical test. Seeds are fixed, so a
# test that passes keeps passing.
ERROR = 1e-9
ALL_ONES = (1 << 64) - 1
LAST = (1 << _STRIP_BITS) - 1

VARIANCES = [
    Fraction(1, 10**6), Fraction(1, 4), Fraction(1), Fraction(337, 10), Fraction(64**2), Fraction(10**7, 3),
    Fraction(2**56), Fraction(4**38), Fraction(2**80 + 1, 7), Fraction(4**57), Fraction(2**116 - 1),
]  # fmt: skip


def seeded(seed: int = 20240607) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


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


def exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact_exp(exponent: Fraction) -> Decimal:
    return (-exact(exponent)).exp()


def floor_of(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_FLOOR))


def exact_cumulative() -> list[Decimal]:
    """Cumulative probabilities of the strips in the current precision, until they reach 1."""
    terms = [Decimal(1)]
    while terms[-1] > Decimal("1e-100"):
        terms.append(exact_exp(Fraction(len(terms) ** 2, 1 << 13)))
    total = sum(terms)
    sums = []
    below = Decimal(0)
    for term in terms:
        below += term
        sums.append(below / total)
    return sums


def strip_of(uniform: int, length: int, cumulative: list[Decimal]) -> int:
    """Strip of a uniform of so many bits that a strip's end is never among them."""
    return bisect_right([floor_of(2**length * end) for end in cumulative], uniform)


def test_boundaries_are_the_floors_of_the_exact_probabilities() -> None:
    with localcontext(prec=100):
        floors = [floor_of(2**_STRIP_BITS * end) for end in exact_cumulative()]
    boundaries = _strips().boundaries.tolist()
    assert boundaries == floors[: len(boundaries)]
    assert boundaries.index(LAST) == len(boundaries) - 1 <= _LAST_TABULATED_STRIP
    ends = [(low >> 96, min(high >> 96, LAST)) for low, high in _cumulative(128)[: len(boundaries)]]
    assert ends == [(floor, floor) for floor in boundaries]


@pytest.mark.parametrize("precision", [64, 128, 192])
def test_cumulative_probabilities_are_enclosed(precision: int) -> None:
    with localcontext(prec=140):
        cumulative = exact_cumulative()
        for (low, high), end in zip(_cumulative(precision), cumulative, strict=False):
            assert low <= end * 2**precision <= high
            assert high - low <= 3


def test_values_beside_a_boundary_fall_into_the_right_strip() -> None:
    strips = _strips()
    boundaries = strips.boundaries.tolist()
    values = {int(word) >> 32 for word in seeded().words(2000)} | {0, LAST}
    values |= {edge << 18 for edge in range(1 << 14)} | {((edge + 1) << 18) - 1 for edge in range(1 << 14)}
    values |= {boundary + step for boundary in boundaries for step in (-1, 1)}
    plain = sorted(value for value in values if 0 <= value <= LAST and value not in boundaries)
    chosen = _choose_strips(RefusingBits(), strips, np.array(plain, dtype=np.uint64))
    assert chosen.tolist() == [bisect_right(boundaries, value) for value in plain]


def test_a_value_on_a_boundary_is_resolved_by_further_bits() -> None:
    boundaries = _strips().boundaries.tolist()
    with localcontext(prec=150):
        cumulative = exact_cumulative()
        # From 5 sigma on, several strips may end within one value.
        for strip in range(0, 320, 40):
            value, second = divmod(floor_of(2**96 * cumulative[strip]), 1 << 64)
            third = floor_of(2**160 * cumulative[strip]) % (1 << 64)
            assert value == boundaries[strip]
            # Just below and just above the end, in the first further word and in the second.
            for script, expected in [
                ([second - 2], strip),
                ([second + 2], strip + 1),
                ([second, third - 2], strip),
                ([second, third + 2], strip + 1),
            ]:
                assert _resolve_strip(ScriptedBits(script, RefusingBits()), value) == expected


def test_the_last_value_is_resolved_by_further_bits() -> None:
    seconds = [*seeded().words(20).tolist(), ALL_ONES - (1 << 20)]
    with localcontext(prec=150):
        cumulative = exact_cumulative()
        expected = [strip_of((LAST << 64) | second, 96, cumulative) for second in seconds]
    resolved = [_resolve_strip(ScriptedBits([s], RefusingBits()), LAST) for s in seconds]
    assert resolved == expected
    assert min(resolved) >= len(_strips().boundaries.tolist()) - 1
    assert max(resolved) > 64 * 9


@pytest.mark.parametrize("strip", [0, 1, 2, 100])
def test_values_on_a_boundary_are_shared_in_the_right_proportion(strip: int) -> None:
    with localcontext(prec=100):
        end = exact_cumulative()[strip] * 2**_STRIP_BITS
        value, share = floor_of(end), float(end - floor_of(end))
    count = 250
    chosen = _choose_strips(seeded(), _strips(), np.full(count, value, dtype=np.uint64))
    below = int((chosen <= strip).sum())
    assert 0 < below < count
    assert binomtest(below, count, share).pvalue > ERROR
    # As it would be if the value went to either side with the same chance, or if the sides were exchanged.
    assert (
        min(binomtest(count - below, count, share).pvalue, binomtest(count // 2, count, share).pvalue) < 1e-3
    )


def test_sure_acceptance_is_below_every_probability_of_its_strip() -> None:
    strips = _strips()
    assert len(strips.surely_accepted) == len(strips.boundaries) + 1
    assert strips.surely_accepted[-1] == 0
    with localcontext(prec=60):
        for strip, surely in enumerate(strips.surely_accepted[:-1].tolist()):
            least = exact_exp(Fraction(2 * strip + 1, 1 << 13)) * 2**_ACCEPT_BITS
            assert least - 3 < surely <= least


def acceptance(strip: int, offset: Fraction) -> Decimal:
    return exact_exp(offset * (2 * strip + offset) / (1 << 13))


def proposals(count: int) -> list[tuple[int, int]]:
    bits, beyond = seeded(), _LAST_TABULATED_STRIP
    inner = [(random_integer(bits, 64) % beyond, random_integer(bits, 64)) for _ in range(count)]
    ends = [(strip, offset) for strip in (0, 1, beyond) for offset in (0, 1, 1 << 39, 1 << 40, ALL_ONES)]
    return inner + ends


def decide(cases: Sequence[tuple[int, int, int]]) -> tuple[list[bool], list[bool]]:
    strip, offset, uniform = zip(*cases, strict=True)
    accepted, undecided = _decide(
        np.array(strip, dtype=np.int64), np.array(offset, dtype=np.uint64), np.array(uniform, dtype=np.int64)
    )
    return accepted.tolist(), undecided.tolist()


def test_acceptance_is_decided_only_where_all_reals_of_the_first_bits_agree() -> None:
    cases: list[tuple[int, int, int]] = []
    truths: list[tuple[bool, bool]] = []
    clear: list[bool] = []
    with localcontext(prec=60):
        for strip, offset in proposals(300):
            # _decide looks at the first 24 bits of the offset, and the uniform may have any further bits.
            cell = offset >> 40
            least = acceptance(strip, Fraction(cell + 1, 1 << 24)) * 2**_ACCEPT_BITS
            most = acceptance(strip, Fraction(cell, 1 << 24)) * 2**_ACCEPT_BITS
            for middle in (floor_of(least), floor_of(most)):
                for step in (-1000, -12, -8, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 12, 1000):
                    uniform = middle + step
                    if 0 <= uniform < 1 << _ACCEPT_BITS:
                        cases.append((strip, offset, uniform))
                        truths.append((uniform + 1 <= least, uniform >= most))
                        clear.append(uniform + 12 <= least or uniform >= most + 11)
    accepted, undecided = decide(cases)
    for case, yes, unknown, (surely, surely_not) in zip(cases, accepted, undecided, truths, strict=True):
        assert not (yes and unknown), case
        assert not yes or surely, case
        assert yes or unknown or surely_not, case
    # They are told apart unless they are close.
    assert sum(clear) > 1000
    assert not any(unknown and far for unknown, far in zip(undecided, clear, strict=True))


def test_beyond_the_table_nothing_is_decided_quickly() -> None:
    cases = [(_LAST_TABULATED_STRIP + 1, 5, 0), (700, ALL_ONES, (1 << 31) - 1), (5000, 0, 0)]
    assert decide(cases) == ([False] * 3, [True] * 3)


@pytest.mark.parametrize("moved", [0, 600])
def test_acceptance_on_the_threshold_is_decided_by_further_bits(moved: int) -> None:
    with localcontext(prec=120):
        for strip, offset in proposals(30):
            place = strip + moved
            further = 0x9E3779B97F4A7C15
            real = Fraction((offset << 64) | further, 1 << 128)
            probability = acceptance(place, real)
            uniform, second = divmod(floor_of(probability * 2 ** (_ACCEPT_BITS + 64)), 1 << 64)
            if uniform >= 1 << _ACCEPT_BITS or not 2**60 < second < 2**64 - 2**60:
                continue
            # One word of the offset, then one of the uniform: on either side of the probability.
            below = ScriptedBits([further, second - 2**59], RefusingBits())
            assert _accept_exactly(below, place, offset, uniform) == (
                (((place << 64) | offset) << 64) | further,
                128,
            )
            above = ScriptedBits([further, second + 2**59], RefusingBits())
            assert _accept_exactly(above, place, offset, uniform) is None


def test_exact_acceptance_draws_nothing_when_it_need_not() -> None:
    bits = RefusingBits()
    assert _accept_exactly(bits, 7, 1 << 63, 0) == ((7 << 64) | (1 << 63), 64)
    assert _accept_exactly(bits, 700, 1 << 63, (1 << 31) - 1) is None


def test_exp_floor_is_below_the_exponential_by_less_than_four() -> None:
    bits = seeded()
    exponents = [random_integer(bits, 27) for _ in range(3000)]
    exponents += [(i << 15) + step for i in (0, 1, 2, 1000, 3000, 4095) for step in (0, 1, (1 << 15) - 1)]
    floors = _exp_floor(np.array(exponents, dtype=np.int64)).tolist()
    with localcontext(prec=40):
        for exponent, floor in zip(exponents, floors, strict=True):
            assert floor <= 2**31 * exact_exp(Fraction(exponent, 1 << 30)) < floor + 4


def test_exp_table_is_below_the_exponential_by_hardly_more_than_one() -> None:
    with localcontext(prec=40):
        for i, entry in enumerate(_exp_table().tolist()):
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


def nearest_to(variance: Fraction, place: Fraction) -> Decimal:
    """Sigma x + 1/2 in the current precision, for 64 x = place."""
    return exact(variance).sqrt() * exact(place) / 64 + Decimal("0.5")


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_draws_are_rounded_to_the_nearest_integer(variance: Fraction) -> None:
    bits = seeded()
    strip = np.array([random_integer(bits, 11) for _ in range(4000)], dtype=np.int64)
    offset = bits.words(4000).copy()
    offset[:4] = 0, 1, ALL_ONES, ALL_ONES - 1
    rounded = _Scale(variance).round(seeded(1), strip, offset).tolist()
    with localcontext(prec=80):
        for k, u, found in zip(strip.tolist(), offset.tolist(), rounded, strict=True):
            lowest = floor_of(nearest_to(variance, Fraction((k << 64) | u, 1 << 64)))
            highest = floor_of(nearest_to(variance, Fraction(((k << 64) | u) + 1, 1 << 64)))
            assert lowest <= found <= highest


@pytest.mark.parametrize("variance", [v for v in VARIANCES if v >= 1], ids=str)
def test_draws_beside_a_half_are_rounded_by_further_bits(variance: Fraction) -> None:
    scale = _Scale(variance)
    with localcontext(prec=120):
        sigma = exact(variance).sqrt()
        for fraction in (Decimal(1) / 3, Decimal(1), Decimal(2)):
            half = int(fraction * sigma) + Decimal("0.5")
            place = half * 64 / sigma * 2**192
            strip, bits_of_offset = divmod(floor_of(place), 1 << 192)
            offset, further = divmod(bits_of_offset, 1 << 128)
            second, third = divmod(further, 1 << 64)
            up, down = int(half + Decimal("0.5")), int(half - Decimal("0.5"))
            for script, expected in [
                ([max(second - 1, 0), 0], down if second else None),
                ([min(second + 1, ALL_ONES), ALL_ONES], up if second < ALL_ONES else None),
                ([second, max(third - 2, 0), 0], down if third > 2 else None),
                ([second, min(third + 2, ALL_ONES), ALL_ONES], up if third < ALL_ONES - 2 else None),
            ]:
                if expected is None:
                    continue
                bits = ScriptedBits(script, seeded())
                found = scale.round(bits, np.array([strip]), np.array([offset], dtype=np.uint64))
                assert found.tolist() == [expected]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_few_draws_need_further_bits_to_be_rounded(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = [0]
    exactly = _Scale.round_exactly

    def counted(self: _Scale, bits: BitSource, place: int, length: int) -> int:
        needed[0] += 1
        return exactly(self, bits, place, length)

    monkeypatch.setattr(_Scale, "round_exactly", counted)
    rounded_gaussian(seeded(), variance, 100_000)
    # 7 units of 2^-p each: p is 32 below sigma 2^38, 12 at 2^57 and 11 just below 2^58.
    assert needed[0] <= 100_000 * 7 / 2**11 + 6 * math.sqrt(100_000 * 7 / 2**11)
    assert needed[0] == 0 or variance > 4**42


def test_a_draw_that_both_decisions_leave_open_is_rounded_by_the_bits_that_accepted_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All draws are sent the slow way; the further bits of the offset are those of the script.
    monkeypatch.setattr(
        noise, "_decide", lambda strip, *_: (np.zeros(len(strip), bool), np.ones(len(strip), bool))
    )
    seen = []
    exactly = _Scale.round_exactly

    def watched(self: _Scale, bits: BitSource, place: int, length: int) -> int:
        seen.append((place, length))
        return exactly(self, bits, place, length)

    monkeypatch.setattr(_Scale, "round_exactly", watched)
    accepted = (3 << 64) | 7, 64
    monkeypatch.setattr(noise, "_accept_exactly", lambda *_: accepted)
    # Acceptance bits of ones only: no draw passes the bound of its strip.
    bits = ScriptedBits([0x7FFFFFFF] * 4 + [1 << 62] * 4, RefusingBits())
    samples = noise._propose(bits, _Scale(Fraction(10**6)), 4)
    assert seen == [accepted] * 4
    assert samples.tolist() == [47] * 4
    monkeypatch.setattr(noise, "_accept_exactly", lambda *_: None)
    bits = ScriptedBits([0x7FFFFFFF] * 4 + [1 << 62] * 4, RefusingBits())
    assert len(noise._propose(bits, _Scale(Fraction(10**6)), 4)) == 0


def test_the_slow_ways_give_the_same_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the same words, unless further bits are needed, which so few samples of these scales do not.
    for variance in (Fraction(1, 2), Fraction(10**6), Fraction(4**30)):
        quick = rounded_gaussian(seeded(), variance, 3000)
        with monkeypatch.context() as patch:
            patch.setattr(
                noise, "_decide", lambda strip, *_: (np.zeros(len(strip), bool), np.ones(len(strip), bool))
            )
            patch.setattr(
                _Scale,
                "round",
                lambda self, bits, strip, offset: np.array(
                    [
                        self.round_exactly(bits, (int(k) << 64) | int(u), 64)
                        for k, u in zip(strip, offset, strict=True)
                    ]
                ),
            )
            assert rounded_gaussian(seeded(), variance, 3000).tolist() == quick.tolist()


def test_strip_sign_and_acceptance_share_no_bit_of_a_word() -> None:
    assert _STRIP_BITS + 1 + _ACCEPT_BITS == 64
    # The first half is the strip, the next bit the sign.
    words = [5 << 32, (5 << 32) | (1 << 31), (1 << 63), (1 << 63) | (1 << 31)]
    bits = ScriptedBits(words + [1 << 63] * 4, RefusingBits())
    samples = noise._propose(bits, _Scale(Fraction(4**20)), 4).tolist()
    assert samples[0] == -samples[1] == 1 << 13
    assert samples[2] == -samples[3] > 1 << 19


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_words_of_ones_only_do_no_harm(variance: Fraction) -> None:
    count = 3
    # All words of the first round are ones: each strip is beyond the last boundary.
    bits = ScriptedBits([ALL_ONES] * (2 * (count + 4)), seeded())
    samples = rounded_gaussian(bits, variance, count)
    assert samples.shape == (count,)
    assert np.all(np.abs(samples / math.sqrt(variance)) < 20 + 1 / math.sqrt(variance))


def test_a_first_word_of_ones_lands_beyond_six_sigma() -> None:
    # The strip's bits are ones, the acceptance's are not.
    bits = ScriptedBits([(LAST << 32) | (1 << 31)] * 5, seeded())
    assert rounded_gaussian(bits, Fraction(10**6), 1)[0] < -6000


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000, _CHUNK, _CHUNK + 1, 3 * _CHUNK])
def test_as_many_samples_as_asked(count: int) -> None:
    for variance in (Fraction(1, 4), Fraction(2**80)):
        samples = rounded_gaussian(seeded(), variance, count)
        assert samples.shape == (count,)
        assert samples.dtype == np.int64


def test_the_same_seed_gives_the_same_samples() -> None:
    first, again = (rounded_gaussian(seeded(), 100, 10_000) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != rounded_gaussian(seeded(1), 100, 10_000).tolist()


@pytest.mark.parametrize("variance", [0, -1, Fraction(-1, 10**9)])
def test_variance_must_be_positive(variance: Fraction | int) -> None:
    with pytest.raises(ArgumentError, match="variance must be greater than 0"):
        rounded_gaussian(seeded(), variance, 1)
