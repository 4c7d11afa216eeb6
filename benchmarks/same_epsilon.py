"""The same epsilon for less noise: Gaussian differential privacy beside the way through zCDP.

    python benchmarks/same_epsilon.py [--runs 11]

Each release is made twice, with the budget that epsilon buys by either conversion and the same seed: tables
of the README at epsilon 1, one of them and real tables at others as well. Medians over runs of the error
|S^-1/2 S~ S^-1/2 - I| in spectral norm, which is 1 or more where a direction is lost, and of the relative
error of the second moment of a single column, in the median over columns. Writes results/same_epsilon.csv.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_cases import Table, select_cases
from figures_releases import ACCURACY_CASES
from oracle import make_reference
from real_tables import load_table

import dpcov
from dpcov.core import resolve_budget

RESULTS = Path(__file__).parent / "results" / "same_epsilon.csv"
USUAL = (1.0, 1e-6)
BUDGETS = [USUAL, (0.3, 1e-6), (3.0, 1e-6), (1.0, 1e-5)]
AT_ALL_BUDGETS = "gaussian-d10-n100000-cond1e6"
REAL = ("gpa2", "randhie", "HI")

Making = tuple[str, Callable[[], Table], Mapping[str, Any], list[tuple[float, float]]]


def tables() -> Iterator[Making]:
    """Yield names, makers, options and budgets, the cheapest first."""
    for name in REAL:
        yield name, lambda name=name: Table(load_table(name).rows), {}, [USUAL, (3.0, 1e-6)]  # type: ignore[misc]
    cases = {case.name: case for case in select_cases(list(ACCURACY_CASES))}
    for name in sorted(cases, key=lambda name: (name != AT_ALL_BUDGETS, cases[name].slow)):
        budgets = BUDGETS if name == AT_ALL_BUDGETS else [USUAL]
        yield name, cases[name].make, cases[name].options, budgets


def measure(making: Making, epsilon: float, delta: float, runs: int) -> dict[str, Any]:
    """Return errors of releases by either conversion."""
    name, make, options, _ = making
    table = make()
    reference = make_reference(table)
    inliers = table.clean_rows() if table.inliers is None else table.clean_rows()[table.inliers]
    exact = np.square(inliers).mean(axis=0)
    found: dict[str, Any] = {"table": name, "epsilon": epsilon, "delta": delta, "runs": runs}
    for way, gaussian in (("zcdp", False), ("gdp", True)):
        rho = resolve_budget(epsilon=epsilon, delta=delta, gaussian=gaussian).rho
        errors, columns = [], []
        for run in range(runs):
            rng = np.random.default_rng([zlib.crc32(name.encode()), run])
            made = dpcov.release(
                table.rows, rho=rho, intercept=False, rng=rng, progress=False, force=True, **options
            )
            # As it is, even where nothing stands above the noise and questions are refused.
            matrix = made._matrix  # noqa: SLF001
            errors.append(reference.relative_error(matrix))
            columns.append(np.median(np.abs(matrix.diagonal() / exact - 1)))
        found |= {
            f"{way} rho": float(rho),
            f"{way} error": np.median(errors),
            f"{way} column error": np.median(columns),
        }
    found["noise"] = math.sqrt(found["gdp rho"] / found["zcdp rho"])
    return found


def main() -> None:
    """Print and save all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    writer: Any = None
    with RESULTS.open("w", newline="") as file:
        for making in tables():
            for epsilon, delta in making[-1]:
                line = measure(making, epsilon, delta, runs)
                print(
                    f"{making[0]:<32}epsilon {epsilon:<4g} delta {delta:g}: error {line['zcdp error']:.3g} "
                    f"before, {line['gdp error']:.3g} now; of a column {line['zcdp column error']:.3g} "
                    f"before, {line['gdp column error']:.3g} now; noise {line['noise']:.4f} times smaller",
                    flush=True,
                )
                if writer is None:
                    writer = csv.DictWriter(file, list(line), lineterminator="\n")
                    writer.writeheader()
                writer.writerow({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in line.items()})
                file.flush()


if __name__ == "__main__":
    main()
