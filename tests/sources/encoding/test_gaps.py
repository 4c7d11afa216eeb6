"""Missing values that are filled in, and the columns that tell where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcov
from dpcov.core import ArgumentError
from dpcov.sources import open_source
from dpcov.sources.arrow import arrow_encoding
from dpcov.sources.encoding import Kind, Schema, declared, encoding_from_plain, encoding_to_plain, read_schema

PAIRWISE = Schema(missing="pairwise")
TABLE = pd.DataFrame(
    {
        "age": [30.0, np.nan, 50.0, np.inf],
        "wage": [1.0, 0.0, np.nan, 4.0],
        "region": ["south", None, "north", "east"],
        "rank": [1, 2, 3, 4],
    }
)
KINDS: dict[str, Kind] = {
    "age": dpcov.number(20, 90),
    "wage": dpcov.number(),
    "region": dpcov.category(["north", "south"]),
    "rank": dpcov.number(gaps=False),
}


def _encoded(
    kinds: Mapping[str, Kind], terms: tuple[str, ...] = (), data: object = TABLE
) -> dict[str, list[float]]:
    source = open_source(data, declared(kinds, terms=terms, missing="pairwise"))
    (stream,) = source.streams(None)  # type: ignore[attr-defined]
    blocks = [np.column_stack(list(source.encoding.encode(piece.cells()))) for piece in stream()]
    return dict(zip(source.columns, np.vstack(blocks).T.tolist(), strict=True))


def test_values_are_filled_within_their_bounds_and_a_column_tells_where() -> None:
    found = _encoded(KINDS)
    assert found["age"] == [30.0, 20.0, 50.0, 20.0]
    assert found["missing(age)"] == [0.0, 1.0, 0.0, 1.0]
    assert found["wage"] == [1.0, 0.0, 0.0, 4.0]
    assert found["missing(wage)"] == [0.0, 0.0, 1.0, 0.0]
    assert found["region[south]"] == [1.0, 0.0, 0.0, 0.0]
    assert found["region[other]"] == [0.0, 0.0, 0.0, 1.0]
    assert found["missing(region)"] == [0.0, 1.0, 0.0, 0.0]
    assert list(found)[-3:] == ["missing(age)", "missing(wage)", "missing(region)"], "rank needs none"


def test_terms_are_missing_where_one_of_their_columns_is() -> None:
    found = _encoded(
        {**KINDS, "age": dpcov.number(gaps=True)}, ("age^2", "age:rank", "age:wage", "log(wage)")
    )
    assert found["age^2"] == [900.0, 0.0, 2500.0, 0.0]
    assert found["age:wage"] == [30.0, 0.0, 0.0, 0.0]
    assert found["missing(age:wage)"] == [0.0, 1.0, 1.0, 1.0]
    assert found["missing(log(wage))"] == [0.0, 1.0, 1.0, 0.0], "0 has no logarithm"
    assert {"missing(age^2)", "missing(age:rank)"}.isdisjoint(found), "they are missing where age is"


def test_a_logarithm_of_what_is_positive_is_missing_where_its_column_is() -> None:
    found = _encoded({"wage": dpcov.number(0.5, 9)}, ("log(wage)",), TABLE[["wage"]])
    assert list(found) == ["wage", "log(wage)", "missing(wage)"]
    assert found["log(wage)"][2] == 0.0


def test_a_logarithm_of_what_may_be_zero_has_gaps_of_its_own() -> None:
    found = _encoded({"wage": dpcov.number(0, 9)}, ("log(wage)",), TABLE[["wage"]])
    assert list(found) == ["wage", "log(wage)", "missing(wage)", "missing(log(wage))"]
    assert found["missing(wage)"] == [0.0, 0.0, 1.0, 0.0]


def test_a_row_with_a_gap_where_none_may_be_is_left_out() -> None:
    found = _encoded({**KINDS, "age": dpcov.number(20, 90, gaps=False)})
    assert "missing(age)" not in found
    assert np.isnan(found["age"]).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("data", "with_gaps"),
    [
        (np.ones((3, 2), dtype=np.int64), ["x0", "x1"]),
        (np.ones((3, 2)), ["x0", "x1"]),
        (
            pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [1.0, 2.0], "d": pd.array([1, 2], "Int64")}),
            ["a", "b", "c", "d"],
        ),
        (pl.DataFrame({"a": [1, 2]}), ["a"]),
        (
            pa.table(
                {"a": [1, 2], "b": [1.0, 2.0]},
                schema=pa.schema([pa.field("a", "int64", False), pa.field("b", "float64", False)]),
            ),
            ["b"],
        ),
    ],
)
def test_a_type_without_room_for_gaps_needs_no_column(data: object, with_gaps: list[str]) -> None:
    found = open_source(data, PAIRWISE).encoding
    assert [gap.name for gap in found.gaps] == [f"missing({name})" for name in with_gaps]


def test_one_gap_that_changes_the_type_of_a_pandas_column_changes_no_released_column() -> None:
    whole = pd.DataFrame({"age": [41, 52, 63]})
    gap = pd.DataFrame({"age": [41, None, 63]})
    assert whole["age"].dtype != gap["age"].dtype
    assert open_source(whole, PAIRWISE).encoding.columns == open_source(gap, PAIRWISE).encoding.columns


def test_a_type_without_room_does_not_help_a_kind_that_may_fail() -> None:
    fields = [pa.field(name, "int64", False) for name in ("flag", "level", "known")]
    table = pa.table({"flag": [0, 2], "level": [1, 2], "known": [1, 2]}, schema=pa.schema(fields))
    kinds = {
        "flag": dpcov.flag(),
        "level": dpcov.category([1], other=True),
        "known": dpcov.category([1, 2], other=False),
    }
    found = open_source(table, declared(kinds, missing="pairwise")).encoding
    assert [gap.name for gap in found.gaps] == ["missing(flag)", "missing(known)"]


def test_the_same_numbers_come_from_polars_and_from_pandas() -> None:
    kinds = {name: kind for name, kind in KINDS.items() if name != "rank"}
    assert _encoded(kinds, ("age:wage",), pl.from_pandas(TABLE)) == _encoded(kinds, ("age:wage",))


def test_a_column_that_one_file_has_room_for_gaps_in_may_have_them() -> None:
    strict, loose = (pa.schema([pa.field("a", "int64", nullable=room)]) for room in (False, True))
    assert [gap.name for gap in arrow_encoding([strict, loose], PAIRWISE).gaps] == ["missing(a)"]
    assert arrow_encoding([strict, strict], PAIRWISE).gaps == ()


def test_an_array_of_plain_numbers_has_gaps_as_well() -> None:
    found = _encoded(
        {"a": dpcov.number(), "b": dpcov.number(2, 3)}, (), np.array([[np.nan, 5.0], [1.0, np.inf]])
    )
    assert found == {"a": [0.0, 1.0], "b": [3.0, 2.0], "missing(a)": [1.0, 0.0], "missing(b)": [0.0, 1.0]}
    plain = _encoded({"a": dpcov.number()}, (), np.array([[np.nan], [1.0]]))
    assert plain == {"a": [0.0, 1.0], "missing(a)": [1.0, 0.0]}


def test_bounds_are_those_of_values_and_of_gaps() -> None:
    encoding = open_source(
        TABLE, declared({"age": KINDS["age"], "rank": KINDS["rank"]}, missing="pairwise")
    ).encoding
    assert encoding.columns == ("age", "rank", "missing(age)")
    assert encoding.bounds.tolist() == [[20.0, 90.0], [-np.inf, np.inf], [0.0, 1.0]]


def test_a_schema_says_it_and_a_release_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        'missing = "pairwise"\n[columns]\nage = { kind = "number", gaps = false }\nwage = "number"\n'
    )
    encoding = open_source(TABLE, read_schema(path)).encoding
    assert [gap.name for gap in encoding.gaps] == ["missing(wage)"]
    assert encoding_from_plain(encoding_to_plain(encoding)) == encoding


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match="missing"):
        declared(None, missing="listwise")
    with pytest.raises(ArgumentError, match="gaps"):
        dpcov.number(gaps="no")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="constant"):
        dpcov.release(np.ones((1000, 2)), rho=1, missing="pairwise", intercept=False)
