from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcov.checks import choice, count, did_you_mean, flag, number, positive, share
from dpcov.core import ArgumentError


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3), Fraction(3)])
def test_numbers_of_every_kind_are_taken(value: Any) -> None:
    assert number(value, "x") == positive(value, "x") == 3.0
    found = count(value, "x", at_most=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize(
    "value", [True, None, "3", [3], 1j, math.nan, math.inf, -math.inf, np.float64("inf"), 0]
)
@pytest.mark.parametrize("check", [positive, share, count], ids=lambda check: check.__name__)
def test_what_is_no_number_in_range_is_refused(check: Callable[[Any, str], object], value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^size must .*\.$"):
        check(value, "size")


def test_limits_are_kept() -> None:
    assert number(2, "x", at_least=2, at_most=2) == 2
    assert count(0, "x", at_least=0) == 0
    for value, limits in ((2, {"above": 2}), (1, {"at_least": 2}), (3, {"at_most": 2}), (10**400, {})):
        with pytest.raises(ArgumentError, match="x must be"):
            number(value, "x", **limits)
    with pytest.raises(ArgumentError, match="x must be a whole number of at least 1"):
        count(10**400, "x")
    for wrong in (0, 5, 2.5):
        with pytest.raises(ArgumentError, match="x must be a whole number from 1 to 4"):
            count(wrong, "x", at_most=4)
    for beyond in (0, 1, 1.5):
        with pytest.raises(ArgumentError, match="strictly between"):
            share(beyond, "x")


def test_only_true_and_false_are_flags() -> None:
    assert flag(value=True, name="x")
    for value in (1, "yes", None, np.bool_(1)):
        with pytest.raises(ArgumentError, match="x must be True or False"):
            flag(value, "x")


def test_a_wrong_name_gets_the_nearest_one() -> None:
    assert choice("paper", "constants", ["paper", "repaired"]) == "paper"
    with pytest.raises(ArgumentError, match=r"constants: there is no .papr.\. Did you mean .paper."):
        choice("papr", "constants", ["paper", "repaired"])
    with pytest.raises(ArgumentError, match=r"there is no column 'z'. There are: c0, .*c11, \.\.\.\.$"):
        choice("z", "on", [f"c{i}" for i in range(20)], kind="column ")
    assert did_you_mean(["alfa", "bet"], ["alpha", "beta"]) == "Did you mean 'alpha' or 'beta'?"
    assert did_you_mean(["x"], ["alpha"]) == ""
