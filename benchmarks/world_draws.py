"""What the families of random tables share: columns with their kinds, and draws they all make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Generator = np.random.Generator


class NamedRows(Protocol):
    """A table to release: random or real."""

    @property
    def rows(self) -> Array:
        """The rows; those with a NaN count as rows of zeros."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names."""

    @property
    def flags(self) -> Flags:
        """Which columns are 0/1."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns that a family drew, and which of them a custodian would declare as 0/1.

    Attributes
    ----------
    values : ndarray, shape (n, d)
        One row a person.
    flags : ndarray of bool, shape (d,)
        Whether a column is 0/1 by its meaning, not by chance.
    """

    values: Array
    flags: Flags


Family = Callable[[Generator, int, int], Columns]
"""Draws `d` columns of `n` rows; parameters are random as well."""


def numbers(values: Array) -> Columns:
    """Return columns none of which is 0/1."""
    return Columns(np.asarray(values, dtype=np.float64), np.zeros(values.shape[1], dtype=np.bool_))


def flags(values: NDArray[np.generic]) -> Columns:
    """Return columns all of which are 0/1."""
    return Columns(values.astype(np.float64), np.ones(values.shape[1], dtype=np.bool_))


def beside(parts: Sequence[Columns]) -> Columns:
    """Put columns side by side."""
    return Columns(np.hstack([part.values for part in parts]), np.concatenate([part.flags for part in parts]))


def log_uniform(rng: Generator, low: float, high: float, size: int | None = None) -> Array:
    """Draw numbers whose logarithm is uniform; of shape () if `size` is None."""
    return np.asarray(np.exp(rng.uniform(np.log(low), np.log(high), size)))


def one_log_uniform(rng: Generator, low: float, high: float) -> float:
    """Draw one number whose logarithm is uniform."""
    return float(log_uniform(rng, low, high))


def correlated_normals(rng: Generator, n: int, d: int) -> Array:
    """Draw standard normal columns with random correlations, from none to strong."""
    strength = rng.uniform(0.0, 1.5)
    n_factors = int(rng.integers(1, d + 1))
    loadings = rng.standard_normal((d, n_factors)) * strength / np.sqrt(n_factors)
    rows = rng.standard_normal((n, n_factors)) @ loadings.T + rng.standard_normal((n, d))
    return np.asarray(rows / np.sqrt(1 + np.square(loadings).sum(axis=1)))


def conditioned_map(rng: Generator, d: int, condition: float) -> Array:
    """Return a square matrix with log-spaced singular values from 1 down to ``condition ** -0.5``."""
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    return np.asarray(left * np.logspace(0, -np.log10(condition) / 2, d) @ right)


def split_count(rng: Generator, d: int, least: int = 1) -> int:
    """Return how many of `d` columns are of a first kind: at least `least`, and if possible not all."""
    return int(rng.integers(least, max(d, least + 1)))
