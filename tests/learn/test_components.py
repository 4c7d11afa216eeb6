from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.learn_tables import features, frame
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpcov
from dpcov.learn import PrivatePCA, PrivateWhitener


def test_it_finds_the_components() -> None:
    private, exact = PrivatePCA(2, rho=0.5).fit(features()), PCA(2).fit(features())
    # The angle between the planes: noise leaves about 0.001.
    cosines = np.linalg.svd(private.components_ @ exact.components_.T, compute_uv=False)
    assert np.arccos(np.minimum(cosines, 1.0)).max() < 0.02
    assert np.allclose(private.explained_variance_, exact.explained_variance_, rtol=0.02)
    assert np.allclose(private.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=0.02)
    assert np.abs(private.mean_ - exact.mean_).max() < 0.05


def test_all_components_lose_nothing_and_fewer_project() -> None:
    rows = features()[:100]
    whole = PrivatePCA(rho=0.5).fit(features())
    assert np.allclose(whole.inverse_transform(whole.transform(rows)), rows)
    part = PrivatePCA(1, rho=0.5).fit(features())
    assert part.transform(rows).shape == (100, 1)
    back = part.inverse_transform(part.transform(rows))
    assert np.allclose(part.inverse_transform(part.transform(back)), back)


def test_pipelines_give_pandas() -> None:
    pipeline = make_pipeline(PrivateWhitener(rho=0.25), PrivatePCA(2, rho=0.25)).set_output(
        transform="pandas"
    )
    seen = pipeline.fit_transform(frame())
    assert isinstance(seen, pd.DataFrame)
    assert list(seen.columns) == ["privatepca0", "privatepca1"]
    assert seen.index.equals(frame().index)


def test_pipelines_give_polars_and_take_it() -> None:
    table = pl.DataFrame(frame())
    pipeline = make_pipeline(FunctionTransformer(), PrivatePCA(2, rho=0.5)).set_output(transform="polars")
    assert isinstance(pipeline.fit_transform(table), pl.DataFrame)
    assert list(pipeline[-1].feature_names_in_) == table.columns


def test_from_release_gives_what_the_release_says() -> None:
    made = dpcov.release(frame(), rho=0.5)
    private = PrivatePCA.from_release(made, n_components=2, columns=["age", "height"])
    expected = made.pca(2, ["age", "height"], standardize=False)
    assert (private.components_ == expected.directions.values).all()
    assert (private.explained_variance_ == expected.variances.values).all()
    assert private.transform(frame()[["age", "height"]]).shape == (50_000, 2)


@pytest.mark.parametrize("count", [0, 4, 1.5, True, "mle"])
def test_a_bad_count_is_refused_before_anything_is_spent(count: Any, tmp_path: Any) -> None:
    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=1)
    with pytest.raises(dpcov.ArgumentError, match="n_components must be a whole number from 1 to 3"):
        PrivatePCA(count, rho=0.5, ledger=ledger, dataset="people").fit(features())
    assert not ledger.history("people")
    with pytest.raises(dpcov.ArgumentError, match="n_components"):
        PrivatePCA.from_release(dpcov.release(features(), rho=0.5), n_components=count)


def test_coordinates_of_the_wrong_width_are_refused() -> None:
    private = PrivatePCA(2, rho=0.5).fit(features())
    with pytest.raises(dpcov.ArgumentError, match="must have 2 columns, got 3"):
        private.inverse_transform(features()[:5])
