"""A private covariance matrix in the place of scikit-learn's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted

from dpcov.arrays import Array
from dpcov.learn._base import FeaturesOnly
from dpcov.released import Release


class PrivateCovariance(FeaturesOnly, EmpiricalCovariance):
    """Covariance and mean of a sensitive table, in the place of ``sklearn.covariance.EmpiricalCovariance``.

    Takes the parameters of every private estimator: `rho`, `mu`, or `epsilon` and `delta`; `method`,
    `contamination`, `ledger`, `dataset`, `rng`, `release_options` (``docs/learn.md``).

    Attributes
    ----------
    covariance_ : ndarray, shape (n_features, n_features)
        Positive semidefinite; a mean over rows, not divided by n - 1.
    location_ : ndarray, shape (n_features,)
        The private means of the features.
    precision_ : ndarray, shape (n_features, n_features)
        The inverse of the covariance. Asking for it raises an `UnresolvedError` if a combination of
        columns is below the noise: no pseudo-inverse would make sense then.
    release_ : Release
        For any other linear question.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for tables of the same
    public size that differ in one row; attributes are post-processing. `score` and `mahalanobis` are plain
    functions of the rows they get: what they tell about sensitive rows is not private.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateCovariance
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> PrivateCovariance(rho=1).fit(people).covariance_.round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    """

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        self.covariance_ = np.array(made.covariance(features))
        self.location_ = np.array(made.mean(features))
        self._features = tuple(features)

    @property
    def precision_(self) -> Array:
        """The inverse of the covariance."""
        check_is_fitted(self)
        return np.array(self.release_.precision(self._features))

    def get_precision(self) -> Array:
        """Return `precision_`, as scikit-learn's covariances do."""
        return self.precision_

    @np.errstate(all="ignore")
    def mahalanobis(self, X: Any) -> Array:
        """Return the squared Mahalanobis distance of rows to the mean; NaN for a row with a missing value."""
        centred = self._read_new(X) - self.location_
        return np.asarray(np.einsum("ij,ij->i", centred @ self.precision_, centred))

    @np.errstate(all="ignore")
    def score(self, X_test: Any, y: Any = None) -> float:  # noqa: ARG002
        """Return the mean log-likelihood of the complete rows under the normal law with these moments."""
        distances = self.mahalanobis(X_test)
        complete = np.isfinite(distances)
        mean = distances[complete].sum() / complete.sum()
        logarithm = np.linalg.slogdet(self.precision_)[1]
        return float((logarithm - mean - self.n_features_in_ * np.log(2 * np.pi)) / 2)
