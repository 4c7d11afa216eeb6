"""Progress bars: one per scan, with its number, its purpose, the rows read and the time left.

All of it is public: purposes stand on the receipt, and the rows read are a share of the public number
of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from dpcov.checks import flag
from dpcov.core import Report


class ScanBars:
    """Shows a bar on standard error while a scan runs.

    Parameters
    ----------
    show : bool, optional
        Whether to show bars; by default only on a terminal.
    """

    def __init__(self, *, show: bool | None = None) -> None:
        self._disable = None if show is None else not flag(show, "progress")
        self._scans = 0

    @contextmanager
    def __call__(self, purpose: str, n_rows: int) -> Iterator[Report]:
        """Show a bar for one scan; it moves when it is told of rows read."""
        self._scans += 1
        title = f"scan {self._scans}: {purpose}"
        with tqdm(
            total=n_rows, desc=title, unit=" rows", unit_scale=True, leave=False, disable=self._disable
        ) as bar:
            yield bar.update
