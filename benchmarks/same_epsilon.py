"""The same epsilon for less noise: Gaussian differential privacy beside the way through zCDP.

    python benchmarks/same_epsilon.py [--runs 11]

Each release is made twice, with the budget that epsilon buys by either conversion and the same seed. Noise is
the standard deviation that the released matrix was given, error is |S^-1/2 S~ S^-1/2 - I| in spectral norm;
both as medians over runs. Writes benchmarks/results/same_epsilon.csv.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_cases import Case, select_cases
from oracle import Reference, make_reference

import dpcov
from dpcov.core import resolve_budget

RESULTS = Path(__file__).parent / "results" / "same_epsilon.csv"
BUDGETS = [(0.3, 1e-6), (1.0, 1e-6), (3.0, 1e-6), (1.0, 1e-5)]
CASES = [
    "gaussian-d10-n100000-cond1e6", "gaussian-d50-n20000-cond1e4", "sparse-binary", "flights",
]  # fmt: skip


def measure(case: Case, reference: Reference, epsilon: float, delta: float, runs: int) -> dict[str, Any]:
    """Return noise and error of releases by either conversion."""
    rows = case.make().rows
    found: dict[str, Any] = {"case": case.name, "epsilon": epsilon, "delta": delta, "runs": runs}
    for way, gaussian in (("zcdp", False), ("gdp", True)):
        rho = resolve_budget(epsilon=epsilon, delta=delta, gaussian=gaussian).rho
        errors, noise = [], []
        for run in range(runs):
            rng = np.random.default_rng([case.noise_seed(0), run])
            made = dpcov.release(rows, rho=rho, intercept=False, rng=rng, **case.options)
            errors.append(reference.relative_error(made.second_moment().values))
            noise.append(made.noise.sigma if made.noise else math.nan)
        found |= {
            f"{way} rho": float(rho),
            f"{way} noise": np.median(noise),
            f"{way} error": np.median(errors),
        }
    found["noise for the same radius"] = math.sqrt(found["gdp rho"] / found["zcdp rho"])
    found["error ratio"] = found["zcdp error"] / found["gdp error"]
    return found


def main() -> None:
    """Print and save all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    lines = []
    for case in select_cases(CASES):
        reference = make_reference(case.make())
        for epsilon, delta in BUDGETS:
            line = measure(case, reference, epsilon, delta, runs)
            print(
                f"{case.name:<32}epsilon {epsilon:<4g} delta {delta:g}: error {line['zcdp error']:.3g} "
                f"before, {line['gdp error']:.3g} now ({line['error ratio']:.3f} times); noise "
                f"{line['noise for the same radius']:.4f} times smaller",
                flush=True,
            )
            lines.append({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in line.items()})
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
