"""A regression as it is answered: coefficients, fit, predictions."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.linear.answers import Answer
from dpcov.linear.rows import read_rows
from dpcov.tables import number


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
        """Return predictions for new rows: a table of the predictors, or an array in their order."""
        values = read_rows(rows, self.on)
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
