"""Tables whose rows are grouped into units, such as all rows of one person: every unit comes whole.

Rows are sorted by unit first, here or by whoever made the inner table; a claim that they are sorted is never
believed. A row without an id belongs to nobody and is left out. A unit with more rows than
`dpcov.core.units.longest_unit` comes without any. ``core/units.md`` says what privacy asks of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError, RowTask
from dpcov.core.units import Units, longest_unit
from dpcov.sources._scan import Piece, Stream, cut
from dpcov.sources._table import Table
from dpcov.sources.arrays import ArraySource, FrameSource, array_encoding, check_array, frame_encoding
from dpcov.sources.encoding import Columns, Encoding, NumberKind, declared
from dpcov.sources.encoding.ids import IdKind, find_ids, with_ids, without_id
from dpcov.sources.encoding.texts import MISSING


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which rows make a unit, and how units count.

    Attributes
    ----------
    ids : str or array
        The column that tells whose a row is; of a table in memory, also one id for each row.
    even : bool
        Whether every unit counts the same, not every row.
    """

    ids: Any = field(repr=False)
    even: bool = False

    @property
    def column(self) -> str | None:
        """The name of the column, if it is one of the table's."""
        return self.ids if isinstance(self.ids, str) else None


class GroupedTable(Table):
    """An inner table whose rows lie sorted by unit.

    Parameters
    ----------
    inner : Table
        Its pieces come in the order of its rows.
    ends : ndarray of int64
        Where each unit ends.
    even : bool
        Whether every unit counts the same, not every row.
    told : Encoding, optional
        What the columns hold, if the inner table does not know it.
    """

    def __init__(
        self, inner: Table, ends: NDArray[np.int64], *, even: bool, told: Encoding | None = None
    ) -> None:
        check_units(len(ends))
        # What pieces give are the inner table's numbers already.
        numbers = Encoding(inner.columns, (NumberKind(),) * len(inner.columns))
        super().__init__(len(ends), numbers, threads=inner.threads)
        self._inner = inner
        self._told = inner.encoding if told is None else told
        self._ends, self._even = ends, even
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        self._too_long = ends - self._starts > longest_unit(len(inner.columns))

    @property
    def encoding(self) -> Encoding:
        """What the columns hold, and the numbers that a row of them became in the inner table."""
        return self._told

    @property
    def bounds(self) -> Array:
        """The public lower and upper ends of the columns, which every row keeps."""
        return self._told.bounds

    @property
    def grouped(self) -> bool:
        """True: the number of rows of a unit is not public."""
        return True

    def _streams(self, task: RowTask | None) -> Sequence[Stream]:
        def pieces() -> Iterator[Piece]:
            for stream in self._inner.streams(task):
                yield from stream()

        return [lambda: self._regrouped(pieces())]

    def _regrouped(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Cut where units end: what is left of a piece waits for the next one."""
        unit = 0
        waiting: list[Piece] = []
        for piece in pieces:
            waiting.append(piece)
            stop = int(np.searchsorted(self._ends, piece.first_row + piece.n_rows, side="right"))
            for first, last in self._runs(unit, stop):
                yield self._piece(first, last, waiting)
            unit = stop
            if unit == len(self._ends) or self._too_long[unit]:
                waiting = []
            else:
                waiting = [one for one in waiting if one.first_row + one.n_rows > self._starts[unit]]

    def _runs(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Cut a run of units such that those that are too long stand alone."""
        for place in np.flatnonzero(self._too_long[first:last]) + first:
            if first < place:
                yield first, int(place)
            yield int(place), int(place) + 1
            first = int(place) + 1
        if first < last:
            yield first, last

    def _piece(self, first: int, last: int, waiting: Sequence[Piece]) -> Piece:
        start, stop = int(self._starts[first]), int(self._ends[last - 1])
        if self._too_long[first]:
            stop = start
        parts = [one for one in waiting if one.first_row < stop and one.first_row + one.n_rows > start]
        ends = np.minimum(self._ends[first:last], stop) - start
        encoding = self._inner.encoding
        load = partial(_join, encoding, parts, start, stop) if parts else partial(_no_rows, len(self.columns))
        return Piece(first, last - first, load, Units(ends, self._even))


def _join(encoding: Encoding, pieces: Sequence[Piece], start: int, stop: int) -> Any:
    blocks = [
        cut(
            encoding.encode(one.cells()), max(start - one.first_row, 0), min(stop - one.first_row, one.n_rows)
        )
        for one in pieces
    ]
    if len(blocks) == 1:
        return blocks[0]
    return [np.concatenate(columns) for columns in zip(*blocks, strict=True)]


def _no_rows(n_columns: int) -> Any:
    return np.empty((n_columns, 0))


def check_units(n_units: int) -> None:
    """Raise an `ArgumentError` if there are no units."""
    if n_units < 1:
        raise ArgumentError("privacy_unit is missing in every row: there is nobody to protect.")


def grouped_array(array: NDArray[Any], columns: Columns, grouping: Grouping) -> GroupedTable:
    """Return an array, sorted by unit."""
    check_array(array.ndim, array.dtype)
    schema, own = declared(columns), grouping.column
    names = schema.names or tuple(f"x{i}" for i in range(array.shape[1]))
    ids: Any
    if own is None:
        ids, kept = read_ids(grouping.ids, len(array)), array
        encoding = array_encoding(schema, array.shape[1], array.dtype)
    else:
        array_encoding(replace(schema, names=names, terms=()), array.shape[1], array.dtype)
        check_unit_column(own, names)
        place = names.index(own)
        ids, kept = array[:, place], np.delete(array, place, axis=1)
        schema = replace(schema, names=tuple(name for name in names if name != own))
        encoding = array_encoding(schema, kept.shape[1], array.dtype)
    order, ends = sort_by_unit(ids)
    check_units(len(ends))
    return GroupedTable(ArraySource(kept[order], encoding), ends, even=grouping.even)


def grouped_frame(frame: nw.DataFrame[Any], columns: Columns, grouping: Grouping) -> GroupedTable:
    """Return a dataframe in memory, sorted by unit."""
    own, native = grouping.column, nw.to_native(frame)
    if own is not None:
        check_unit_column(own, frame.columns)
        told = with_ids(columns, own, even=grouping.even)
        return encoded_units(frame, frame_encoding(frame.schema, told, native))
    ids = read_ids(grouping.ids, len(frame))
    return _sorted_frame(frame, ids, frame_encoding(frame.schema, columns, native), even=grouping.even)


def encoded_units(
    frame: nw.DataFrame[Any], encoding: Encoding, *, threads: int | None = None
) -> GroupedTable:
    """Return a dataframe in memory whose encoding has ids, sorted by unit."""
    place, kind = find_ids(encoding) or (0, IdKind())
    ids = frame.get_column(encoding.raw[place])
    return _sorted_frame(frame, ids, without_id(encoding), even=kind.even, threads=threads)


def _sorted_frame(
    frame: nw.DataFrame[Any], ids: Any, encoding: Encoding, *, even: bool, threads: int | None = None
) -> GroupedTable:
    order, ends = sort_by_unit(ids)
    check_units(len(ends))
    return GroupedTable(FrameSource(frame[order], encoding, threads=threads), ends, even=even)


def check_unit_column(own: str, present: Sequence[str]) -> None:
    """Raise an `ArgumentError` unless the table has the column that says to whom a row belongs."""
    if own not in present:
        near = did_you_mean([own], [name for name in present if isinstance(name, str)])
        raise ArgumentError(f"privacy_unit must be a column of data, got {own!r}. {near}".strip())


def sort_by_unit(ids: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the rows that have an id, sorted by unit, and where each unit ends.

    Ids are equal if their values are, in the type of their column. A value that cannot be compared is no id.
    """
    values, places = ids, np.arange(len(ids))
    if isinstance(ids, nw.Series) and getattr(nw.to_native(ids), "dtype", None) == np.dtype(object):
        # Whether an object is missing is for us to say: to compare it may fail.
        values = np.asarray(nw.to_native(ids), dtype=object)
    elif isinstance(ids, nw.Series):
        # Without missing values first: they would turn whole numbers into floats.
        present = ~ids.is_null()
        values, places = ids.filter(present).to_numpy(), np.flatnonzero(present.to_numpy())
    if values.dtype.kind not in "biufMm":
        values = _numbered(values)
        known = values >= 0
    else:
        # Neither NaN nor a missing time is equal to itself.
        known = values == values  # noqa: PLR0124
    values, places = values[known], places[known]
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
    return places[order], ends[ends > 0].astype(np.int64)


def _numbered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each different object, and -1 for what is missing or cannot be compared."""
    known: dict[Any, int] = dict.fromkeys([None, *MISSING], -1)

    def number(value: Any) -> int:
        try:
            return known.setdefault(value, len(known)) if value == value else -1  # noqa: PLR0124
        except Exception:  # noqa: BLE001  (a list, a missing value: whatever it is, it is no id)
            return -1

    return np.array([number(value) for value in values.tolist()], dtype=np.int64)


def read_ids(ids: Any, n_rows: int) -> Any:
    """Return ids that were given beside a table, one for each of its rows, or raise an `ArgumentError`."""
    series = nw.from_native(ids, series_only=True, pass_through=True)
    if isinstance(ids, list | tuple):
        series = np.empty(len(ids), dtype=object)
        series[:] = ids
    elif not isinstance(series, nw.Series):
        series = np.asarray(ids)
        if series.ndim != 1:
            raise ArgumentError("privacy_unit must be the name of a column, or one id for each row.")
    if len(series) != n_rows:
        raise ArgumentError("privacy_unit must have one id for each row of data.")
    return series
