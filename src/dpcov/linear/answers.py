"""What a release answers: numbers with names, standard errors and intervals."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.linear.frames import html_table, make_frame, number, text_table
from dpcov.linear.uncertainty import ErrorLaw, Response

_MOST_COLUMNS = 8


class Interval(NamedTuple):
    """Lower and upper bounds, arrays of the shape of the answer.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> lower, upper = made.mean().interval(0.99)
    >>> bool((lower < upper).all())
    True
    """

    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A vector or matrix of numbers, with names and the law of their error.

    ``numpy.asarray(answer)`` gives the numbers.

    Attributes
    ----------
    name : str
        The question that was asked.
    values : ndarray
        The numbers, read-only.
    labels : tuple of tuple of str
        The names of the entries along each dimension.
    sampling : bool
        Whether errors include that the rows are a sample of a population.
    notes : tuple of str
        What should be known about these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> answer = made.mean()
    >>> answer.labels
    (('height', 'weight'),)
    >>> answer.values.round()
    array([170.,  62.])
    >>> answer.differs_from_zero()
    array([ True,  True])
    >>> bool((answer.standard_error < 0.1).all())
    True
    """

    name: str
    values: Array
    labels: tuple[tuple[str, ...], ...]
    sampling: bool
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    limits: tuple[float, float] = field(default=(-math.inf, math.inf), kw_only=True)
    _given: Response | Callable[[], Response] = field(kw_only=True)
    _law: ErrorLaw = field(kw_only=True)

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @cached_property
    def _response(self) -> Response:
        return self._given if isinstance(self._given, Response) else self._given()

    @property
    def standard_error(self) -> Array:
        """Half the width of the central 68.3% interval: the standard deviation where the law is normal."""
        return self._law.standard_error(self._response, sampling=self.sampling)

    def interval(self, level: float = 0.95) -> Interval:
        """Return bounds that hold the answer of the raw rows with probability `level`, each on its own.

        If the question was asked with ``sampling=True``: the answer of the population.
        """
        bounds = self._law.interval(self.values, self._response, level, sampling=self.sampling)
        lower, upper = (np.clip(bound, *self.limits) for bound in bounds)
        return Interval(
            np.where(np.isnan(lower), self.limits[0], lower), np.where(np.isnan(upper), self.limits[1], upper)
        )

    def differs_from_zero(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Return where the interval leaves zero out; False where there is no answer."""
        return self._law.excludes_zero(self.values, self._response, level, sampling=self.sampling)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe: for a vector with its errors and intervals, for a matrix the numbers.

        pandas if it is installed, else polars.
        """
        if self.values.ndim == 1:
            lower, upper = self.interval(level)
            columns = {"estimate": self.values, "standard_error": self.standard_error}
            return make_frame({**columns, "lower": lower, "upper": upper}, self.labels[0])
        return make_frame(dict(zip(self.labels[1], self.values.T, strict=True)), self.labels[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        if copy is False:
            return np.asarray(self.values, dtype=dtype)
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __float__(self) -> float:
        return float(self.values.item())

    def __repr__(self) -> str:
        head, lines, notes = self._table()
        return "\n".join([self.name, text_table(head, lines), *notes])

    def _repr_html_(self) -> str:
        head, lines, notes = self._table()
        return html_table(self.name, head, lines, notes)

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        if self.values.ndim == 1:
            lower, upper = self.interval()
            numbers = np.column_stack([self.values, self.standard_error, lower, upper])
            head = ["", "estimate", "standard error", "lower 95%", "upper 95%"]
            notes = [*self.notes]
        else:
            numbers = self.values[:, :_MOST_COLUMNS]
            head = ["", *self.labels[1][:_MOST_COLUMNS]]
            hidden = self.values.shape[1] - _MOST_COLUMNS
            notes = [f"... and {hidden} more columns"] if hidden > 0 else []
            notes += [*self.notes, "standard errors: .standard_error, intervals: .interval()"]
        lines = [[label, *map(number, row)] for label, row in zip(self.labels[0], numbers, strict=True)]
        return head, lines, notes


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """Least squares of one column on others.

    Attributes
    ----------
    target : str
        The column that is explained.
    on : tuple of str
        The columns that explain it.
    ridge : float
        The penalty on squared coefficients: what was asked for, or what ``ridge="auto"`` found; infinite if
        it left all slopes at 0. Intervals are for the coefficients that the raw rows give under this penalty.
    coefficients : Answer
        One for each predictor, and last the intercept if the release has a constant.
    residual_variance : Answer
        Mean square of what is left unexplained.
    r_squared : Answer
        The share of the target's variance that is explained.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> fit = made.regress("weight", on=["height"])
    >>> fit.coefficients.values[:1].round(1)
    array([0.6])
    >>> round(float(fit.r_squared), 1)
    0.6
    """

    target: str
    on: tuple[str, ...]
    ridge: float
    coefficients: Answer
    residual_variance: Answer
    r_squared: Answer

    def predict(self, rows: Any) -> Array:
        """Return the prediction for rows of the predictors, shape (n, len(on))."""
        values = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        slopes = self.coefficients.values
        constant = slopes[-1] if len(slopes) > len(self.on) else 0.0
        return np.asarray(values @ slopes[: len(self.on)] + constant)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return the coefficients with their errors and intervals as a dataframe."""
        return self.coefficients.to_frame(level)

    def _summary(self) -> list[str]:
        spread = math.sqrt(max(float(self.residual_variance), 0.0))
        fit = f"residual sd {number(spread)}, R squared {number(float(self.r_squared))}"
        return [fit, *(note for note in self.r_squared.notes if note not in self.coefficients.notes)]

    def __repr__(self) -> str:
        return "\n".join([repr(self.coefficients), *self._summary()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self._summary())
        return self.coefficients._repr_html_() + lines


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """Principal components of the covariance.

    Attributes
    ----------
    variances : Answer
        The variance of each component, largest first.
    explained : Answer
        Its share of the total variance.
    directions : Answer
        One component a line; the coefficient of largest size is positive.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> found = made.pca()
    >>> found.directions.labels
    (('PC1', 'PC2'), ('height', 'weight'))
    >>> found.variances.values.round(-1)
    array([140.,  20.])
    """

    variances: Answer
    explained: Answer
    directions: Answer

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe: variances with their intervals, shares and directions, one component a line."""
        lower, upper = self.variances.interval(level)
        columns = {
            "variance": self.variances.values,
            "lower": lower,
            "upper": upper,
            "explained": self.explained.values,
        }
        directions = dict(zip(self.directions.labels[1], self.directions.values.T, strict=True))
        return make_frame({**columns, **directions}, self.variances.labels[0])

    def __repr__(self) -> str:
        return f"{self.variances!r}\n{self.directions!r}"

    def _repr_html_(self) -> str:
        return self.variances._repr_html_() + self.directions._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Eigenvalues of the correlation matrix, and how large noise alone would make them.

    Attributes
    ----------
    columns : tuple of str
        Those that stand above the noise by themselves.
    eigenvalues : Answer
        Largest first. They are the variances of uncorrelated combinations of standardised columns.
    floor : ndarray
        For each, what it must exceed to stand above the noise; NaN where the law of the noise is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> found = made.spectrum()
    >>> found.columns
    ('height', 'weight')
    >>> found.eigenvalues.values.round(1)
    array([1.8, 0.2])
    """

    columns: tuple[str, ...]
    eigenvalues: Answer
    floor: Array

    def __repr__(self) -> str:
        return repr(self.eigenvalues)


@dataclass(frozen=True, eq=False)
class Whitening:
    """A map to coordinates in which the table has mean zero and the identity as covariance.

    Attributes
    ----------
    columns : tuple of str
        The columns of the rows that it takes.
    mean : ndarray, shape (d,)
        Subtracted from the rows first.
    matrix : ndarray, shape (d, d)
        The symmetric inverse root of the covariance.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> whitening = made.whiten()
    >>> whitening.transform([[170, 62]]).round(1) + 0.0
    array([[0., 0.]])
    """

    columns: tuple[str, ...]
    mean: Array
    matrix: Array

    def transform(self, rows: Any) -> Array:
        """Return rows of these columns in white coordinates."""
        return np.asarray((np.atleast_2d(np.asarray(rows, dtype=np.float64)) - self.mean) @ self.matrix.T)
