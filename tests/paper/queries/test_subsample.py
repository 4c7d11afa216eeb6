from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpcov.core import (
    SeededBits,
)
from dpcov.paper.queries.subsample import groups_for_agreement, stable_histogram

EPSILON, DELTA = Fraction(1), Fraction(1, 1000)


def test_a_result_of_one_group_is_hardly_ever_shown() -> None:
    bits = SeededBits(np.random.default_rng(0))
    runs = 4_000
    shown = sum(bool(stable_histogram(bits, ["alone"], EPSILON, DELTA)) for _ in range(runs))
    # At most delta / 2 of the runs: 2 expected, more than 13 with probability 1e-7. Without the threshold
    # all are shown.
    assert shown <= 13


def test_a_result_that_many_share_is_shown_in_a_public_order() -> None:
    bits = SeededBits(np.random.default_rng(0))
    many = groups_for_agreement(EPSILON, DELTA)
    for results in (["b"] * many + ["a"] * many, ["a"] * many + ["b"] * many):
        assert [name for name, _ in stable_histogram(bits, results, EPSILON, DELTA)] == ["a", "b"]
