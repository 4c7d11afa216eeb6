"""Exact samples of the Gaussian law rounded to integers, many at a time.

``round(G)`` with G normal of mean 0 and variance ``s2`` gives the integer m the probability
``Phi((m + 1/2) / sigma) - Phi((m - 1/2) / sigma)``. An integer plus this noise is the rounded sum of
the integer and G. So an integer-valued query of l2 sensitivity D is exactly as private as with G itself:
mu-GDP with ``mu = D / sigma``, hence ``mu^2 / 2``-zCDP. The proof note is ``noise.md``.

Sampling. A standard half-normal real ``x = (k + u) / 64`` is drawn: a strip k with the probability of its
left end, a uniform real u of which 64 bits are drawn at first, and the pair is accepted with the ratio of the
two densities, which is close to 1. Then ``sigma x`` is rounded. Nothing is computed in floating point: every
real number is enclosed between two integers, and the few draws that fall between them are decided with more
bits. So the samples follow the law exactly, given fair bits. No table depends on sigma.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import erfc, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource, random_integer
from dpcov.core.errors import ArgumentError

# Strips are 2^-6 wide. The density at the left end of strip k is exp(-k^2 / 2^13), and (k + u) / 64 is
# accepted with probability exp(-u (2 k + u) / 2^13).
_WIDTH_LOG2 = 6
_EXPONENT_LOG2 = 2 * _WIDTH_LOG2 + 1
# The bits of the first word of a draw: its strip, its sign, its acceptance.
_STRIP_BITS = 32
_ACCEPT_BITS = 31
_GUIDE_BITS = 14
_OFFSET_BITS = 24
# (2 k + 1) / 2^13 < 1/8, where the table of exponentials ends: beyond 7 sigma exact arithmetic decides.
_LAST_TABULATED_STRIP = 510
# sigma x is enclosed in units of 2^-32, or larger ones where it would not fit into 64 bits otherwise.
_FINEST_UNIT_LOG2 = 32
_SLOPE_BITS = 48
_CHUNK = 1 << 13
_HALF_WORD = np.uint64(32)
_LOW_HALF = np.uint64((1 << 32) - 1)


def rounded_gaussian(bits: BitSource, variance: Fraction | int, count: int) -> NDArray[np.int64]:
    """Draw independent normal numbers, each rounded to the nearest integer.

    Parameters
    ----------
    bits : BitSource
        Fair bits.
    variance : Fraction or int
        Of the normal numbers before they are rounded: greater than 0 and below 2^116.
    count : int
        How many samples.

    Notes
    -----
    *Formal guarantee.* Given fair independent bits, each sample has exactly the law of ``round(G)``.
    """
    scale = _Scale(Fraction(variance))
    samples = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        proposals = min(_CHUNK, (count - filled) + (count - filled) // 128 + 4)
        accepted = _propose(bits, scale, proposals)[: count - filled]
        samples[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return samples


def rounded_variance(variance: Fraction) -> Fraction:
    """Return the variance of the noise once rounded, or a bit more, for who judges counts: floats will do."""
    steps = ((2 * m - 1) * erfc((m - 0.5) / sqrt(2 * variance)) for m in range(1, 9))
    return variance + Fraction(1, 12) if variance >= 1 else max(variance, Fraction(sum(steps)))


class _Scale:
    """Rounds ``sigma x`` to the nearest integer, for ``x = (strip + offset / 2^64) / 64``."""

    def __init__(self, variance: Fraction) -> None:
        if variance <= 0:
            raise ArgumentError(f"variance must be greater than 0, got {float(variance):g}.")
        if variance >= 1 << 116:
            raise ArgumentError("variance must be below 2^116: the noise would not fit into 64 bits.")
        self._variance = variance
        # sigma / 64, rounded down to multiples of 2^-48: it is below 2^52.
        slope = isqrt((variance.numerator << 2 * (_SLOPE_BITS - _WIDTH_LOG2)) // variance.denominator)
        self._whole, self._fraction = slope >> _SLOPE_BITS, slope & ((1 << _SLOPE_BITS) - 1)
        self._unit_log2 = min(_FINEST_UNIT_LOG2, 64 - self._whole.bit_length())
        self._slope = slope >> (_SLOPE_BITS - self._unit_log2)

    def round(
        self, bits: BitSource, strip: NDArray[np.int64], offset: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Return the integers nearest to sigma x.

        ``sigma x + 1/2`` is at least ``rounded + fraction / 2^p``, and above it by less than 7 / 2^p: the
        product of slope and offset is short of its value by less than 5 units (one for each of the three
        roundings, one for the slope, one for the offset), the rest by less than 2 (``noise.md``).
        """
        p = self._unit_log2
        slope_high, slope_low = np.uint64(self._slope >> 32), np.uint64(self._slope & 0xFFFFFFFF)
        high, low = offset >> _HALF_WORD, offset & _LOW_HALF
        within = slope_high * high
        within += (slope_high * low) >> _HALF_WORD
        within += (slope_low * high) >> _HALF_WORD
        left = strip * np.int64(self._fraction)
        fraction = (left & ((1 << _SLOPE_BITS) - 1)) >> (_SLOPE_BITS - p)
        fraction += (within & np.uint64((1 << p) - 1)).view(np.int64) + (1 << (p - 1))
        rounded: NDArray[np.int64] = strip * np.int64(self._whole) + (left >> _SLOPE_BITS)
        rounded += (within >> np.uint64(p)).view(np.int64) + (fraction >> p)
        for i in np.flatnonzero((fraction & ((1 << p) - 1)) > (1 << p) - 7):
            rounded[i] = self.round_exactly(bits, (int(strip[i]) << 64) | int(offset[i]), 64)
        return rounded

    def round_exactly(self, bits: BitSource, place: int, length: int) -> int:
        """Draw further bits of ``64 x``, from `place` in units of ``2^-length``, until all x round alike."""
        while (rounded := self._nearest(place, length)) != self._nearest(place + 1, length):
            place, length = (place << 64) | random_integer(bits, 64), length + 64
        return rounded

    def _nearest(self, place: int, length: int) -> int:
        """Return floor(y + 1/2) = floor((floor(2 y) + 1) / 2) for y = sigma place / 2^(length + 6)."""
        square = (self._variance.numerator * place * place) << 2
        return (isqrt((square // self._variance.denominator) >> (2 * (length + _WIDTH_LOG2))) + 1) >> 1


@dataclass(frozen=True)
class _Strips:
    """Tables that depend on nothing.

    ``boundaries[k]`` is the floor of 2^32 times the probability of strips 0..k, up to the first 2^32 - 1.
    ``guide`` maps leading bits to a strip, or to -1 where a boundary lies among such words.
    ``surely_accepted[k]`` bounds 2^31 times the acceptance probability in strip k from below.
    """

    boundaries: NDArray[np.uint64]
    guide: NDArray[np.int16]
    surely_accepted: NDArray[np.int64]


@lru_cache(maxsize=1)
def _strips() -> _Strips:
    # Enclosures of 128 bits tell every floor; a test compares the floors of both ends.
    floors = [low >> (128 - _STRIP_BITS) for low, _ in _cumulative(128)]
    table = np.array(floors[: floors.index((1 << _STRIP_BITS) - 1) + 1], dtype=np.uint64)
    below = np.uint64(_STRIP_BITS - _GUIDE_BITS)
    edges = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << below
    first = np.searchsorted(table, edges, side="left")
    last = np.searchsorted(table, edges | ((np.uint64(1) << below) - np.uint64(1)), side="right")
    surely = [
        exp_enclosure(Fraction(2 * k + 1, 1 << _EXPONENT_LOG2), _ACCEPT_BITS)[0] for k in range(len(table))
    ]
    guide = np.where(first == last, first, -1).astype(np.int16)
    return _Strips(table, guide, np.array([*surely, 0], dtype=np.int64))


def _cumulative(precision: int) -> list[tuple[int, int]]:
    """Enclose 2^precision times the cumulative probabilities of the strips, until they reach 1.

    The density at the left end of a strip is that of the strip before times ``q^(2 k + 1)``, with
    ``q = exp(-2^-13)``.
    """
    inner = precision + 64
    low_ratio, high_ratio = exp_enclosure(Fraction(1, 1 << _EXPONENT_LOG2), inner)
    low_square, high_square = low_ratio**2 >> inner, (high_ratio**2 >> inner) + 1
    low = high = 1 << inner
    lows, highs = [low], [high]
    while high > 16:
        low, high = low * low_ratio >> inner, (high * high_ratio >> inner) + 1
        low_ratio, high_ratio = low_ratio * low_square >> inner, (high_ratio * high_square >> inner) + 1
        lows.append(lows[-1] + low)
        highs.append(highs[-1] + high)
    # The terms end beyond 13 sigma, where each is below 0.82 of the one before: all that follow together are
    # below 5 times the last.
    total_low, total_high = lows[-1], highs[-1] + 5 * 16
    return [
        ((low << precision) // total_high, -((-high << precision) // total_low))
        for low, high in zip(lows, highs, strict=True)
    ]


def _propose(bits: BitSource, scale: _Scale, count: int) -> NDArray[np.int64]:
    """Draw `count` proposals and return those accepted, rounded, in order."""
    strips = _strips()
    words = bits.words(2 * count)
    first, offset = words[:count], words[count:]
    strip = _choose_strips(bits, strips, first >> np.uint64(64 - _STRIP_BITS))
    uniform = (first & np.uint64((1 << _ACCEPT_BITS) - 1)).view(np.int64)
    rounded = scale.round(bits, strip, offset)
    kept = uniform < strips.surely_accepted.take(strip, mode="clip")
    unsure = np.flatnonzero(~kept)
    accepted, undecided = _decide(strip[unsure], offset[unsure], uniform[unsure])
    kept[unsure] = accepted
    for i in unsure[undecided]:
        # The further bits of the offset that decide this must be those that it is rounded by.
        place = _accept_exactly(bits, int(strip[i]), int(offset[i]), int(uniform[i]))
        if place is not None:
            kept[i], rounded[i] = True, scale.round_exactly(bits, *place)
    # In two's complement -m is (m xor -1) + 1.
    negative = ((first >> np.uint64(_ACCEPT_BITS)) & np.uint64(1)).view(np.int64)
    signed: NDArray[np.int64] = ((rounded ^ -negative) + negative)[kept]
    return signed


def _choose_strips(bits: BitSource, strips: _Strips, uniform: NDArray[np.uint64]) -> NDArray[np.int64]:
    guide = strips.guide[(uniform >> np.uint64(_STRIP_BITS - _GUIDE_BITS)).view(np.int64)]
    strip = guide.astype(np.int64)
    unsure = np.flatnonzero(guide < 0)
    if not len(unsure):
        return strip
    below = np.searchsorted(strips.boundaries, uniform[unsure], side="left")
    through = np.searchsorted(strips.boundaries, uniform[unsure], side="right")
    strip[unsure] = through
    for position in unsure[below != through]:
        strip[position] = _resolve_strip(bits, int(uniform[position]))
    return strip


def _resolve_strip(bits: BitSource, uniform: int) -> int:
    """Find the strip of a uniform whose first 32 bits are those of a boundary."""
    length = _STRIP_BITS
    while True:
        uniform, length = (uniform << 64) | random_integer(bits, 64), length + 64
        for strip, (low, high) in enumerate(_cumulative(length)):
            if uniform + 1 <= low:
                return strip
            if uniform < high:
                break


def _decide(
    strip: NDArray[np.int64], offset: NDArray[np.uint64], uniform: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which draws are surely accepted, and which cannot be told from these bits.

    A draw is accepted with probability exp(-u (2 k + u) / 2^13), where u is the offset in strips.
    The exponent is enclosed in units of 2^-30, the probability in units of 2^-31.
    """
    near = np.minimum(strip, _LAST_TABULATED_STRIP)
    u = (offset >> np.uint64(64 - _OFFSET_BITS)).view(np.int64)
    doubled, shift = near << (_OFFSET_BITS + 1), 2 * _OFFSET_BITS + _EXPONENT_LOG2 - 30
    least = _exp_floor((((u + 1) * (doubled + u + 1)) >> shift) + 1)
    most = _exp_floor((u * (doubled + u)) >> shift) + 4
    accepted = (uniform < least) & (strip == near)
    return accepted, ~accepted & ((uniform < most) | (strip != near))


def _accept_exactly(bits: BitSource, strip: int, offset: int, uniform: int) -> tuple[int, int] | None:
    """Draw further bits of offset and uniform until they tell whether the draw is accepted.

    If it is, return ``64 x`` in units of ``2^-length``, rounded down, and that length.
    """
    length, uniform_length = 64, _ACCEPT_BITS
    while True:
        doubled, denominator = strip << (length + 1), 1 << (2 * length + _EXPONENT_LOG2)
        farthest = Fraction((offset + 1) * (doubled + offset + 1), denominator)
        if uniform < exp_enclosure(farthest, uniform_length)[0]:
            return (strip << length) | offset, length
        nearest = Fraction(offset * (doubled + offset), denominator)
        if uniform >= exp_enclosure(nearest, uniform_length)[1]:
            return None
        offset, length = (offset << 64) | random_integer(bits, 64), length + 64
        uniform, uniform_length = (uniform << 64) | random_integer(bits, 64), uniform_length + 64


@lru_cache(maxsize=1)
def _exp_table() -> NDArray[np.int64]:
    """Integers at most 2^31 exp(-i / 2^15), and less than 1 + 2^-40 below it, for exponents below 1/8."""
    precision = 96
    step, _ = exp_enclosure(Fraction(1, 1 << 15), precision)
    power = 1 << precision
    table = np.empty(1 << 12, dtype=np.int64)
    for i in range(len(table)):
        table[i] = power >> (precision - 31)
        power = (power * step) >> precision
    return table


def _exp_floor(exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return integers at most 2^31 exp(-exponent / 2^30), and less than 4 below it.

    Below it by: the table's error, 1 for exp(-f) - (1 - f) < f^2 / 2 with f < 2^-15, 1 for the shift.
    """
    fine = exponent & ((1 << 15) - 1)
    floor: NDArray[np.int64] = (_exp_table()[exponent >> 15] * ((1 << 30) - fine)) >> 30
    return floor


def exp_enclosure(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Enclose ``exp(-exponent) * 2^precision`` by integers at most 3 apart, for an exponent of at least 0."""
    if exponent == 0:
        return 1 << precision, 1 << precision
    digits = precision // 3 + 12
    # Rounding the exponent by a relative 10^-(digits + magnitude) moves exp by less than
    # 10^-digits; Decimal.exp is correctly rounded. Both stay far below one unit.
    magnitude = max(0, len(str(int(exponent))))
    with localcontext(Context(prec=digits + magnitude, Emin=-(10**9), Emax=10**9)):
        value = (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp()
        scaled = int(value * (Decimal(2) ** precision))
    return max(scaled - 1, 0), min(scaled + 2, 1 << precision)
