"""A private scaler and a private imputer: what pipelines put before a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpcov.arrays import Array
from dpcov.core import ArgumentError
from dpcov.learn._base import FeaturesOnly
from dpcov.released import Release
from dpcov.sources.sklearn_rows import read_rows, to_matrix

_SAME = 1e-6
"""A smaller spread, relative to the mean, is rounding."""


class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, FeaturesOnly):
    """Bring each column to mean 0 and variance 1, in the place of ``sklearn.preprocessing.StandardScaler``.

    Takes the parameters of every private estimator: `rho`, `mu`, or `epsilon` and `delta`; `method`,
    `contamination`, `ledger`, `dataset`, `rng`, `release_options` (``docs/learn.md``).

    Attributes
    ----------
    mean_ : ndarray, shape (n_features,)
        The private means of the features.
    var_ : ndarray, shape (n_features,)
        Their private variances; means over rows, not divided by n - 1.
    scale_ : ndarray, shape (n_features,)
        What columns are divided by: their standard deviations, and 1 for one that is below the noise or has
        the same value everywhere, to six digits.
    release_ : Release
        For any other linear question.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, or (`epsilon`, `delta`)-DP, for tables of the same public
    size that differ in one row; attributes are post-processing. `transform` is a plain function of the rows
    it gets: sensitive rows stay sensitive. A model that is fitted after it spends a budget of its own: make
    one release, and use `from_release` for both.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateScaler
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> PrivateScaler(rho=1).fit_transform(people).std(axis=0).round(1)
    array([1., 1.])
    """

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        self.mean_ = np.array(made.mean(features))
        self.var_ = np.array(made.variance(features))
        # A column that is below the noise by itself has no correlation, not even with itself.
        known = np.isfinite(np.diag(made.correlation(features).values))
        known &= self.var_ > np.square(_SAME * self.mean_)
        self.scale_ = np.sqrt(np.where(known, self.var_, 1.0))

    @np.errstate(all="ignore")
    def transform(self, X: Any) -> Array:
        """Return rows with every column centred and scaled."""
        return np.asarray((self._read_new(X) - self.mean_) / self.scale_)

    @np.errstate(all="ignore")
    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that these were scaled from."""
        check_is_fitted(self)
        rows = to_matrix(read_rows(X))
        if rows.shape[1] != self.n_features_in_:
            raise ArgumentError(f"X must have {self.n_features_in_} columns, got {rows.shape[1]}.")
        return np.asarray(rows * self.scale_ + self.mean_)


class PrivateImputer(OneToOneFeatureMixin, TransformerMixin, FeaturesOnly):
    """Put each column's mean where a value is missing, in the place of ``sklearn.impute.SimpleImputer``.

    Takes the parameters of every private estimator: `rho`, `mu`, or `epsilon` and `delta`; `method`,
    `contamination`, `ledger`, `dataset`, `rng`, `release_options` (``docs/learn.md``).

    Attributes
    ----------
    statistics_ : ndarray, shape (n_features,)
        The private means of the complete rows.
    release_ : Release
        For any other linear question.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, or (`epsilon`, `delta`)-DP, for tables of the same public
    size that differ in one row; attributes are post-processing. `transform` is a plain function of the rows
    it gets: sensitive rows stay sensitive.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateImputer
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> PrivateImputer(rho=1).fit(people).transform([[np.nan, 70.0]]).round()
    array([[170.,  70.]])
    """

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        self.statistics_ = np.array(made.mean(features))

    @np.errstate(all="ignore")
    def transform(self, X: Any) -> Array:
        """Return rows with means in the place of missing values; infinities stay."""
        rows = self._read_new(X)
        return np.asarray(np.where(np.isnan(rows), self.statistics_, rows))
