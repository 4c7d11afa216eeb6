"""Categories: one of several levels that are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.checks import flag as checked_flag
from dpcov.core import ArgumentError
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.kinds import Ends, Kind
from dpcov.sources.encoding.texts import places_among

OTHER = "other"
"""The level of what was not declared."""

_MOST_LEVELS = 10_000
_WORDS = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True)
class CategoryKind(Kind):
    """One of several levels, coded by a 0/1 column for each level but the first; see `category`."""

    reads = frozenset({"number", "flag", "text"})

    levels: tuple[str, ...] | None = None
    other: bool = True
    gaps: bool | None = None

    def __post_init__(self) -> None:
        self.check_gaps()
        checked_flag(self.other, "other")
        if self.levels is None:
            return
        if isinstance(self.levels, str | bytes) or not isinstance(self.levels, Sequence):
            raise ArgumentError('levels must be a list, such as ["north", "south"].')
        levels = tuple(_level(level) for level in self.levels)
        if len(set(levels)) != len(levels):
            raise ArgumentError("levels must not repeat one.")
        if not 1 <= len(levels) <= _MOST_LEVELS:
            raise ArgumentError(f"levels must be between 1 and {_MOST_LEVELS}, got {len(levels)}.")
        if len(levels) + self._has_other(levels) < 2:
            raise ArgumentError("levels must be at least two, or one and other=True.")
        object.__setattr__(self, "levels", levels)

    def fails_on(self, holds: str) -> bool:
        """Whether it may be none of the levels."""
        return not self.other or super().fails_on(holds)

    def is_share(self, name: str) -> bool:
        """Say yes: a row has one level."""
        del name
        return True

    def _has_other(self, levels: tuple[str, ...]) -> bool:
        return self.other and OTHER not in levels

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """The levels, with that of all others if there is one."""
        levels = self.levels or ()
        return (*levels, OTHER) if self._has_other(levels) else levels

    def levels_by_name(self, column: str) -> dict[str, tuple[str, ...]]:
        """Return names for all levels, the first one too."""
        return {column: tuple(f"{column}[{level}]" for level in self.all_levels)}

    def names(self, column: str) -> tuple[str, ...]:
        """Return a name for each level but the first, which the others are compared with."""
        return tuple(f"{column}[{level}]" for level in self.all_levels[1:])

    def bounds(self) -> tuple[Ends, ...]:
        """Return 0 and 1 for each."""
        return ((0.0, 1.0),) * (len(self.all_levels) - 1)

    def encode(self, cells: Cells) -> list[Array]:
        """Return a column of 0 and 1 for each level but the first."""
        codes = self._numeric_codes(cells) if isinstance(cells, np.ndarray) else self._codes(cells)
        return indicators(codes, len(self.all_levels))

    def _codes(self, texts: Cells) -> NDArray[np.int64]:
        levels = self.levels or ()
        aliases = {alias: place for place, level in enumerate(levels) for alias in _aliases(level)}
        words = [*levels, *(alias for alias in aliases if alias not in levels)]
        places = [*range(len(levels)), *(place for alias, place in aliases.items() if alias not in levels)]
        return self._declared(np.array([*places, -2, -1])[places_among(texts, words)])

    def _numeric_codes(self, cells: NDArray[np.generic]) -> NDArray[np.int64]:
        levels = self.levels or ()
        known = [(_as_number(level), place) for place, level in enumerate(levels)]
        known = sorted((value, place) for value, place in known if not math.isnan(value))
        numbers = np.asarray(cells, dtype=np.float64)
        codes = np.full(len(numbers), -1, dtype=np.int64)
        if known:
            values, places = np.array([v for v, _ in known]), np.array([p for _, p in known])
            near = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
            codes = np.where(values[near] == numbers, places[near], -1)
        return self._declared(np.where(np.isfinite(numbers), codes, -2))

    def _declared(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give what was not declared (-1) its level, or none: then it is missing (-2)."""
        other = self.all_levels.index(OTHER) if self.other else -2
        return np.where(codes == -1, other, codes)


def indicators(codes: NDArray[np.int64], n_levels: int) -> list[Array]:
    """Return a column of 0 and 1 for each level but the first; NaN where a code is negative."""
    absent = codes < 0
    return [np.where(absent, np.nan, codes == level) for level in range(1, n_levels)]


def _level(level: object) -> str:
    if isinstance(level, bool | np.bool_):
        return str(level).lower()
    if isinstance(level, int | np.integer):
        return str(int(level))
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    if isinstance(level, float | np.floating) and math.isfinite(level):
        return repr(float(level))
    if not isinstance(level, str) or level != level.strip():
        raise ArgumentError(f"levels must be texts without spaces around, or numbers; got {level!r}.")
    return level


def _aliases(level: str) -> list[str]:
    """Return how else programs write a level: whole numbers as floats, booleans with capitals."""
    if level in _WORDS:
        return [level.capitalize(), level.upper()]
    whole = level.isascii() and level.removeprefix("-").isdecimal()
    return [f"{level}.0"] if whole else []


def _as_number(level: str) -> float:
    try:
        return _WORDS[level] if level in _WORDS else float(level)
    except ValueError:
        return math.nan


def category(
    levels: Sequence[object] | None = None, *, other: bool = True, gaps: bool | None = None
) -> CategoryKind:
    """Say that a column holds one of several levels.

    Each level but the first becomes a column of 0 and 1, named such as ``region[south]``: the share of rows
    that have it, and in a regression its difference from the first level.

    Parameters
    ----------
    levels : sequence, optional
        All levels that you know of, as text or numbers, the one to compare with first. They must be public,
        and not come from the rows: a level that one person has would tell about that person. Only a type that
        lists its levels (an ``Enum`` of polars, a ``CategoricalDtype`` of pandas that you wrote) may stand in
        for them; do not use ``astype("category")`` for that, which takes them from the rows.
    other : bool, default True
        Whether what is not among the levels counts as one more, called "other". If not, it is missing.
    gaps : bool, optional
        Whether values may be missing, for ``missing="pairwise"``; see `number`.

    Returns
    -------
    CategoryKind

    Examples
    --------
    >>> import pandas as pd
    >>> import dpcov
    >>> people = pd.DataFrame({"region": ["north", "south", "south", "east"] * 5000})
    >>> made = dpcov.release(people, rho=1, columns={"region": dpcov.category(["north", "south"])})
    >>> made.columns
    ('region[south]', 'region[other]')
    >>> made.mean().values.round(2)
    array([0.5 , 0.25])
    """
    return CategoryKind(levels, other, gaps)  # type: ignore[arg-type]
