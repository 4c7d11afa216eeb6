"""Runs of the default method on real rows, for tests of its steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import Budget, Curator, PrivacyCost, SeededBits
from dpcov.methods.whitening.run import Run
from dpcov.sources import ArraySource
from dpcov.sources.encoding.schema import Columns

Matrix = NDArray[np.float64]


def start_run(
    rows: Matrix,
    rho: float = 0.5,
    seed: int = 0,
    *,
    constant: bool = False,
    contamination: float = 0.0,
    columns: Columns = None,
) -> Run:
    """Return a run that has spent nothing yet."""
    budget, bits = Budget(PrivacyCost(Fraction(rho))), SeededBits(np.random.default_rng(seed))
    curator = Curator(ArraySource(rows, columns), budget, bits, constant=constant)
    return Run(curator, curator.n_rows, curator.n_columns, rho, contamination)


def second_moment(rows: Matrix) -> Matrix:
    """Return the mean of x x^T over the rows."""
    return np.asarray(rows.T @ rows / len(rows), dtype=np.float64)


def relative_error(estimate: Matrix, exact: Matrix) -> float:
    """Return the largest share by which a direction's second moment is off."""
    root = np.linalg.inv(np.linalg.cholesky(exact))
    return float(np.linalg.norm(root @ estimate @ root.T - np.eye(len(exact)), 2))
