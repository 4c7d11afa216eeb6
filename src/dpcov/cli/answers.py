"""Answers of a release as tables, comma-separated values or JSON, always with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import dpcov
from dpcov.cli.output import print_csv, print_json, print_table, print_text

_MOST_LINES = 60


def print_answers(
    answers: Mapping[str, dpcov.Answer],
    level: float,
    *,
    as_json: bool,
    as_csv: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print the answers to one question; the first names it. JSON gets `more`."""
    lines = {name: list(_lines(answer, level)) for name, answer in answers.items()}
    if as_json:
        found = {name: _fields(answers[name], lines[name]) for name in answers}
        print_json({"level": level, **found, **(more or {})})
        return
    if as_csv:
        header = ("answer", "name", "of", "estimate", "standard_error", "lower", "upper")
        print_csv(
            header,
            [
                (name, *labels, *(repr(v) for v in numbers))
                for name, found in lines.items()
                for labels, numbers in found
            ],
        )
        return
    for name, answer in answers.items():
        _print_answer(answer, lines[name], level)


Line = tuple[tuple[str, str], tuple[float, float, float, float]]


def _lines(answer: dpcov.Answer, level: float) -> Iterator[Line]:
    """Yield labels and numbers; of a symmetric matrix each pair once."""
    lower, upper = answer.interval(level)
    numbers = np.stack([answer.values, answer.standard_error, lower, upper], axis=-1)
    symmetric = answer.values.ndim == 2 and answer.labels[0] == answer.labels[1]
    for place in np.ndindex(answer.values.shape):
        if symmetric and place[0] > place[1]:
            continue
        names = [axis[i] for axis, i in zip(answer.labels, place, strict=True)]
        estimate, error, low, high = map(float, numbers[place])
        yield (names[0], names[1] if len(names) > 1 else ""), (estimate, error, low, high)


def _fields(answer: dpcov.Answer, lines: list[Line]) -> dict[str, Any]:
    keys = ("estimate", "standard_error", "lower", "upper")
    values = [
        {
            "name": names[0],
            **({"of": names[1]} if names[1] else {}),
            **{key: v if math.isfinite(v) else None for key, v in zip(keys, numbers, strict=True)},
        }
        for names, numbers in lines
    ]
    return {"question": answer.name, "values": values, "notes": list(answer.notes)}


def _print_answer(answer: dpcov.Answer, lines: list[Line], level: float) -> None:
    # What is certain, such as the correlation of a column with itself, needs no line.
    shown = [line for line in lines if not (line[0][0] == line[0][1] and answer.name.endswith("correlation"))]
    with_pairs = answer.values.ndim > 1
    share = f"{100 * level:g}%"
    header = [
        "",
        *([""] if with_pairs else []),
        "estimate",
        "standard error",
        f"lower {share}",
        f"upper {share}",
    ]
    rows = [
        [*(names if with_pairs else names[:1]), *(f"{v:.5g}" for v in numbers)]
        for names, numbers in shown[:_MOST_LINES]
    ]
    print_table(answer.name, header, rows)
    if len(shown) > _MOST_LINES:
        more = len(shown) - _MOST_LINES
        print_text(f"... and {more:,} more lines: choose with --columns, or use --csv or --json.")
    for note in answer.notes:
        print_text(note)
    print_text("")
