from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from helpers.learn_tables import NAMES, features, frame
from sklearn.covariance import EmpiricalCovariance

import dpcov
from dpcov.learn import PrivateCovariance


def relative_error(found: Any, exact: Any) -> float:
    root = np.linalg.cholesky(exact)
    white = np.linalg.solve(root, np.linalg.solve(root, found).T)
    return float(np.abs(np.linalg.eigvalsh(white) - 1).max())


def test_it_is_close_to_the_empirical_covariance_in_every_direction() -> None:
    private, exact = PrivateCovariance(rho=0.5).fit(features()), EmpiricalCovariance().fit(features())
    # Noise leaves about 0.001 here; ten times that is beyond any chance.
    assert relative_error(private.covariance_, exact.covariance_) < 0.01
    assert relative_error(private.precision_, exact.precision_) < 0.01
    assert np.abs(private.location_ - exact.location_).max() < 0.05
    rows = features()[:100]
    assert np.allclose(private.mahalanobis(rows), exact.mahalanobis(rows), rtol=0.05, atol=0.05)
    assert abs(private.score(rows) - exact.score(rows)) < 0.05
    assert private.error_norm(exact.covariance_, norm="spectral", squared=False) < 4.0
    assert isinstance(private, EmpiricalCovariance)


def test_the_score_is_that_of_the_class_it_stands_in_for() -> None:
    private = PrivateCovariance(rho=0.5).fit(features())
    twin = EmpiricalCovariance().fit(features())
    twin.location_, twin.covariance_ = private.location_, private.covariance_
    twin.precision_ = private.precision_
    rows = features()[:50]
    assert np.allclose(private.mahalanobis(rows), twin.mahalanobis(rows))
    assert np.isclose(private.score(rows), twin.score(rows))


def test_from_release_gives_what_the_release_says() -> None:
    made = dpcov.release(frame(), rho=0.5)
    whole = PrivateCovariance.from_release(made)
    assert (whole.covariance_ == made.covariance().values).all()
    assert (whole.location_ == made.mean().values).all()
    assert list(whole.feature_names_in_) == NAMES
    assert whole.receipt_ is made.receipt
    part = PrivateCovariance.from_release(made, columns=["height", "age"])
    assert (part.precision_ == made.precision(["height", "age"]).values).all()
    assert part.n_features_in_ == 2
    unnamed = PrivateCovariance.from_release(dpcov.release(features(), rho=0.5))
    assert not hasattr(unnamed, "feature_names_in_")
    assert unnamed.mahalanobis(features()[:3]).shape == (3,)


def test_precision_of_a_column_given_twice_is_refused_in_words() -> None:
    table = features()[:, [0, 0, 1]]
    private = PrivateCovariance(rho=0.5).fit(table)
    assert np.isclose(private.covariance_[0, 0], private.covariance_[0, 1], rtol=0.05)
    with pytest.raises(
        dpcov.UnresolvedError,
        match=r"x0 - x1 (is below the noise|may rest on a few rows that were clipped, or on rounding)",
    ):
        _ = private.precision_
    with pytest.raises(dpcov.UnresolvedError):
        private.score(table[:5])


def test_missing_values_are_neither_reported_nor_counted() -> None:
    table = features().copy()
    table[:100, 1] = np.nan
    table[100:200, 2] = np.inf
    private = PrivateCovariance(rho=0.5).fit(table)
    assert relative_error(private.covariance_, EmpiricalCovariance().fit(table[200:]).covariance_) < 0.01
    distances = private.mahalanobis(table[99:202])
    assert np.isnan(distances[0])
    assert np.isfinite(distances[-1])
    assert private.score(table) == private.score(table[200:])
    assert np.isnan(private.score(table[:5]))


def test_it_survives_pickling() -> None:
    private = PrivateCovariance(rho=0.5).fit(frame())
    again = pickle.loads(pickle.dumps(private))  # noqa: S301
    assert (again.precision_ == private.precision_).all()
    assert again.receipt_.spent == private.receipt_.spent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"release": 3}, "must be a dpcov release"),
        ({"columns": ["hight"]}, "Did you mean 'height'"),
        ({"columns": []}, "columns is empty"),
    ],
)
def test_a_bad_from_release_is_refused_in_words(arguments: dict[str, Any], message: str) -> None:
    given = {"release": dpcov.release(frame(), rho=0.5), **arguments}
    with pytest.raises(dpcov.ArgumentError, match=message):
        PrivateCovariance.from_release(given.pop("release"), **given)


def test_a_release_without_intercept_is_refused_in_words() -> None:
    with pytest.raises(dpcov.ArgumentError, match="intercept=True"):
        PrivateCovariance.from_release(dpcov.release(frame(), rho=0.5, intercept=False))
