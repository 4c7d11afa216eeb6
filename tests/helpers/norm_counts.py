"""Noisy histograms of norms that are known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import LogNormGrid, NoisyCounts

Vector = NDArray[np.float64]


def counts(norms: Vector, grid: LogNormGrid, sigma: float = 0.0, seed: int = 0) -> NoisyCounts:
    bins = np.searchsorted(grid.edges(), norms, side="right")
    exact = np.bincount(bins, minlength=grid.n_bins).astype(np.int64)
    noise = np.rint(np.random.default_rng(seed).normal(size=grid.n_bins) * sigma).astype(np.int64)
    return NoisyCounts(exact + noise, Fraction(max(sigma, 0.1) ** 2), grid, len(norms))


def gaussian_norms(n_rows: int = 100_000, d: int = 10, scale: float = 1.0) -> Vector:
    rows = np.random.default_rng(1).normal(size=(n_rows, d))
    return np.asarray(np.linalg.norm(rows, axis=1) * scale, dtype=np.float64)
