"""Levels of categories: the first one, which has no column, and rare ones, which are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import choice
from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_column
from dpcov.linear.questions import Questions

_OTHER = "other"


def level_shares(questions: Questions, category: str, *, sampling: bool) -> Answer:
    """Return the share of rows that have each level of a category, the first one too."""
    questions.choose(None, "a share")
    names, columns = _levels(questions, category), list(questions.columns)
    first = np.zeros(len(columns) + 1)
    first[[columns.index(name) for name in names[1:]]], first[-1] = -1.0, 1.0
    sums = np.vstack([np.eye(len(columns), len(columns) + 1), first])
    asked = questions.recoded(sums, (*columns, names[0]), (*questions.shares, len(columns)))
    return replace(asked.mean(list(names), sampling=sampling), name=f"shares of {category}")


def means_by_level(questions: Questions, column: str, category: str) -> Answer:
    """Return the mean of a column over the rows of each level of a category, the first one too.

    With w the column, zero where it is missing, p where it is there, and f the rows of the level, the mean is
    ``m = w^T S f / p^T S f``, and its gradient ``sym((w - m p) f^T) / p^T S f``.
    """
    place = find_column(questions.columns, column, "column")
    questions.choose(None, "a mean")
    names = _levels(questions, category)
    if column in names:
        raise ArgumentError(f"{column} is a level of {category}: ask for another column.")
    values, presence = questions.forms
    own = [questions.columns.index(name) for name in names[1:]]
    forms = np.vstack([presence[own[0]] - values[own].sum(axis=0), values[own]])
    matrix = questions.matrix
    rows = forms @ matrix.moment @ presence[place]
    lost = rows <= _least(questions, forms, presence[place])
    rows = np.where(lost, 1.0, rows)
    means = np.where(lost, 0.0, forms @ matrix.moment @ values[place] / rows)
    centred = (values[place] - means[:, None] * presence[place]) / rows[:, None]
    gradients = np.einsum("li,lj->lij", centred, forms)
    response = matrix.of_gradients((gradients + gradients.transpose(0, 2, 1)) / 2, range(len(matrix.moment)))
    for part in response.parts().values():
        part[lost] = np.nan
    few = [name for name, is_lost in zip(names, lost, strict=True) if is_lost]
    return questions.answer(
        f"mean of {column} by {category}",
        np.where(lost, np.nan, means),
        [names],
        response,
        sampling=False,
        notes=[f"{name} has no more rows than noise hides." for name in few],
    )


def join_rare_levels(
    questions: Questions, on: Sequence[str]
) -> tuple[Questions, tuple[str, ...], dict[str, str], list[str]]:
    """Join those levels among predictors that lie below the noise, so that they do not hide the others.

    Rare levels of a category become one with "other"; if all of them together lie below the noise, the rare
    ones go with the first level. One by itself, asked for without others of its category, stays as it is.

    Returns
    -------
    Questions, tuple of str, dict, list of str
        Whom to ask, which predictors then, what became of those that were joined (nothing if they go with the
        first level), and notes that name them.
    """
    joined: dict[str, str] = {}
    notes: list[str] = []
    for category, names in questions.levels.items():
        asked = [name for name in names[1:] if name in on]
        if len(asked) < 2:
            continue
        rare = [name for name in asked if questions.find_unresolved([questions.columns.index(name)])]
        if not rare:
            continue
        other = f"{category}[{_OTHER}]"
        group = [*rare, *([other] if other in asked and other not in rare else [])]
        if other in questions.columns and other not in group:
            # It is there, but was not asked for.
            other = f"{category}[{' or '.join(name[len(category) + 1 : -1] for name in group)}]"
        merged = _merged(questions, group, other) if len(group) > 1 else questions
        if len(group) > 1 and not merged.find_unresolved([merged.columns.index(other)]):
            questions = merged
            joined |= dict.fromkeys(group, other)
            told = ", ".join(name for name in rare if name != other)
            notes.append(f"Too rare to stand above the noise, and counted as {other}: {told}.")
        else:
            # Their noise would hide "other", too, if that stands above it by itself.
            joined |= dict.fromkeys(rare, "")
            notes.append(f"Too rare to stand above the noise, and counted as {names[0]}: {', '.join(rare)}.")
    kept = dict.fromkeys(joined.get(name, name) for name in on)
    return questions, tuple(name for name in kept if name), joined, notes


def _merged(questions: Questions, group: Sequence[str], name: str) -> Questions:
    """Return questions with the sum of some columns in place of them."""
    places = {column: place for place, column in enumerate(questions.columns)}
    columns = [column for column in questions.columns if column not in group]
    sums = np.zeros((len(columns) + 1, len(places) + 1))
    sums[np.arange(len(columns)), [places[column] for column in columns]] = 1.0
    sums[-1, [places[column] for column in group]] = 1.0
    shares = [line for line, column in enumerate(columns) if places[column] in questions.shares]
    return questions.recoded(sums, (*columns, name), (*shares, len(columns)))


def _levels(questions: Questions, category: str) -> tuple[str, ...]:
    if not questions.levels:
        raise ArgumentError("this release has no category.")
    return questions.levels[choice(category, "category", list(questions.levels))]


def _least(questions: Questions, forms: Array, presence: Array) -> Array:
    """Return how many rows a level must have to stand above the noise: four standard deviations of it."""
    if questions.noise is None:
        return np.zeros(len(forms))
    gram = questions.matrix.noise_gram
    own, across = np.einsum("li,ij,lj->l", forms, gram, forms), forms @ gram @ presence
    squares = (own * (presence @ gram @ presence) + across**2) / 2
    return np.asarray(4 * questions.noise.sigma * np.sqrt(squares))
