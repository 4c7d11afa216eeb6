"""Attacks on the last bits: Mironov (2012) on noise in floating point, Haney et al. (2022) on precision.

If noise is a float64 number and is added to a float64 answer, the last bits of the sum tell which answers
it can have come from. ``0 + z`` keeps all bits of a small z; ``1 + z`` has none below 2^-53.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attacks.peers import Noisy, diffprivlib_gaussian, numpy_laplace, numpy_normal
from audit.harness import finest_bit
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import dpcov
from dpcov.core import (
    Budget,
    Clipping,
    Curator,
    Gram,
    LogNormGrid,
    NormHistogram,
    OSEntropy,
    PrivacyCost,
)
from dpcov.maps import identity_map
from dpcov.sources import ArraySource

DRAWS = 300
FAR, ZERO = np.array([[1e9], [0.0]]), np.array([[0.0], [0.0]])


def curator(rows: NDArray[np.float64]) -> Curator:
    return Curator(ArraySource(rows, threads=1), Budget(PrivacyCost(Fraction(10**6))), OSEntropy())


def attack(noisy: Noisy) -> tuple[int, int]:
    """How many of the draws from 0, and from 1, show that they came from 0."""
    return tuple(sum(finest_bit(noisy(value)) < -53 for _ in range(DRAWS)) for value in (0.0, 1.0))  # type: ignore[return-value]


@pytest.mark.parametrize("noisy", [numpy_laplace, numpy_normal])
def test_the_attack_works_on_textbook_noise(noisy: Noisy) -> None:
    from_zero, from_one = attack(noisy)
    assert from_zero > DRAWS // 10
    assert from_one == 0


def test_the_attack_works_on_diffprivlib() -> None:
    noisy = diffprivlib_gaussian()
    if noisy is None:
        pytest.skip("diffprivlib's mechanisms cannot be loaded here")
    from_zero, from_one = attack(noisy)
    assert from_zero > DRAWS // 20
    assert from_one == 0


def test_counts_and_grams_have_no_bits_to_look_at() -> None:
    for rows in (FAR, ZERO):
        ask = curator(rows)
        for _ in range(DRAWS):
            gram = ask.ask(Gram(Clipping(identity_map(1), 1.0), 1, purpose="attack"))
            counts = ask.ask(NormHistogram(identity_map(1), LogNormGrid(0, 4, 1), 1, purpose="attack"))
            assert gram.integers.dtype == counts.counts.dtype == np.int64
            assert isinstance(gram.trace, int)
            # With one column, the matrix and its trace are two answers about one number.
            excess = float(gram.trace - int(gram.integers[0, 0]))
            assert gram.mean()[0, 0] == (float(gram.integers[0, 0]) + excess / 2) * (gram.unit / 2)


@given(
    hnp.arrays(np.float64, (3, 2), elements=st.floats(width=64)),
    hnp.arrays(np.float64, 2, elements=st.floats(width=64)),
)
@settings(max_examples=40)
def test_the_grid_of_a_release_does_not_depend_on_the_rows(
    rows: NDArray[np.float64], other: NDArray[np.float64]
) -> None:
    neighbour = rows.copy()
    neighbour[0] = other
    clipping = Clipping(identity_map(2), 3.0)
    grids = [curator(table).ask(Gram(clipping, 1, purpose="attack")) for table in (rows, neighbour)]
    assert grids[0].unit == grids[1].unit
    assert grids[0].variance == grids[1].variance


def test_a_sum_near_the_end_of_float64_keeps_the_last_bits_of_its_noise() -> None:
    # Haney et al.: an exact answer of about 2^60, held as a float, cannot hold odd noise.
    rows = np.ones((1 << 20, 1))
    # All in one scan, each with noise of its own.
    query = Gram(Clipping(identity_map(1), 1.0), 10, purpose="attack")
    answers = [int(answer.integers[0, 0]) for answer in curator(rows).ask(*[query] * 64)]
    assert min(answers) > 1 << 59
    # Chance makes all even, or all odd, with probability 2^-63.
    assert {answer % 2 for answer in answers} == {0, 1}
    noise = np.random.default_rng(0).integers(-(10**9), 10**9, 64)
    assert {int(float(answers[0]) + float(z)) % 64 for z in noise} == {0}


def test_released_matrices_of_neighbours_lie_on_one_grid() -> None:
    def multiples(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        # Two rows are too few to show anything, which is beside the point here.
        options: dict[str, Any] = {"method": "gaussian", "radius": 1.0, "intercept": False, "force": True}
        made = [dpcov.release(rows, rho=1, **options) for _ in range(20)]
        # Two answers tell the only entry, and their mean is released: hence the last 2.
        grid = (1.0 / ((1 << 20) - 2)) ** 2 / 2 / 2
        return np.array([release.second_moment().values[0, 0] / grid for release in made])

    for rows in (FAR, ZERO):
        found = multiples(rows)
        assert np.abs(found - np.rint(found)).max() < 1e-3
