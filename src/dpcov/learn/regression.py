"""Private least squares, plain and with a penalty."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from dpcov.arrays import Array
from dpcov.checks import flag, positive
from dpcov.core import Number, UnresolvedError
from dpcov.learn._base import PrivateEstimator, chosen_features
from dpcov.ledger import Ledger
from dpcov.linear.columns import find_column
from dpcov.linear.penalties import ADVICE
from dpcov.released import Release
from dpcov.sources.sklearn_rows import names_of, read_target, unused_name, with_target


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):
    """Least squares on a sensitive table.

    Parameters
    ----------
    fit_intercept : bool, default True
        Whether there is an intercept; without, predictions are zero where all features are.
    rho, mu, epsilon, delta, method, contamination, ledger, dataset, rng, release_options
        As for every private estimator (``docs/learn.md``).

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        The slope of each feature.
    intercept_ : float
        The prediction where all features are zero.
    regression_ : Regression
        The same with standard errors and intervals.
    target_ : str
        What the target is called in the release: the name of `y`, or "target".
    release_ : Release
        For any other linear question about the features and the target.
    receipt_ : Receipt
        The budget that `fit` spent, query by query.

    Notes
    -----
    *Formal guarantee.* Each `fit` is `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for tables of the same
    public size that differ in one row, where the target is part of the row; attributes are post-processing.
    `predict` and `score` are plain functions of the rows they get: a score on sensitive rows is not private.

    Weights of rows are not supported: they would have to be public, and change what one row can do.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateLinearRegression
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> fit = PrivateLinearRegression(rho=1).fit(people[:, :1], people[:, 1])
    >>> fit.coef_.round(1), round(fit.intercept_)
    (array([0.6]), -40)
    >>> fit.predict([[180.0]]).round()
    array([68.])
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
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
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Release the second moment of `X` and `y` together and regress; this spends the budget.

        Parameters
        ----------
        X : array or dataframe, shape (n_samples, n_features)
            A row with a missing or infinite value, here or in `y`, counts as a row of zeros, and is left out.
        y : array or series, shape (n_samples,)
            The target; it joins the table as a column.
        groups : array or series, shape (n_samples,), optional
            Whose each row is: all rows of a person are then protected together.

        Returns
        -------
        self

        Raises
        ------
        UnresolvedError
            If noise would make predictions worse than the mean, mostly as a combination of the features is
            below the noise. The budget is spent then, and the release kept as ``release_``;
            ``PrivateRidge.from_release`` can use it.
        """
        rows = self._read_for_fit(X)
        target, wanted = read_target(y, len(rows))
        self._penalty()
        names = names_of(rows)
        self.target_ = unused_name(wanted, names)
        table, columns = with_target(rows, target, self.target_)
        return self._fit_table(table, columns, names, groups)

    @classmethod
    def from_release(
        cls, release: Release, *, target: str, columns: Sequence[str] | None = None, **parameters: Any
    ) -> Self:
        """Return a fitted regression made of a release; no data is touched, nothing is spent.

        Parameters
        ----------
        release : Release
            With an intercept.
        target : str
            The column to explain.
        columns : sequence of str, optional
            The features; all other columns by default.
        **parameters
            Of the estimator.
        """
        estimator = cls(**parameters)
        estimator._penalty()
        features = chosen_features(release, columns)
        find_column(release.columns, target, "target")
        if columns is None:
            features = [name for name in features if name != target]
        estimator.target_ = target
        return estimator._adopt_columns(release, features)

    def _penalty(self) -> float | str:
        """Return the penalty, checked before anything is spent."""
        flag(self.fit_intercept, "fit_intercept")
        return 0.0

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        try:
            found = made.regress(self.target_, features, intercept=self.fit_intercept, ridge=self._penalty())
        except UnresolvedError as error:
            advice = "leave one of these columns out, or use PrivateRidge"
            raise UnresolvedError(str(error).replace(ADVICE, advice)) from None
        self.regression_ = found
        self.coef_ = found.slopes.values.copy()
        self.intercept_ = found.intercept

    @np.errstate(all="ignore")
    def predict(self, X: Any) -> Array:
        """Return the predictions for new rows; NaN for a row with a missing value."""
        return np.asarray(self._read_new(X) @ self.coef_ + self.intercept_)

    @np.errstate(all="ignore")
    def score(self, X: Any, y: Any) -> float:
        """Return R squared on the complete rows; not private. Weights are not supported."""
        predicted = self.predict(X)
        wanted = read_target(y, len(predicted))[0]
        complete = np.isfinite(predicted) & np.isfinite(wanted)
        wanted, left = wanted[complete], (wanted - predicted)[complete]
        centred = wanted - wanted.sum() / complete.sum()
        return float(1 - np.square(left).sum() / np.square(centred).sum())


class PrivateRidge(PrivateLinearRegression):
    """Least squares with a penalty on a sensitive table: also for features that nearly repeat each other.

    Parameters
    ----------
    alpha : float or "auto", default "auto"
        Penalty on squared coefficients, each times its column's variance, as `ridge` in ``Release.regress``:
        no unit, no scaling needed. On columns of variance 1 it is ``sklearn.linear_model.Ridge`` with
        `alpha` times ``n_samples``. "auto" takes the one with which predictions are expected to be best, by
        the law of the noise; ``regression_.ridge`` tells which.
    fit_intercept : bool, default True
        Whether there is an intercept.
    rho, mu, epsilon, delta, method, contamination, ledger, dataset, rng, release_options
        As for every private estimator (``docs/learn.md``).

    See Also
    --------
    PrivateLinearRegression : for the attributes.

    Notes
    -----
    *Formal guarantee.* As for `PrivateLinearRegression`. To compare penalties, make one release and use
    `from_release` with each: a search that refits spends the budget every time.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.learn import PrivateRidge
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> PrivateRidge(alpha=1.0, rho=1).fit(people[:, :1], people[:, 1]).coef_.round(1)
    array([0.3])
    >>> PrivateRidge(rho=1).fit(people[:, :1], people[:, 1]).coef_.round(1)
    array([0.6])
    """

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        fit_intercept: bool = True,
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
            fit_intercept=fit_intercept, rho=rho, mu=mu, epsilon=epsilon, delta=delta, method=method,
            contamination=contamination, ledger=ledger, dataset=dataset, rng=rng,
            release_options=release_options,
        )  # fmt: skip
        self.alpha = alpha

    def _penalty(self) -> float | str:
        flag(self.fit_intercept, "fit_intercept")
        return "auto" if self.alpha == "auto" else positive(self.alpha, "alpha")
