"""Predictions for new rows, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpcov.checks import share
from dpcov.linear.answers import Answer, Interval
from dpcov.tables import html_table, make_frame, number, text_table


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What a regression predicts for new rows.

    Attributes
    ----------
    mean : Answer
        The target's expected value for each row; its intervals hold what the regression of the raw rows
        predicts (with ``sampling=True``, that of the population).
    residual_spread : float
        The standard deviation of the target around it.
    index : tuple
        What names the rows: the index of a pandas frame, numbers else.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> found = made.regress("weight ~ height").prediction({"height": [180.0]})
    >>> found.mean.values.round()
    array([68.])
    >>> np.array(found.new_interval()).round(-1).ravel()
    array([60., 80.])
    """

    mean: Answer
    residual_spread: float
    index: tuple[Any, ...]

    def new_interval(self, level: float = 0.95) -> Interval:
        """Return bounds that hold the target of a new row of the same kind with probability `level`.

        If the target varies normally around its expected value, by as much for all rows.
        """
        lower, upper = self.mean.interval(share(level, "level"))
        width = float(ndtri((1 + level) / 2)) * self.residual_spread
        centre, half = (lower + upper) / 2, (upper - lower) / 2
        reach = np.hypot(half, width)
        return Interval(np.asarray(centre - reach), np.asarray(centre + reach))

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe: the mean, its interval and that of a new row."""
        lower, upper = self.mean.interval(level)
        new = self.new_interval(level)
        columns = {"mean": self.mean.values, "mean_lower": lower, "mean_upper": upper}
        return make_frame({**columns, "new_lower": new.lower, "new_upper": new.upper}, self.index)

    def __repr__(self) -> str:
        head, lines, notes = self._table()
        return "\n".join([self.mean.name, text_table(head, lines), *notes])

    def _repr_html_(self) -> str:
        head, lines, notes = self._table()
        return html_table(self.mean.name, head, lines, notes)

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        head = ["", "mean", "lower 95%", "upper 95%", "new row: lower 95%", "new row: upper 95%"]
        numbers = np.column_stack([self.mean.values, *self.mean.interval(), *self.new_interval()])
        names = self.mean.labels[0]
        lines = [[name, *map(number, row)] for name, row in zip(names, numbers, strict=True)]
        note = "The bounds of a new row assume normal residuals with the same spread everywhere."
        return head, lines, [note, *self.mean.notes]


def residual_spread(variance: Answer) -> float:
    """Return the spread of residuals for a new row's bounds.

    To second order, an error of s in the variance v makes intervals that hold too rarely: as rarely as if v
    were smaller by the share ``3 / 4 (s / v)^2``. It is raised by the whole of ``(s / v)^2``.
    """
    value, error = float(variance), float(np.nan_to_num(variance.standard_error[0]))
    return math.sqrt(value + error**2 / value) if value > 0 else error**0.5


def row_index(rows: Any, count: int) -> tuple[Any, ...]:
    """Return what names rows: the index of a pandas frame, numbers else."""
    index = getattr(rows, "index", None)
    if index is None or callable(index) or len(index) != count:
        return tuple(range(count))
    return tuple(index)
