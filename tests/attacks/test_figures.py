"""The attacks with more draws, on others and on dpcov, for the record."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from attacks.peers import Noisy, diffprivlib_gaussian, numpy_laplace, numpy_normal
from attacks.test_last_bits import curator
from attacks.test_noise_reuse import ask, in_child, make_curator, release_with
from attacks.test_sums import change, rounding_tables, running_sum
from audit.harness import finest_bit
from audit.record import record

from dpcov.core import (
    Clipping,
    Gram,
    OSEntropy,
    SeededBits,
)
from dpcov.maps import identity_map

pytestmark = pytest.mark.audit

DRAWS = 5000


def dpcov_gram(value: float) -> float:
    """Return the noisy sum of squares of one row, in units of its radius."""
    answer = curator(np.array([[value]])).ask(Gram(Clipping(identity_map(1), 1.0), 1, purpose="attack"))
    return float(answer.integers[0, 0])


def test_least_significant_bits() -> None:
    peers: dict[str, Noisy | None] = {
        "numpy, Laplace": numpy_laplace,
        "numpy, normal": numpy_normal,
        "diffprivlib, Gaussian": diffprivlib_gaussian(),
        "dpcov, Gram matrix": dpcov_gram,
    }
    for name, noisy in peers.items():
        if noisy is None:
            continue
        # dpcov counts in units of 2^-40 of the squared radius: whole numbers, with no bit below.
        least = 0 if noisy is dpcov_gram else -53
        telling = [sum(finest_bit(noisy(value)) < least for _ in range(DRAWS)) for value in (0.0, 1.0)]
        record("attacks", f"last bits (Mironov 2012): {name}", tried=DRAWS, succeeded=telling[0])
        assert (telling[0] > DRAWS // 20) == (noisy is not dpcov_gram)
        assert telling[1] == 0


def test_sums() -> None:
    one, other = rounding_tables()
    moved, allowed = change(one / np.float32(2), other / np.float32(2))
    in_floats = abs(running_sum(one) - running_sum(other))
    record(
        "attacks", "sums (Casacuberta et al. 2022): float32, in order", tried=1, succeeded=int(in_floats > 2)
    )
    record("attacks", "sums (Casacuberta et al. 2022): dpcov", tried=1, succeeded=int(moved > allowed))
    assert in_floats > 2
    assert moved <= allowed


def test_noise_drawn_twice() -> None:
    children = 20
    for name, bits in (("a seeded generator", SeededBits(np.random.default_rng(0))), ("dpcov", OSEntropy())):
        told = [in_child(partial(release_with, bits)) for _ in range(children)]
        same = children - len(set(told))
        record("attacks", f"noise after a fork: {name}", tried=children, succeeded=same)
        assert same == (children - 1 if isinstance(bits, SeededBits) else 0)
    asked = make_curator()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: ask(asked), range(500)))
    record("attacks", "noise among threads: dpcov", tried=len(told), succeeded=len(told) - len(set(told)))
    assert len(set(told)) == len(told)
