"""A regression as it is answered: coefficients, fit, tests, predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import choice
from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_columns
from dpcov.linear.inference import JointErrors, WaldTest, wald_test
from dpcov.linear.predicted import Predictions, residual_spread, row_index
from dpcov.linear.rows import read_rows
from dpcov.linear.summary import Summary
from dpcov.pictures import draw_intervals
from dpcov.tables import number

_OF_THE_RELEASE = (
    "Standard errors, p values and intervals cover privacy noise and clipping: how far estimates may be from "
    "those of the raw rows. They do not cover sampling error; sampling=True (or --sampling) adds it."
)
_LONG_TAILS = (
    "p values and intervals allow for the long tails of clipping errors; z, the estimate divided by its "
    "standard error, does not."
)
_OF_THE_POPULATION = (
    "Standard errors, p values and intervals cover sampling error, privacy noise and clipping: how far "
    "estimates may be from those of the population. They assume residuals with the same spread everywhere."
)


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """Least squares of one column on others.

    Attributes
    ----------
    target : str
        The column that is explained.
    on : tuple of str
        The columns that explain it.
    terms : mapping of str to tuple of str
        The terms of the formula and their columns; without a formula, each column by itself.
    ridge : float
        The penalty on squared coefficients: what was asked for, or what ``ridge="auto"`` found; infinite if
        it left all slopes at 0. Intervals are for the coefficients that the raw rows give under this penalty.
    coefficients : Answer
        One for each predictor, and last the intercept if there is one.
    residual_variance : Answer
        Mean square of what is left unexplained.
    r_squared : Answer
        The share of the target's variance that is explained; without an intercept, of its mean square.
    complete_rows : float
        About how many rows it rests on.
    spreads : ndarray
        The standard deviation of each predictor and of the target; without an intercept, root mean squares.
    untested : str
        Why coefficients cannot be tested, if so.
    references : tuple of str
        The first levels of categories among the predictors, which the others are compared with.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> fit = made.regress("weight", on=["height"])
    >>> round(fit.coefficients["height"], 1), round(fit.intercept, -1)
    (0.6, -40.0)
    >>> round(float(fit.r_squared), 1)
    0.6
    """

    target: str
    on: tuple[str, ...]
    terms: Mapping[str, tuple[str, ...]]
    ridge: float
    coefficients: Answer
    residual_variance: Answer
    r_squared: Answer
    complete_rows: float
    spreads: Array
    untested: str
    references: tuple[str, ...]
    _errors: JointErrors

    @property
    def intercept(self) -> float:
        """The prediction where all predictors are zero: 0 for a regression through the origin."""
        return float(self.coefficients.values[-1]) if self._has_intercept else 0.0

    @property
    def slopes(self) -> Answer:
        """The coefficients without the intercept."""
        return self.coefficients[list(self.on)]  # type: ignore[no-any-return]

    @property
    def _has_intercept(self) -> bool:
        return len(self.coefficients) > len(self.on)

    @property
    def _degrees(self) -> float:
        """The degrees of freedom that are left for residuals; NaN if none is."""
        left = self.complete_rows - len(self.coefficients)
        return left if left > 0 else math.nan

    @property
    def adjusted_r_squared(self) -> float:
        """R squared, corrected for how many predictors there are."""
        total = self.complete_rows - self._has_intercept
        return 1 - (1 - float(self.r_squared)) * total / self._degrees

    @property
    def covariance(self) -> Array:
        """The covariance of the coefficients' errors, in the order of `coefficients`.

        The errors are those of the intervals: noise, what clipping took, and sampling if asked with
        ``sampling=True``.
        """
        return self._errors.centre_and_covariance(self.coefficients)[1]

    def wald(self, columns: Sequence[str] | str) -> WaldTest:
        """Test that several coefficients are all zero.

        Parameters
        ----------
        columns : sequence of str, or str
            Predictors, or terms of the formula such as ``"C(origin)"``, whose columns are tested together.

        Returns
        -------
        WaldTest
            About the raw rows; with ``sampling=True``, about the population.
        """
        if self.untested:
            raise ArgumentError(f"coefficients of this regression cannot be tested: {self.untested}.")
        named = [columns] if isinstance(columns, str) else list(columns)
        names = [column for name in named for column in self.terms.get(name, (name,))]
        places = find_columns(self.on, names, "columns")
        return wald_test(self._errors, self.coefficients, [self.on[i] for i in places], places)

    def contrast(self, first: str, second: str) -> Answer:
        """Return how far the coefficient of one column is above that of another, with its interval.

        Of two levels of a category: what the target differs by between them. The first level of a category,
        which has no coefficient, may be either.
        """
        names = list(self.on)
        form = np.zeros(len(self.coefficients))
        for name, sign in ((first, 1.0), (second, -1.0)):
            choice(name, "contrast", [*names, *self.references], kind="column ")
            if name in names:
                form[names.index(name)] += sign
        title = f"{first} - {second}"
        return Answer(
            title, np.array([form @ self.coefficients.values]), ((title,),), self.coefficients.sampling,
            notes=self.coefficients.notes, _given=self._errors.response_along(form[None]),
            _law=self._errors.law,
        )  # fmt: skip

    def compare(self, smaller: Regression) -> WaldTest:
        """Test whether this regression explains more than one on some of its columns.

        The coefficients of the columns that the smaller one lacks are tested together.
        """
        extra = [name for name in self.on if name not in smaller.on]
        nested = (
            smaller.target == self.target
            and set(smaller.on) < set(self.on)
            and smaller._has_intercept == self._has_intercept
        )
        if not nested:
            raise ArgumentError(
                "the smaller model must be part of this one: the same target, and some of its columns."
            )
        return self.wald(extra)

    def predict(self, rows: Any) -> Array:
        """Return predictions for new rows: a table of the predictors, or an array in their order."""
        values = read_rows(rows, self.on)
        return np.asarray(values @ self.coefficients.values[: len(self.on)] + self.intercept)

    def prediction(self, rows: Any) -> Predictions:
        """Return predictions for new rows with intervals: of the mean, and of a new row."""
        values = read_rows(rows, self.on)
        forms = np.column_stack([values, np.ones(len(values))]) if self._has_intercept else values
        index = row_index(rows, len(values))
        mean = Answer(
            f"{self.target} predicted",
            forms @ self.coefficients.values,
            (tuple(map(str, index)),),
            self.coefficients.sampling,
            notes=self.coefficients.notes,
            _given=self._errors.response_along(forms),
            _law=self._errors.law,
        )
        spread = residual_spread(self.residual_variance) * math.sqrt(self.complete_rows / self._degrees)
        return Predictions(mean, spread, index)

    def summary(self, level: float = 0.95) -> Summary:
        """Return estimates, standard errors, z, p and intervals, with the fit and what the errors contain."""
        answer = self.coefficients
        errors = answer.standard_error
        unknown = np.full_like(errors, math.nan)
        scores = np.divide(answer.values, errors, out=unknown.copy(), where=errors > 0)
        tested = (unknown, unknown) if self.untested else (scores, answer.p_values())
        facts = [
            ("rows", f"about {self.complete_rows:,.0f}"),
            (
                "R squared" if self._has_intercept else "R squared (uncentred)",
                f"{float(self.r_squared):.4g}",
            ),
            ("adjusted", f"{self.adjusted_r_squared:.4g}"),
            ("residual sd", number(math.sqrt(max(float(self.residual_variance), 0.0)))),
        ]
        if self.ridge:
            facts.append(("ridge", f"{self.ridge:.3g}"))
        about = _OF_THE_POPULATION if answer.sampling else _OF_THE_RELEASE
        untested = [f"There are no p values: {self.untested}."] if self.untested else []
        tails = [] if self._errors.law.normal or self.untested else [_LONG_TAILS]
        notes = dict.fromkeys([about, *tails, *untested, *self.r_squared.notes, *answer.notes])
        numbers = np.column_stack([answer.values, errors, *tested, *answer.interval(level)])
        return Summary(answer.name, tuple(facts), level, answer.labels[0], numbers, tuple(notes))

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the slopes with their intervals, on one scale, and return the axes; needs the extra ``plot``.

        Each is shown as the change of the target, in its standard deviations, for one standard deviation of
        the predictor. Grey is what does not differ from zero at `level`.
        """
        scale = self.spreads[:-1] / self.spreads[-1]
        slopes = self.slopes
        lower, upper = slopes.interval(level)
        label = f"sd of {self.target} for one sd of the predictor"
        told = slopes.differs_from_zero(level)
        bounds = (lower * scale, upper * scale)
        return draw_intervals(self.on, slopes.values * scale, bounds, told, label=label, axes=ax)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return the coefficients with their errors and intervals as a dataframe."""
        return self.coefficients.to_frame(level)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
