"""Models that can be asked of a release: regressions, components, white coordinates, synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import count
from dpcov.laws import square_root
from dpcov.linear.components import principal_components, spectrum
from dpcov.linear.fitted import Regression
from dpcov.linear.questions import Questions
from dpcov.linear.regression import regress
from dpcov.linear.spectra import Components, Spectrum, Whitening


class AsksModels:
    """What has a released matrix, and so answers with models. A part of ``dpcov.Release``."""

    @property
    def _questions(self) -> Questions:
        raise NotImplementedError

    def regress(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        intercept: bool = True,
        ridge: float | str | None = None,
        sampling: bool = False,
    ) -> Regression:
        """Explain one column by others, by least squares.

        Parameters
        ----------
        target : str
            The column to explain, or a formula such as ``"wage ~ educ + age"``, which needs the extra
            ``formula``. Its terms are columns of the release: interactions and powers if they were released
            as ``a:b`` and ``a^2``, categories as columns ``name[level]``, written ``C(name)``.
        on : sequence of str, optional
            The columns that explain it, if there is no formula.
        intercept : bool, default True
            Whether the constant joins them, if the release has one.
        ridge : float or "auto", optional
            Penalty on squared coefficients, each times its column's variance: no unit, no scaling needed.
            "auto" takes the one with which predictions on the raw rows are expected to be best, by the law of
            the noise. Intervals are then for the coefficients that the raw rows give under the same penalty.
            By default there is none, and where noise would make predictions worse than the mean, that of
            "auto", with a note. With 0 there is none, or an error.
        sampling : bool, default False
            Whether errors include sampling error as well.

        Returns
        -------
        Regression

        Raises
        ------
        UnresolvedError
            If `ridge` is 0, and noise would make predictions worse than the mean: mostly as a combination of
            the predictors is below the noise. One that hardly matters for the target is named in a note
            instead. By default only if no penalty helps: no slope stands above the noise, or one lies outside
            its own interval, as clipping took more of its column than it left.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> fit = made.regress("weight", on=["height"])
        >>> round(fit.coefficients["height"], 1)
        0.6
        >>> fit.predict({"height": [180.0]}).round()
        array([68.])
        >>> made.regress("weight ~ height").on
        ('height',)
        """
        return regress(self._questions, target, on, ridge, intercept=intercept, sampling=sampling)

    def pca(
        self,
        n_components: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        standardize: bool = True,
        sampling: bool = False,
    ) -> Components:
        """Return the principal components, largest first.

        Parameters
        ----------
        n_components : int, optional
            How many; all by default.
        columns : sequence of str, optional
            Of which columns; of all by default.
        standardize : bool, default True
            Whether each column is brought to a variance of 1 first, which makes them components of the
            correlation matrix. Without, a column with a large unit is a component by itself.
        sampling : bool, default False
            Whether errors include sampling error as well.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> found = made.pca(1)
        >>> found.directions.values.round(1)
        array([[0.7, 0.7]])
        >>> found.explained.values.round(1)
        array([0.9])
        >>> made.pca(1, standardize=False).directions.values.round(1)
        array([[0.8, 0.6]])
        """
        return principal_components(
            self._questions, n_components, columns, standardize=standardize, sampling=sampling
        )

    def spectrum(self, *, sampling: bool = False) -> Spectrum:
        """Return the eigenvalues of the correlation matrix with the noise floor.

        Without an intercept: of the second moment, its columns brought to a mean square of 1.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> found = made.spectrum()
        >>> found.eigenvalues.values.round(1)
        array([1.8, 0.2])
        >>> bool((found.eigenvalues.values > found.floor).all())
        True
        """
        return spectrum(self._questions, sampling=sampling)

    def whiten(self, columns: Sequence[str] | None = None) -> Whitening:
        """Return the map to coordinates with mean zero and the identity as covariance.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> np.cov(made.whiten().transform(people).T).round(1) + 0.0
        array([[1., 0.],
               [0., 1.]])
        """
        return self._questions.whitening(columns)

    def mahalanobis(self, rows: Any, columns: Sequence[str] | None = None) -> Array:
        """Return the Mahalanobis distance of rows (of `columns`, or of all) to the mean.

        Columns of a table are found by name, those of an array by their order.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.mahalanobis([[170, 62], [170, 72]]).round()
        array([0., 2.])
        """
        whitening = self.whiten(columns)
        return np.asarray(np.linalg.norm(whitening.transform(rows), axis=1))

    def sample(
        self, n: int, rng: np.random.Generator | None = None, columns: Sequence[str] | None = None
    ) -> Array:
        """Draw synthetic rows: normal, with the released mean and covariance.

        They are post-processing, as private as the release, and know nothing beyond mean and covariance.

        Parameters
        ----------
        n : int
            How many rows.
        rng : numpy.random.Generator, optional
            Where they are drawn from.
        columns : sequence of str, optional
            Of which columns; of all by default.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.sample(10_000, np.random.default_rng(1)).mean(axis=0).round()
        array([170.,  62.])
        """
        size = count(n, "n", at_least=0)
        mean, covariance = (
            self._questions.mean(columns, sampling=False).values,
            self._questions.covariance(columns, sampling=False).values,
        )
        generator = np.random.default_rng() if rng is None else rng
        return np.asarray(mean + generator.standard_normal((size, len(mean))) @ square_root(covariance).T)
