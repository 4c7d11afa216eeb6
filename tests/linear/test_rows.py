"""New rows are matched by name; what has no names, by order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.linear_tables import NAMES, Array, make_release, make_rows

import dpcov
from dpcov.core import ArgumentError
from dpcov.linear.rows import read_rows

ROWS = make_rows(5, seed=3)
Question = Callable[[dpcov.Release, Any], Array]
QUESTIONS: dict[str, tuple[tuple[str, ...], Question]] = {
    "predict": (NAMES[1:], lambda r, rows: r.regress(NAMES[0], on=NAMES[1:]).predict(rows)),
    "mahalanobis": (NAMES, lambda r, rows: r.mahalanobis(rows)),
    "whiten": (NAMES, lambda r, rows: r.whiten().transform(rows)),
}


@pytest.fixture(scope="module")
def release() -> dpcov.Release:
    return make_release(make_rows(), names=NAMES)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_the_order_of_named_columns_does_not_matter(
    release: dpcov.Release, question: str, frame: Callable[[Any], Any]
) -> None:
    names, ask = QUESTIONS[question]
    values = ROWS[:, : len(names)]
    expected = ask(release, values)
    columns = dict(zip(names, values.T, strict=True))
    np.testing.assert_array_equal(ask(release, frame(columns)), expected)
    turned = {name: columns[name] for name in reversed(names)}
    np.testing.assert_array_equal(ask(release, frame(turned)), expected)
    # By order the answer would be another one.
    assert not np.allclose(ask(release, values[:, ::-1]), expected)


@pytest.mark.parametrize("question", QUESTIONS)
def test_missing_and_unknown_names_are_refused(release: dpcov.Release, question: str) -> None:
    names, ask = QUESTIONS[question]
    frame = pd.DataFrame(dict(zip(names, ROWS.T, strict=False)))
    with pytest.raises(ArgumentError, match=f"rows: column {names[-1]} is missing. Give exactly"):
        ask(release, frame[list(names[:-1])])
    for other in (1.0, "a text"):
        with pytest.raises(ArgumentError, match="rows: column other is not part of it"):
            ask(release, frame.assign(other=other))
    with pytest.raises(ArgumentError, match="numbers only"):
        ask(release, frame.assign(**{names[0]: "a text"}))
    with pytest.raises(
        ArgumentError, match=f"{names[-1]} is missing, and column delt .*Did you mean 'delta'"
    ):
        ask(release, frame.rename(columns={names[-1]: "delt"}))
    with pytest.raises(ArgumentError, match="rows must have"):
        ask(release, ROWS[:, :2])


def test_a_series_is_a_row_or_a_column() -> None:
    row = pd.Series({"b": 2.0, "a": 1.0})
    np.testing.assert_array_equal(read_rows(row, ["a", "b"]), [[1.0, 2.0]])
    column = pd.Series([1.0, 2.0], name="a")
    np.testing.assert_array_equal(read_rows(column, ["a"]), [[1.0], [2.0]])
    with pytest.raises(ArgumentError, match="column a is missing, and column other is not part of it"):
        read_rows(column.rename("other"), ["a"])


def test_arrays_have_the_right_number_of_columns() -> None:
    assert read_rows([1, 2], ["a", "b"]).shape == (1, 2)
    assert read_rows(np.zeros((0, 2)), ["a", "b"]).shape == (0, 2)
    assert read_rows([[1], [2], [3]], ["a"]).shape == (3, 1)
    for wrong in ([1, 2, 3], [[1, 2, 3]], np.zeros((1, 1, 2)), 1.0):
        with pytest.raises(ArgumentError, match=r"rows must have 2 columns \(a, b\), got shape"):
            read_rows(wrong, ["a", "b"])
    with pytest.raises(ArgumentError, match="numbers only"):
        read_rows([["x", "y"]], ["a", "b"])
    with pytest.raises(ArgumentError, match="same number of values in every column"):
        read_rows({"a": [1.0, 2.0], "b": [1.0]}, ["a", "b"])
