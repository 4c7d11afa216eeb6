"""Mean and spread of each column, at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.linear.answers import Answer, RootAnswer
from dpcov.linear.questions import Questions
from dpcov.tables import html_table, make_frame, number, text_table


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
        return f"about {float(self.complete_rows):,.0f} complete rows", head, lines, list(self.mean.notes)


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
    return questions.answer(name, value, [[name]], response, sampling=sampling, limits=limits)


def standard_deviation(questions: Questions, columns: Sequence[str] | None, *, sampling: bool) -> RootAnswer:
    """Return standard deviations; sums are divided by the number of rows."""
    squares = questions.variance(columns, sampling=sampling)
    return RootAnswer(
        "standard deviation", np.sqrt(squares.values), squares.labels, sampling,
        notes=squares.notes, limits=squares.limits, _given=squares._given, _law=squares._law,  # noqa: SLF001
    )  # fmt: skip
