"""The release: one private matrix that answers any linear question, and the function that makes it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpcov._version import VERSION
from dpcov.arrays import Array
from dpcov.checks import count, flag
from dpcov.core import ArgumentError, Number, Receipt
from dpcov.laws import LossLaw, NoiseLaw
from dpcov.ledger import Ledger
from dpcov.linear import Answer, Combination, Components, Questions, Regression, Spectrum, Whitening
from dpcov.linear.components import principal_components, spectrum
from dpcov.linear.frames import html_table
from dpcov.linear.regression import regress
from dpcov.methods import find_method, methods
from dpcov.opening import opened


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A private second-moment matrix with its account, ready for any linear question.

    Every answer is post-processing: it costs no budget, and is as private as the release. Numbers come
    with standard errors and intervals for the answer that the raw rows would give; with
    ``sampling=True``, for that of the population the rows were drawn from, if it is normal. Means,
    covariances and regressions are those of the complete rows: one with a missing value is left out.

    Attributes
    ----------
    columns : tuple of str
        The table's columns, without the constant one.
    n_rows : int
        The public number of rows.
    method : str
        The name of the method that made it.
    options : mapping
        What the method was told.
    receipt : Receipt
        What was spent, on what.
    diagnostics : mapping
        Facts from public parameters and private answers only.
    intercept : bool
        Whether the matrix has a last row and column for the constant.
    noise : NoiseLaw, optional
        The law of the noise in the matrix.
    losses : tuple of LossLaw
        What shrinking long rows took away; empty where that is not known.
    versions : mapping
        Of dpcov, numpy and Python, at the time of the release.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> made.columns
    ('height', 'weight')
    >>> made.mean().values.round()
    array([170.,  62.])
    >>> print(made.receipt.spent)
    rho=1
    """

    columns: tuple[str, ...]
    n_rows: int
    method: str
    options: Mapping[str, Any]
    receipt: Receipt
    diagnostics: Mapping[str, Any]
    intercept: bool
    noise: NoiseLaw | None
    losses: tuple[LossLaw, ...]
    versions: Mapping[str, str]
    _matrix: Array

    @cached_property
    def _questions(self) -> Questions:
        return Questions(
            self.columns, self.n_rows, self._matrix, self.noise, self.losses, _rows_beyond(self.diagnostics)
        )

    @property
    def unresolved(self) -> tuple[Combination, ...]:
        """The independent combinations of columns that lie below the noise, each with a bound on its size.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 0] - 2 * people[:, 1]])
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight", "excess"])
        >>> [str(combination) for combination in made.unresolved]
        ['weight + 0.5 excess - 0.5 height']
        """
        return self._questions.unresolved

    @property
    def resolved(self) -> int | None:
        """How many independent combinations of columns stand above the noise.

        All but those in `unresolved`; None where the law of the noise is not known.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 0] - 2 * people[:, 1]])
        >>> dpcov.release(people, rho=1, columns=["height", "weight", "excess"]).resolved
        2
        """
        return self._questions.resolved

    def second_moment(self, *, sampling: bool = False) -> Answer:
        """Return the mean of ``x x^T`` over the rows; with an intercept, its column is the last.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> moment = made.second_moment()
        >>> moment.labels[0]
        ('height', 'weight', 'constant')
        >>> moment.values[2].round()
        array([170.,  62.,   1.])
        """
        return self._questions.second_moment(sampling=sampling)

    def mean(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the means.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.mean().values.round()
        array([170.,  62.])
        >>> lower, upper = made.mean(["weight"]).interval()
        >>> bool(61 < lower[0] < upper[0] < 63)
        True
        """
        return self._questions.mean(columns, sampling=sampling)

    def variance(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the variances (the mean over rows, not divided by n - 1).

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.variance(["height"]).values.round(-1)
        array([100.])
        """
        return self._questions.variance(columns, sampling=sampling)

    def covariance(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the covariance matrix (the mean over rows, not divided by n - 1); positive semidefinite.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.covariance().values.round(-1)
        array([[100.,  60.],
               [ 60.,  60.]])
        """
        return self._questions.covariance(columns, sampling=sampling)

    def correlation(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the correlations; NaN, and a note, for a column whose own variance is within the noise.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.correlation().values.round(1)
        array([[1. , 0.8],
               [0.8, 1. ]])
        """
        return self._questions.correlation(columns, sampling=sampling)

    def precision(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the inverse of the covariance.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.precision().values.round(2)
        array([[ 0.02, -0.02],
               [-0.02,  0.04]])
        """
        return self._questions.precision(columns, sampling=sampling)

    def partial_correlation(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the correlation of each pair of columns, given all the others.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 1] + np.random.default_rng(1).normal(size=50_000)])
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight", "next year's weight"])
        >>> np.abs(made.partial_correlation().values[0]).round(1)
        array([1. , 0.1, 0. ])
        """
        return self._questions.partial_correlation(columns, sampling=sampling)

    def regress(
        self, target: str, on: Sequence[str], *, ridge: float = 0.0, sampling: bool = False
    ) -> Regression:
        """Explain one column by others, by least squares.

        Parameters
        ----------
        target : str
            The column to explain.
        on : sequence of str
            The columns that explain it. With an intercept in the release, the constant joins them.
        ridge : float, default 0
            Penalty on squared coefficients, each times its column's variance: no unit, no scaling needed.
        sampling : bool, default False
            Whether errors include sampling error as well.

        Returns
        -------
        Regression

        Raises
        ------
        UnresolvedError
            If a combination of the predictors is below the noise, and `ridge` is 0.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> fit = made.regress("weight", on=["height"])
        >>> fit.coefficients.labels
        (('height', 'constant'),)
        >>> fit.coefficients.values[:1].round(1)
        array([0.6])
        >>> fit.predict([[180.0]]).round()
        array([68.])
        """
        return regress(self._questions, target, on, ridge, sampling=sampling)

    def pca(
        self,
        n_components: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        sampling: bool = False,
    ) -> Components:
        """Return the principal components of the covariance, largest first.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> found = made.pca(1)
        >>> found.directions.values.round(1)
        array([[0.8, 0.6]])
        >>> found.explained.values.round(1)
        array([0.9])
        """
        return principal_components(self._questions, n_components, columns, sampling=sampling)

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
        values = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        if values.ndim != 2 or values.shape[1] != len(whitening.columns):
            raise ArgumentError(
                f"rows must have {len(whitening.columns)} columns ({', '.join(whitening.columns)}), "
                f"got shape {np.shape(rows)}."
            )
        return np.asarray(np.linalg.norm(whitening.transform(values), axis=1))

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
        mean, covariance = self.mean(columns).values, self.covariance(columns).values
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        generator = np.random.default_rng() if rng is None else rng
        return np.asarray(mean + generator.standard_normal((size, len(mean))) @ root.T)

    def save(self, path: str | Path) -> None:
        """Write the release to one file that needs neither dpcov nor pickle to be read.

        A zip of CSV matrices and a JSON manifest; ``docs/release.md`` describes it. The same release gives
        the same bytes.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.save("people.dpcov")
        >>> dpcov.load("people.dpcov").columns
        ('height', 'weight')
        """
        from dpcov.artefact import save_release  # noqa: PLC0415 - the artefact knows releases, not they it

        save_release(self, path)

    def _facts(self) -> list[str]:
        spent = f"spent {self.receipt.spent}" + ("" if self.receipt.private else " - NOT PRIVATE (seeded)")
        vetted = any(known.name == self.method and known.vetted for known in methods())
        unvetted = "" if vetted else " (UNVETTED)"
        facts = [
            f"{self.n_rows} rows, {len(self.columns)} columns",
            f"method '{self.method}'{unvetted}",
            spent,
        ]
        if self.resolved is not None:
            error = self.diagnostics.get("predicted_error")
            each = f", each within {error:.1%}" if self.resolved and error is not None else ""
            facts.append(f"{self.resolved} of {len(self.columns)} directions resolved{each}")
        return facts

    def __repr__(self) -> str:
        return f"<dpcov release: {', '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        lines = [[column, ""] for column in self.columns]
        return html_table("dpcov release: " + ", ".join(self._facts()), ["column", ""], lines, [])


def release(
    data: Any,
    *,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    columns: Sequence[str] | None = None,
    method: str = "whitening",
    intercept: bool = True,
    allow_unvetted: bool = False,
    rng: np.random.Generator | None = None,
    progress: bool | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    allow_seeded: bool = False,
    **options: Any,
) -> Release:
    """Release the second-moment matrix of a table under differential privacy.

    Parameters
    ----------
    data : array, dataframe or path
        A two-dimensional numpy array; a pandas, polars or pyarrow table; a path, pattern or list of
        Parquet, Arrow or CSV files, or a ``pyarrow.dataset``, streamed; a lazy polars frame; a Dask
        dataframe or array; a Spark dataframe. A row with a missing or infinite value counts as a row
        of zeros. Types are public and must not depend on rows: one cell of text makes a pandas column
        ``object``, which an error would tell.
    epsilon, delta : float, optional
        The budget as (epsilon, delta)-differential privacy.
    mu : float, optional
        The budget in Gaussian differential privacy, instead of `epsilon`, for methods whose noise is all
        Gaussian: who knows every other row and two candidates for one guesses right at most Phi(mu / 2) of
        the time.
    rho : float, optional
        The budget in zero-concentrated differential privacy, instead of `epsilon`.
    columns : sequence of str, optional
        Which columns to use; for an array, their names. CSV files need it.
    method : str, default "whitening"
        One of ``dpcov.methods()``.
    intercept : bool, default True
        Whether a constant column joins the table, which makes means and covariances available.
    allow_unvetted : bool, default False
        Whether a method may run whose guarantee holds for real numbers but not to the last bit.
    rng : numpy.random.Generator, optional
        For tests only: noise from a seeded generator, which makes the release NOT private.
    progress : bool, optional
        Whether to show a bar for each scan of the rows; by default only on a terminal.
    ledger : Ledger or path, optional
        The ledger that pays: all that may be spent is charged there before any noise is drawn.
    dataset : str, optional
        The name that the ledger keeps this table's budget under.
    purpose : str, optional
        What the release is for, for the ledger's history.
    allow_seeded : bool, default False
        Whether `rng` may be used with a ledger. The charge is then marked as not private.
    **options
        What the method takes, such as `radius`.

    Returns
    -------
    Release

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP, `mu`-GDP or `rho`-zCDP, for tables of the same public size
    that differ in one row. Column names, dtypes and the number of rows are public.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, epsilon=1, delta=1e-6, columns=["height", "weight"])
    >>> made.covariance().values.round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    >>> made.receipt.epsilon(1e-6) <= 1
    True
    """
    flag(intercept, "intercept")
    chosen = find_method(method)
    chosen.check_consent(allow_unvetted=allow_unvetted)
    limit = chosen.limit(options, rho=rho, mu=mu, epsilon=epsilon, delta=delta)
    with opened(
        data, limit, method, constant=intercept, columns=columns, rng=rng, progress=progress,
        ledger=ledger, dataset=dataset, purpose=purpose, allow_seeded=allow_seeded,
    ) as curator:  # fmt: skip
        estimate = chosen.run(curator, options, allow_unvetted=allow_unvetted)
    return Release(
        columns=curator.columns,
        n_rows=curator.n_rows,
        method=chosen.name,
        options=dict(options),
        receipt=curator.receipt(),
        diagnostics=estimate.diagnostics,
        intercept=intercept,
        noise=estimate.noise,
        losses=estimate.losses,
        versions={"dpcov": VERSION, "numpy": np.__version__, "python": platform.python_version()},
        _matrix=estimate.second_moment,
    )


def second_moment(data: Any, **arguments: Any) -> Array:
    """Return a private second-moment matrix: `release` without an intercept, as an array.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> dpcov.second_moment(people - [170, 62], rho=1).round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    """
    return np.array(_private_release(data, intercept=False, **arguments).second_moment())


def covariance(data: Any, **arguments: Any) -> Array:
    """Return a private covariance matrix: that of `release`, as an array.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> dpcov.covariance(people, rho=1).round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    """
    return np.array(_private_release(data, **arguments).covariance())


def _private_release(data: Any, **arguments: Any) -> Release:
    if arguments.get("rng") is not None:
        raise ArgumentError(
            "rng makes a release that is not private, and an array cannot say so; "
            "give rng to dpcov.release, and ask that for the matrix."
        )
    return release(data, **arguments)


def _rows_beyond(diagnostics: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note if rows lie beyond the region of a release and no law tells what they took with them."""
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping) or beyond.get("explained") is not False:
        return ()
    about, at_most = float(beyond["about"]), float(beyond["at_most"])
    note = (
        f"About {about:.0f} rows, at most {at_most:.0f}, lie beyond the region that rows were clipped to. "
        "They can move this answer by more than its interval says."
    )
    return (note,)
