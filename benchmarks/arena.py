"""Every method beside the oracle: error against rows, condition number, outliers and columns.

    python benchmarks/arena.py [--sweep rows condition outliers columns] [--runs 11] [--quick] [--redraw]

The error is |S^-1/2 S~ S^-1/2 - I| in spectral norm against the rows that are no outliers, the median over
runs with different noise, at rho = 0.5. Every method gets the bounds that it needs for free, from the rows
that are no outliers; CoinPress gets the best of three numbers of rounds in hindsight; the default is told
nothing but the share of outliers. Methods that need a delta get 1e-6 beside rho. Results go to
benchmarks/results/arena.csv and arena-*.png.
"""

from __future__ import annotations

import argparse
import csv
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_cases import Table, mixing
from arena_figures import draw
from oracle import find_oracle_errors, make_reference

import dpcov
from dpcov.methods import Method
from dpcov.rivals.compare import TrueMoment

RESULTS = Path(__file__).parent / "results"
RHO, DELTA = 0.5, 1e-6
ORACLE = "oracle"
DEFAULT = "whitening"
TOLERANCE = 1.05

_SLOW = {"preconditioning", "unbounded", "recursive", "leverage", "aggregate"}
_SLOW_RUNS = 3
_ORACLE_RUNS = 101


@dataclass(frozen=True)
class Result:
    """How a method did in one cell; NaN where it gave no answer."""

    sweep: str
    value: float
    method: str
    error: float
    lowest: float
    highest: float
    answered: int
    runs: int
    note: str


@dataclass(frozen=True)
class Cell:
    """One table of a sweep."""

    sweep: str
    value: float
    make: Callable[[], Table]
    contamination: float = 0.0


