"""Worker threads over the pieces of a table, with BLAS held to one thread each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpcov.core import Block, DpcovError, Report, RowTask, RowWorker, SourceChangedError, SourceError
from dpcov.core.units import Units
from dpcov.sources.encoding import Cells, Encoding


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a table, whose cells a worker thread loads, one column after another.

    With `units`, places count units, and the rows are all of theirs.
    """

    first_row: int
    n_rows: int
    cells: Callable[[], Sequence[Cells]] = field(repr=False)
    units: Units | None = field(default=None, repr=False)


T = TypeVar("T")

Stream = Callable[[], Iterator[Piece]]
"""Starts to read a part of a table, piece by piece."""


_SPAN_ROWS = 1 << 15


def spans(
    n_rows: int, threads: int, task: RowTask | None, rows: Callable[[int, int], Sequence[Cells]]
) -> list[Stream]:
    """Return a table in memory as one stream, cut by public numbers; `rows` returns some of it."""
    block_rows = 1 if task is None else task.block_rows
    length = max(min(max(_SPAN_ROWS // block_rows, 1) * block_rows, -(-n_rows // threads)), 1)

    def pieces() -> Iterator[Piece]:
        for first in range(0, n_rows, length):
            last = min(first + length, n_rows)
            yield Piece(first, last - first, partial(rows, first, last))

    return [pieces]


def available_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scan_streams(
    task: RowTask,
    streams: Sequence[Stream],
    n_rows: int,
    encoding: Encoding,
    *,
    threads: int,
    report: Report | None = None,
) -> NDArray[np.int64]:
    """Encode every piece of every stream, give it to one of several workers, and add up their totals."""
    pool = _Pool(streams, report)

    def work() -> NDArray[np.int64] | None:
        worker = None
        try:
            for piece in pool.pieces():
                worker = worker or task.worker()
                quietly(partial(_feed, worker, piece, encoding, task.block_rows), _unreadable)
                pool.note(piece.n_rows)
        except BaseException:
            pool.stop()
            raise
        return None if worker is None else worker.total()

    with single_threaded_blas():
        if threads == 1:
            totals = [work()]
        else:
            with ThreadPoolExecutor(threads) as executor:
                futures = [executor.submit(work) for _ in range(threads)]
                try:
                    totals = [future.result() for future in futures]
                except BaseException:
                    pool.stop()
                    raise
    if pool.rows != n_rows:
        raise SourceChangedError(f"the table had {n_rows} rows when it was opened, now it has {pool.rows}.")
    found = [total for total in totals if total is not None]
    return add_totals(found or [task.worker().total()])


def add_totals(totals: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Add up the totals of several workers."""
    total: NDArray[np.int64] = np.sum(totals, axis=0, dtype=np.int64)
    return total


def _feed(worker: RowWorker, piece: Piece, encoding: Encoding, block_rows: int) -> None:
    columns = encoding.encode(piece.cells())
    if piece.units is not None:
        for start, first, units in piece.units.blocks(block_rows):
            worker.add(cut(columns, start, start + int(units.ends[-1])), piece.first_row + first, units)
        return
    for first in range(0, piece.n_rows, block_rows):
        last = min(first + block_rows, piece.n_rows)
        worker.add(cut(columns, first, last), piece.first_row + first)


def cut(block: Block, first: int, last: int) -> Block:
    """Return some rows of a block."""
    if isinstance(block, np.ndarray):
        return block[:, first:last]
    return [column[first:last] for column in block]


def quietly(action: Callable[[], T], failure: Callable[[str], DpcovError]) -> T:
    """Run what meets rows, and raise the `failure` that the name of an error's type stands for.

    The error itself may quote a value, in its message or in an error that it came from. Raised while it is
    handled, even ``from None``, the new error would keep it as its context: so it is dropped first.
    """
    try:
        return action()
    except DpcovError:
        raise
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__
    raise failure(kind)


def _unreadable(kind: str) -> DpcovError:
    return SourceError(f"the rows could not be read ({kind}).")


class _Pool:
    """Hands out pieces: a thread opens a stream while there is one left, then helps with an open one."""

    def __init__(self, streams: Sequence[Stream], report: Report | None) -> None:
        self._lock = threading.Lock()
        self._unopened = iter(streams)
        self._open: list[_OpenStream] = []
        self._stopped = False
        self._report = report
        self.rows = 0

    def pieces(self) -> Iterator[Piece]:
        while (stream := self._choose()) is not None:
            while (piece := stream.next()) is not None:
                if self._stopped:
                    return
                yield piece
            with self._lock:
                if stream in self._open:
                    self._open.remove(stream)

    def _choose(self) -> _OpenStream | None:
        with self._lock:
            if self._stopped:
                return None
            new = next(self._unopened, None)
            if new is not None:
                self._open.append(_OpenStream(new))
                return self._open[-1]
            if self._open:
                self._open.append(self._open.pop(0))
                return self._open[-1]
            return None

    def note(self, n_rows: int) -> None:
        with self._lock:
            self.rows += n_rows
            if self._report is not None:
                self._report(n_rows)

    def stop(self) -> None:
        self._stopped = True


class _OpenStream:
    def __init__(self, stream: Stream) -> None:
        self._lock = threading.Lock()
        self._stream = stream
        self._pieces: Iterator[Piece] | None = None

    def next(self) -> Piece | None:
        with self._lock:
            return quietly(self._read, _unreadable)

    def _read(self) -> Piece | None:
        if self._pieces is None:
            self._pieces = self._stream()
        return next(self._pieces, None)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_limit_lock = threading.Lock()
_limit_users = 0
_limit = None
_forked_in_a_scan = False


def _start_anew() -> None:
    """Forget the parent's scans in a forked process: they do not run here, but may have left BLAS locked."""
    global _limit_lock, _limit_users, _limit, _forked_in_a_scan
    _forked_in_a_scan = _forked_in_a_scan or _limit_users > 0
    _limit_lock, _limit_users, _limit = threading.Lock(), 0, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def check_fork() -> None:
    """Raise a `SourceError` in a process that was forked while a thread was in a scan.

    A lock inside BLAS that the thread held is never opened in the child: its next product may wait for ever.
    """
    if _forked_in_a_scan:
        raise SourceError(
            "this process was forked while another thread read a table, and its BLAS may hang; nothing was "
            "spent. Start processes by spawn, or fork before."
        )


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while any scan runs; the last one out restores what was before."""
    global _limit_users, _limit
    with _limit_lock:
        if _limit_users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _limit_users += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0 and _limit is not None:
                _limit.restore_original_limits()
                _limit = None
