"""Budgets, refits, and what all estimators refuse."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.learn_tables import features, frame, target
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import dpcov
from dpcov.learn import PrivateCovariance, PrivateLinearRegression, PrivatePCA, PrivateRidge, RefitWarning


def book(path: Path, rho: float) -> dpcov.Ledger:
    ledger = dpcov.Ledger.create(path / "budget.db")
    ledger.add_dataset("people", rho=rho)
    return ledger


def test_a_first_fit_is_silent_and_its_receipt_adds_up() -> None:
    private = PrivateCovariance(epsilon=1, delta=1e-6).fit(features())
    assert private.receipt_ is private.release_.receipt
    assert private.receipt_.private
    assert sum(charge.cost.rho for charge in private.receipt_.charges) == private.receipt_.spent.rho
    assert 0.99 < private.receipt_.epsilon(1e-6) <= 1


def test_a_refit_warns_with_the_budget() -> None:
    private = PrivateCovariance(rho=0.5).fit(features())
    with pytest.warns(RefitWarning, match=r"was fitted before: fitting it spends rho=0.5 again") as seen:
        private.fit(features())
    assert seen[0].filename == __file__


def test_a_refit_that_is_stopped_by_the_warning_spends_nothing(tmp_path: Path) -> None:
    ledger = book(tmp_path, 1)
    private = PrivateCovariance(rho=0.5, ledger=ledger, dataset="people").fit(features())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RefitWarning):
            private.fit(features())
    assert ledger.remaining("people").rho == Fraction(1, 2)


def test_the_fit_of_a_clone_warns_also_after_pickling() -> None:
    for estimator in (PrivatePCA(epsilon=1, delta=1e-6), PrivatePCA(epsilon=1, delta=1e-6).fit(features())):
        copied = pickle.loads(pickle.dumps(clone(estimator)))  # noqa: S301
        with pytest.warns(RefitWarning, match=r"is a clone.* spends epsilon=1, delta=1e-06 again"):
            copied.fit(features())


def test_cross_validation_warns_at_every_fold_and_the_ledger_pays_for_each(tmp_path: Path) -> None:
    ledger = book(tmp_path, 1)
    private = PrivateLinearRegression(rho=0.2, ledger=ledger.path, dataset="people")
    with pytest.warns(RefitWarning) as seen:
        scores = cross_val_score(private, features(), target(), cv=3)
    assert len([entry for entry in seen if entry.category is RefitWarning]) == 3
    assert scores.min() > 0.5
    assert [entry.kind for entry in ledger.history("people")] == ["charge", "settlement"] * 3
    # What a float's 0.2 is more than 1/5 is charged too.
    assert float(ledger.remaining("people").rho) == pytest.approx(0.4)


def test_a_ledger_stops_a_search_that_would_overspend(tmp_path: Path) -> None:
    ledger = book(tmp_path, 0.5)
    search = GridSearchCV(
        PrivateRidge(rho=0.2, ledger=ledger, dataset="people"),
        {"alpha": [0.1, 0.2]},
        cv=2,
        error_score="raise",
    )
    with pytest.warns(RefitWarning), pytest.raises(dpcov.BudgetError):
        search.fit(features(), target())
    assert float(ledger.remaining("people").rho) == pytest.approx(0.1)


def test_a_fit_is_one_charge_with_a_purpose(tmp_path: Path) -> None:
    ledger = book(tmp_path, 1)
    PrivateCovariance(rho=0.5, ledger=ledger, dataset="people").fit(features())
    PrivateCovariance(rho=0.25, ledger=ledger, dataset="people", release_options={"purpose": "a paper"}).fit(
        features()
    )
    charges = [entry for entry in ledger.history("people") if entry.kind == "charge"]
    assert [entry.purpose for entry in charges] == ["PrivateCovariance.fit", "a paper"]
    assert ledger.remaining("people").rho == Fraction(1, 4)
    with pytest.raises(dpcov.BudgetError):
        PrivateCovariance(rho=0.5, ledger=ledger, dataset="people").fit(features())


def test_from_release_charges_nothing(tmp_path: Path) -> None:
    ledger = book(tmp_path, 1)
    made = dpcov.release(frame().assign(wage=target()), rho=0.5, ledger=ledger, dataset="people")
    PrivateCovariance.from_release(made)
    PrivatePCA.from_release(made, n_components=1)
    for alpha in (0.1, 0.2):
        PrivateRidge.from_release(made, target="wage", alpha=alpha)
    assert ledger.remaining("people").rho == Fraction(1, 2)


def test_a_seed_repeats_marks_and_stays_as_it_was() -> None:
    rng = np.random.default_rng(3)
    first = PrivateCovariance(rho=0.5, rng=rng).fit(features())
    second = PrivateCovariance(rho=0.5, rng=rng).fit(features())
    assert (first.covariance_ == second.covariance_).all()
    assert not first.receipt_.private
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state
    third = PrivateCovariance(rho=0.5).fit(features())
    assert (first.covariance_ != third.covariance_).any()


def test_methods_and_their_options_are_passed_on() -> None:
    narrow = features()[:, [0, 2]]
    private = PrivateCovariance(rho=0.5, method="gaussian", release_options={"radius": 20.0}).fit(narrow)
    assert private.release_.method == "gaussian"
    assert private.release_.options == {"radius": 20.0}
    robust = PrivateCovariance(rho=0.5, contamination=0.01).fit(features())
    assert robust.release_.options == {"contamination": 0.01}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "budget is needed"),
        ({"rho": 0}, "rho must be greater than 0"),
        ({"rho": 1, "dataset": "people"}, "need a ledger"),
        ({"rho": 1, "method": "gausian"}, "Did you mean 'gaussian'"),
        ({"rho": 1, "contamination": 0.7}, "contamination must be"),
        ({"rho": 1, "rng": 7}, "rng must be"),
        ({"rho": 1, "release_options": {"rho": 2, "intercept": False}}, "must not contain intercept, rho"),
        ({"rho": 1, "release_options": {"radios": 2}}, "radios"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        PrivateCovariance(**parameters).fit(features())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (features()[:, 0], "Reshape your data"),
        (features()[:1], "1 sample"),
        (features()[:, :0], "0 feature"),
        (features().astype(complex), "Complex data not supported"),
        (features().astype(object), "dtype object"),
        (np.ma.masked_array(features()), "masked"),
        (csr_array(features()), "sparse"),
        (frame().assign(name="x", town="y"), "not numeric: name, town"),
        (pd.DataFrame(features(), columns=["a", "b", "a"]), "two columns of the same name"),
        ([[[1.0]], [[2.0]]], "nested too deeply"),
    ],
)
def test_bad_tables_are_refused_in_words(table: Any, message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        PrivateCovariance(rho=0.5).fit(table)


def test_cells_of_lists_that_are_no_numbers_count_as_missing() -> None:
    hostile: list[list[Any]] = features(500).tolist()
    missing = features(500).copy()
    for i, cell in enumerate(["secret", None, 10**400, 1j, float("nan"), [2.0]]):
        hostile[i][1] = cell
        missing[i, 1] = np.nan

    def fit(table: Any) -> Any:
        return PrivateCovariance(rho=1e3, rng=np.random.default_rng(1)).fit(table).covariance_

    assert (fit(hostile) == fit(missing)).all()


@pytest.mark.parametrize("odd", [[3.0], [1.0, 2.0, 3.0, 4.0], 5.0, "secret", None, []])
def test_a_row_of_another_shape_counts_as_missing(odd: Any) -> None:
    # A list has no shape of its own: the first row shows it, and the others are not told of.
    ragged: list[Any] = features(500).tolist()
    missing = features(500).copy()
    ragged[7] = odd
    missing[7] = np.nan

    def fit(table: Any) -> Any:
        return PrivateCovariance(rho=1e3, rng=np.random.default_rng(1)).fit(table).covariance_

    assert (fit(ragged) == fit(missing)).all()


def test_numbers_beyond_float64_warn_of_nothing() -> None:
    # Warnings are errors here.
    rows = features(500).astype(np.longdouble)
    target = rows[:, 0].copy()
    target[3] = rows[4, 1] = np.longdouble("1e400")
    fitted = PrivateLinearRegression(rho=1e3).fit(rows, target)
    fitted.predict(rows)


def test_new_rows_are_checked_by_name_and_number() -> None:
    with pytest.raises(ValueError, match="2 features"):
        PrivatePCA(rho=0.5).fit(features()).transform(features()[:, :2])
    private = PrivatePCA(rho=0.5).fit(frame())
    with pytest.raises(ValueError, match="feature names"):
        private.transform(frame().rename(columns={"age": "years"}))


def test_without_scikit_learn_the_import_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import dpcov\n"
        "try: import dpcov.learn\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    command = [sys.executable, "-c", program]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert "MissingExtraError" in seen.stdout
    assert "pip install 'dpcov[sklearn]'" in seen.stdout
