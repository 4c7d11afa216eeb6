"""Private principal components."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpcov.arrays import Array
from dpcov.checks import count
from dpcov.core import ArgumentError, Number
from dpcov.learn._base import FeaturesOnly
from dpcov.ledger import Ledger
from dpcov.released import Release
from dpcov.sources.sklearn_rows import read_rows, to_matrix


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeaturesOnly):
    """Principal components of a sensitive table.

    Parameters
    ----------
    n_components : int or float, optional
        The number of components to keep; all by default. A share below 1, such as 0.9, keeps as many as
        explain that share of the variance.
    rho, mu, epsilon, delta, method, contamination, ledger, dataset, rng, release_options
        As for every private estimator (``docs/learn.md``).

    Attributes
    ----------
    components_ : ndarray, shape (n_components, n_features)
        One direction a line, by falling variance; the coefficient of largest size is positive.
    explained_variance_ : ndarray, shape (n_components,)
        Means over rows, not divided by n - 1; corrected for the spread that noise adds.
    explained_variance_ratio_ : ndarray, shape (n_components,)
        Shares of the whole variance.
    mean_ : ndarray, shape (n_features,)
        The private means of the features.
    n_components_ : int
        The number of components.
    release_ : Release
        For any other linear question; ``release_.pca(standardize=False)`` gives these numbers with intervals.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for tables of the same
    public size that differ in one row; attributes are post-processing. `transform` is a plain function of the
    rows it gets: sensitive rows stay sensitive.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivatePCA
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> pca = PrivatePCA(n_components=1, rho=1).fit(people)
    >>> pca.components_.round(1)
    array([[0.8, 0.6]])
    >>> pca.transform(people).shape
    (50000, 1)
    """

    def __init__(
        self,
        n_components: float | None = None,
        *,
        rho: Number | None = None,
        mu: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        method: str = "whitening",
        contamination: float = 0.0,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        rng: np.random.Generator | None = None,
        release_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            rho=rho, mu=mu, epsilon=epsilon, delta=delta, method=method, contamination=contamination,
            ledger=ledger, dataset=dataset, rng=rng, release_options=release_options,
        )  # fmt: skip
        self.n_components = n_components

    def _check_parameters(self, n_features: int) -> None:
        if self.n_components is not None and not self._is_share:
            count(self.n_components, "n_components", at_most=n_features)

    @property
    def _is_share(self) -> bool:
        return isinstance(self.n_components, float) and 0 < self.n_components < 1

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        found = made.pca(None, features, standardize=False)
        shares = np.array(found.explained)
        kept = len(shares)
        if self._is_share:
            # The first sum that reaches it; the last may miss 1 by rounding.
            kept = min(int((np.cumsum(shares) < self.n_components).sum()) + 1, kept)
        elif self.n_components is not None:
            kept = int(self.n_components)
        self.components_ = np.array(found.directions)[:kept]
        self.explained_variance_ = np.array(found.variances)[:kept]
        self.explained_variance_ratio_ = shares[:kept]
        self.mean_ = np.array(made.mean(features))
        self.n_components_ = len(self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @np.errstate(all="ignore")
    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows along the components."""
        return np.asarray((self._read_new(X) - self.mean_) @ self.components_.T)

    @np.errstate(all="ignore")
    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that have these coordinates."""
        check_is_fitted(self)
        coordinates = to_matrix(read_rows(X))
        if coordinates.shape[1] != self.n_components_:
            raise ArgumentError(f"X must have {self.n_components_} columns, got {coordinates.shape[1]}.")
        return np.asarray(coordinates @ self.components_ + self.mean_)
