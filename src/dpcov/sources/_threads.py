"""Worker threads over one table, with BLAS held to one thread each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpcov.core import RowTask, RowWorker

Span = tuple[int, int]
"""A run of rows: first, and one past the last."""


def available_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scan_spans(
    task: RowTask, spans: Sequence[Span], feed: Callable[[RowWorker, Span], None], threads: int
) -> NDArray[np.int64]:
    """Give every span to one of several workers and add up their totals."""
    pending = iter(spans)
    lock = threading.Lock()

    def work() -> NDArray[np.int64]:
        worker = task.worker()
        while True:
            with lock:
                span = next(pending, None)
            if span is None:
                return worker.total()
            feed(worker, span)

    with _single_threaded_blas():
        if threads == 1 or len(spans) == 1:
            return work()
        with ThreadPoolExecutor(threads) as pool:
            totals = [future.result() for future in [pool.submit(work) for _ in range(threads)]]
    total: NDArray[np.int64] = np.sum(totals, axis=0, dtype=np.int64)
    return total


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_limit_lock = threading.Lock()
_limit_users = 0
_limit = None


def _forget_limit() -> None:
    """Start anew in a forked process: its parent's scans do not run here."""
    global _limit_lock, _limit_users, _limit
    _limit_lock, _limit_users, _limit = threading.Lock(), 0, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_limit)


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
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
