"""Random positions: which rows a scan looks at, drawn without a look at the rows.

The proof note is ``order.md``; `SampledTask` in ``queries/sample.py`` reads the rows at these positions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource

# Above so many rows for each sampled one, marks for all rows would cost more than sorting the sample.
_SPARSE = 64


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
        marked[_uniform_positions(bits, n_rows, missing)] = True
        missing = count - int(np.count_nonzero(marked))
    return np.flatnonzero(marked)


def _uniform_positions(bits: BitSource, n_rows: int, count: int) -> NDArray[np.int64]:
    """Return up to `count` independent positions, each uniform below `n_rows`."""
    words = bits.words(count)
    # Words beyond the last multiple of n_rows would make small positions likelier.
    limit = (1 << 64) - (1 << 64) % n_rows
    return (words[words <= np.uint64(limit - 1)] % np.uint64(n_rows)).astype(np.int64)
