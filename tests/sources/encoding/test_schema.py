from __future__ import annotations

import datetime as dt
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.typed_tables import gram

import dpcov
from dpcov.core import ArgumentError
from dpcov.sources import open_source
from dpcov.sources.arrow import arrow_type
from dpcov.sources.encoding import (
    ColumnType,
    Kind,
    Schema,
    declared,
    encoding_from_plain,
    encoding_to_plain,
    read_schema,
    resolve,
    schema_template,
)
from dpcov.sources.encoding.schema import is_id_like


def test_a_type_may_list_the_levels() -> None:
    levels = ["north", "south"]
    cells = ["north", "south", None, "south"]
    expected = gram(np.array([[0.0], [1.0], [np.nan], [1.0]]))
    for data in (
        pd.DataFrame({"r": pd.Categorical(cells, levels)}),
        pl.DataFrame({"r": cells}, schema={"r": pl.Enum(levels)}),
        pl.LazyFrame({"r": cells}, schema={"r": pl.Enum(levels)}),
    ):
        kinds = {"r": dpcov.category(other=False)}
        assert open_source(data, kinds).columns == ("r[south]",)
        assert (gram(data, kinds) == expected).all()
    for data in (pl.DataFrame({"r": cells}), pa.table({"r": pa.array(cells).dictionary_encode()})):
        with pytest.raises(ArgumentError, match=r"column r has a type that lists no levels: name them"):
            open_source(data, {"r": dpcov.category()})


def test_a_kind_that_does_not_read_a_type_is_refused() -> None:
    days = pl.DataFrame({"d": [dt.date(2024, 1, 1)], "l": [[1]], "b": [True]})
    for kind in (dpcov.number(), dpcov.flag(), dpcov.category(["a", "b"])):
        with pytest.raises(ArgumentError, match=r"column d has a type of dates, .*Say dpcov.date\(\)"):
            open_source(days, {"d": kind})
    with pytest.raises(ArgumentError, match=r"column l has a type of values that no kind reads"):
        open_source(days, {"l": dpcov.number()})
    with pytest.raises(ArgumentError, match=r"column b has a type of booleans, which date\(\) does not read"):
        open_source(days, {"b": dpcov.date()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dpcov.category("north"), "levels must be a list"),
        (lambda: dpcov.category(["a", "a"]), "must not repeat"),
        (lambda: dpcov.category([1, "1"]), "must not repeat"),
        (lambda: dpcov.category([]), "levels must be between 1 and"),
        (lambda: dpcov.category(["a"], other=False), "at least two"),
        (lambda: dpcov.category(["other"]), "at least two"),
        (lambda: dpcov.category([" a"]), "without spaces around"),
        (lambda: dpcov.category([None, "a"]), "got None"),
        (lambda: dpcov.category(["a", "b"], other=1), "other must be True or False"),  # type: ignore[arg-type]
        (lambda: dpcov.date(since="yesterday"), "since must be a day such as"),
        (lambda: dpcov.date(since=2000), "since must be a day such as"),  # type: ignore[arg-type]
        (lambda: dpcov.date(unit="dya"), "unit: there is no 'dya'. Did you mean 'day'"),
        (lambda: dpcov.date(parts=["weekdya"]), "Did you mean 'weekday'"),
        (lambda: dpcov.date(parts="hour"), "parts must be a list"),
        (lambda: dpcov.date(parts=["hour", "hour"]), "must not repeat"),
        (lambda: dpcov.number(3, 3), "lower must be below upper"),
        (lambda: dpcov.number("0"), "lower must be a number"),  # type: ignore[arg-type]
    ],
)
def test_a_kind_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_other_may_be_a_level_of_its_own() -> None:
    kind = dpcov.category(["other", "south"])
    assert kind.names("r") == ("r[south]",)
    table = pl.DataFrame({"r": ["south", "east", "other", None]})
    assert (gram(table, {"r": kind}) == gram(np.array([[1.0], [0.0], [0.0], [np.nan]]))).all()


def test_two_columns_of_one_name_are_refused() -> None:
    table = pl.DataFrame({"r": ["a"], "r[b]": [1.0]})
    with pytest.raises(ArgumentError, match=r"two columns would be called r\[b\]"):
        open_source(table, {"r": dpcov.category(["a", "b"]), "r[b]": dpcov.number()})


