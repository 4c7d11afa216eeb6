"""Mean and spread of each column, at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.linear.answers import Answer, RootAnswer
from dpcov.linear.pairwise_questions import PairwiseQuestions
from dpcov.linear.questions import Questions
from dpcov.tables import html_table, make_frame, number, text_table

_MANY_ROWS = (
    "If some have many more rows than others, their rows count less once they are clipped: there may be a "
    "few per cent more rows than the interval says."
)


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """Mean and standard deviation of each column, with their intervals.

    Attributes
    ----------
    rows : Answer
        How many rows it rests on: those that are complete, or in a pairwise release, for each column those
        that have it.
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

    rows: Answer
    mean: Answer
    std: Answer

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe, one column of the table a line, with intervals of probability `level`."""
        columns: dict[str, Any] = {"rows": self.rows.values} if self._pairwise else {}
        for name, answer in (("mean", self.mean), ("std", self.std)):
            lower, upper = answer.interval(level)
            columns |= {name: answer.values, f"{name}_lower": lower, f"{name}_upper": upper}
        return make_frame(columns, self.mean.labels[0])

    @property
    def _pairwise(self) -> bool:
        return self.rows.labels == self.mean.labels

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
        if self._pairwise:
            head.append("rows")
            for line, count in zip(lines, self.rows.values, strict=True):
                line.append(f"{count:,.0f}")
            return "pairwise: each column from the rows that have it", head, lines, list(self.mean.notes)
        lower, upper = (float(end[0]) for end in self.rows.interval())
        title = f"about {float(self.rows):,.0f} complete rows ({lower:,.0f} to {upper:,.0f})"
        return title, head, lines, list(dict.fromkeys((*self.rows.notes, *self.mean.notes)))


def describe(questions: Questions, columns: Sequence[str] | None, *, sampling: bool) -> Description:
    """Return mean and spread of each column, and how many rows it rests on."""
    return Description(
        questions.rows_of(columns, sampling=False)
        if isinstance(questions, PairwiseQuestions)
        else count_complete(questions, sampling=sampling),
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


def share_of_rows(questions: Questions, *, of_rows: bool = True) -> str:
    """Return on which share of the rows answers rest, or how many each unit has, with its interval.

    Of a pairwise release, that of the column with most gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import NoiseLaw
    >>> from dpcov.linear import Questions
    >>> from dpcov.linear.description import share_of_rows
    >>> asked = Questions(("age",), 1000, np.diag([300.0, 0.25]), NoiseLaw(np.eye(2), 0.01, 0.0), ())
    >>> share_of_rows(asked)
    'about 25.0% of rows complete (23.0% to 27.0%)'
    """
    if isinstance(questions, PairwiseQuestions):
        each = questions.rows_of(None, sampling=False)
        rarest = each.labels[0][int(np.argmin(each.values))]
        rows = each[[rarest]]
        how, what = f"with {rarest}", ", the fewest of any column; pairwise"
    else:
        rows, how, what = count_complete(questions, sampling=False), "complete", ""
    lower, upper = (float(end[0]) / questions.n_rows for end in rows.interval())
    share = float(rows) / questions.n_rows
    if not of_rows:
        rows_each = "complete rows" if how == "complete" else f"rows {how}"
        return f"about {share:.3g} {rows_each} each ({lower:.3g} to {upper:.3g}){what}"
    return f"about {share:.1%} of rows {how} ({lower:.1%} to {upper:.1%}){what}"


def standard_deviation(questions: Questions, columns: Sequence[str] | None, *, sampling: bool) -> RootAnswer:
    """Return standard deviations; sums are divided by the number of rows."""
    squares = questions.variance(columns, sampling=sampling)
    least, most = map(np.sqrt, squares.limits)
    return RootAnswer(
        "standard deviation", np.sqrt(squares.values), squares.labels, sampling,
        notes=squares.notes, limits=(least, most), _given=squares._given, _law=squares._law,  # noqa: SLF001
    )  # fmt: skip
