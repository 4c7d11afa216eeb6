from __future__ import annotations

import math

import numpy as np
import pytest

import dpcov
from dpcov import ArgumentError, theory
from dpcov.paper.theory import Distribution

LAWS: dict[str, Distribution] = {
    "ellipsoid": theory.EllipsoidSurface(np.diag(np.logspace(0, -4, 5))),
    "times": theory.ParetoTimesDirection(5, 4.0),
    "beside": theory.ParetoBesideDirection(5, 4.0),
    "gaussian": theory.log_spaced_gaussian(5, 100.0),
}


def rows_by_basis(law: Distribution) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for one in theory.compare(law, 0.1, 0.05, 0.5, 1.0, 1e-6):
        found.setdefault(one.basis, {})[one.method] = one.rows
    return found


@pytest.mark.parametrize("name", LAWS)
def test_every_law_of_the_paper_is_compared(name: str) -> None:
    law = LAWS[name]
    found = rows_by_basis(law)
    exact, rates = found["theorem"], found["rate only"]
    assert set(exact) == {"recursive", "gaussian", "aggregate"}
    assert {"recursive", "aggregate", "leverage"} <= set(rates)
    assert exact["recursive"] == theory.distribution_rows(law, 0.1, 0.5, failure=0.05).rows
    # No approach does with fewer rows than stand for the distribution.
    sample = law.subsample_size(0.1, 0.05)
    for basis in (exact, rates, found["calibrated on benchmarks"]):
        assert all(sample <= rows < math.inf for rows in basis.values())
    assert rates["aggregate"] == pytest.approx(5 * sample / 0.1 * law.n_columns / 5)
    assert rates["separate"] == rates["adaptive"] < rates["exponential"]


@pytest.mark.parametrize("name", LAWS)
def test_every_method_that_the_library_runs_has_a_line(name: str) -> None:
    found = rows_by_basis(LAWS[name])
    named = {method for basis in found.values() for method in basis}
    assert named == {method.name for method in dpcov.methods() if method.available}
    of_normal_rows = {"coinpress", "preconditioning", "unbounded"}
    assert set(found.get("nothing known", {})) == (set() if name == "gaussian" else of_normal_rows)


def test_one_release_is_enough_for_a_round_table_and_not_for_a_thin_one() -> None:
    thin, round_ = (
        rows_by_basis(theory.EllipsoidSurface(np.diag([1.0, least])))["theorem"] for least in (1e-9, 1.0)
    )
    assert thin["gaussian"] > 100 * thin["recursive"]
    assert round_["gaussian"] <= round_["recursive"]


def test_one_release_by_hand() -> None:
    law, g = theory.EllipsoidSurface(np.diag([1.0, 1e-6])), 0.2
    found = {one.method: one.rows for one in theory.compare(law, (1 + g) ** 2 - 1, 0.03, 2.0, 1.0, 1e-6)[:4]}
    norm = 2 + math.sqrt(2 * math.log(2 / 0.01))
    assert found["gaussian"] == pytest.approx(norm / (0.5e-6 * (1 - g)) / math.sqrt(2.0) / g, rel=1e-6)


def test_the_default_by_hand() -> None:
    # All leverages are 2, whatever is clipped, and rho is so small that noise decides.
    law, g = theory.EllipsoidSurface(np.diag([1.0, 1e-6])), 0.2
    (first, *_) = theory.compare(law, (1 + g) ** 2 - 1, 0.03, 1e-8, 1.0, 1e-6)
    assert first.method == "whitening"
    assert first.rows == pytest.approx(2 * math.sqrt(4) / math.sqrt(0.85e-8) / g, abs=1)


@pytest.mark.parametrize("change", [{"gamma": 1.5}, {"xi": 0}, {"rho": -1}, {"epsilon": 0}, {"delta": 2}])
def test_bad_arguments(change: dict[str, float]) -> None:
    given = {"gamma": 0.1, "xi": 0.05, "rho": 0.5, "epsilon": 1.0, "delta": 1e-6, **change}
    with pytest.raises(ArgumentError, match=next(iter(change))):
        theory.compare(LAWS["times"], **given)
