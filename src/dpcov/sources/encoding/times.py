"""Cells of dates and times as microseconds."""

from __future__ import annotations

import datetime as dt

import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.texts import times_in

_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}
DAY = 86_400_000_000
"""In microseconds."""

_FIRST = -719_162 * DAY
_LAST = 2_932_897 * DAY
_EPOCH = dt.date(1970, 1, 1).toordinal()


def to_times(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the microseconds from 1970 to each date or time, and which cells hold one of years 1 to 9999.

    Times with a zone are those of UTC. Parts of a microsecond are cut off.
    """
    if isinstance(cells, np.ndarray):
        return np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=np.bool_)
    types, dtype = require("pyarrow", "arrow").types, cells.type
    if not (types.is_date(dtype) or types.is_timestamp(dtype)):
        times, there = times_in(cells)
        there &= (times >= _FIRST) & (times < _LAST)
        return np.where(there, times, 0), there
    there = ~cells.is_null().to_numpy(zero_copy_only=False)
    compute = require("pyarrow.compute", "arrow")
    counted = cells.view("int32") if types.is_date32(dtype) else cells.view("int64")
    ticks = compute.fill_null(counted, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if types.is_timestamp(dtype) and dtype.unit == "ns":
        ticks, each = ticks // 1000, 1
    elif types.is_date32(dtype):
        each = DAY
    else:
        each = 1_000 if types.is_date64(dtype) else _MICROSECOND[dtype.unit]
    there &= (ticks >= _FIRST // each) & (ticks < _LAST // each)
    return np.where(there, ticks, 0) * each, there


def microseconds_to(day: dt.date) -> int:
    """Return the microseconds from 1970 to the beginning of a day."""
    return (day.toordinal() - _EPOCH) * DAY
