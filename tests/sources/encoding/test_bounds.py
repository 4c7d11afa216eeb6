from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from helpers.cut_tables import ROWS, TABLES
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError, Clipping, PrivacyCost
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.maps import identity_map
from dpcov.opening import opened
from dpcov.sources import open_source
from dpcov.sources.encoding import declared


def gram(data: Any, columns: Any = None) -> NDArray[np.int64]:
    source = open_source(data, columns)
    d = len(source.columns)
    task = GramTask(Clipping(identity_map(d), 9.0), Lattice.for_table(source.n_rows, d), constant=False)
    return source.scan(task)


@pytest.mark.parametrize("kind", TABLES)
def test_values_beyond_the_bounds_are_moved_to_the_nearest_end(kind: type, tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[3, 1] = math.nan
    # Rows come in the order of the parts, and sums do not depend on it.
    clipped = np.column_stack([rows[:, 0], np.clip(rows[:, 1], -0.5, 0.25)])
    with dask.config.set(scheduler="synchronous"):
        schema = declared(["a", "b"], {"b": (-0.5, 0.25)})
        data = TABLES[kind](rows, tmp_path)
        assert (gram(data, schema) == gram(clipped, ["a", "b"])).all()
        np.testing.assert_array_equal(open_source(data, schema).bounds, [[-math.inf, math.inf], [-0.5, 0.25]])


def test_one_end_will_do_and_infinities_are_missing() -> None:
    rows = np.array([[-2.0], [3.0], [math.inf], [-math.inf], [math.nan]])
    expected = np.array([[0.0], [3.0], [math.nan], [math.nan], [math.nan]])
    assert (gram(rows, {"x": dpcov.number(0)}) == gram(expected)).all()


def test_a_flag_is_0_or_1() -> None:
    rows = np.array([[0.0], [1.0], [2.0], [0.5], [math.nan], [-0.0]])
    expected = np.array([[0.0], [1.0], [math.nan], [math.nan], [math.nan], [0.0]])
    assert (gram(rows, {"x": dpcov.flag()}) == gram(expected)).all()


def test_a_curator_knows_public_bounds_only() -> None:
    limit = PrivacyCost(Fraction(1))
    flags = np.tile([True, False], (200, 1))
    with opened(flags, limit, "example", constant=True) as curator:
        np.testing.assert_array_equal(curator.bounds, [[0, 1], [0, 1]])
    with opened(ROWS, limit, "example", columns=["a", "b"], bounds={"b": (-1, 2)}) as curator:
        np.testing.assert_array_equal(curator.bounds, [[-math.inf, math.inf], [-1, 2]])
        with pytest.raises(ValueError, match="read-only"):
            curator.bounds[0, 0] = 0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"c": (0, 1)}, "c is not among the columns"),
        ({"a": (1, 0)}, "a: lower must be below upper, got 1 and 0"),
        ({"a": (0, math.inf)}, "a: upper must be finite"),
        ({"a": (0, "1")}, "a: upper must be a number"),
        ({"a": 3}, "a needs two numbers"),
        ({"a": "01"}, "a needs two numbers"),
        ([(0, 1)], "bounds must map names"),
    ],
)
def test_bad_bounds_are_refused_in_words(bounds: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dpcov.release(ROWS, rho=1, columns=["a", "b"], bounds=bounds)


def test_bounds_must_be_said_once_and_of_columns_that_are_there() -> None:
    with pytest.raises(ArgumentError, match="give them once"):
        dpcov.release(ROWS, rho=1, columns={"a": dpcov.number(0, 1), "b": dpcov.flag()}, bounds={"a": (0, 2)})
    with pytest.raises(ArgumentError, match=r"not in data: x9\. It has: x0, x1"):
        dpcov.release(ROWS, rho=1, bounds={"x9": (0, 1)})
    with pytest.raises(ArgumentError, match="mapping from names to kinds"):
        dpcov.release(ROWS, rho=1, columns={"a": (0, 1), "b": dpcov.flag()})  # type: ignore[dict-item]
