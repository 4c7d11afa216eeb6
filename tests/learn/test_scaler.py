"""A scaler and an imputer, and pipelines that keep or void the guarantee."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.learn_tables import NAMES, features, frame, target
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import dpcov
from dpcov.learn import (
    NotPrivateStepWarning,
    PrivateImputer,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
    RefitWarning,
)


def test_columns_get_mean_zero_and_variance_one() -> None:
    scaler, exact = PrivateScaler(rho=0.5).fit(features()), StandardScaler().fit(features())
    assert np.allclose(scaler.scale_, exact.scale_, rtol=0.02)
    assert np.abs((scaler.mean_ - exact.mean_) / exact.scale_).max() < 0.01
    scaled = scaler.transform(features())
    assert np.allclose(scaled.std(axis=0), 1, rtol=0.02)
    assert np.allclose(scaler.inverse_transform(scaled), features())
    with pytest.raises(dpcov.ArgumentError, match="X must have 3 columns, got 2"):
        scaler.inverse_transform(scaled[:, :2])


def test_a_column_below_the_noise_is_not_blown_up() -> None:
    rows = features().copy()
    rows[:, 2] = 7.0
    scaler = PrivateScaler(rho=0.5).fit(rows)
    assert scaler.scale_[2] == 1
    assert (scaler.scale_[:2] != 1).all()


def test_means_fill_gaps() -> None:
    made = dpcov.release(frame(), rho=0.5)
    imputer = PrivateImputer.from_release(made, columns=["income", "age"])
    assert imputer.statistics_.tolist() == made.mean(["income", "age"]).values.tolist()
    gaps = pd.DataFrame({"income": [np.nan, 3.0, np.inf], "age": [1.0, np.nan, np.nan]})
    filled = imputer.set_output(transform="pandas").transform(gaps)
    assert list(filled.columns) == ["income", "age"]
    assert filled.iloc[0].tolist() == [imputer.statistics_[0], 1.0]
    assert filled.iloc[2].tolist() == [np.inf, imputer.statistics_[1]]
    assert list(PrivateScaler.from_release(made).get_feature_names_out()) == NAMES


@pytest.mark.parametrize(
    ("steps", "leaks"),
    [
        ([StandardScaler()], "StandardScaler"),
        ([StandardScaler(), PCA(2)], "StandardScaler, PCA"),
        ([FunctionTransformer(), "passthrough", PrivateScaler(rho=0.2)], ""),
        ([PrivateImputer(rho=0.2)], ""),
    ],
)
def test_a_step_that_learns_without_privacy_is_told(steps: list[Any], leaks: str) -> None:
    pipeline = make_pipeline(*map(clone_step, steps), PrivateRidge(rho=0.5))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(features(), target())
    told = [str(one.message) for one in caught if one.category is NotPrivateStepWarning]
    if leaks:
        assert len(told) == 1
        assert told[0].startswith(f"{leaks} before this PrivateRidge learns from the rows without privacy")
    else:
        assert not told


def clone_step(step: Any) -> Any:
    return step if isinstance(step, str) else clone(step)


def test_a_step_after_a_private_one_voids_nothing() -> None:
    pipeline = make_pipeline(PrivatePCA(2, rho=0.5), StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateStepWarning)
        pipeline.fit(features())
        StandardScaler().fit(features())
        PrivatePCA(2, rho=0.5).fit(features())


def test_a_search_over_a_pipeline_is_told_as_well(tmp_path: Any) -> None:
    pipeline = make_pipeline(
        StandardScaler(), PrivatePCA(2, rho=1), PrivateRidge(rho=1), memory=str(tmp_path)
    )
    with (
        pytest.warns(NotPrivateStepWarning, match="StandardScaler before this PrivatePCA"),
        pytest.warns(NotPrivateStepWarning, match="StandardScaler before this PrivateRidge"),
        pytest.warns(RefitWarning),
    ):
        cross_val_score(pipeline, features(), target(), cv=2)


@pytest.mark.parametrize("kind", [PrivateLinearRegression, PrivateRidge])
def test_without_an_intercept(kind: Any) -> None:
    private = kind(rho=2, fit_intercept=False).fit(features(), target())
    exact = np.linalg.lstsq(features(), target())[0]
    assert np.allclose(private.coef_, exact, atol=0.2)
    assert private.intercept_ == 0
    assert np.allclose(private.predict(features()[:5]), features()[:5] @ private.coef_)
    with pytest.raises(dpcov.ArgumentError, match="fit_intercept must be True or False"):
        kind(rho=1, fit_intercept="no").fit(features(), target())


def test_a_share_of_the_variance_chooses_the_components() -> None:
    made = dpcov.release(frame(), rho=0.5)
    shares = np.cumsum(PrivatePCA.from_release(made).explained_variance_ratio_)
    for share in (0.5, float((shares[0] + shares[1]) / 2), 0.9999999):
        found = PrivatePCA.from_release(made, n_components=share)
        assert found.n_components_ == min(int(np.argmax(shares >= share)) + 1, 3)
        assert found.explained_variance_ratio_.sum() >= share - 1e-6
        assert found.transform(frame()).shape == (50_000, found.n_components_)


def test_an_unresolved_regression_advises_what_there_is() -> None:
    rows = features()[:, [0, 0, 1]]
    with pytest.raises(dpcov.UnresolvedError, match="or use PrivateRidge") as caught:
        PrivateLinearRegression(rho=0.5).fit(rows, np.random.default_rng(0).normal(size=len(rows)))
    assert "ridge=" not in str(caught.value)
