"""Estimators that protect all rows of a person together."""

from __future__ import annotations

import numpy as np
import pytest

from dpcov.core import ArgumentError
from dpcov.learn import PrivateCovariance, PrivateLinearRegression


def test_groups_are_the_persons_that_a_fit_protects() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2))
    who = np.array([f"p{i}" for i in rng.integers(0, 4000, len(rows))])
    covariance = PrivateCovariance(rho=1, rng=rng).fit(rows, groups=who)
    regression = PrivateLinearRegression(rho=1, rng=rng).fit(rows, rows @ [1.0, -2.0] + 3, groups=who)
    for fitted in (covariance, regression):
        assert fitted.release_.unit is not None
        assert fitted.release_.n_units == len(set(who))
    assert np.allclose(covariance.covariance_, np.eye(2), atol=0.2)
    assert np.allclose(regression.coef_, [1, -2], atol=0.2)


def test_groups_of_another_length_are_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.raises(ArgumentError, match="one id for each row"):
        PrivateCovariance(rho=1).fit(rows, groups=np.arange(7))


def test_the_unit_is_not_given_twice() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.raises(ArgumentError, match="privacy_unit"):
        PrivateCovariance(rho=1, release_options={"privacy_unit": "who"}).fit(rows)
