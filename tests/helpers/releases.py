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


def empty_release() -> dpcov.Release:
    """Fifty rows and next to no budget: noise hides everything."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    names = ["age", "weight", "a column with a rather long name"]
    return dpcov.release(rows, rho=1e-6, columns=names, progress=False, force=True)


def hidden_release() -> dpcov.Release:
    """Eight columns, three of which are below the noise by themselves."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(40_000, 8)) * [1, 10, 0, 1, 1, 0, 1e-9, 3] + [0, 50, 7, 0, 0, 1, 1000, -4]
    rows[:, 4] = rows[:, 0] - rows[:, 3]
    names = ["income", "rent", "country", "taxes", "income_after_taxes", "survey_year", "clock", "children"]
    return dpcov.release(rows, epsilon=2, delta=1e-6, columns=names, progress=False)


def hundred_release() -> dpcov.Release:
    """A hundred columns of ten kinds, in mixed order."""
    rng = np.random.default_rng(8)
    kinds = rng.normal(size=(5000, 10))
    order = rng.permutation(100)
    rows = (rng.normal(size=(5000, 100)) + np.repeat(kinds, 10, axis=1))[:, order]
    names = [f"question_{i // 10:02}_item_{i % 10}" for i in order]
    return dpcov.release(rows, rho=16, columns=names, method="gaussian", radius=20.0, progress=False)
