"""Where random bits come from.

`OSEntropy` asks the operating system anew for every word, so that no generator state
exists that a fork could copy, a seed could repeat or an attacker could recover.
`SeededBits` is for tests and experiments; whatever used it is marked as not private.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcov.core.errors import ArgumentError


class BitSource(Protocol):
    """A stream of independent fair bits."""

    @property
    def private(self) -> bool:
        """Whether the bits are unpredictable, as privacy needs them to be."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of 64 bits."""


class OSEntropy:
    """Bits from the operating system's cryptographic generator."""

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of 64 bits."""
        return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64, copy=False)


class SeededBits:
    """Bits from a numpy generator: repeatable, hence not private.

    Parameters
    ----------
    generator : numpy.random.Generator
        Its bit stream is consumed.
    """

    private = False

    def __init__(self, generator: np.random.Generator) -> None:
        if not isinstance(generator, np.random.Generator):
            raise ArgumentError(
                f"rng must be a numpy.random.Generator, got {type(generator).__name__}; "
                "leave it out for a private release."
            )
        self._generator = generator

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of 64 bits."""
        return np.frombuffer(self._generator.bytes(8 * count), dtype="<u8").astype(np.uint64, copy=False)


def random_integer(bits: BitSource, length: int) -> int:
    """Return a uniform integer of `length` bits."""
    if length == 0:
        return 0
    count = -(-length // 64)
    value = int.from_bytes(bits.words(count).astype("<u8").tobytes(), "little")
    return value >> (64 * count - length)
