"""Dask dataframes and arrays: one task per partition, added up on the cluster.

A scan is a graph of pure functions: partition to integers, integers to their sum. If a worker
dies, Dask computes what is missing again; a result enters the sum in one place only, so nothing
counts twice. Noise is drawn by the caller, never in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcov._extras import require
from dpcov.arrays import Array
from dpcov.core import ArgumentError, Report, RowTask, SourceChangedError, SourceError
from dpcov.sources import _remote
from dpcov.sources._held import choose
from dpcov.sources._scan import quietly
from dpcov.sources._table import check_shape
from dpcov.sources.arrays import array_encoding, check_array, frame_encoding
from dpcov.sources.arrow import opening
from dpcov.sources.encoding import Columns, Encoding
from dpcov.sources.encoding.ids import find_ids
from dpcov.sources.grouped import check_units

_FAN_IN = 8
_HELD_PARTS = 8  # so few that a scan of them takes little more than its rows do


class DaskSource:
    """A Dask dataframe or array, on whatever client is active, or on threads if none is.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array
        Computed anew for each scan, unless it is persisted.
    columns : sequence of str or mapping, optional
        Which columns of a dataframe to use, all by default, or for an array, their names; and their kinds, if
        it is a mapping. Where one tells whose a row is, rows are shuffled so that each unit lies in one
        partition.
    """

    def __init__(self, data: Any, columns: Columns = None) -> None:
        self._dask = require("dask", "dask")
        if hasattr(data, "chunks"):
            check_array(data.ndim, data.dtype)
            self._encoding = array_encoding(columns, data.shape[1], data.dtype)
            self._parts = list(data.rechunk({1: -1}).to_delayed()[:, 0])
        else:
            self._encoding = frame_encoding(nw.from_native(data).collect_schema(), columns, data)
            chosen, ids = data[list(self._encoding.raw)], find_ids(self._encoding)
            if ids is not None:
                chosen = chosen.shuffle(self._encoding.raw[ids[0]])
            self._parts = list(chosen.to_delayed())
        measures = self._measure()
        self._lengths = [found.n_rows for found in measures]
        self._first_rows = [0, *accumulate(self._lengths)][:-1]
        if self.grouped:
            check_units(self.n_rows)
        check_shape(self.n_rows, self._encoding)

    def _measure(self) -> list[_remote.Measure]:
        measure = self._dask.delayed(_remote.measure, pure=False)
        nodes = [measure(part, self._encoding) for part in self._parts]
        (found,) = opening("data", lambda: self._dask.compute(nodes))
        for measured in found:
            if measured.problem:
                # Not which one: where a partition ends may depend on rows.
                raise ArgumentError(f"a partition of data cannot be used: {measured.problem}")
        return list(found)

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units."""
        return sum(self._lengths)

    @property
    def encoding(self) -> Encoding:
        """Which columns are read, and the numbers that a row of them becomes."""
        return self._encoding

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several."""
        return find_ids(self._encoding) is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names."""
        return self._encoding.columns

    @property
    def bounds(self) -> Array:
        """The public lower and upper ends of the columns, which every row keeps."""
        return self._encoding.bounds

    @property
    def in_memory(self) -> bool:
        """False: rows may come in another order each time, and how they are cut may depend on them."""
        return False

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over all partitions and add up their totals on the cluster; nothing is reported."""
        del report
        # One node of the graph: it travels once to a worker, not once with each partition.
        packed = self._dask.delayed(_remote.keep, pure=False)(_remote.pack(task))
        run = self._dask.delayed(_remote.run, pure=False)
        leaves = [
            run(part, self._encoding, length, packed, task.notes(first, length))
            for part, length, first in zip(self._parts, self._lengths, self._first_rows, strict=True)
        ]
        total = _tree(leaves, self._dask.delayed(_remote.add, pure=False))
        (partial,) = quietly(lambda: self._dask.compute(total), _failed)
        return _remote.unwrap(partial, self.n_rows)

    def hold(self, positions: NDArray[np.int64], report: Report | None = None) -> DaskHeldRows:
        """Keep the rows at these positions on the workers, in few partitions."""
        del report
        hold = self._dask.delayed(_remote.hold, pure=False)
        held = [
            hold(part, self._encoding, length, chosen)
            for part, length, chosen in zip(
                self._parts, self._lengths, choose(positions, self._lengths), strict=True
            )
        ]
        share = -(-len(held) // _HELD_PARTS)
        join = self._dask.delayed(_remote.join, pure=False)
        joined = [join(held[i : i + share]) for i in range(0, len(held), share)]
        return DaskHeldRows(self._dask, quietly(lambda: self._dask.persist(*joined), _failed))


class DaskHeldRows:
    """Rows that workers keep.

    Parameters
    ----------
    dask : module
        Dask itself.
    parts : sequence of Delayed
        They are computed once. If one is lost, and computed again, scans are refused.
    """

    def __init__(self, dask: Any, parts: Sequence[Any]) -> None:
        self._dask, self._parts = dask, parts
        tell = dask.delayed(_remote.without_rows, pure=False)
        (held,) = quietly(lambda: dask.compute([tell(part) for part in parts]), _failed)
        for some in held:
            if some.problem:
                raise SourceError(f"the rows could not be read: {some.problem}")
            if some.changed:
                raise _remote.changed()
        self._words = [some.word for some in held]

    def scan(self, task: RowTask, n_rows: int, report: Report | None = None) -> NDArray[np.int64]:
        """Run `task` over the first `n_rows` rows and add up the totals; nothing is reported."""
        del report
        packed = self._dask.delayed(_remote.keep, pure=False)(_remote.pack(task))
        run = self._dask.delayed(_remote.run_held, pure=False)
        leaves = [
            run(part, word, n_rows, packed) for part, word in zip(self._parts, self._words, strict=True)
        ]
        total = _tree(leaves, self._dask.delayed(_remote.add, pure=False))
        (partial,) = quietly(lambda: self._dask.compute(total), _failed)
        if partial.changed:
            raise SourceChangedError("a worker lost rows that it kept, and read them in another order.")
        return _remote.unwrap(partial, n_rows)


def _failed(kind: str) -> SourceError:
    return SourceError(f"the Dask computation failed ({kind}); does data.compute() succeed?")


def _tree(nodes: Sequence[Any], add: Callable[[list[Any]], Any]) -> Any:
    """Add up few at a time until one is left."""
    while True:
        nodes = [add(list(nodes[i : i + _FAN_IN])) for i in range(0, len(nodes), _FAN_IN)]
        if len(nodes) == 1:
            return nodes[0]
