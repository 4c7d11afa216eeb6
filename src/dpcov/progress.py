"""Progress bars: one per scan, with its number, its purpose and the time.

A table in memory is cut by public numbers, so that the rows read so far are a share of the public number of
rows: they are shown, and the time left. Elsewhere the cut may depend on the rows (``core/order.md``): a bar
then shows the scan and the time it took so far.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from dpcov.checks import flag
from dpcov.core import Report

_TICK_SECONDS = 1.0


class ScanBars:
    """Shows a bar on standard error while a scan runs.

    Parameters
    ----------
    show : bool, optional
        Whether to show bars; by default only on a terminal.
    expected : int, optional
        About how many scans there will be.
    """

    def __init__(self, *, show: bool | None = None, expected: int | None = None) -> None:
        self._disable = None if show is None else not flag(show, "progress")
        self._scans = 0
        self._expected = expected

    @contextmanager
    def __call__(self, purpose: str, n_rows: int | None) -> Iterator[Report | None]:
        """Show a bar for one scan, which moves when it is told of rows read; without `n_rows`, a clock."""
        self._scans += 1
        title = f"scan {self._scans}{self._of_about()}: {purpose}"
        if n_rows is None:
            with (
                tqdm(desc=title, bar_format="{desc}: {elapsed}", leave=False, disable=self._disable) as clock,
                _ticking(clock),
            ):
                yield None
            return
        with tqdm(
            total=n_rows, desc=title, unit=" rows", unit_scale=True, leave=False, disable=self._disable
        ) as bar:
            yield bar.update

    def _of_about(self) -> str:
        # Beyond what was expected, a number would be wrong.
        if self._expected is None or self._scans > self._expected:
            return ""
        return f" of {'about ' if self._expected > 1 else ''}{self._expected}"


@contextmanager
def _ticking(clock: tqdm[Any]) -> Iterator[None]:
    """Show the time that has passed, every second: nothing else moves this bar."""
    if clock.disable:
        yield
        return
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(_TICK_SECONDS):
            clock.refresh()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
