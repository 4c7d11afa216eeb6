"""Mean and spread of each column, at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.linear.answers import Answer, RootAnswer
from dpcov.linear.questions import Questions
from dpcov.tables import html_table, make_frame, number, text_table

_MANY_ROWS = (
    "Where some have many more rows than others, theirs count less once they are clipped: there may be a few "
    "per cent more rows than the interval says."
)


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """Mean and standard deviation of each column, with their intervals.

    Attributes
    ----------
    complete_rows : Answer
        How many rows are complete: a row with a missing value is left out.
    mean : Answer
        The means.
    std : Answer
        The standard deviations (sums are divided by the number of rows, not by n - 1).

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> told = made.describe()
    >>> round(told.mean["height"]), round(told.std["height"])
    (170, 10)
    >>> told.to_frame().shape
    (2, 6)
    """

    complete_rows: Answer
    mean: Answer
    std: Answer

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe, one column of the table a line, with intervals of probability `level`."""
        columns: dict[str, Any] = {}
        for name, answer in (("mean", self.mean), ("std", self.std)):
            lower, upper = answer.interval(level)
            columns |= {name: answer.values, f"{name}_lower": lower, f"{name}_upper": upper}
        return make_frame(columns, self.mean.labels[0])

    def __repr__(self) -> str:
        title, head, lines, notes = self._table()
        return "\n".join([title, text_table(head, lines), *notes])

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        means, spreads = self.mean.interval(), self.std.interval()
        numbers = np.column_stack([self.mean.values, *means, self.std.values, *spreads])
        head = ["", "mean", "lower 95%", "upper 95%", "std", "lower 95%", "upper 95%"]
        names = self.mean.labels[0]
        lines = [[name, *map(number, row)] for name, row in zip(names, numbers, strict=True)]
        lower, upper = (float(end[0]) for end in self.complete_rows.interval())
        title = f"about {float(self.complete_rows):,.0f} complete rows ({lower:,.0f} to {upper:,.0f})"
        return title, head, lines, list(dict.fromkeys((*self.complete_rows.notes, *self.mean.notes)))


def describe(questions: Questions, columns: Sequence[str] | None, *, sampling: bool) -> Description:
    """Return mean and spread of each column, and how many rows are complete."""
    return Description(
        count_complete(questions, sampling=sampling),
        questions.mean(columns, sampling=sampling),
        standard_deviation(questions, columns, sampling=sampling),
    )


def count_complete(questions: Questions, *, sampling: bool) -> Answer:
    """Return how many rows are complete."""
    questions.choose(None, "the number of complete rows")
    corner = np.array([len(questions.moment) - 1])
    response = questions.geometry.of_moment().select((corner, corner)).times(float(questions.n_rows))
    value = np.array([questions.complete_rows])
    name = "complete rows"
    limits = (0.0, questions.most_rows)
    # The law of what clipping took from the constant is that of single rows, which have one each.
    notes = (_MANY_ROWS,) if questions.losses and math.isinf(questions.most_rows) else ()
    return questions.answer(name, value, [[name]], response, sampling=sampling, limits=limits, notes=notes)


def complete_share(questions: Questions, *, of_rows: bool = True) -> str:
    """Return the share of complete rows, or how many each unit has, in words and with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import NoiseLaw
    >>> from dpcov.linear import Questions
    >>> from dpcov.linear.description import complete_share
    >>> asked = Questions(("age",), 1000, np.diag([300.0, 0.25]), NoiseLaw(np.eye(2), 0.01, 0.0), ())
    >>> complete_share(asked)
    'about 25.0% of rows complete (23.0% to 27.0%)'
    """
    rows = count_complete(questions, sampling=False)
    lower, upper = (float(end[0]) / questions.n_rows for end in rows.interval())
    share = float(rows) / questions.n_rows
    if not of_rows:
        return f"about {share:.3g} complete rows each ({lower:.3g} to {upper:.3g})"
    return f"about {share:.1%} of rows complete ({lower:.1%} to {upper:.1%})"


def standard_deviation(questions: Questions, columns: Sequence[str] | None, *, sampling: bool) -> RootAnswer:
    """Return standard deviations; sums are divided by the number of rows."""
    squares = questions.variance(columns, sampling=sampling)
    return RootAnswer(
        "standard deviation", np.sqrt(squares.values), squares.labels, sampling,
        notes=squares.notes, limits=squares.limits, _given=squares._given, _law=squares._law,  # noqa: SLF001
    )  # fmt: skip
