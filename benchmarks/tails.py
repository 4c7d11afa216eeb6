"""One long-tailed column among normal ones: how far off a release is, and how often it does not say so.

    python benchmarks/tails.py [--releases 60] [--first-seed 0]

Every release is of a new table. The error is the largest relative error of the variance of any combination
of the columns and the constant, beside what the release predicted. Results go to
benchmarks/results/tails.csv.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from releases import measure_all
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

import dpcov

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "tails.csv"
ROWS, COLUMNS, RHO = 20_000, 6, 0.5


def _delays(rng: np.random.Generator, n: int) -> Array:
    """Return what delays look like: most near zero, some long."""
    return np.asarray(np.where(rng.random(n) < 0.8, rng.normal(-5, 8, n), rng.exponential(60, n)))


LAWS: Mapping[str, Callable[[np.random.Generator, int], Array]] = {
    "Student with 4 degrees of freedom": lambda rng, n: rng.standard_t(4.0, n),
    "log-normal": lambda rng, n: np.asarray(np.exp(rng.standard_normal(n))),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "delays": _delays,
}


def make_table(law: str, seed: int) -> Array:
    """Return a table whose first column has the law; the others are normal."""
    rng = np.random.default_rng([seed, list(LAWS).index(law)])
    rows = rng.standard_normal((ROWS, COLUMNS))
    rows[:, 0] = LAWS[law](rng, ROWS)
    return np.asarray(rows)


def measure(law: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Return a line about releases of one law."""
    errors, exceeded, silent = [], 0, 0
    for seed in seeds:
        rows = make_table(law, seed)
        with threadpool_limits(1):
            made = dpcov.release(rows, rho=RHO, rng=np.random.default_rng([seed, 1]))
        table = np.column_stack([rows, np.ones(ROWS)])
        relative = eigh(made.second_moment().values, table.T @ table / ROWS, eigvals_only=True)
        error = float(np.abs(relative - 1).max())
        errors.append(error)
        # A direction that is listed as unresolved is not part of the prediction.
        above = not made.unresolved and error > made.diagnostics["predicted_error"]
        exceeded += above
        silent += above and bool(made.diagnostics["rows_beyond"]["explained"])
    return {
        "law": law, "rows": ROWS, "columns": COLUMNS, "rho": RHO, "error": round(float(np.median(errors)), 5),
        "worst": round(max(errors), 5), "exceeded": exceeded, "exceeded without a note": silent,
        "releases": len(seeds),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every law and write the results."""
    measure_all(LAWS, measure, RESULTS, arguments, releases=60, first_seed=0)


if __name__ == "__main__":
    main()
