"""What all private estimators share: one release a fit, the warning of refits, the way from a release."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpcov.arrays import Array
from dpcov.core import ArgumentError, Number, UnresolvedError
from dpcov.learn._pipelines import warn_of_earlier_steps
from dpcov.ledger import Ledger
from dpcov.linear.columns import find_columns
from dpcov.release import release
from dpcov.released import Release
from dpcov.sources.sklearn_rows import Rows, check_enough_rows, default_names, names_of, read_rows, to_matrix

_OF_THE_TABLE = {"n_features_in_", "feature_names_in_", "target_"}


class RefitWarning(UserWarning):
    """A budget is about to be spent again: an estimator is refitted, or a clone of one is fitted."""


class PrivateEstimator(BaseEstimator):
    """Base of the private estimators; not for use on its own.

    Parameters
    ----------
    rho : float, optional
        The budget of each fit in zero-concentrated differential privacy.
    mu : float, optional
        The budget in Gaussian differential privacy, instead of `rho`.
    epsilon, delta : float, optional
        The budget as (epsilon, delta)-differential privacy, instead of `rho`.
    method : str, default "whitening"
        One of ``dpcov.methods()``.
    contamination : float, default 0
        The largest share of outliers to drop.
    ledger : Ledger or path, optional
        The ledger that pays for each fit.
    dataset : str, optional
        The name that the ledger keeps this table's budget under.
    rng : numpy.random.Generator, optional
        For tests only: seeded noise, which is NOT private. Each fit starts from a copy, and so repeats.
    release_options : mapping, optional
        Further arguments of ``dpcov.release``, such as ``{"radius": 10.0}`` for the method "gaussian".
    """

    def __init__(
        self,
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
        self.rho = rho
        self.mu = mu
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.contamination = contamination
        self.ledger = ledger
        self.dataset = dataset
        self.rng = rng
        self.release_options = release_options

    def _learn(self, made: Release, features: Sequence[str]) -> None:
        """Set the fitted attributes from a release: post-processing."""
        raise NotImplementedError

    def _read_for_fit(self, X: Any) -> Rows:
        rows = read_rows(X)
        check_enough_rows(rows)
        validate_data(self, X, skip_check_array=True)
        return rows

    def _read_new(self, X: Any) -> Array:
        """Return new rows as an array, after the checks of names and numbers of features."""
        check_is_fitted(self)
        rows = read_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return to_matrix(rows)

    def _fit_table(self, table: Any, columns: Sequence[str], features: Sequence[str], groups: Any) -> Self:
        """Spend the budget on one release of `table`, whose rows belong to `groups`, and learn from it."""
        options = self._options()
        self._warn_of_refit()
        warn_of_earlier_steps(self, PrivateEstimator)
        made = release(
            table,
            rho=self.rho,
            mu=self.mu,
            epsilon=self.epsilon,
            delta=self.delta,
            columns=columns,
            method=self.method,
            # A fit must not change a parameter, as drawing from the generator would.
            rng=copy.deepcopy(self.rng),
            ledger=self.ledger,
            dataset=self.dataset,
            privacy_unit=groups,
            **options,
        )
        try:
            self._adopt(made, features)
        except UnresolvedError as error:
            error.add_note(f"What was released is kept as release_; it spent {made.receipt.spent}.")
            raise
        return self

    def _options(self) -> dict[str, Any]:
        """Return the further arguments of the release."""
        options = dict(self.release_options or {})
        own = {*self.get_params(deep=False), "data", "columns", "intercept", "privacy_unit"}
        twice = sorted(own & set(options))
        if twice:
            raise ArgumentError(
                f"release_options must not contain {', '.join(twice)}: the estimator sets that itself."
            )
        if self.contamination:
            options["contamination"] = self.contamination
        if self.ledger is not None:
            options.setdefault("purpose", f"{type(self).__name__}.fit")
        return options

    def _adopt(self, made: Release, features: Sequence[str]) -> None:
        """Become fitted by a release, and forget what was learned from an earlier one."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in _OF_THE_TABLE]:
            delattr(self, name)
        self._answered = False
        self.release_ = made
        self.receipt_ = made.receipt
        self._learn(made, features)
        self._answered = True

    def _adopt_columns(self, made: Release, features: Sequence[str]) -> Self:
        """Become fitted by a release, for some of its columns."""
        self.n_features_in_ = len(features)
        others = tuple(name for name in made.columns if name != getattr(self, "target_", None))
        # A table without names got x0, x1, ...: new rows need no names then.
        if all(names != default_names(len(names)) for names in (made.columns, others)):
            self.feature_names_in_ = np.array(features, dtype=object)
        self._adopt(made, features)
        return self

    def _warn_of_refit(self) -> None:
        given = {"rho": self.rho, "mu": self.mu, "epsilon": self.epsilon, "delta": self.delta}
        budget = ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
        if hasattr(self, "release_"):
            why = "was fitted before"
        elif getattr(self, "_is_clone", False):
            why = "is a clone, as cross-validation and searches make them"
        else:
            return
        warnings.warn(
            f"This {type(self).__name__} {why}: fitting it spends {budget or 'a budget'} again, and budgets "
            "add up. To use one release for many estimators, see from_release.",
            RefitWarning,
            stacklevel=4,
        )

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        made._is_clone = True
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return bool(getattr(self, "_answered", False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.rng is None
        return tags


class FeaturesOnly(PrivateEstimator):
    """Base of the estimators without a target."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:  # noqa: ARG002
        """Release the second moment of `X` and learn from it; this spends the budget.

        Parameters
        ----------
        X : array or dataframe, shape (n_samples, n_features)
            A row with a missing or infinite value counts as a row of zeros, and is left out of means and
            covariances.
        y : ignored
        groups : array or series, shape (n_samples,), optional
            Whose each row is: all rows of a person are then protected together.

        Returns
        -------
        self

        Raises
        ------
        UnresolvedError
            If what is asked for is below the noise. The budget is spent then, and the release kept
            as ``release_``.
        """
        rows = self._read_for_fit(X)
        names = names_of(rows)
        self._check_parameters(len(names))
        table = rows if isinstance(rows, np.ndarray) else rows.to_native()
        return self._fit_table(table, names, names, groups)

    @classmethod
    def from_release(
        cls, release: Release, *, columns: Sequence[str] | None = None, **parameters: Any
    ) -> Self:
        """Return a fitted estimator made of a release; no data is touched, nothing is spent.

        Parameters
        ----------
        release : Release
            With an intercept.
        columns : sequence of str, optional
            The features among its columns; all by default.
        **parameters
            Of the estimator.
        """
        estimator = cls(**parameters)
        features = chosen_features(release, columns)
        estimator._check_parameters(len(features))
        return estimator._adopt_columns(release, features)

    def _check_parameters(self, n_features: int) -> None:
        """Raise an `ArgumentError` before anything is spent."""


def chosen_features(made: Any, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of a release to use, all by default; it must have an intercept."""
    if not isinstance(made, Release):
        raise ArgumentError(f"release must be a dpcov release, got {type(made).__name__}.")
    if not made.intercept:
        raise ArgumentError("release has no constant column; release with intercept=True.")
    return [made.columns[i] for i in find_columns(made.columns, columns, "columns")]
