from __future__ import annotations

import os
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpcov.core.entropy import OSEntropy, SeededBits
from dpcov.core.errors import ArgumentError
from dpcov.core.noise import (
    rounded_gaussian,
)

pytestmark = pytest.mark.os_entropy


def seeded(seed: int = 20240607) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def test_only_the_operating_system_gives_private_bits() -> None:
    assert OSEntropy().private
    assert not seeded().private


def test_os_entropy_hands_out_the_bytes_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(size: int) -> bytes:
        asked.append(size)
        return bytes(i % 251 for i in range(size))

    monkeypatch.setattr(os, "urandom", counting)
    words = OSEntropy().words(100)
    assert asked == [800]
    assert words.dtype == np.uint64
    assert words.astype("<u8").tobytes() == bytes(i % 251 for i in range(800))


def test_seeding_numpy_does_not_repeat_os_entropy() -> None:
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(OSEntropy().words(8).tolist())
    assert draws[0] != draws[1]


def test_seeded_bits_want_a_generator() -> None:
    with pytest.raises(ArgumentError, match=r"must be a numpy\.random\.Generator, got int"):
        SeededBits(0)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_forked_process_draws_other_noise() -> None:
    # Chance makes 100 draws of sigma 2^40 equal with probability below 2^-4000.
    bits = OSEntropy()
    variance = Fraction(4**40)
    rounded_gaussian(bits, variance, 100)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of numerical libraries.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, rounded_gaussian(bits, variance, 100).tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    of_parent = rounded_gaussian(bits, variance, 100)
    with os.fdopen(reading, "rb") as pipe:
        of_child = np.frombuffer(pipe.read(), dtype=np.int64)
    os.waitpid(child, 0)
    assert len(of_child) == 100
    assert not np.array_equal(of_parent, of_child)
