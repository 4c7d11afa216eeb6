"""Cells of a column as a source reads them, before anybody says what they mean.

Numbers come as numpy arrays, all else as Arrow arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.generic] | Any
"""A numpy array of real numbers, or an Arrow array of any type."""


def to_floats(cells: Cells) -> Any:
    """Return cells as numbers; in place if they are numbers already."""
    return cells
