"""A release that protects all rows of a person: what it says, keeps and refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcov
from dpcov.core import ArgumentError
from dpcov.methods import find_method
from dpcov.report import report_data
from dpcov.report.words import USUAL_DELTAS, guarantee


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(3000), rng.integers(1, 12, 3000))
    rows = rng.normal(size=(len(patients), 2)) @ [[2.0, 1.0], [0.0, 1.0]] + [5.0, -3.0]
    return pd.DataFrame(rows, columns=["a", "b"]).assign(patient=patients).sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def made(visits: pd.DataFrame) -> dpcov.Release:
    return dpcov.release(visits, rho=1, privacy_unit="patient", rng=np.random.default_rng(2))


def test_it_is_about_all_rows(made: dpcov.Release, visits: pd.DataFrame) -> None:
    assert np.allclose(made.mean().values, visits[["a", "b"]].mean(), atol=0.3)
    assert np.allclose(made.covariance().values, np.cov(visits[["a", "b"]].T, bias=True), atol=0.6)
    assert float(made.describe().rows) == pytest.approx(len(visits), rel=0.05)


def test_each_patient_may_count_the_same(visits: pd.DataFrame) -> None:
    tilted = visits.assign(a=visits.groupby("patient")["a"].transform("size").astype(float))
    even = dpcov.release(
        tilted, rho=10, privacy_unit="patient", weighting="unit", rng=np.random.default_rng(0)
    )
    means = tilted.groupby("patient")["a"].mean().mean(), tilted["a"].mean()
    assert abs(means[0] - means[1]) > 1
    assert even.mean().values[0] == pytest.approx(means[0], abs=0.3)
    assert float(even.describe().rows) == pytest.approx(3000, rel=0.05)


def test_how_many_rows_there_are_is_flagged_unless_each_patient_counts_the_same(
    made: dpcov.Release, visits: pd.DataFrame
) -> None:
    told = made.describe()
    assert any("their rows count less once they are clipped" in note for note in told.rows.notes)
    assert "their rows count less" in repr(told)
    assert not told.mean.notes
    even = dpcov.release(
        visits, rho=1, privacy_unit="patient", weighting="unit", rng=np.random.default_rng(2)
    ).describe()
    assert not even.rows.notes
    assert float(even.rows.interval().upper[0]) <= 3000


def test_the_number_of_rows_is_said_nowhere(made: dpcov.Release, visits: pd.DataFrame) -> None:
    told = f"{made!r} {made._repr_html_()} {made.receipt} {report_data(made, 'x.dpcov')}"
    assert str(len(visits)) not in told
    assert f"{len(visits):,}" not in told
    assert "3,000 patients" in repr(made)
    with pytest.raises(ArgumentError, match="the number of rows is not public, only that of patients"):
        _ = made.n_rows


def test_the_guarantee_names_whom_it_protects(made: dpcov.Release) -> None:
    private = type(made.receipt)(made.receipt.limit, made.receipt.charges, private=True)
    of_patients = " ".join(guarantee(private, USUAL_DELTAS[1], 3000, made.unit))
    assert "All rows of one patient are protected together" in of_patients
    assert "Only the number of patients" in of_patients
    of_rows = " ".join(guarantee(private, USUAL_DELTAS[1], 3000))
    assert "k^2 rho" in of_rows


def test_a_file_keeps_the_unit(made: dpcov.Release, tmp_path: Path) -> None:
    made.save(tmp_path / "visits.dpcov")
    again = dpcov.load(tmp_path / "visits.dpcov")
    assert (again.unit, again.n_units) == (made.unit, 3000)
    assert (again.mean().interval().lower == made.mean().interval().lower).all()


def test_what_cannot_be_said_or_done_is_refused(made: dpcov.Release, visits: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match="sampling=True assumes that rows are independent draws"):
        made.mean(sampling=True)
    with pytest.raises(ArgumentError, match="method 'recursive' protects single rows only"):
        dpcov.release(visits, rho=1, privacy_unit="patient", method="recursive", m=10)
    with pytest.raises(ArgumentError, match='weighting must be "row" or "unit"'):
        dpcov.release(visits, rho=1, privacy_unit="patient", weighting="person")
    with pytest.raises(ArgumentError, match="needs privacy_unit"):
        dpcov.release(visits, rho=1, weighting="unit")
    with pytest.raises(ArgumentError, match="20 patients are too few"):
        dpcov.release(visits[visits["patient"] < 20], rho=0.001, privacy_unit="patient")


@pytest.mark.parametrize("method", [one.name for one in dpcov.methods() if one.available])
def test_a_method_takes_persons_or_refuses_before_anything_is_spent(
    method: str, visits: pd.DataFrame, tmp_path: Path
) -> None:
    if find_method(method).takes_units:
        assert method in {"whitening", "gaussian"}
        return
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("visits", rho=1, delta=0.1, privacy_unit="patient")
    with pytest.raises(ArgumentError, match=f"method '{method}' protects single rows only"):
        dpcov.release(
            visits, rho=1, privacy_unit="patient", method=method, ledger=ledger, dataset="visits",
            allow_unvetted=True,
        )  # fmt: skip
    assert ledger.history() == ()


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (dpcov.covering_radius, {"rho": 1}),
        (dpcov.enclosing_ball, {"rho": 1}),
        (dpcov.least_eigenvalue, {"m": 10, "epsilon": 1, "delta": 0.01, "radius": 1.0}),
        (dpcov.subsamplability, {"m": 10, "epsilon": 1, "delta": 0.01, "radius": 1.0}),
    ],
)
def test_what_the_paper_must_be_told_takes_persons_or_refuses(
    function: Callable[..., Any], options: dict[str, Any], visits: pd.DataFrame, tmp_path: Path
) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("visits", rho=2, delta=0.1, privacy_unit="patient")
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "visits", "privacy_unit": "patient"}
    if "rho" in options:
        # They count persons by their joint length.
        found = function(visits, **options, **paid, rng=np.random.default_rng(0), allow_seeded=True)
        rows = visits[["a", "b"]] - getattr(found, "centre", 0.0)
        lengths = np.sqrt((rows**2).sum(axis=1).groupby(visits["patient"]).sum())
        assert (lengths > found.radius).sum() <= found.outside_at_most
        assert found.radius < 1.2 * lengths.max()
        return
    with pytest.raises(ArgumentError, match="single rows"):
        function(visits, **options, **paid)
    assert ledger.account("visits").spent.rho == 0


def test_a_column_called_row_is_no_unit(visits: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match='called "row" could be taken for single rows'):
        dpcov.release(visits.rename(columns={"patient": "row"}), rho=1, privacy_unit="row")
