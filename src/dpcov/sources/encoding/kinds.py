"""Kinds of columns: what a column holds, and the numbers that its cells become."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import flag as checked_flag
from dpcov.checks import number as checked_number
from dpcov.core import ArgumentError
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.texts import numbers_in, places_among

Ends = tuple[float, float]

_NO = ("f", "false", "n", "no", "0", "0.0")
_YES = ("t", "true", "y", "yes", "1", "1.0")

UNBOUNDED: Ends = (-math.inf, math.inf)


class Kind(ABC):
    """What a column holds. All of it is public, and none of it comes from rows."""

    reads: ClassVar[frozenset[str]]
    """What a column may hold, by its type, to be read as this kind: see `ColumnType`."""

    gaps: bool | None
    """Whether values may be missing; None if that was not said. It matters where each column has its rows."""

    def check_gaps(self) -> None:
        """Raise an `ArgumentError` unless `gaps` is a truth value, or was not said."""
        if self.gaps is not None:
            checked_flag(self.gaps, "gaps")

    def fails_on(self, holds: str) -> bool:
        """Whether a value that is there may be missing to this kind, in a column that holds such."""
        return holds not in ("number", "flag")

    def is_share(self, name: str) -> bool:
        """Whether the column of numbers of that name holds 0 and 1 alone, so that its mean is a share."""
        del name
        return False

    def levels_by_name(self, column: str) -> dict[str, tuple[str, ...]]:
        """Return names for all levels of each category that `column` becomes, if it becomes one."""
        del column
        return {}

    @abstractmethod
    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the columns of numbers that `column` becomes."""

    @abstractmethod
    def bounds(self) -> tuple[Ends, ...]:
        """Return the lower and upper end of each of these."""

    @abstractmethod
    def encode(self, cells: Cells) -> list[Array]:
        """Return these columns of numbers; a cell that cannot be read is NaN in each of them."""


@dataclass(frozen=True)
class NumberKind(Kind):
    """Numbers, clipped to public bounds where there are any; see `number`."""

    reads = frozenset({"number", "flag", "text"})

    lower: float | None = None
    upper: float | None = None
    gaps: bool | None = None

    def __post_init__(self) -> None:
        self.check_gaps()
        for name, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None:
                object.__setattr__(self, name, checked_number(end, name))
        lower, upper = self.ends
        if not lower < upper:
            raise ArgumentError(f"lower must be below upper, got {lower:g} and {upper:g}.")

    @property
    def ends(self) -> Ends:
        """The bounds, infinite where there are none."""
        return (
            -math.inf if self.lower is None else self.lower,
            math.inf if self.upper is None else self.upper,
        )

    def names(self, column: str) -> tuple[str, ...]:
        """Return the name itself."""
        return (column,)

    def bounds(self) -> tuple[Ends, ...]:
        """Return the lower and upper end."""
        return (self.ends,)

    def encode(self, cells: Cells) -> list[Array]:
        """Return the numbers, clipped; what is not finite is missing."""
        numbers = _numbers(cells)
        if self.ends != UNBOUNDED:
            numbers = np.asarray(numbers, dtype=np.float64)
            numbers = np.where(np.isfinite(numbers), np.clip(numbers, *self.ends), np.nan)
        return [numbers]


@dataclass(frozen=True)
class FlagKind(Kind):
    """Yes or no, as 1 or 0; see `flag`."""

    reads = frozenset({"number", "flag", "text"})

    gaps: bool | None = None

    def __post_init__(self) -> None:
        self.check_gaps()

    def fails_on(self, holds: str) -> bool:
        """Whether it may be neither 0 nor 1."""
        return holds != "flag"

    def is_share(self, name: str) -> bool:
        """Say yes: yes is 1, and no is 0."""
        del name
        return True

    def names(self, column: str) -> tuple[str, ...]:
        """Return the name itself."""
        return (column,)

    def bounds(self) -> tuple[Ends, ...]:
        """Return 0 and 1."""
        return ((0.0, 1.0),)

    def encode(self, cells: Cells) -> list[Array]:
        """Return 0, 1, or NaN for what is neither."""
        if isinstance(cells, np.ndarray):
            numbers = np.asarray(cells, dtype=np.float64)
            return [np.where((numbers == 0) | (numbers == 1), numbers, np.nan)]
        places = places_among(cells, [*_NO, *_YES], any_case=True)
        return [np.where(places < 0, np.nan, places >= len(_NO))]


def _numbers(cells: Cells) -> Array:
    return cells if isinstance(cells, np.ndarray) else numbers_in(cells)  # type: ignore[return-value]


def number(lower: float | None = None, upper: float | None = None, *, gaps: bool | None = None) -> NumberKind:
    """Say that a column holds numbers, within public bounds if you know any.

    Parameters
    ----------
    lower, upper : float, optional
        Values beyond are moved to the nearest end. They must not come from the rows: an age may be said to
        lie between 0 and 120, but the largest age in the table is a fact about a person.
    gaps : bool, optional
        Whether values may be missing, which must be public as well. It matters with ``missing="pairwise"``
        alone: a column that has none needs no column that tells where they are. By default values may be
        missing, unless a schema of Arrow says that none is.

    Returns
    -------
    NumberKind

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> kinds = {"height": dpcov.number(100, 220), "weight": dpcov.number()}
    >>> dpcov.release(people, rho=1, columns=kinds).mean().values.round()
    array([170.,  62.])
    """
    return NumberKind(lower, upper, gaps)


def flag(*, gaps: bool | None = None) -> FlagKind:
    """Say that a column holds yes or no: booleans, 1 and 0, or in text also t/f, true/false, y/n, yes/no.

    Whether there may be `gaps` matters with ``missing="pairwise"``; see `number`.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpcov
    >>> flights = pd.DataFrame({"late": [True, False, False, False, False] * 4000})
    >>> dpcov.release(flights, rho=1, columns={"late": dpcov.flag()}).mean().values.round(1)
    array([0.2])
    """
    return FlagKind(gaps)