def test_names_of_ids_are_not_offered() -> None:
    ids = ["id", "ID", "person_id", "orderId", "nr", "row.no", "uuid", "SSN", "index"]
    assert [
        name for name in [*ids, "humid", "grid", "piano", "monkey", "height", "bid"] if is_id_like(name)
    ] == ids
    table = pl.DataFrame({"id": [1], "nr": [1], "age": [1.0], "name": ["x"]})
    with pytest.raises(ArgumentError, match=r"Or choose columns among: age\.$"):
        open_source(table)


WRITTEN = """
terms = ["age^2"]
[columns]
age = { kind = "number", lower = 0, upper = 120 }
"home region" = { kind = "category", levels = ["north", 2], other = false }
late = "flag"
visit = { kind = "date", since = "2024-01-01", unit = "week" }
"""


def test_a_schema_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(WRITTEN)
    schema = read_schema(path)
    assert schema.kinds == {
        "age": dpcov.number(0, 120),
        "home region": dpcov.category(["north", "2"], other=False),
        "late": dpcov.flag(),
        "visit": dpcov.date(since="2024-01-01", unit="week"),
    }
    assert schema.terms == ("age^2",)
    chosen = declared(["late"], schema=replace(schema, terms=()))
    assert chosen == Schema(("late",), {"late": dpcov.flag()})
    with pytest.raises(ArgumentError, match=r"columns not in the schema: lte\. Did you mean 'late'"):
        declared(["lte"], schema=schema)
    with pytest.raises(ArgumentError, match="a list of names beside it"):
        declared({"late": dpcov.flag()}, schema=schema)


def test_plain_values_and_back() -> None:
    kinds: dict[str, Kind] = {
        "a": dpcov.number(upper=3),
        "b": dpcov.category(["x", "y"], other=False),
        "c": dpcov.date(parts=["weekday", "hour"]),
        "d": dpcov.flag(),
    }
    types = [(name, ColumnType("unsaid")) for name in kinds]
    encoding = resolve(declared(kinds, terms=["a^2", "log(a):b"]), types)
    assert encoding_from_plain(json.loads(json.dumps(encoding_to_plain(encoding)))) == encoding


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns = 3", "has no \\[columns\\]"),
        ("", "has no \\[columns\\]"),
        ("[colums]", "there is no 'colums'. Did you mean 'columns'"),
        ("x = [", "is not TOML"),
        ("[columns]\nage = { lower = 3 }", "column age needs a kind"),
        ('[columns]\nage = "nubmer"', "there is no kind 'nubmer'. Did you mean 'number'"),
        ('[columns]\nage = { kind = "number", lowr = 3 }', "age: number takes no lowr. Did you mean 'lower'"),
        ('[columns]\nage = { kind = "flag", lower = 3 }', "age: flag takes no lower"),
        ('[columns]\nage = { kind = "number", lower = 3, upper = 2 }', "age: lower must be below upper"),
        ('[columns]\nage = { kind = "category", levels = ["a"], other = false }', "age: levels must be at"),
    ],
)
def test_a_bad_schema_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=f"the schema .*schema.toml.*{message}"):
        read_schema(path)
    with pytest.raises(ArgumentError, match=r"cannot be read \(FileNotFoundError\)"):
        read_schema(tmp_path / "none.toml")


def test_a_template_comes_from_names_and_types_alone() -> None:
    table = pa.schema([
        ("id", pa.int64()), ("age", pa.int64()), ("home region", pa.string()), ("late", pa.bool_()),
        ("visit", pa.date32()), ("tags", pa.list_(pa.string())),
    ])  # fmt: skip
    text = schema_template([(field.name, arrow_type(field.type), str(field.type)) for field in table])
    assert tomllib.loads(text) == {"columns": {"age": {"kind": "number"}, "late": {"kind": "flag"}}}
    filled = "\n".join(line.removeprefix("# ") for line in text.splitlines()[2:-1])
    told = tomllib.loads(filled)["columns"]
    assert told["home region"] == {"kind": "category", "levels": ["...", "..."]}
    assert told["visit"] == {"kind": "date", "since": "2000-01-01", "unit": "day"}
    assert told["id"] == {"kind": "number"}
    assert "# tags: list" in text
