"""Releases of synthetic rows for tests of the report: real ones, seeded so that they repeat."""

from __future__ import annotations

import numpy as np

import dpcov

AWKWARD = "</script><img src=x onerror=alert(1)>"


def small_release(*, private: bool = True, intercept: bool = True) -> dpcov.Release:
    """Five columns; the fourth nearly repeats the first two, the last has a name that should be escaped."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20_000, 5)) @ np.diag([1.0, 10.0, 0.1, 1.0, 3.0]) + [0, 50, 2, 0, -4]
    rows[:, 2] += 0.05 * rows[:, 0]
    rows[:, 3] = rows[:, 0] + rows[:, 1]
    names = ["age", "weight", "ratio", "sum", AWKWARD]
    source = None if private else rng
    return dpcov.release(rows, rho=0.5, columns=names, rng=source, intercept=intercept, progress=False)


def wide_release() -> dpcov.Release:
    """500 columns in 5 blocks, each of which varies together."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(2000, 500)) + np.repeat(rng.normal(size=(2000, 5)), 100, axis=1)
    names = [f"column {i:03}" for i in range(500)]
    return dpcov.release(rows, rho=100, columns=names, method="gaussian", radius=40.0, progress=False)
