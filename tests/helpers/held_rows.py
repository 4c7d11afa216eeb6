"""What every source must get right about the rows that it holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcov.core import RowTask, Source
from dpcov.sources import ArraySource


def check_held(source: Source, table: NDArray[np.float64], task: RowTask) -> None:
    """Rows that are held are those at the positions, in their order, and scans of them make the same bits."""
    n_rows = len(table)
    # Both ways of finding rows: many of them, and few.
    for count in (n_rows // 3, n_rows // 20):
        positions = np.random.default_rng(3).permutation(n_rows)[:count]
        held = source.hold(positions)
        for length in (count, count // 2, 1):
            expected = ArraySource(table[positions[:length]]).scan(task)
            assert (held.scan(task, length) == expected).all()
