"""How far errors of the default are from what `dpcov.plan` says, by kind of table: the figures of its ranges.

    python benchmarks/plan_ranges.py

Reads results/accuracy.csv (Gaussian rows) and results/world.csv (all families), and writes
src/dpcov/plan_ranges.json.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from world_judge import Outcome
from world_records import read_outcomes

import dpcov

RESULTS = Path(__file__).parent / "results"
RANGES = Path(dpcov.__file__).parent / "plan_ranges.json"

# Families in which few rows carry a column, or a few rows lie far out; all others are typical.
UNEVEN = frozenset(
    ("rare-flags", "flags-and-numbers", "complementary", "spikes", "zero-inflated", "counts", "purchases",
     "durations", "heavy-columns", "wages", "polynomials", "totals")
)  # fmt: skip
# Above it a plan says itself that little will come of the release.
_LARGEST_PLANNED = 0.1
_QUARTILES = (0.25, 0.75)


def planned(n_columns: int, n_rows: int, rho: float) -> float:
    """Return the error that a plan has for the default."""
    return dpcov.plan(n_columns=n_columns, n_rows=n_rows, rho=rho)["whitening"].error


def gaussian_ratios(path: Path) -> Iterator[float]:
    """Yield measured over planned errors of the Gaussian tables of the accuracy benchmark."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            found = re.fullmatch(r"gaussian-d(\d+)-n(\d+)-cond.+", row["case"])
            if found and row["method"] == "whitening":
                expected = planned(int(found[1]), int(found[2]), float(row["rho"]))
                if expected < _LARGEST_PLANNED:
                    yield float(row["error"]) / expected


def world_ratios(outcomes: Sequence[Outcome], *, uneven: bool) -> Iterator[float]:
    """Yield measured over planned errors of releases, in all directions, of one kind of family."""
    for outcome in outcomes:
        expected = planned(outcome.n_columns + 1, outcome.n_rows, outcome.rho)
        is_uneven = not UNEVEN.isdisjoint(re.split(r"[+~]", outcome.family))
        if expected < _LARGEST_PLANNED and is_uneven == uneven:
            yield outcome.error / expected


def ranges(accuracy: Path, world: Path) -> dict[str, Any]:
    """Return the contents of plan_ranges.json."""
    outcomes = read_outcomes(Outcome, world)
    kinds = {
        "Gaussian rows": list(gaussian_ratios(accuracy)),
        "typical tables": list(world_ratios(outcomes, uneven=False)),
        "rare or skewed columns": list(world_ratios(outcomes, uneven=True)),
    }
    seeds = [outcome.seed for outcome in outcomes]
    return {
        "origin": (
            f"{accuracy.name}, and {world.name} with seeds {min(seeds)} to {max(seeds)}, of benchmarks: "
            f"quartiles of measured over planned errors where those are below {_LARGEST_PLANNED:g}, by "
            "benchmarks/plan_ranges.py"
        ),
        "kinds": [
            {"tables": name, "releases": len(found), "low": low, "high": high}
            for name, found in kinds.items()
            for low, high in [[float(f"{end:.3g}") for end in np.quantile(found, _QUARTILES)]]
        ],
    }


def main() -> None:
    """Write the figures."""
    found = ranges(RESULTS / "accuracy.csv", RESULTS / "world.csv")
    RANGES.write_text(json.dumps(found, indent=2) + "\n")
    print(RANGES.read_text())


if __name__ == "__main__":
    main()
