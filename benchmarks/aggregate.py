"""One release by the paper's Algorithm 3 on as many rows as its proof of privacy needs.

Gaussian rows with standard deviations from 1 to 0.01. Writes ``benchmarks/results/aggregate.csv``.
"""

from __future__ import annotations

import csv
import re
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpcov

RESULT = Path(__file__).parent / "results" / "aggregate.csv"
ASKED: dict[str, Any] = {
    "epsilon": 2,
    "delta": 1e-6,
    "method": "aggregate",
    "radius": 8.0,
    "intercept": False,
}
D, M, ALPHA = 5, 150, 0.3


def needed_rows() -> int:
    """Return how many rows the refusal of too few of them asks for."""
    try:
        dpcov.release(np.zeros((1000, D)), **ASKED, m=M, alpha=ALPHA)
    except dpcov.ArgumentError as refusal:
        found = re.search(r"that is (\d+) rows", str(refusal))
        assert found is not None
        return int(found[1])
    raise AssertionError


def main() -> None:
    """Make the release, and write what it took and how far off it was."""
    lines = []
    for times in (1.0, 1.5):
        n_rows = int(needed_rows() * times)
        rows = np.random.default_rng(0).standard_normal((n_rows, D)) * np.geomspace(1, 0.01, D)
        whole = rows.T @ rows / n_rows
        start = time.perf_counter()
        made = dpcov.release(rows, **ASKED, m=M, alpha=ALPHA)
        seconds = time.perf_counter() - start
        root = np.linalg.inv(np.linalg.cholesky(whole))
        error = np.linalg.norm(root @ made.second_moment().values @ root.T - np.eye(D), 2)
        facts = made.diagnostics
        lines.append(
            {
                "columns": D, "epsilon": ASKED["epsilon"], "delta": ASKED["delta"], "m": M, "alpha": ALPHA,
                "rows": n_rows, "groups": facts["groups"], "agreement": round(facts["agreement"], 4),
                "noise_scale": round(facts["noise_scale"], 5), "error": round(float(error), 4),
                "predicted_error": round(facts["predicted_error"], 4),
                "guaranteed_error": round(facts["guaranteed_error"], 4), "seconds": round(seconds, 1),
                "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            }
        )  # fmt: skip
        print(lines[-1])
        del rows
    with RESULT.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
