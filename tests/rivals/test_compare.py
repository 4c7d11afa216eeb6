from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpcov
from dpcov.rivals.compare import NOTICE, TrueMoment

ROWS = np.random.default_rng(0).normal(size=(5000, 4)) * [1.0, 0.3, 0.1, 0.01]


def compare(data: Any = ROWS, **arguments: Any) -> dpcov.Comparison:
    return dpcov.compare(data, **{"rho": 0.5, "public": True, "runs": 2, **arguments})


def test_methods_stand_side_by_side_best_first(tmp_path: Path) -> None:
    result = compare()
    names = [one.method for one in result.outcomes]
    assert set(names) == {one.name for one in dpcov.methods() if one.available and one.vetted}
    errors = [one.error for one in result.outcomes if not math.isnan(one.error)]
    assert errors == sorted(errors)
    assert names[0] in {"whitening", "coinpress"}
    told = {one.method: one.told for one in result.outcomes}
    assert told["whitening"] == {}
    assert set(told["gaussian"]) == {"radius"}
    refused = {one.method: one.failure for one in result.outcomes if math.isnan(one.error)}
    assert "needs at least" in refused["aggregate"]
    text = str(result)
    assert NOTICE in text
    assert all(name in text for name in names)
    result.figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


def test_errors_are_those_of_a_release() -> None:
    result = compare(methods=["gaussian"], runs=1, seed=3, options={"gaussian": {"radius": 4.0}})
    rng = np.random.default_rng([3, 0])
    matrix = dpcov.release(
        ROWS, rho=0.5, delta=1e-6, method="gaussian", radius=4.0, intercept=False, rng=rng
    ).second_moment()
    exact = ROWS.T @ ROWS / len(ROWS)
    root = np.linalg.inv(np.linalg.cholesky(exact))
    expected = np.abs(np.linalg.eigvalsh(root @ matrix @ root.T) - 1).max()
    assert math.isclose(result.outcomes[0].error, expected, rel_tol=1e-9)


def test_the_true_moment_survives_a_large_condition_number_and_singular_tables() -> None:
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rows = rng.normal(size=(2000, 3)) * [1.0, 1e-3, 1e-6] @ axes.T
    truth = TrueMoment.of(rows)
    wide = rows.astype(np.longdouble)
    exact = np.asarray(wide.T @ wide / 2000, dtype=np.float64)
    assert truth.relative_error(exact) < 1e-3
    assert math.isclose(truth.relative_error(2 * exact), 1, rel_tol=1e-3)
    assert 0.5e-12 < truth.least_eigenvalue < 2e-12
    twice = TrueMoment.of(np.column_stack([rows, rows[:, 0]]))
    assert twice.whitener.shape == (4, 3)


def test_a_table_with_an_intercept_and_frames_are_taken() -> None:
    frame = pl.DataFrame({"a": ROWS[:, 0] + 5, "b": ROWS[:, 1]})
    result = compare(frame, methods=["whitening"], runs=1, intercept=True)
    assert result.n_columns == 3
    assert result.outcomes[0].error < 0.1


def test_every_method_runs_with_an_intercept_or_says_why_not() -> None:
    result = compare(ROWS[:, :2], runs=1, intercept=True, allow_unvetted=True)
    for one in result.outcomes:
        assert one.failure if math.isnan(one.error) else one.error < 100


def test_unvetted_methods_join_when_allowed() -> None:
    result = compare(allow_unvetted=True, runs=1, methods=["exponential", "gaussian"])
    assert {one.method: one.vetted for one in result.outcomes} == {"exponential": False, "gaussian": True}
    assert "unvetted" in str(result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"public": False}, "public=True"),
        ({"public": "yes"}, "public=True"),
        ({"runs": 0}, "runs"),
        ({"methods": []}, "at least one"),
        ({"methods": "gaussian"}, "list of names"),
        ({"methods": ["gausian"]}, "Did you mean 'gaussian'"),
        ({"methods": ["alabi-2023"]}, "cannot be run"),
        ({"methods": ["exponential"]}, "allow_unvetted"),
        ({"options": {"gaussian": {"rounds": 3}}, "methods": ["gaussian"]}, "takes no rounds"),
        ({"data": np.zeros((5, 2))}, "all rows are zero"),
        ({"data": np.zeros(5)}, "shape"),
        ({"data": np.array([["a", "b"]])}, "real numbers"),
    ],
)
def test_bad_arguments_are_refused_in_words(change: dict[str, Any], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        compare(**change)
