"""One rare 0/1 column among normal ones: whether it is found, and what it costs the others.

    python benchmarks/rare.py [--releases 20] [--first-seed 1000]

Every release is of a new table. A column is found if no unresolved combination names it. The method was made
with seeds below 100 of like tables. Results go to benchmarks/results/rare.csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from releases import measure_all
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

import dpcov

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "rare.csv"
ROWS, COLUMNS, RHO = 400_000, 6, 0.5
ONES = (20, 35, 50, 70, 100, 200, 1_000)


def make_table(ones: int, seed: int) -> Array:
    """Return a table whose last column is 1 in so many rows; the others are normal."""
    rng = np.random.default_rng([seed, ones])
    rows = rng.standard_normal((ROWS, COLUMNS))
    rows[:, -1] = 0.0
    rows[rng.choice(ROWS, ones, replace=False), -1] = 1.0
    return rows


def measure(ones: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return a line about releases with so many ones."""
    others, own, exceeded, silent = [], [], 0, 0
    for seed in seeds:
        rows = make_table(ones, seed)
        with threadpool_limits(1):
            made = dpcov.release(rows, rho=RHO, rng=np.random.default_rng([seed, 1]))
        released, raw = made.covariance().values, np.cov(rows.T, bias=True)
        errors = np.abs(eigh(released[:-1, :-1], raw[:-1, :-1], eigvals_only=True) - 1)
        share = abs(float(released[-1, -1] / raw[-1, -1]) - 1)
        others.append(float(errors.max()))
        if made.unresolved:
            exceeded += others[-1] > made.diagnostics["predicted_error"]
            continue
        own.append(share)
        exceeded += max(others[-1], share) > made.diagnostics["predicted_error"]
        silent += share > 0.5
    return {
        "ones": ones, "rows": ROWS, "columns": COLUMNS, "rho": RHO, "releases": len(seeds), "found": len(own),
        "own error": round(float(np.median(own)), 5) if own else "",
        "others": round(float(np.median(others)), 6), "others, worst": round(max(others), 6),
        "exceeded": exceeded, "found but off by half": silent,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every number of ones and write the results."""
    measure_all(ONES, measure, RESULTS, arguments, releases=20, first_seed=1_000)


if __name__ == "__main__":
    main()
