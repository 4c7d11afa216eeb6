"""Tables of an audit: two neighbours each, which differ as much as they can."""

from __future__ import annotations

import numpy as np
from audit.harness import Array

FAR, FARTHER = 1e9, 1e12


def swapped(rows: Array, row: list[float]) -> Array:
    """Return the neighbour with another first row."""
    other = rows.copy()
    other[0] = row
    return other


def lines(*rows: list[float]) -> Array:
    """Return a table of these rows."""
    return np.array(rows, dtype=np.float64)


ZEROS = np.zeros((2, 2))
EAST, NORTH = lines([FAR, 0], [0, 0]), lines([0, FAR], [0, 0])
TWINS = np.repeat(lines([1, 0]), 20, axis=0)
THIN = np.column_stack([np.ones(20), 1e-6 * np.arange(-9.5, 10)])
BULK = 0.05 * np.random.default_rng(0).normal(size=(30, 2))
UNIT_ROWS = np.repeat(lines([1, 0], [0, 1]), 20, axis=0)
MANY_ROWS = np.repeat(lines([1, 0], [0, 1]), 100, axis=0)
BALANCED = np.repeat(lines([1, 0], [-1, 0], [0, 1], [0, -1]), 20, axis=0)
HALVES = np.array([[1.0]] * 24 + [[0.1]] * 24)
FEW_FAR = np.array([[1.0]] * 390 + [[FAR]] * 10)
FEW_LOW = np.array([[1.0]] * 30 + [[0.1]] * 10)
# The far row lies in another direction, beyond every radius, and in another bin of most histograms.
CLOUD = np.random.default_rng(0).normal(size=(100, 2))
FAR_EAST, FARTHER_NORTH = swapped(CLOUD, [FAR, 0]), swapped(CLOUD, [0, FARTHER])
# With more rows that takes less of a budget.
LARGER_CLOUD = np.random.default_rng(0).normal(size=(300, 2))
CLOUD_EAST, CLOUD_NORTH = swapped(LARGER_CLOUD, [FAR, 0]), swapped(LARGER_CLOUD, [0, FARTHER])
NORMAL = np.random.default_rng(0).normal(size=(600, 1))


def ones(n_rows: int) -> Array:
    """Return equal rows."""
    return np.ones((n_rows, 1))
