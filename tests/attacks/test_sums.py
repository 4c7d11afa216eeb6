"""Casacuberta, Shoemate, Vadhan and Wagaman (2022): sums in floating point are more sensitive than they look.

Overflow, cancellation and the order of rows make the sum of bounded numbers move by more than the bound
when one number changes. The exact sum of the core does not, whatever the numbers are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    Clipping,
    Rule,
)
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.maps import identity_map
from dpcov.sources import ArraySource

Array = NDArray[Any]
HOSTILE = (1e308, -1e308, 5e-324, -5e-324, 2.2e-308, 1e-300, 0.0, -0.0, 1.0, np.inf, -np.inf, np.nan)


def change(one: Array, other: Array, rule: Rule = Rule.SHRINK, threads: int = 1) -> tuple[int, int]:
    """The squared Frobenius norm of the exact change, and what is allowed."""
    d = one.shape[1]
    lattice = Lattice.for_table(len(one), d)
    task = GramTask(Clipping(identity_map(d), 1.0, rule), lattice, constant=False)
    moved = ArraySource(one, threads=threads).scan(task) - ArraySource(other, threads=threads).scan(task)
    exact = moved.astype(object)
    return int((exact * exact).sum()), 2 * lattice.bound**4


def rounding_tables() -> tuple[Array, Array]:
    """Products of two columns that lie in [-1, 1]: ones, then small numbers, then minus ones.

    In float32 the small ones round up to a unit that doubles where the sum reaches 2^12. One row less, and it
    does not.
    """
    big, small = 1 << 12, np.float32(2.0**-12 * 1.01)
    products = np.concatenate([np.ones(big), np.full(big, small), -np.ones(big)]).astype(np.float32)
    one = np.column_stack([np.ones_like(products), products])
    other = one.copy()
    other[0, 1] = -1.0
    return one, other


def running_sum(rows: Array) -> float:
    return float(np.add.accumulate(rows[:, 0] * rows[:, 1])[-1])


def test_rounding_makes_a_float_sum_more_sensitive_and_the_exact_one_not() -> None:
    one, other = rounding_tables()
    assert abs(running_sum(one) - running_sum(other)) > 2.5  # the bound is 2
    moved, allowed = change(one / np.float32(2), other / np.float32(2))
    assert 0 < moved <= allowed


def test_order_moves_a_float_sum_and_not_the_exact_one() -> None:
    one, _ = rounding_tables()
    shuffled = one[np.random.default_rng(0).permutation(len(one))]
    assert running_sum(one) != running_sum(shuffled)
    assert change(one, shuffled)[0] == 0
    assert change(one, shuffled, threads=4)[0] == 0


def test_overflow_makes_a_float_sum_infinite_and_the_exact_one_not() -> None:
    one, other = np.full((4, 2), 1e200), np.full((4, 2), 1e200)
    other[0] = 0.0
    with np.errstate(over="ignore"):
        assert np.isinf(one.T @ one).all()
    moved, allowed = change(one, other)
    assert 0 < moved <= allowed


@given(
    st.lists(st.tuples(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE)), min_size=2, max_size=12),
    st.tuples(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE)),
    st.sampled_from(list(Rule)),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_hostile_rows_in_any_order_move_the_sum_by_no_more_than_the_bound(
    lines: list[tuple[float, float]], line: tuple[float, float], rule: Rule, random: Any
) -> None:
    one = np.array(lines)
    places = list(range(len(lines)))
    random.shuffle(places)
    other = one.copy()
    other[0] = line
    moved, allowed = change(one, other[places], rule)
    assert moved <= allowed


@pytest.mark.parametrize("value", HOSTILE)
def test_one_hostile_value_takes_no_other_row_with_it(value: float) -> None:
    one = np.vstack([np.full((1, 2), value), np.ones((5, 2)) * 0.3])
    other = one.copy()
    other[0] = 0.0
    moved, allowed = change(one, other)
    assert moved <= allowed
