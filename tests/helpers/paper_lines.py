"""Lines of the paper's algorithms, written from the paper and from its list of mistakes alone.

Nothing of ``dpcov.paper`` is imported: constants stand here as numbers, so that a constant that changes in
the library no longer agrees with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# psi and C in units of m: Algorithm 1, lines 2 and 3, as printed, and as `recursion.md` repairs them.
PSI = {"paper": 1 / 10, "repaired": 1 / 20}
STOPPING = {"paper": 640, "repaired": 550}


@dataclass(frozen=True, eq=False)
class Call:
    """One call of Algorithm 2.

    Attributes
    ----------
    squared_radius : float
        kappa = R^2.
    forms : ndarray, shape (d, d)
        The product of all maps so far: a row that was never shrunk is now ``forms @ row``.
    factors : ndarray, shape (n,)
        By what every row was multiplied besides, in all calls before.
    large : ndarray, shape (d, d)
        The projection onto V; zero in the last call.
    """

    squared_radius: float
    forms: Matrix
    factors: Matrix
    large: Matrix


@dataclass
class Replay:
    """Algorithms 1 and 2 on a public table, with noisy matrices from elsewhere.

    `noisy` takes the number of the call, the map so far and the exact second moment, and returns that with
    the noise of line 3.
    """

    noisy: Callable[[int, Matrix, Matrix], Matrix]
    calls: list[Call] = field(default_factory=list)

    def run(self, table: Matrix, *, m: float, alpha: float, radius: float, least: float, kind: str) -> Matrix:
        """Return what Algorithm 1 returns, in the units of the table."""
        # Algorithm 1: scale so that what is left without the tail has eigenvalues of 1 and more.
        unit = 1 / math.sqrt((1 - alpha) * least)
        rows, squared = table * unit, (radius * unit) ** 2
        rows, factors = self._shrunk(rows, squared)
        self._psi, self._stopping = PSI[kind] / m, STOPPING[kind] * m
        found = self._recurse(rows, squared, np.eye(table.shape[1]) * unit, factors)
        return found / unit**2

    def _recurse(self, rows: Matrix, squared: float, forms: Matrix, factors: Matrix) -> Matrix:
        n, d = rows.shape
        exact = np.asarray(rows.T @ rows / n)
        noisy = self.noisy(len(self.calls), forms, exact)
        if squared <= self._stopping:
            self.calls.append(Call(squared, forms, factors, np.zeros((d, d))))
            return noisy
        values, vectors = np.linalg.eigh(noisy)
        basis = vectors[:, values >= self._psi * squared]
        onto = basis @ basis.T
        pi = 0.5 * onto + (np.eye(d) - onto)
        self.calls.append(Call(squared, forms, factors, onto))
        mapped = math.sqrt(8 / 7) * rows @ pi
        smaller = 3 / 7 * squared
        mapped, lost = self._shrunk(mapped, smaller)
        inner = self._recurse(mapped, smaller, math.sqrt(8 / 7) * pi @ forms, factors * lost)
        back = np.linalg.inv(pi)
        return np.asarray(7 / 8 * back @ inner @ back)

    @staticmethod
    def _shrunk(rows: Matrix, squared: float) -> tuple[Matrix, Matrix]:
        """Line 10, with R^2 where the paper has R."""
        lengths = np.square(rows).sum(axis=1)
        factors = np.ones(len(rows))
        for place in np.flatnonzero(lengths > squared):
            factors[place] = math.sqrt(squared / lengths[place])
        return rows * factors[:, None], factors


def algorithm_3_weights(agreeing: Sequence[int], compared: int) -> list[float]:
    """Algorithm 3, line 15: from how many of `compared` groups each agrees with to its weight."""
    weights = []
    for number in agreeing:
        share = number / compared
        weights.append(min(1.0, 10 * max(0.0, share - 0.6)))
    return weights


def weighted_mean(matrices: Matrix, weights: Sequence[float]) -> Matrix:
    """Algorithm 3, line 17."""
    total = sum(weight * matrix for weight, matrix in zip(weights, matrices, strict=True))
    return np.asarray(total / sum(weights))
