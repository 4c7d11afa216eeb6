"""Bits for tests of samplers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Script:
    """Bits that were written down before."""

    private = False

    def __init__(self, *batches: list[int]) -> None:
        self._batches = list(batches)

    def words(self, count: int) -> NDArray[np.uint64]:
        batch = self._batches.pop(0)
        return np.array((batch * count)[:count], dtype=np.uint64)
