from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.learn_tables import NAMES, features, frame
from sklearn.exceptions import NotFittedError

import dpcov
from dpcov.learn import PrivateWhitener, RefitWarning


def test_rows_become_white() -> None:
    white = PrivateWhitener(rho=0.5).fit(features()).transform(features())
    # Noise leaves about 0.001 in each.
    assert np.abs(white.mean(axis=0)).max() < 0.01
    assert np.abs(np.cov(white.T) - np.eye(3)).max() < 0.02


def test_columns_keep_their_names_in_pandas() -> None:
    whitener = PrivateWhitener(rho=0.5).set_output(transform="pandas")
    white = whitener.fit_transform(frame())
    assert isinstance(white, pd.DataFrame)
    assert list(white.columns) == NAMES


def test_from_release_gives_what_the_release_says() -> None:
    made = dpcov.release(frame(), rho=0.5)
    whitener = PrivateWhitener.from_release(made)
    assert (whitener.transform(frame()) == made.whiten().transform(features())).all()


def test_an_unresolved_fit_keeps_the_release_and_nothing_of_an_earlier_fit() -> None:
    whitener = PrivateWhitener(rho=0.5).fit(features())
    with (
        pytest.warns(RefitWarning),
        pytest.raises(dpcov.UnresolvedError, match="x0 - x1 is below the noise") as caught,
    ):
        whitener.fit(features()[:, [0, 0, 1]])
    assert "it spent rho=0.5" in caught.value.__notes__[0]
    assert whitener.release_.covariance().values.shape == (3, 3)
    assert float(whitener.receipt_.spent.rho) == 0.5
    assert not hasattr(whitener, "whitening_")
    with pytest.raises(NotFittedError):
        whitener.transform(features())
