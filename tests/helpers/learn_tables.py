"""A table with known dependences, for the tests of the estimators."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NAMES = ["age", "income", "height"]


@cache
def features(n_rows: int = 50_000) -> NDArray[np.float64]:
    """Three correlated columns of different scales."""
    rows = np.random.default_rng(5).normal(size=(n_rows, 3))
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 20.0, 0.5], [0.0, 0.0, 0.3]])
    return np.asarray(rows @ mixing + np.array([4.0, -30.0, 1.7]))


@cache
def target(n_rows: int = 50_000) -> NDArray[np.float64]:
    """A linear function of the features, and noise of standard deviation 2."""
    noise = np.random.default_rng(6).normal(size=n_rows)
    return np.asarray(features(n_rows) @ np.array([2.0, -0.1, 5.0]) + 1.0 + 2.0 * noise)


def frame() -> pd.DataFrame:
    """Return the features with names."""
    return pd.DataFrame(features(), columns=NAMES)
