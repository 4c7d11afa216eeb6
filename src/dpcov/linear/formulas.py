"""Models in words: a formula over the columns of a release, parsed by formulaic.

A release knows its columns and nothing else. So a term must be a column: an interaction or a power is one if
it was released, under the name ``a:b`` or ``a^2``, and a category is the columns ``name[level]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcov._extras import require
from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError
from dpcov.laws import least_resolved
from dpcov.linear.questions import Questions

_CATEGORY = re.compile(r"C\((?P<name>[^,()]+)\)")
_POWER = re.compile(r"I\(`?(?P<name>[^()`]+?)`? ?(?:\*\*|\^) ?(?P<power>[0-9]+)\)")
_BARE_POWER = re.compile(
    r"`(?P<quoted>[^`]*)`(?:\s*(?:\*\*|\^)\s*(?P<power>[0-9]+))?"
    r"|[\w.]+\s*\([^()]*\)|\{[^{}]*\}"
    r"|(?P<name>[^\W\d][\w.]*)\s*(?:\*\*|\^)\s*(?P<own_power>[0-9]+)"
)
"""A column and its power, or what may contain one and is left as it is: a name in quotes, a call."""

_ROUNDING = 1e-9
"""A combination with a smaller share of a column's variance is constant up to rounding."""


@dataclass(frozen=True)
class Model:
    """What is to be explained by what.

    Attributes
    ----------
    target : str
        The column to explain.
    on : tuple of str
        The columns that explain it.
    terms : mapping of str to tuple of str
        The terms of the formula, and the columns that each stands for.
    intercept : bool
        Whether the constant joins them.
    notes : tuple of str
        What should be known about the coefficients.
    """

    target: str
    on: tuple[str, ...]
    terms: Mapping[str, tuple[str, ...]]
    intercept: bool
    notes: tuple[str, ...] = field(default=())


def read_model(questions: Questions, target: str, on: Sequence[str] | None, *, intercept: bool) -> Model:
    """Return the model that names or a formula describe.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear import Questions
    >>> from dpcov.linear.formulas import read_model
    >>> asked = Questions(("wage", "educ", "age"), 100, np.eye(4), None, ())
    >>> read_model(asked, "wage ~ educ + age", None, intercept=True).on
    ('educ', 'age')
    """
    if on is not None:
        if isinstance(on, str):
            parts = [on] if on in questions.columns else [part.strip() for part in on.split(",")]
            raise ArgumentError(f"on must be a list of column names, got the text {on!r}: use {parts}.")
        if isinstance(target, str) and "~" in target and target not in questions.columns:
            raise ArgumentError("a formula already names the predictors: leave out on.")
        names = tuple(on) if isinstance(on, Sequence) else on
        return Model(target, names, {name: (name,) for name in names}, intercept)
    if not isinstance(target, str) or "~" not in target:
        raise ArgumentError(
            "on: name the columns that explain the target, or give a formula such as 'wage ~ educ + age'."
        )
    return _read_formula(questions, target, intercept=intercept)


def _read_formula(questions: Questions, text: str, *, intercept: bool) -> Model:
    formulaic = require("formulaic", "formula")
    context = {"__formulaic_variables_available__": list(questions.columns)}
    try:
        parsed = formulaic.Formula(_BARE_POWER.sub(_quoted_power, text), _context=context)
    except formulaic.errors.FormulaicError as error:
        raise ArgumentError(f"the formula {text!r} cannot be read: {str(error).splitlines()[0]}") from None
    sides: Any = (getattr(parsed, "lhs", None), getattr(parsed, "rhs", None))
    if sides[0] is None or len(list(sides[0])) != 1 or not hasattr(sides[1], "__iter__"):
        raise ArgumentError(f"the formula {text!r} must have one target: such as 'wage ~ educ + age'.")
    (goal,) = sides[0]
    target = _column(questions.columns, goal)
    terms: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    constant = False
    for term in sides[1]:
        if str(term) == "1":
            constant = True
            continue
        category = _CATEGORY.fullmatch(str(term))
        if category is None:
            terms[str(term).strip("`")] = (_column(questions.columns, term),)
        else:
            terms[str(term)] = _levels(questions, category["name"].strip(" `"), notes)
    if not terms:
        raise ArgumentError(f"the formula {text!r} names no column that explains {target}.")
    on = tuple(name for names in terms.values() for name in names)
    return Model(target, on, terms, constant and intercept, tuple(notes))


def _quoted_power(found: re.Match[str]) -> str:
    """Return ``a^2`` as the name of one column: a formula would take it for a crossed with a, which is a."""
    name, power = found["quoted"] or found["name"], found["power"] or found["own_power"]
    return f"`{name}^{power}`" if power else found[0]


def _column(columns: Sequence[str], term: Any) -> str:
    """Return the column that a term stands for; an interaction or a power must have been released."""
    factors = [str(factor.expr) for factor in term.factors]
    text = ":".join(factors)
    names = [text, ":".join(reversed(factors))]
    power = _POWER.fullmatch(text)
    if power is not None:
        names.append(f"{power['name'].strip()}^{power['power']}")
    for name in names:
        if name in columns:
            return name
    if len(factors) == 1 and factors[0].isidentifier():
        hint = did_you_mean(factors, columns) or f"There are: {', '.join(columns)}."
        raise ArgumentError(f"formula: there is no column {text!r}. {hint}")
    raise ArgumentError(
        f"formula: {text} is not a column of this release, and cannot be computed from one. Add it to the "
        "table as a column before you release."
    )


def _levels(questions: Questions, name: str, notes: list[str]) -> tuple[str, ...]:
    """Return the columns of a category: all levels, or all but the first if they add up to one.

    If each row has one of the levels, they add up to the constant: the first is then what others are compared
    with. Whether they do is told by the release, where the sum of the levels does not vary.
    """
    levels = [
        column for column in questions.columns if column.startswith(f"{name}[") and column.endswith("]")
    ]
    if not levels:
        raise ArgumentError(
            f"formula: C({name}) needs one column of zeros and ones for each level, called {name}[...]; this "
            "release has none."
        )
    # A category that was declared has no column for its first level.
    undeclared = name not in questions.levels
    if undeclared and len(levels) > 1 and questions.has_constant and _never_varies(questions, levels):
        notes.append(f"C({name}): each level is compared with {levels[0]}.")
        return tuple(levels[1:])
    return tuple(levels)


def _never_varies(questions: Questions, names: Sequence[str]) -> bool:
    """Whether the sum of these columns has no variance above the noise, beside the largest of them."""
    forms = np.isin(questions.columns, names).astype(np.float64)
    block, factor = questions.centred
    spread, least = float(forms @ block @ forms), _ROUNDING * float((forms * np.diag(block)).max())
    noise = questions.noise
    if noise is not None:
        scale = float(np.square(forms @ factor).sum())
        least = max(least, least_resolved(1, noise.sigma, noise.hidden) * scale)
    return spread <= least
