"""Text cells as numbers, words and times: each cell by itself, at a cost that no other cell changes.

Spaces around are passed over. A cell that is empty or one of the words `MISSING` is missing, unless that word
was declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.arrays import Array

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "\\N")
"""What other programs write where there is no value."""

_BOOLEANS = ("false", "true", "False", "True", "FALSE", "TRUE")
# So few cells are parsed again with one that Arrow refuses: too few to be seen in the time of a block.
_PARSED_AT_ONCE = 256

_TIME = (
    r"^(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?:Z|(?P<sign>[-+])(?P<zone_hour>\d\d):?(?P<zone_minute>\d\d)?)?)?$"
)
_DAYS_BEFORE_MONTH = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
_DAYS_OF_MONTH = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def numbers_in(texts: Any) -> Array:
    """Return the number that each cell holds, NaN if it holds none.

    Where Arrow refuses a cell, `_number` parses it, and agrees on all others.
    """
    arrow, compute = _arrow(), _compute()
    texts = _trimmed(texts)
    words = arrow.array([*_BOOLEANS, *MISSING], texts.type)
    places = compute.index_in(texts, value_set=words)
    texts = compute.if_else(places.is_null(), texts, arrow.scalar(None, texts.type))
    found = np.empty(len(texts))
    for first in range(0, len(texts), _PARSED_AT_ONCE):
        some = texts.slice(first, _PARSED_AT_ONCE)
        try:
            parsed = some.cast("float64").to_numpy(zero_copy_only=False)
        except arrow.ArrowInvalid:
            parsed = [_number(text) for text in some.view(_bytes_of(some.type)).to_pylist()]
        found[first : first + _PARSED_AT_ONCE] = parsed
    places = compute.fill_null(places, len(words)).to_numpy(zero_copy_only=False)
    booleans = places < len(_BOOLEANS)
    return np.where(booleans, places % 2, found)


def _number(text: bytes | None) -> float:
    try:
        return float("nan") if text is None else float(text)
    except ValueError:
        return float("nan")


def places_among(texts: Any, words: Sequence[str], *, any_case: bool = False) -> NDArray[np.int64]:
    """Return the place of each cell in `words`: -1 for another word, -2 for a missing one."""
    arrow, compute = _arrow(), _compute()
    texts = _trimmed(texts)
    if any_case:
        texts = compute.ascii_lower(texts)
    missing = [word for word in MISSING if word not in words]
    known = arrow.array([*words, *missing], texts.type)
    found = compute.fill_null(compute.index_in(texts, value_set=known), -1).to_numpy(zero_copy_only=False)
    found = found.astype(np.int64)
    absent = texts.is_null().to_numpy(zero_copy_only=False)
    return np.where(absent | (found >= len(words)), -2, found)


def times_in(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the microseconds from 1970 to each date or time of ISO 8601, and which cells hold one.

    A time with a zone is that of UTC; one without is taken as it is written.
    """
    compute = _compute()
    matched = compute.extract_regex(_trimmed(texts).view(_bytes_of(texts.type)), pattern=_TIME)
    told = ~matched.is_null().to_numpy(zero_copy_only=False)
    part = {name: _digits(matched, name) for name in _parts() if name != "sign"}
    year, month, day = part["year"], part["month"], part["day"]
    told &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    place = np.clip(month - 1, 0, 11)
    told &= day <= _DAYS_OF_MONTH[place] + (leap & (month == 2))
    told &= (part["hour"] < 24) & (part["minute"] < 60) & (part["second"] < 60)
    told &= (part["zone_hour"] < 24) & (part["zone_minute"] < 60)
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    days += _DAYS_BEFORE_MONTH[place] + (leap & (month > 2)) + day - 1
    sign = _field(matched, "sign")
    minutes = part["zone_hour"] * 60 + part["zone_minute"]
    zone = np.where(compute.equal(sign, b"-").to_numpy(zero_copy_only=False), -minutes, minutes)
    seconds = days * 86_400 + part["hour"] * 3600 + (part["minute"] - zone) * 60 + part["second"]
    return seconds * 1_000_000 + part["fraction"], told


def _parts() -> list[str]:
    return [piece.split(">")[0] for piece in _TIME.split("(?P<")[1:]]


def _field(matched: Any, name: str) -> Any:
    return _compute().fill_null(_compute().struct_field(matched, name), b"")


def _digits(matched: Any, name: str) -> NDArray[np.int64]:
    """Return a part as a whole number, 0 if it is not there; fractions of seconds as microseconds."""
    compute = _compute()
    found = _field(matched, name)
    text = found.view("string" if found.type == _arrow().binary() else "large_string")
    if name == "fraction":
        text = compute.utf8_slice_codeunits(compute.ascii_rpad(text, 6, "0"), 0, 6)
    else:
        text = compute.ascii_lpad(text, 1, "0")
    whole: NDArray[np.int64] = text.cast("int64").to_numpy(zero_copy_only=False)
    return whole


def _trimmed(texts: Any) -> Any:
    return _compute().ascii_trim_whitespace(texts)


def _bytes_of(dtype: Any) -> str:
    return "large_binary" if _arrow().types.is_large_string(dtype) else "binary"


def _arrow() -> Any:
    return require("pyarrow", "arrow")


def _compute() -> Any:
    return require("pyarrow.compute", "arrow")
