"""Every kind of column gives the same bits from every source."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import dask
import numpy as np
import pytest
from helpers.typed_tables import HOLDERS, Table, gram

from dpcov import category, date, flag, number
from dpcov.sources import open_source
from dpcov.sources.encoding import Kind

NAN = math.nan

NUMBERS: Table = {"x": [1.0, 2.5, None, -3.0, 1e300, 7.0, 8.0]}
WHOLE: Table = {"x": [1, 2, None, -3, 12, 7, 8]}
FLAGS: Table = {"x": [True, False, None, True, True, False, True]}
WORDS: Table = {"x": ["t", "No", None, "yes ", "FALSE", "maybe", "1"]}
LEVELS: Table = {"x": ["north", "south", None, "east", "", " south", "\N{SNOWMAN}"]}
CODES: Table = {"x": [1, 2, None, 3, 2, 1, 9]}
DAYS: Table = {"x": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, dt.date(2024, 3, 1)]}
HOURS: Table = {"x": [dt.datetime(2024, 2, 29, 18, 30), dt.datetime(1969, 12, 31, 23, 59, 59), None]}  # noqa: DTZ001
MIXED: Table = {"x": ["1.5", " 2 ", "NA", "about 7", None, "1e400", "0x10"]}

CASES: dict[str, tuple[Table, Kind, list[list[float]]]] = {
    "numbers": (NUMBERS, number(), [[1], [2.5], [NAN], [-3], [1e300], [7], [8]]),
    "bounded numbers": (NUMBERS, number(0, 7.5), [[1], [2.5], [NAN], [0], [7.5], [7], [7.5]]),
    "numbers as text": (MIXED, number(), [[1.5], [2], [NAN], [NAN], [NAN], [NAN], [NAN]]),
    "flags": (FLAGS, flag(), [[1], [0], [NAN], [1], [1], [0], [1]]),
    "flags as numbers": (FLAGS, number(), [[1], [0], [NAN], [1], [1], [0], [1]]),
    "numbers as flags": (WHOLE, flag(), [[1], [NAN], [NAN], [NAN], [NAN], [NAN], [NAN]]),
    "words": (WORDS, flag(), [[1], [0], [NAN], [1], [0], [NAN], [1]]),
    "levels": (
        LEVELS,
        category(["north", "south"]),
        [[0, 0], [1, 0], [NAN, NAN], [0, 1], [NAN, NAN], [1, 0], [0, 1]],
    ),
    "levels and no other": (
        LEVELS,
        category(["south", "north", "east"], other=False),
        [[1, 0], [0, 0], [NAN, NAN], [0, 1], [NAN, NAN], [0, 0], [NAN, NAN]],
    ),
    "numbers as levels": (
        CODES,
        category([1, 2, 3]),
        [[0, 0, 0], [1, 0, 0], [NAN] * 3, [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]],
    ),
    "flags as levels": (
        FLAGS,
        category([True, False], other=False),
        [[0], [1], [NAN], [0], [0], [1], [0]],
    ),
    "days": (DAYS, date(since="2024-01-01"), [[59], [-19723], [NAN], [60]]),
    "weeks": (DAYS, date(since="2024-01-01", unit="week"), [[59 / 7], [-19723 / 7], [NAN], [60 / 7]]),
    "hours": (
        HOURS,
        date(since="1970-01-01", unit="hour"),
        [[(19782 * 24 * 2 + 37) / 2], [-1 / 3600], [NAN]],
    ),
    "parts": (
        HOURS,
        date(parts=["hour", "day", "year", "weekday"]),
        [[18, 29, 2024, 0, 0, 1, 0, 0, 0], [23, 31, 1969, 0, 1, 0, 0, 0, 0], [NAN] * 9],
    ),
    "months": (
        DAYS,
        date(parts=["month"]),
        [
            [1.0 * (m == 2) for m in range(2, 13)],
            [1.0 * (m == 12) for m in range(2, 13)],
            [NAN] * 11,
            [1.0 * (m == 3) for m in range(2, 13)],
        ],
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("case", CASES)
def test_a_kind_gives_the_same_bits_from_every_source(case: str, holder: str, tmp_path: Path) -> None:
    table, kind, expected = CASES[case]
    with dask.config.set(scheduler="synchronous"):
        data = HOLDERS[holder](table, tmp_path)
        assert (gram(data, {"x": kind}) == gram(np.array(expected, dtype=np.float64))).all()
        assert open_source(data, {"x": kind}).columns == kind.names("x")
