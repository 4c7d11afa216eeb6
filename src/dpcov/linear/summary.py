"""A regression at a glance, in the manner of statistical packages."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.arrays import Array
from dpcov.linear.inference import p_text
from dpcov.tables import html_table, number, text_table

_BAR_WIDTH = 120
_MOST_ERRORS, _MARGIN = 10.0, 5.0


@dataclass(frozen=True, repr=False)
class Summary:
    """What a regression says, as a table.

    Attributes
    ----------
    title : str
        The regression.
    facts : tuple of (str, str)
        The fit: rows, R squared and the like.
    level : float
        The probability of the intervals.
    names : tuple of str
        The coefficients.
    numbers : ndarray, shape (number of coefficients, 6)
        Estimate, standard error, z, p, and the ends of the interval; NaN where there is none.
    notes : tuple of str
        What the errors contain, and what else should be known.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> told = made.regress("weight ~ height").summary()
    >>> told.names
    ('height', 'constant')
    >>> "R squared" in str(told)
    True
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    level: float
    names: tuple[str, ...]
    numbers: Array
    notes: tuple[str, ...]

    def __str__(self) -> str:
        head, lines = self._table()
        facts = ", ".join(f"{name} {value}" for name, value in self.facts)
        return "\n".join([self.title, facts, text_table(head, lines), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, lines = self._table()
        facts = ", ".join(f"{name} {value}" for name, value in self.facts)
        drawings = [_bar(*row[[0, 1, 4, 5]]) for row in self.numbers]
        return html_table(self.title, head, lines, [facts, *self.notes], drawings=drawings)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        share = f"{100 * self.level:g}%"
        head = ["", "estimate", "standard error", "z", "p", f"lower {share}", f"upper {share}"]
        lines = []
        for name, (value, error, score, tested, lower, upper) in zip(self.names, self.numbers, strict=True):
            z = "" if math.isnan(score) else f"{score:.2f}"
            p = "" if math.isnan(tested) else p_text(tested).removeprefix("= ").replace("< ", "<")
            lines.append([name, number(value), number(error), z, p, number(lower), number(upper)])
        return head, lines


def _bar(value: float, error: float, lower: float, upper: float) -> str:
    """Return a drawing of an interval in units of its standard error, zero in the middle.

    An arrow head stands for a number too far from zero to be drawn.
    """
    if not (error > 0 and math.isfinite(lower) and math.isfinite(upper)):
        return ""
    half = _BAR_WIDTH / 2
    reach = half - _MARGIN
    dot, left, right = (
        half + reach * max(-1.0, min(1.0, number / error / _MOST_ERRORS)) for number in (value, lower, upper)
    )
    colour = "#9a9a9a" if lower <= 0 <= upper else "#3b76cc"
    if abs(value) > _MOST_ERRORS * error:
        side = math.copysign(1.0, value)
        tip, back = dot + side * (_MARGIN - 1), dot - side * _MARGIN
        return (
            f"<svg width='{_BAR_WIDTH}' height='14'><line x1='{half:g}' x2='{half:g}' y1='0' y2='14' "
            f"stroke='#bbb'/><polygon points='{tip:.1f},7 {back:.1f},2 {back:.1f},12' fill='{colour}'/></svg>"
        )
    return (
        f"<svg width='{_BAR_WIDTH}' height='14'><line x1='{half:g}' x2='{half:g}' y1='0' y2='14' "
        f"stroke='#bbb'/><line x1='{left:.1f}' x2='{right:.1f}' y1='7' y2='7' stroke='{colour}' "
        f"stroke-width='3'/><circle cx='{dot:.1f}' cy='7' r='3.5' fill='{colour}'/></svg>"
    )
