"""Runs of the default method on real rows, for tests of its steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

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


def shares(run: Run, purpose: str) -> list[float]:
    """Return which shares of the budget were spent for a purpose."""
    return [
        float(charge.cost.rho) / run.rho
        for charge in run.curator.receipt().charges
        if charge.purpose == purpose
    ]


def record_every(run: Run) -> dict[str, list[int]]:
    """Return a dictionary that fills with one row in how many the queries of each purpose read."""
    asked: dict[str, list[int]] = {}
    ask = run.curator.ask

    def recorded(*queries: Any) -> Any:
        for query in queries:
            asked.setdefault(query.purpose, []).append(query.every)
        return ask(*queries)

    run.curator.ask = recorded  # type: ignore[method-assign]
    return asked


def second_moment(rows: Matrix) -> Matrix:
    """Return the mean of x x^T over the rows."""
    return np.asarray(rows.T @ rows / len(rows), dtype=np.float64)


def relative_error(estimate: Matrix, exact: Matrix) -> float:
    """Return the largest share by which a direction's second moment is off."""
    root = np.linalg.inv(np.linalg.cholesky(exact))
    return float(np.linalg.norm(root @ estimate @ root.T - np.eye(len(exact)), 2))
