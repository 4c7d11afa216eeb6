"""A private whitening map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from dpcov.arrays import Array
from dpcov.learn._base import FeaturesOnly
from dpcov.released import Release


class PrivateWhitener(OneToOneFeatureMixin, TransformerMixin, FeaturesOnly):
    """Bring a table to mean zero and the identity as covariance, each column staying itself as far as it can.

    Takes the parameters of every private estimator: `rho`, `mu`, or `epsilon` and `delta`; `method`,
    `contamination`, `ledger`, `dataset`, `rng`, `release_options` (``docs/learn.md``).

    Attributes
    ----------
    whitening_ : ndarray, shape (n_features, n_features)
        The symmetric inverse root of the correlation, times one over the standard deviations.
    mean_ : ndarray, shape (n_features,)
        The private means of the features.
    release_ : Release
        For any other linear question.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for tables of the same
    public size that differ in one row; attributes are post-processing. `transform` is a plain function of the
    rows it gets: sensitive rows stay sensitive.

    A combination of columns that is below the noise cannot be made white: `fit` raises an
    `UnresolvedError` that names it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateWhitener
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> np.cov(PrivateWhitener(rho=1).fit_transform(people).T).round(1) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        found = made.whiten(features)
        self.whitening_ = found.matrix
        self.mean_ = found.mean

    @np.errstate(all="ignore")
    def transform(self, X: Any) -> Array:
        """Return rows in white coordinates."""
        return np.asarray((self._read_new(X) - self.mean_) @ self.whitening_.T)
