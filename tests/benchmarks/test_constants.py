from __future__ import annotations

import numpy as np
import pytest
from constants import NAMES, Judged, changed, changed_value, summarise

from dpcov.methods.whitening import constants


def test_every_constant_is_changed_and_put_back() -> None:
    assert {"AIM", "MOST_ROUNDS", "KEPT_FOR_RELEASE", "SHORT"} <= set(NAMES)
    for name in NAMES:
        before = getattr(constants, name)
        for factor in (0.5, 2.0):
            wanted = changed_value(name, factor)
            with changed(name, factor):
                after = getattr(constants, name)
                assert after == wanted != before
                assert type(after) is type(before), "a number of rounds stays whole"
        assert getattr(constants, name) == before


def test_what_is_kept_leaves_something_to_spend() -> None:
    assert changed_value("KEPT_FOR_RELEASE", 2.0) == 0.8
    assert changed_value("MOST_RETURNS", 0.1) == 1


def test_changes_are_compared_table_by_table() -> None:
    usual = [[Judged(1.0, exceeded=False, unresolved=0)] * 2, [Judged(3.0, exceeded=False, unresolved=2)] * 2]
    twice = [[Judged(2 * one.ratio, exceeded=True, unresolved=1) for one in table] for table in usual]
    found = summarise(twice, usual)
    assert found["change"] == pytest.approx(1.0)
    assert found["standard_error"] == pytest.approx(0.0)
    assert (found["better"], found["worse"], found["exceeded"], found["unresolved"]) == (0, 2, 1.0, 1.0)
    mixed = summarise([twice[0], usual[1]], usual)
    # One table doubled, one as it was: sqrt 2 on average, give or take half of log 2.
    assert mixed["change"] == pytest.approx(np.sqrt(2) - 1)
    assert mixed["standard_error"] == pytest.approx(np.log(2) / 2)
