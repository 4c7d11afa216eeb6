"""Dates: how long after a day, or their parts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import choice
from dpcov.core import ArgumentError
from dpcov.sources.encoding.categories import indicators
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.kinds import UNBOUNDED, Ends, Kind
from dpcov.sources.encoding.times import DAY, microseconds_to, to_times

UNITS = {
    "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": DAY, "week": 7 * DAY,
}  # fmt: skip
"""In microseconds."""

LEVELS = {
    "weekday": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "month": (
        "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
        "november", "december",
    ),
}  # fmt: skip
"""The parts of a date that are levels: neither Sunday nor December is more than the others."""

NUMBERS: dict[str, Ends] = {"hour": (0.0, 23.0), "day": (1.0, 31.0), "year": (1.0, 9999.0)}
"""The parts of a date that are numbers, and between which."""


@dataclass(frozen=True)
class DateKind(Kind):
    """Dates and times, as the time since a day or as their parts; see `date`."""

    # A column of missing values alone is one of floats in pandas: that must not be an error.
    reads = frozenset({"date", "text", "number"})

    since: str = "2000-01-01"
    unit: str = "day"
    parts: tuple[str, ...] = ()
    gaps: bool | None = None

    def __post_init__(self) -> None:
        self.check_gaps()
        choice(self.unit, "unit", list(UNITS))
        try:
            _day(self.since)
        except (TypeError, ValueError):
            raise ArgumentError(f"since must be a day such as '2000-01-01', got {self.since!r}.") from None
        if isinstance(self.parts, str) or not isinstance(self.parts, Sequence):
            raise ArgumentError('parts must be a list, such as ["weekday", "hour"].')
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            choice(part, "parts", [*LEVELS, *NUMBERS])
        if len(set(self.parts)) != len(self.parts):
            raise ArgumentError("parts must not repeat one.")

    def fails_on(self, holds: str) -> bool:
        """Whether it may be no date of the years 1 to 9999: always."""
        del holds
        return True

    def is_share(self, name: str) -> bool:
        """Whether it is that of a weekday or month."""
        return name.endswith("]") and bool(self.parts)

    def levels_by_name(self, column: str) -> dict[str, tuple[str, ...]]:
        """Return names for all weekdays or months, if they are among the parts."""
        return {
            f"{column}.{part}": tuple(f"{column}.{part}[{level}]" for level in LEVELS[part])
            for part in self.parts
            if part in LEVELS
        }

    def names(self, column: str) -> tuple[str, ...]:
        """Return the name itself; or one for each part, and of a part's levels for each but the first."""
        if not self.parts:
            return (column,)
        return tuple(
            name
            for part in self.parts
            for name in (
                [f"{column}.{part}[{level}]" for level in LEVELS[part][1:]]
                if part in LEVELS
                else [f"{column}.{part}"]
            )
        )

    def bounds(self) -> tuple[Ends, ...]:
        """Return the ends of each part."""
        if not self.parts:
            return (UNBOUNDED,)
        ends: list[Ends] = []
        for part in self.parts:
            ends += [(0.0, 1.0)] * (len(LEVELS[part]) - 1) if part in LEVELS else [NUMBERS[part]]
        return tuple(ends)

    def encode(self, cells: Cells) -> list[Array]:
        """Return the time since the day, or the parts."""
        times, there = to_times(cells)
        if not self.parts:
            elapsed = (times - microseconds_to(_day(self.since))).astype(np.float64)
            return [np.where(there, elapsed / float(UNITS[self.unit]), np.nan)]
        stamps = times.view("datetime64[us]")
        found: list[Array] = []
        for part in self.parts:
            if part == "weekday":
                # The first day of 1970 was a Thursday.
                whole = (times // DAY + 3) % 7
            elif part == "hour":
                whole = times // UNITS["hour"] % 24
            elif part == "year":
                whole = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
            elif part == "month":
                whole = stamps.astype("datetime64[M]").astype(np.int64) % 12
            else:
                day, month = stamps.astype("datetime64[D]"), stamps.astype("datetime64[M]")
                whole = (day - month).astype(np.int64) + 1
            if part in LEVELS:
                found += indicators(np.where(there, whole, -2), len(LEVELS[part]))
            else:
                found.append(np.where(there, whole.astype(np.float64), np.nan))
        return found


def _day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def date(
    since: str = "2000-01-01", unit: str = "day", parts: Sequence[str] = (), *, gaps: bool | None = None
) -> DateKind:
    """Say that a column holds dates or times.

    Times with a zone are those of UTC. In text, dates and times are those of ISO 8601, such as
    ``2024-02-29`` and ``2024-02-29 18:30:00+01:00``.

    Parameters
    ----------
    since : str, default "2000-01-01"
        A column of the time since this day, which may be negative. A day amid your dates is best.
    unit : str, default "day"
        What the time is counted in: "second", "minute", "hour", "day" or "week".
    parts : sequence of str, optional
        Take these parts instead: "weekday" and "month" as levels, "hour", "day" and "year" as numbers.
    gaps : bool, optional
        Whether values may be missing, for ``missing="pairwise"``; see `number`.

    Returns
    -------
    DateKind

    Examples
    --------
    >>> import pandas as pd
    >>> import dpcov
    >>> visits = pd.DataFrame({"visit": pd.to_datetime(["2024-02-28", "2024-03-01"] * 5000)})
    >>> made = dpcov.release(visits, rho=1, columns={"visit": dpcov.date(since="2024-01-01")})
    >>> made.mean().values.round()
    array([59.])
    """
    return DateKind(since, unit, parts, gaps)  # type: ignore[arg-type]
