"""What runs on other machines: a task over one partition of a table.

It returns integers and public words. It never raises: a cluster logs an error together with the
arguments of the call, and these are rows.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov.core import DpcovError, RowTask, SourceChangedError, SourceError
from dpcov.sources._held import Chosen, CopyRows, HeldPart
from dpcov.sources._scan import add_totals
from dpcov.sources._table import Table
from dpcov.sources.arrays import ArraySource, FrameSource
from dpcov.sources.encoding import Encoding
from dpcov.sources.encoding.ids import find_ids
from dpcov.sources.grouped import encoded_units, sort_by_unit


@dataclass(frozen=True, eq=False)
class Partial:
    """The total of some partitions, or a public word about what went wrong."""

    n_rows: int
    total: NDArray[np.int64] | None = field(repr=False)
    changed: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Measure:
    """The public size of a partition, or a public word about what is wrong with it."""

    n_rows: int
    problem: str = ""


def pack(task: RowTask) -> bytes:
    """Return what all partitions need of a task."""
    return pickle.dumps(task.with_notes(np.empty(0, dtype=np.int64)))


def keep(packed: bytes) -> bytes:
    """Return a packed task as it is."""
    return packed


def measure(part: Any, encoding: Encoding) -> Measure:
    """Count the rows of a partition, or its units, and see whether its columns are there, of any types."""
    try:
        if find_ids(encoding) is not None:
            return Measure(count_units(part, encoding))
        if not isinstance(part, np.ndarray):
            nw.from_native(part, eager_only=True).select(encoding.raw)
        return Measure(len(part))
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Measure(0, _public(error))


def run(part: Any, encoding: Encoding, n_rows: int, packed: bytes, notes: NDArray[np.int64]) -> Partial:
    """Run a packed task over one partition: a numpy array, or some columns of a dataframe."""
    try:
        task: RowTask = pickle.loads(packed).with_notes(notes)  # noqa: S301  (packed by `pack`)
        if find_ids(encoding) is not None:
            total = run_units(part, encoding, task, n_rows)
            return Partial(0, None, changed=True) if total is None else Partial(n_rows, total)
        if len(part) != n_rows:
            return Partial(0, None, changed=True)
        if n_rows == 0:
            return Partial(0, task.worker().total())
        return Partial(n_rows, _open(part, encoding).scan(task))
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Partial(0, None, problem=_public(error))


@dataclass(frozen=True)
class Held:
    """Rows that a worker keeps, with a word that nobody can guess; or a public word about what went wrong.

    A cluster may lose them and compute them again, from rows that now lie in another order. The word is then
    another one.
    """

    word: str = ""
    part: HeldPart | None = field(default=None, repr=False)
    changed: bool = False
    problem: str = ""


def hold(part: Any, encoding: Encoding, n_rows: int, chosen: Chosen) -> Held:
    """Keep some rows of a partition: a numpy array, or some columns of a dataframe."""
    try:
        if len(part) != n_rows:
            return Held(changed=True)
        copied = CopyRows(chosen.rows, n_rows, len(encoding.columns))
        if len(chosen.rows):
            _open(part, encoding).scan(copied)
        return Held(secrets.token_hex(), HeldPart(copied.rows, chosen.places))
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Held(problem=_public(error))


def join(held: Sequence[Held]) -> Held:
    """Put together what is kept of several partitions."""
    try:
        parts = [some.part for some in held if some.part is not None]
        if len(parts) < len(held):
            return next(some for some in held if some.part is None)
        places = np.concatenate([part.places for part in parts])
        order = np.argsort(places)
        rows = np.concatenate([part.rows for part in parts])
        return Held(secrets.token_hex(), HeldPart(rows[order], places[order]))
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Held(problem=_public(error))


def without_rows(held: Held) -> Held:
    """Return all of it that leaves the worker."""
    return replace(held, part=None)


def run_held(held: Held, word: str, n_rows: int, packed: bytes) -> Partial:
    """Run a packed task over those of the first `n_rows` rows that are kept here."""
    try:
        if held.part is None or held.word != word:
            return Partial(0, None, changed=True)
        return Partial(*held.part.scan(pickle.loads(packed), n_rows))  # noqa: S301  (packed by `pack`)
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Partial(0, None, problem=_public(error))


def count_units(part: Any, encoding: Encoding) -> int:
    """Return how many units a partition has; all rows of a unit lie in one."""
    found = find_ids(encoding)
    frame = nw.from_native(part, eager_only=True).select(encoding.raw)
    return 0 if found is None else len(sort_by_unit(frame.get_column(encoding.raw[found[0]]))[1])


def run_units(part: Any, encoding: Encoding, task: RowTask, n_units: int) -> NDArray[np.int64] | None:
    """Run a task over the units of a partition; None if they are not as many as they were."""
    if count_units(part, encoding) != n_units:
        return None
    if n_units == 0:
        return task.worker().total()
    return encoded_units(nw.from_native(part, eager_only=True), encoding, threads=1).scan(task)


def add(partials: Sequence[Partial]) -> Partial:
    """Add up the totals of several partitions."""
    try:
        for partial in partials:
            if partial.total is None:
                return partial
        totals = [partial.total for partial in partials if partial.total is not None]
        return Partial(sum(partial.n_rows for partial in partials), add_totals(totals))
    except Exception as error:  # noqa: BLE001  (never raise: see above)
        return Partial(0, None, problem=_public(error))


def unwrap(partial: Partial, n_rows: int) -> NDArray[np.int64]:
    """Return the total of the whole table, or raise what went wrong."""
    if partial.total is not None and partial.n_rows == n_rows:
        return partial.total
    if partial.problem:
        raise SourceError(f"the rows could not be read: {partial.problem}")
    raise changed()


def changed() -> SourceChangedError:
    """Return the error for a table that is not what it was."""
    return SourceChangedError(
        "a partition has another number of rows or units than when the table was opened. Persist the "
        "table, or write it to files, if it is not computed the same way every time."
    )


def _open(part: Any, encoding: Encoding) -> Table:
    if isinstance(part, np.ndarray):
        return ArraySource(part, encoding, threads=1)
    return FrameSource(nw.from_native(part, eager_only=True), encoding, threads=1)


def _public(error: Exception) -> str:
    return str(error) if isinstance(error, DpcovError) else f"{type(error).__name__}."
