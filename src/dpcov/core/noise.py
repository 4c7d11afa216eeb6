"""Exact samples of the discrete Gaussian, many at a time.

The discrete Gaussian with variance parameter ``s2`` gives the integer x the probability
``exp(-x^2 / (2 s2))`` up to normalisation (Canonne, Kamath and Steinke 2020). A bounded
integer-valued query of l2 sensitivity D plus this noise is ``D^2 / (2 s2)``-zCDP (their
Theorem 4 and its multivariate form, Theorem 14). The proof note is ``noise.md``.

Sampling. The half-line is cut into strips of ``w = 2^b`` integers, w being about sigma/16.
A strip is drawn with the probability of its first integer, an offset uniformly, and the
pair is accepted with the ratio of the two probabilities, which is close to 1. Nothing is
computed in floating point: every real number is enclosed between two integers, and the
few draws that fall between them are decided with more bits. So the samples follow the law
exactly, given fair bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource, random_integer
from dpcov.core.errors import ArgumentError
from dpcov.core.exponential import exp_enclosure, uniform_is_below

_STRIPS_PER_SIGMA_LOG2 = 4
_GUIDE_BITS = 12
_ACCEPT_BITS = 23
_OFFSET_BITS = 24
_WIDEST_SHARED_STRIP_LOG2 = 63 - _ACCEPT_BITS
_WIDEST_STRIP_LOG2 = 53
_CHUNK = 1 << 15


def discrete_gaussian(bits: BitSource, variance: Fraction | int, count: int) -> NDArray[np.int64]:
    """Draw independent discrete Gaussian integers.

    Parameters
    ----------
    bits : BitSource
        Fair bits.
    variance : Fraction or int
        The parameter s2 of the law, greater than 0 and below 2^116.
    count : int
        How many samples.

    Returns
    -------
    ndarray of int64, shape (count,)

    Notes
    -----
    *Formal guarantee.* Given fair independent bits, each sample has exactly the law above.
    """
    strips = _strips(Fraction(variance))
    samples = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        proposals = min(_CHUNK, (count - filled) + (count - filled) // 16 + 8)
        accepted = _propose(bits, strips, proposals)[: count - filled]
        samples[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return samples


@dataclass(frozen=True)
class _Strips:
    """Public tables that depend on the variance alone.

    ``boundaries[k]`` is the floor of 2^64 times the probability of strips 0..k. ``guide`` maps
    the leading bits of a word to its strip, or to -1 where a boundary lies among such words.
    ``surely_accepted[k]`` bounds the acceptance probability in strip k from below.
    """

    variance: Fraction
    width_log2: int
    boundaries: NDArray[np.uint64]
    guide: NDArray[np.int16]
    surely_accepted: NDArray[np.int64]
    exponent_scale: int

    def acceptance_exponent(self, strip: int, offset: int) -> Fraction:
        width = 1 << self.width_log2
        return Fraction(offset * (2 * strip * width + offset)) / (2 * self.variance)


@lru_cache(maxsize=64)
def _strips(variance: Fraction) -> _Strips:
    if variance <= 0:
        raise ArgumentError(f"variance must be greater than 0, got {float(variance):g}.")
    width_log2 = max(0, isqrt(int(variance)).bit_length() - 1 - _STRIPS_PER_SIGMA_LOG2)
    if width_log2 > _WIDEST_STRIP_LOG2:
        raise ArgumentError("variance must be below 2^116: the noise would not fit into 64 bits.")
    boundaries = _boundaries(variance, width_log2)
    table = np.array(boundaries, dtype=np.uint64)

    edges = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
    first = np.searchsorted(table, edges, side="left")
    last = np.searchsorted(table, edges | np.uint64((1 << (64 - _GUIDE_BITS)) - 1), side="right")
    guide = np.where(first == last, first, -1).astype(np.int16)

    width = 1 << width_log2
    surely = [
        exp_enclosure(Fraction((width - 1) * (2 * k * width + width - 1)) / (2 * variance), _ACCEPT_BITS)[0]
        for k in range(len(boundaries))
    ]
    surely.append(0)
    exponent_scale = int(Fraction(width * width, 2) / variance * (1 << 41))
    return _Strips(variance, width_log2, table, guide, np.array(surely, dtype=np.int64), exponent_scale)


def _boundaries(variance: Fraction, width_log2: int) -> list[int]:
    """Return the floors of 2^64 times the cumulative probabilities, up to the first 2^64 - 1."""
    last = (1 << 64) - 1
    precision = 128
    while True:
        floors: list[int] = []
        for low, high in _cumulative(variance, width_log2, precision):
            floor, ceiling = low >> (precision - 64), min(high >> (precision - 64), last)
            if floor != ceiling:
                break
            floors.append(floor)
            if floor == last:
                return floors
        precision *= 2


def _cumulative(variance: Fraction, width_log2: int, precision: int) -> list[tuple[int, int]]:
    """Enclose 2^precision times the cumulative probabilities of the strips, until they reach 1."""
    inner = precision + 32
    lows, highs = [], []
    strip = 0
    while True:
        low, high = exp_enclosure(Fraction((strip << width_log2) ** 2) / (2 * variance), inner)
        lows.append(low)
        highs.append(high)
        if high <= 4 and strip > 1:
            break
        strip += 1
    # The terms end beyond 13 sigma, and strips are at least sigma/32 wide: from there on each
    # term is below 2/3 of the one before, so all that follow stay below twice the last.
    total_low, total_high = sum(lows), sum(highs) + 2 * highs[-1]
    enclosures = []
    below_low = below_high = 0
    for low, high in zip(lows, highs, strict=True):
        below_low += low
        below_high += high
        enclosures.append(
            ((below_low << precision) // total_high, -((-below_high << precision) // total_low))
        )
    return enclosures


def _propose(bits: BitSource, strips: _Strips, count: int) -> NDArray[np.int64]:
    """Draw `count` proposals and return those accepted, in order."""
    shared = strips.width_log2 <= _WIDEST_SHARED_STRIP_LOG2
    words = bits.words((2 if shared else 3) * count)
    strip = _choose_strips(bits, strips, words[:count])
    second = words[count : 2 * count]
    negative = (second >> np.uint64(63)).astype(np.bool_)
    offset = (second & np.uint64((1 << strips.width_log2) - 1)).astype(np.int64)
    magnitude = (strip << strips.width_log2) + offset
    accepted = ~(negative & (magnitude == 0))
    if strips.width_log2 > 0:
        acceptance_word = second << np.uint64(1) if shared else words[2 * count :]
        uniform = (acceptance_word >> np.uint64(64 - _ACCEPT_BITS)).astype(np.int64)
        unsure = np.flatnonzero(uniform >= strips.surely_accepted.take(strip, mode="clip"))
        if len(unsure):
            accepted[unsure] &= _decide(bits, strips, strip[unsure], offset[unsure], uniform[unsure])
    np.negative(magnitude, out=magnitude, where=negative)
    kept: NDArray[np.int64] = magnitude[accepted]
    return kept


def _choose_strips(bits: BitSource, strips: _Strips, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    strip = strips.guide[(words >> np.uint64(64 - _GUIDE_BITS)).view(np.int64)].astype(np.int64)
    unsure = np.flatnonzero(strip < 0)
    below = np.searchsorted(strips.boundaries, words[unsure], side="left")
    through = np.searchsorted(strips.boundaries, words[unsure], side="right")
    strip[unsure] = through
    for position in np.flatnonzero(below != through):
        strip[unsure[position]] = _resolve_strip(bits, strips, int(words[unsure[position]]))
    return strip


def _resolve_strip(bits: BitSource, strips: _Strips, word: int) -> int:
    """Find the strip of a uniform whose first 64 bits are those of a boundary."""
    uniform, length = word, 64
    while True:
        uniform = (uniform << 64) | random_integer(bits, 64)
        length += 64
        for strip, (low, high) in enumerate(_cumulative(strips.variance, strips.width_log2, length)):
            if uniform + 1 <= low:
                return strip
            if uniform < high:
                break


def _decide(
    bits: BitSource,
    strips: _Strips,
    strip: NDArray[np.int64],
    offset: NDArray[np.int64],
    uniform: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Accept with probability exp(-g f (2k + f)), where f = offset / w and g = w^2 / (2 s2).

    The exponent is enclosed in units of 2^-30, then the probability in units of 2^-31.
    """
    shift = strips.width_log2 - _OFFSET_BITS
    f_low = offset >> shift if shift > 0 else offset << -shift
    f_high = f_low + 1 if shift > 0 else f_low
    doubled = strip << (_OFFSET_BITS + 1)
    product_low = (f_low * (doubled + f_low)) >> 27
    product_high = ((f_high * (doubled + f_high)) >> 27) + 1
    exponent_low = (product_low * strips.exponent_scale) >> 32
    exponent_high = ((product_high * (strips.exponent_scale + 1)) >> 32) + 1
    least = _exp_floor(exponent_high) >> (31 - _ACCEPT_BITS)
    most = ((_exp_floor(exponent_low) + 4) >> (31 - _ACCEPT_BITS)) + 1
    accepted = uniform + 1 <= least
    for i in np.flatnonzero(~accepted & (uniform < most)):
        exponent = strips.acceptance_exponent(int(strip[i]), int(offset[i]))
        accepted[i] = uniform_is_below(
            bits,
            partial(exp_enclosure, exponent),
            prefix=int(uniform[i]),
            prefix_bits=_ACCEPT_BITS,
        )
    return accepted


@lru_cache(maxsize=1)
def _exp_table() -> NDArray[np.int64]:
    """Integers at most 2^31 exp(-i / 2^15), and less than 1 + 2^-40 below it, for exponents below 2."""
    precision = 96
    step, _ = exp_enclosure(Fraction(1, 1 << 15), precision)
    power = 1 << precision
    table = np.empty(2 << 15, dtype=np.int64)
    for i in range(len(table)):
        table[i] = power >> (precision - 31)
        power = (power * step) >> precision
    return table


def _exp_floor(exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return integers at most 2^31 exp(-exponent / 2^30), and less than 4 below it.

    Below it by: the table's error, 1 for exp(-f) - (1 - f) < f^2 / 2 with f < 2^-15, and 1 for
    the shift.
    """
    fine = exponent & ((1 << 15) - 1)
    floor: NDArray[np.int64] = (_exp_table()[exponent >> 15] * ((1 << 30) - fine)) >> 30
    return floor