def _gaussian(n: int, d: int, condition: float, outliers: float = 0.0) -> Table:
    """Gaussian rows; a share of them is replaced by rows on a far sphere."""
    rng = np.random.default_rng(zlib.crc32(repr((n, d, condition, outliers)).encode()))
    factor = mixing(rng, d, condition)
    rows = rng.standard_normal((n, d)) @ factor.T
    chosen = rng.choice(n, round(outliers * n), replace=False)
    directions = rng.standard_normal((len(chosen), d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows[chosen] = 1000 * np.linalg.norm(factor) * directions
    inliers = np.ones(n, dtype=np.bool_)
    inliers[chosen] = False
    return Table(rows, inliers if outliers else None)


def cells(*, quick: bool) -> Iterator[Cell]:
    """Yield the tables of all sweeps; smaller ones if `quick`."""
    n = 20_000 if quick else 100_000
    for rows in (1_000, 10_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000):
        yield Cell("rows", rows, partial(_gaussian, rows, 10, 1e4))
    for power in (0, 6, 12) if quick else (0, 2, 4, 6, 8, 10, 12):
        yield Cell("condition", 10.0**power, partial(_gaussian, n, 10, 10.0**power))
    for share in (0.0, 0.01) if quick else (0.0, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.05):
        make = partial(_gaussian, n, 10, 1e2, share)
        yield Cell("outliers", share, make, contamination=1.5 * share)
    for d in (2, 20) if quick else (2, 5, 10, 20, 50, 100):
        yield Cell("columns", d, partial(_gaussian, n, d, 1e4))


def measure_cell(cell: Cell, runs: int) -> Iterator[Result]:
    """Yield one result for the oracle and each method."""
    table = cell.make()
    reference = make_reference(table)
    oracle = find_oracle_errors(table, reference, [RHO], _ORACLE_RUNS)[0].error
    yield Result(cell.sweep, cell.value, ORACLE, oracle, oracle, oracle, _ORACLE_RUNS, _ORACLE_RUNS, "")
    inliers = table.rows if table.inliers is None else table.rows[table.inliers]
    truth = TrueMoment.of(inliers)
    for method in dpcov.methods():
        if not method.available:
            continue
        times = min(runs, _SLOW_RUNS) if method.name in _SLOW else runs
        found = []
        for told in _settings(method, truth, cell):
            errors, note = _errors(method, table, told, reference.relative_error, times)
            known = errors or [math.nan]
            extra = f"rounds={told['rounds']}" if "rounds" in told else note
            figures = float(np.median(known)), min(known), max(known)
            found.append(Result(cell.sweep, cell.value, method.name, *figures, len(errors), times, extra))
        yield min(found, key=lambda result: (math.isnan(result.error), result.error))


def _settings(method: Method, truth: TrueMoment, cell: Cell) -> list[dict[str, Any]]:
    """Return what a method is told; several settings to choose from in hindsight for CoinPress."""
    told: dict[str, Any] = truth.bounds_for(method)
    if method.name == DEFAULT and cell.contamination:
        told["contamination"] = cell.contamination
    if "rounds" not in told:
        return [told]
    return [{**told, "rounds": max(1, int(told["rounds"]) + change)} for change in (-1, 0, 2)]


def _errors(
    method: Method,
    table: Table,
    told: dict[str, Any],
    measure: Callable[[np.ndarray[tuple[int, ...], np.dtype[np.float64]]], float],
    runs: int,
) -> tuple[list[float], str]:
    errors, note = [], ""
    for run in range(runs):
        try:
            released = dpcov.release(
                table.rows,
                rho=RHO,
                delta=DELTA,
                method=method.name,
                intercept=False,
                allow_unvetted=True,
                rng=np.random.default_rng([7, run]),
                **told,
            )
        except dpcov.NoAnswerError as problem:
            note = str(problem)
        except dpcov.DpcovError as problem:
            # Refused from public numbers: another run would be refused too.
            return [], str(problem)
        else:
            errors.append(measure(released.second_moment().values))
    return errors, note


def print_table(results: Iterable[Result]) -> None:
    """Print one table a sweep: methods down, values across."""
    rows = list(results)
    for sweep in dict.fromkeys(result.sweep for result in rows):
        here = [result for result in rows if result.sweep == sweep]
        values = list(dict.fromkeys(result.value for result in here))
        print(f"\n{sweep:<16}" + "".join(f"{value:>10g}" for value in values))
        for name in dict.fromkeys(result.method for result in here):
            errors = {result.value: result.error for result in here if result.method == name}
            cells = (errors.get(value, math.nan) for value in values)
            print(f"{name:<16}" + "".join("         -" if math.isnan(e) else f"{e:>10.3g}" for e in cells))


def print_verdict(results: Iterable[Result]) -> None:
    """Say in which cells the default is best, or where another method is better by more than 5%."""
    by_cell: dict[tuple[str, float], dict[str, float]] = {}
    for result in results:
        if result.method != ORACLE and not math.isnan(result.error):
            by_cell.setdefault((result.sweep, result.value), {})[result.method] = result.error
    worse = []
    for (sweep, value), errors in by_cell.items():
        best = min(errors, key=errors.__getitem__)
        if not errors.get(DEFAULT, math.inf) <= TOLERANCE * errors[best]:
            ours = errors.get(DEFAULT, math.nan)
            worse.append(f"  {sweep} = {value:g}: {ours:.3g}, {best} {errors[best]:.3g}")
    within = len(by_cell) - len(worse)
    print(f"\n{DEFAULT} is best or within 5% of the best in {within} of {len(by_cell)} cells")
    print("\n".join(worse))


def read_results(path: Path) -> list[Result]:
    """Read what `write_results` wrote."""
    with path.open(newline="") as file:
        return [
            Result(
                row["sweep"],
                float(row["value"]),
                row["method"],
                float(row["error"]),
                float(row["lowest"]),
                float(row["highest"]),
                int(row["answered"]),
                int(row["runs"]),
                row["note"],
            )
            for row in csv.DictReader(file)
        ]


def write_results(results: Iterable[Result], path: Path) -> None:
    """Write results as CSV; those of other sweeps that are there stay."""
    new = list(results)
    sweeps = {result.sweep for result in new}
    old = [one for one in read_results(path) if one.sweep not in sweeps] if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Result)])
        writer.writeheader()
        writer.writerows(asdict(result) for result in [*old, *new])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    sweeps = ("rows", "condition", "outliers", "columns")
    parser = argparse.ArgumentParser(description="Every method beside the oracle.")
    parser.add_argument("--sweep", nargs="+", choices=sweeps, default=sweeps)
    parser.add_argument("--runs", type=int, default=11, help="draws of noise; 3 for slow methods")
    parser.add_argument("--quick", action="store_true", help="few small tables, nothing written")
    parser.add_argument("--redraw", action="store_true", help="draw the figures from the last results")
    given = parser.parse_args(arguments)
    path = RESULTS / "arena.csv"
    if not given.redraw:
        results: list[Result] = []
        for cell in cells(quick=given.quick):
            if cell.sweep in given.sweep:
                results += measure_cell(cell, given.runs)
                print(f"{cell.sweep} = {cell.value:g} done", flush=True)
        if given.quick:
            print_table(results)
            return
        write_results(results, path)
    results = read_results(path)
    print_table(results)
    print_verdict(results)
    for sweep in dict.fromkeys(result.sweep for result in results):
        curves: dict[str, list[tuple[float, float]]] = {}
        for result in results:
            if result.sweep == sweep:
                curves.setdefault(result.method, []).append((result.value, result.error))
        draw(sweep, curves, RESULTS / f"arena-{sweep}.png")


if __name__ == "__main__":
    main()
