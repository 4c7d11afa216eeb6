"""The paper's Algorithms 1 and 2 in the clear, line by line.

For public and synthetic tables only: every row is moved, and which ones were shrunk is remembered. It shares
no code with ``dpcov.paper.recursive``, which it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.paper.theory import RecursionConstants

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Round:
    """One call of Algorithm 2 that did not return at line 5.

    Attributes
    ----------
    kappa : float
        The squared radius, and the bound on eigenvalues.
    before : ndarray, shape (d, d)
        The second moment of the rows at the start.
    mapped : ndarray, shape (d, d)
        That of Y, before any row is shrunk.
    after : ndarray, shape (d, d)
        That of the rows of the next round.
    shrunk : ndarray of bool, shape (n,)
        The rows that line 10 makes shorter.
    """

    kappa: float
    before: Matrix
    mapped: Matrix
    after: Matrix
    shrunk: Mask


@dataclass(frozen=True, eq=False)
class Course:
    """All rounds, and the matrix that Algorithm 1 returns.

    Attributes
    ----------
    rounds : tuple of Round
        The shrinking rounds; one release follows.
    last : ndarray, shape (n, d)
        The rows of that release.
    second_moment : ndarray, shape (d, d)
        The result, in the units of the table.
    """

    rounds: tuple[Round, ...]
    last: Matrix
    second_moment: Matrix

    @property
    def ever_shrunk(self) -> Mask:
        """Rows that were shrunk in some round."""
        ever = np.zeros(len(self.last), dtype=np.bool_)
        for made in self.rounds:
            ever |= made.shrunk
        return ever


def recursive_in_the_clear(
    rows: Matrix,
    *,
    m: float,
    alpha: float,
    radius: float,
    least_eigenvalue: float,
    constants: RecursionConstants,
    noise: Callable[[float], Matrix],
) -> Course:
    """Run Algorithms 1 and 2 on a public table.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
        Public; rows longer than `radius` are shrunk to it before the first round.
    m, alpha : float
        Of subsamplability.
    radius, least_eigenvalue : float
        R and lambda. The paper scales the table so that lambda is 1.
    constants : RecursionConstants
        psi and C in units of m.
    noise : callable
        From kappa to the noise of a round.

    Notes
    -----
    Line 10 of Algorithm 2 with (3/7) R^2 where the paper has (3/7) R.
    """
    unit = (1 - alpha) * least_eigenvalue
    kappa = radius**2 / unit
    x = _shrink(rows / math.sqrt(unit), kappa)[0]
    d = rows.shape[1]
    back = np.eye(d)
    rounds: list[Round] = []
    while True:
        before = second_moment_of(x)
        noisy = before + noise(kappa)
        if kappa <= constants.stopping * m:
            result = unit * back @ noisy @ back.T
            return Course(tuple(rounds), x, (result + result.T) / 2)
        values, vectors = np.linalg.eigh(noisy)
        large = vectors[:, values >= constants.psi / m * kappa]
        onto_large = large @ large.T
        pi = constants.eta * onto_large + (np.eye(d) - onto_large)
        y = math.sqrt(8 / 7) * x @ pi
        x, shrunk = _shrink(y, 3 / 7 * kappa)
        rounds.append(Round(kappa, before, second_moment_of(y), second_moment_of(x), shrunk))
        back = math.sqrt(7 / 8) * back @ np.linalg.inv(pi)
        kappa *= 3 / 7


def largest_allowed_noise(
    m: float, n_columns: int, constants: RecursionConstants, rng: np.random.Generator
) -> Callable[[float], Matrix]:
    """Return noise in random directions whose norm is all that the analysis allows: c kappa."""

    def noise(kappa: float) -> Matrix:
        matrix = _symmetric(n_columns, rng)
        return np.asarray(matrix * (constants.noise / m * kappa / np.linalg.norm(matrix, 2)))

    return noise


def private_noise(
    n_rows: int, n_columns: int, rho: float, releases: int, rng: np.random.Generator
) -> Callable[[float], Matrix]:
    """Return noise of the size that a share of the budget `rho` asks for, drawn in floats."""

    def noise(kappa: float) -> Matrix:
        return _symmetric(n_columns, rng) * (kappa / n_rows * math.sqrt(releases / rho))

    return noise


def _symmetric(n_columns: int, rng: np.random.Generator) -> Matrix:
    square = rng.standard_normal((n_columns, n_columns))
    return np.asarray((square + square.T) / 2)


def second_moment_of(rows: Matrix) -> Matrix:
    """Return the mean of x x^T over the rows."""
    return np.asarray(rows.T @ rows / len(rows))


def _shrink(rows: Matrix, squared_radius: float) -> tuple[Matrix, Mask]:
    squares = np.square(rows).sum(axis=1)
    shrunk = squares > squared_radius * (1 + 1e-12)
    factors = np.sqrt(squared_radius / np.where(shrunk, squares, squared_radius))
    return rows * factors[:, None], shrunk
