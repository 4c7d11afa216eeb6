"""A row task run over a random sample of the rows only, drawn without a look at them.

The proof note is ``../order.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource
from dpcov.core.passes import Block
from dpcov.core.tasks import RowTask, RowWorker
from dpcov.core.units import Units

_SAMPLED_BLOCK = 1 << 16
_SPARSE = 64  # with more rows for each sampled one, marks for all cost more than sorting the sample
_DRAWN_TOGETHER = 1 << 14  # in pieces that long, memory is used again instead of asked for anew
_MANY_TIMES = 8  # with more rows for each drawn one, a place for all costs more than sorting the drawn ones
_FEW_ROWS = 1 << 25  # of which half a word tells one: less than one in 128 is drawn in vain


def sampled_rows(n_rows: int, every: int) -> int:
    """Return how many rows a scan of one row in `every` looks at."""
    return -(-n_rows // every)


def random_positions(bits: BitSource, n_rows: int, count: int) -> NDArray[np.int64]:
    """Return `count` positions below `n_rows` in ascending order: every such set is equally likely.

    Uniform positions are drawn, as many as are still missing, until that many distinct ones are there.
    No position is treated unlike another, so no set of the size is likelier than another.
    """
    if n_rows > _SPARSE * count:
        chosen = np.empty(0, dtype=np.int64)
        while len(chosen) < count:
            chosen = np.unique(np.append(chosen, _uniform_positions(bits, n_rows, count - len(chosen))))
        return chosen
    marked, missing = np.zeros(n_rows, dtype=np.bool_), count
    while missing:
        for first in range(0, missing, _DRAWN_TOGETHER):
            marked[_uniform_positions(bits, n_rows, min(missing - first, _DRAWN_TOGETHER))] = True
        missing = count - int(np.count_nonzero(marked))
    return np.flatnonzero(marked)


def random_order(bits: BitSource, n_rows: int, count: int) -> NDArray[np.int64]:
    """Return `count` positions below `n_rows` in random order: every such sequence is equally likely.

    Uniform positions are drawn one after another, and left out if they were drawn already. No position is
    treated unlike another. So the first m of them, too, are any sequence of m with equal probability.
    """
    if n_rows > _MANY_TIMES * count:
        chosen = np.empty(0, dtype=np.int64)
        while len(chosen) < count:
            chosen = np.append(chosen, _uniform_positions(bits, n_rows, count - len(chosen)))
            chosen = chosen[np.sort(np.unique(chosen, return_index=True)[1])]
        return chosen
    places, parts, missing = np.full(n_rows, -1, dtype=np.int32), [], count
    while missing:
        # Many at a time, as most of the last ones were drawn already.
        drawn = _uniform_positions(bits, n_rows, max(missing, min(n_rows, _DRAWN_TOGETHER)))
        drawn = drawn[places[drawn] < 0]
        # Of a position that is drawn twice, one number stays.
        numbers = np.arange(len(drawn), dtype=np.int32)
        places[drawn] = numbers
        parts.append(drawn[places[drawn] == numbers][:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


def _uniform_positions(bits: BitSource, n_rows: int, count: int) -> NDArray[np.int64]:
    """Return up to `count` independent positions, each uniform below `n_rows`."""
    words: NDArray[np.unsignedinteger] = bits.words(-(-count // 2) if n_rows <= _FEW_ROWS else count)
    if n_rows <= _FEW_ROWS:
        words = words.astype("<u8", copy=False).view("<u4")[:count]
    # Words beyond the last multiple of n_rows would make small positions likelier.
    last = 256**words.itemsize // n_rows * n_rows - 1
    return (words[words <= words.dtype.type(last)] % words.dtype.type(n_rows)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SampledTask:
    """Another task, run over some of the rows only.

    Attributes
    ----------
    task : RowTask
        It must not look at positions.
    positions : ndarray of int64
        Which rows, in ascending order.
    """

    task: RowTask
    positions: NDArray[np.int64] = field(repr=False)

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return _SAMPLED_BLOCK

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return self.task.shape

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _SampledWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return which of these rows are in the sample."""
        first, last = np.searchsorted(self.positions, [first_row, first_row + n_rows])
        return self.positions[first:last] - first_row

    def with_notes(self, notes: NDArray[np.int64]) -> SampledTask:
        """Return the task for these rows of a part."""
        return replace(self, positions=notes)


class _SampledWorker:
    """Collects sampled rows until they fill a block."""

    def __init__(self, task: SampledTask) -> None:
        self._positions = task.positions
        self._capacity = task.task.block_rows
        self._worker = task.task.worker()
        self._rows = np.empty((0, 0))
        self._filled = 0

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        length = len(block[0]) if units is None else len(units.ends)
        first, last = np.searchsorted(self._positions, [first_row, first_row + length])
        chosen = self._positions[first:last] - first_row
        if units is not None:
            if len(chosen):
                self._add_units(block, *units.choose(chosen))
            return
        if self._rows.shape[0] == 0:
            # As the block lies in memory, row by row or column by column.
            by_row = isinstance(block, np.ndarray)
            self._rows = np.empty((len(block), self._capacity), order="F" if by_row else "C")
        while len(chosen):
            room = self._capacity - self._filled
            now = chosen[:room]
            copy_rows(block, now, self._rows[:, self._filled : self._filled + len(now)])
            self._filled += len(now)
            chosen = chosen[room:]
            if self._filled == self._capacity:
                self._flush()

    def _add_units(self, block: Block, rows: NDArray[np.int64], units: Units) -> None:
        for start, _, some in units.blocks(self._capacity):
            own = rows[start : start + int(some.ends[-1])]
            taken = block[:, own] if isinstance(block, np.ndarray) else [column[own] for column in block]
            self._worker.add(taken, 0, some)

    def _flush(self) -> None:
        if self._filled:
            self._worker.add(self._rows[:, : self._filled], 0)
            self._filled = 0

    def total(self) -> NDArray[np.int64]:
        self._flush()
        return self._worker.total()


def copy_rows(block: Block, chosen: NDArray[np.int64], target: NDArray[np.float64]) -> None:
    """Copy some rows of a block to `target`, which has a column for each, and a row for each column."""
    # Warnings would tell about rows.
    with np.errstate(all="ignore"):
        if isinstance(block, np.ndarray) and block.dtype == np.float64 and block.flags.f_contiguous:
            # Whole rows at once; "clip" only spares a copy, as all positions lie inside.
            np.take(block.T, chosen, axis=0, out=target.T, mode="clip")
        elif isinstance(block, np.ndarray):
            np.copyto(target.T, block.T[chosen], casting="unsafe")
        else:
            for place, column in zip(target, block, strict=True):
                np.copyto(place, column[chosen], casting="unsafe")
