"""What runs on other machines: a task over one partition of a table.

It returns integers and public words. It never raises: a cluster logs an error together with the
arguments of the call, and these are rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov.core import DpcovError, RowTask, SourceChangedError, SourceError
from dpcov.sources._scan import add_totals
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
        if isinstance(part, np.ndarray):
            return Partial(n_rows, ArraySource(part, encoding, threads=1).scan(task))
        frame = nw.from_native(part, eager_only=True)
        return Partial(n_rows, FrameSource(frame, encoding, threads=1).scan(task))
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
    raise SourceChangedError(
        "a partition has another number of rows or units than when the table was opened. Persist the "
        "table, or write it to files, if it is not computed the same way every time."
    )


def _public(error: Exception) -> str:
    return str(error) if isinstance(error, DpcovError) else f"{type(error).__name__}."
