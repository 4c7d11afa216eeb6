"""Accuracy of the default method beside an oracle and other methods, on many tables.

    python benchmarks/accuracy.py [--case NAME ...] [--rho 0.1 0.5 2] [--runs 21] [--quick] [--method NAME]

The error is |S^-1/2 S~ S^-1/2 - I| in spectral norm, the median over runs with different noise.
Results go to benchmarks/results/accuracy.csv; the oracle's errors are kept in oracle.json beside it.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_cases import Case, Table, select_cases
from oracle import Reference, load_oracle_errors, make_reference

import dpcov
from dpcov.methods import Method, find_method

RESULTS = Path(__file__).parent / "results" / "accuracy.csv"
ANALYZE_GAUSS = "gaussian"
PAPER = "recursive"

_SLOW_RUNS = 5
_PAPER_RUNS = 5
_TARGET_RATIO = 1.25
_HOPELESS = 0.2
_ZERO_ERROR = 1.0
_ROWS_FOR = 0.1
_WORST = 8


@dataclass(frozen=True)
class Result:
    """Errors on one case at one budget; NaN where a method was not run.

    Attributes
    ----------
    case, method : str
        What was measured.
    rho : float
        The budget.
    runs : int
        How many draws of noise the medians are over.
    error, oracle, ratio : float
        The method's error, the oracle's, and their ratio.
    analyze_gauss, zero, paper : float
        Errors of noise on the raw Gram matrix, of answering zero, and of the paper's method.
    rounds : float
        The median number of rounds, if the method tells.
    rows_for_tenth : float
        About how many such rows an error of 0.1 needs, as privacy error goes like 1/n.
    """

    case: str
    method: str
    rho: float
    runs: int
    error: float
    oracle: float
    ratio: float
    analyze_gauss: float
    zero: float
    paper: float
    rounds: float
    rows_for_tenth: float


def measure_method(
    method: Method,
    table: Table,
    reference: Reference,
    rho: float,
    runs: int,
    *,
    options: Mapping[str, Any],
    seed: int = 0,
) -> tuple[list[float], list[float]]:
    """Return the error and the number of rounds of each run; a run that fails has an infinite error.

    Parameters
    ----------
    method : Method
        Gets the true radius if it needs one, and those of the `options` that it takes.
    table : Table
        The rows.
    reference : Reference
        Their exact second moment.
    rho : float
        The budget.
    runs : int
        How many draws of noise.
    options : mapping
        What the case tells every method.
    seed : int, default 0
        The noise of a run is seeded with this and the run's number.
    """
    told = {name: value for name, value in options.items() if name in method.parameters()}
    if "radius" in method.needs:
        told["radius"] = reference.largest_norm
    if method.name == PAPER:
        told |= _for_free(table, reference)
    errors, rounds = [], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        try:
            release = dpcov.release(table.rows, rho=rho, method=method.name, intercept=False, rng=rng, **told)
        except (dpcov.DpcovError, ArithmeticError, ValueError) as failure:
            print(f"{method.name}, rho={rho:g}, run {run} failed: {failure}", file=sys.stderr)
            errors.append(math.inf)
            continue
        errors.append(reference.relative_error(release.second_moment().values))
        rounds.append(float(release.diagnostics.get("rounds", math.nan)))
    return errors, rounds


def _for_free(table: Table, reference: Reference) -> dict[str, Any]:
    """Return what the paper's method has to be told, from the rows: better than anyone could know.

    With this m no inlier is in the tail.
    """
    rows = table.clean_rows()
    inliers = rows if table.inliers is None else rows[table.inliers]
    leverage = float(np.square(inliers @ reference.whitener).sum(axis=1).max())
    return {
        "m": min(max(leverage / 1.5, 1.0), len(rows)),
        "least_eigenvalue": float(np.linalg.norm(reference.whitener, 2) ** -2),
        "constants": "paper",
    }


def measure_case(
    case: Case,
    rhos: Sequence[float],
    runs: int,
    *,
    method: str = "whitening",
    baselines: bool = True,
    oracle_runs: int | None = None,
    fine_oracle: bool = False,
    seed: int = 0,
) -> Iterator[Result]:
    """Yield one result for each budget.

    Parameters
    ----------
    case : Case
        Its table is built once.
    rhos : sequence of float
        Budgets in zCDP.
    runs : int
        How many draws of noise; at most 5 if the case is slow.
    method : str, default "whitening"
        The method to judge.
    baselines : bool, default True
        Whether to run Analyze Gauss and the paper's method too.
    oracle_runs : int, optional
        How many draws of noise for the oracle; `runs` by default.
    fine_oracle : bool, default False
        Whether the oracle tries many more radii.
    seed : int, default 0
        Seeds the noise of the methods.
    """
    if case.slow:
        runs = min(runs, _SLOW_RUNS)
    table = case.make()
    reference = make_reference(table)
    oracles = load_oracle_errors(case, table, reference, rhos, oracle_runs or runs, fine=fine_oracle)
    present = {known.name: known for known in dpcov.methods()} if baselines else {}

    def measure(chosen: Method | None, rho: float, times: int) -> tuple[float, float]:
        if chosen is None:
            return math.nan, math.nan
        errors, rounds = measure_method(
            chosen, table, reference, rho, times, options=case.options, seed=case.noise_seed(seed)
        )
        return float(np.median(errors)), float(np.median(rounds)) if rounds else math.nan

    for rho, oracle in zip(rhos, oracles, strict=True):
        error, rounds = measure(find_method(method), rho, runs)
        yield Result(
            case=case.name,
            method=method,
            rho=rho,
            runs=runs,
            error=error,
            oracle=oracle.error,
            ratio=error / oracle.error,
            analyze_gauss=measure(present.get(ANALYZE_GAUSS), rho, runs)[0],
            zero=_ZERO_ERROR,
            paper=measure(present.get(PAPER), rho, min(runs, _PAPER_RUNS))[0],
            rounds=rounds,
            rows_for_tenth=reference.n_rows * error / _ROWS_FOR,
        )


_HEADER = (
    f"{'case':<32} {'rho':>5} {'error':>9} {'oracle':>9} {'ratio':>8} {'AnalyzeG':>9} "
    f"{'zero':>4} {'paper':>9} {'rounds':>6} {'rows for 10%':>12}"
)


def _number(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def format_result(result: Result) -> str:
    """Return a result as a line of the printed table."""
    rows = f"~{_number(result.rows_for_tenth, 2)}"
    return (
        f"{result.case:<32} {result.rho:>5g} {_number(result.error):>9} {_number(result.oracle):>9} "
        f"{_number(result.ratio):>8} {_number(result.analyze_gauss):>9} {result.zero:>4g} "
        f"{_number(result.paper):>9} {_number(result.rounds):>6} {rows:>12}"
    )


def summarise(results: Iterable[Result]) -> str:
    """Return how often the target is met, and where it is missed most.

    Parameters
    ----------
    results : iterable of Result
        Cases that even the oracle cannot answer are judged against Analyze Gauss and zero instead.
    """
    results = list(results)
    answerable = sorted((r for r in results if r.oracle < _HOPELESS), key=lambda r: -r.ratio)
    hopeless = [r for r in results if r.oracle >= _HOPELESS]
    lines = []
    if answerable:
        met = sum(r.ratio <= _TARGET_RATIO for r in answerable)
        median = float(np.median([r.ratio for r in answerable]))
        lines.append(
            f"oracle's error < {_HOPELESS:g}: ratio <= {_TARGET_RATIO:g} in {met} of {len(answerable)}, "
            f"median ratio {median:.3g}"
        )
        lines += [f"  worst: {r.case} (rho={r.rho:g}) {r.ratio:.3g}" for r in answerable[:_WORST]]
    if hopeless:
        worse = [r for r in hopeless if not r.error <= _fallback_error(r)]
        lines.append(
            f"oracle's error >= {_HOPELESS:g}: at most the better of Analyze Gauss and zero in "
            f"{len(hopeless) - len(worse)} of {len(hopeless)}"
        )
        lines += [
            f"  not: {r.case} (rho={r.rho:g}) {r.error:.3g}, they {_fallback_error(r):.3g}" for r in worse
        ]
    return "\n".join(lines)


def _fallback_error(result: Result) -> float:
    return float(np.fmin(result.analyze_gauss, result.zero))


def write_results(results: Iterable[Result], path: Path = RESULTS) -> None:
    """Write results as CSV; those of other cases, budgets and methods that are there stay.

    Parameters
    ----------
    results : iterable of Result
        What to add or replace.
    path : path, optional
        The file.
    """
    names = [entry.name for entry in fields(Result)]
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    if path.exists():
        with path.open(newline="") as file:
            rows = {_key(row): row for row in csv.DictReader(file)}
    for result in results:
        row = {name: str(value) for name, value in asdict(result).items()}
        rows[_key(row)] = row
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows.values())


def _key(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["case"], row["method"], row["rho"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Accuracy of a method beside an oracle, on many tables.")
    parser.add_argument("--case", nargs="+", metavar="NAME", help="cases, or patterns such as outliers-*")
    parser.add_argument("--rho", nargs="+", type=float, default=[0.1, 0.5, 2.0], help="budgets in zCDP")
    parser.add_argument("--runs", type=int, default=21, help="draws of noise for each median")
    parser.add_argument("--oracle-runs", type=int, default=301, help="draws of noise for the oracle")
    parser.add_argument("--fine-oracle", action="store_true", help="let the oracle try many more radii")
    parser.add_argument("--method", default="whitening", help="the method to judge")
    parser.add_argument("--seed", type=int, default=0, help="seeds the noise")
    parser.add_argument("--quick", action="store_true", help="leave out slow cases")
    parser.add_argument("--no-baselines", action="store_true", help="run the method alone")
    given = parser.parse_args(arguments)
    try:
        find_method(given.method)
        cases = select_cases(given.case, quick=given.quick)
    except ValueError as problem:
        parser.error(str(problem))
    print(_HEADER)
    results = []
    for case in cases:
        for result in measure_case(
            case,
            given.rho,
            given.runs,
            method=given.method,
            baselines=not given.no_baselines,
            oracle_runs=given.oracle_runs,
            fine_oracle=given.fine_oracle,
            seed=given.seed,
        ):
            print(format_result(result), flush=True)
            results.append(result)
        write_results(results)
    print(summarise(results))


if __name__ == "__main__":
    main()
