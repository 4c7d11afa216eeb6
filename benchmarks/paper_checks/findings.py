"""What a check of a claim returns, how much it runs, and the matrices it looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from paper_checks.reference import Matrix

REPAIRED, PAPER = "repaired", "paper"


@dataclass(frozen=True)
class Finding:
    """One claim on one table.

    Attributes
    ----------
    claim, place : str
        What is claimed, and where in the paper.
    version : {"repaired", "paper"}
        Whether this is what the library promises, or the paper's own words where they differ.
    setting : str
        The table and the numbers told.
    bound, measured : str
        What the claim allows, and what was seen.
    holds : bool
        Whether the claim was obeyed.
    """

    claim: str
    place: str
    version: str
    setting: str
    bound: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Scale:
    """How much to run: `rows` of a table, `runs` of a random algorithm, `timed_rows` of the speed test."""

    rows: int
    runs: int
    timed_rows: int


FULL = Scale(rows=50_000, runs=200, timed_rows=1_000_000)
QUICK = Scale(rows=20_000, runs=20, timed_rows=100_000)


def least_eigenvalue_of(matrix: Matrix) -> float:
    """Return the least eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])


def largest_eigenvalue_of(matrix: Matrix) -> float:
    """Return the largest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])


def spectral_norm(matrix: Matrix) -> float:
    """Return the spectral norm of a symmetric matrix."""
    return float(np.abs(np.linalg.eigvalsh((matrix + matrix.T) / 2)).max())


def whitened(matrix: Matrix, rows: Matrix, n_rows: int | None = None) -> Matrix:
    """Return S^-1/2 A S^-1/2 up to a rotation, S the second moment of the rows (over `n_rows`)."""
    factor = np.linalg.cholesky(rows.T @ rows / (n_rows or len(rows)))
    return np.asarray(np.linalg.solve(factor, np.linalg.solve(factor, matrix).T))
