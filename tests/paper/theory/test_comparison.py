from __future__ import annotations

import math

import numpy as np
import pytest

from dpcov import ArgumentError, theory
from dpcov.paper.theory import Distribution

LAWS: dict[str, Distribution] = {
    "ellipsoid": theory.EllipsoidSurface(np.diag(np.logspace(0, -4, 5))),
    "times": theory.ParetoTimesDirection(5, 4.0),
    "beside": theory.ParetoBesideDirection(5, 4.0),
    "gaussian": theory.log_spaced_gaussian(5, 100.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_every_law_of_the_paper_is_compared(name: str) -> None:
    law = LAWS[name]
    found = theory.compare(law, 0.1, 0.05, 0.5, 1.0, 1e-6)
    exact = {one.method: one.bound for one in found if one.bound.exact}
    rates = {one.method: one.bound for one in found if not one.bound.exact}
    assert set(exact) == {"recursive", "gaussian", "aggregate"}
    assert set(rates) == {"recursive", "aggregate", "leverage"}
    assert all(math.isfinite(one.bound.rows) for one in found)
    assert exact["recursive"] == theory.distribution_rows(law, 0.1, 0.5, failure=0.05)
    # No approach does with fewer rows than stand for the distribution.
    sample = law.subsample_size(0.1, 0.05)
    assert min(bound.rows for bound in exact.values()) >= sample
    assert rates["recursive"].rows > sample
    assert rates["aggregate"].rows == pytest.approx(5 * sample / 0.1 * law.n_columns / 5)


def test_one_release_is_enough_for_a_round_table_and_not_for_a_thin_one() -> None:
    thin, round_ = (
        {
            one.method: one.bound.rows
            for one in theory.compare(law, 0.1, 0.05, 0.5, 1.0, 1e-6)
            if one.bound.exact
        }
        for law in (theory.EllipsoidSurface(np.diag([1.0, 1e-9])), theory.EllipsoidSurface(np.eye(2)))
    )
    assert thin["gaussian"] > 100 * thin["recursive"]
    assert round_["gaussian"] <= round_["recursive"]


def test_one_release_by_hand() -> None:
    law, g = theory.EllipsoidSurface(np.diag([1.0, 1e-6])), 0.2
    found = theory.compare(law, (1 + g) ** 2 - 1, 0.03, 2.0, 1.0, 1e-6)[1].bound.rows
    norm = 2 + math.sqrt(2 * math.log(2 / 0.01))
    assert found == pytest.approx(norm / (0.5e-6 * (1 - g)) / math.sqrt(2.0) / g, rel=1e-6)


@pytest.mark.parametrize("change", [{"gamma": 1.5}, {"xi": 0}, {"rho": -1}, {"epsilon": 0}, {"delta": 2}])
def test_bad_arguments(change: dict[str, float]) -> None:
    given = {"gamma": 0.1, "xi": 0.05, "rho": 0.5, "epsilon": 1.0, "delta": 1e-6, **change}
    with pytest.raises(ArgumentError, match=next(iter(change))):
        theory.compare(LAWS["times"], **given)
