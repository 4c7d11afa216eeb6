"""How often 95% intervals hold the answer that the raw rows give.

    python benchmarks/coverage.py [--case NAME ...] [--releases 1000] [--rho 0.5] [--rows 20000] [--workers 2]

Every release is of a new table from the case's law: what clipping took away differs from table to table, and
an interval that is right on average over tables is what an analyst with one table can hope for.
Results go to benchmarks/results/coverage.csv.
"""

from __future__ import annotations

import argparse
import csv
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
from accuracy_cases import mixing, truncated_pareto
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dpcov

Matrix = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
N_COLUMNS = 6
QUESTIONS = ("covariance", "coefficients", "eigenvalues", "means", "correlation")


def _gaussian(rng: np.random.Generator, n: int, d: int) -> Matrix:
    return rng.standard_normal((n, d))


def _student(rng: np.random.Generator, n: int, d: int, degrees: float) -> Matrix:
    return rng.standard_t(degrees, (n, d))


def _elliptical_student(rng: np.random.Generator, n: int, d: int, degrees: float) -> Matrix:
    return np.asarray(rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees))


def _pareto(rng: np.random.Generator, n: int, d: int) -> Matrix:
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(truncated_pareto(rng, n)[:, None] * rows)


def _laplace(rng: np.random.Generator, n: int, d: int) -> Matrix:
    return rng.laplace(size=(n, d))


def _log_normal(rng: np.random.Generator, n: int, d: int) -> Matrix:
    return np.asarray(np.exp(rng.standard_normal((n, d))))


def _one_student(rng: np.random.Generator, n: int, d: int) -> Matrix:
    rows = rng.standard_normal((n, d))
    rows[:, 0] = rng.standard_t(4.0, n)
    return rows


def _one_log_normal(rng: np.random.Generator, n: int, d: int) -> Matrix:
    rows = rng.standard_normal((n, d))
    rows[:, 0] = np.exp(rows[:, 0])
    return rows


def _half_student(rng: np.random.Generator, n: int, d: int) -> Matrix:
    return np.hstack([rng.standard_t(4.0, (n, d // 2)), rng.standard_normal((n, d - d // 2))])


# The last two played no part when the constants of the tail's law were chosen.
CASES: Mapping[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "gaussian": _gaussian,
    "student-t5": partial(_student, degrees=5.0),
    "student-t3": partial(_student, degrees=3.0),
    "elliptical-t5": partial(_elliptical_student, degrees=5.0),
    "elliptical-t3": partial(_elliptical_student, degrees=3.0),
    "truncated-pareto": _pareto,
    "one-student-t4": _one_student,
    "one-log-normal": _one_log_normal,
    "half-student-t4": _half_student,
    "laplace": _laplace,
    "log-normal": _log_normal,
}


def make_table(case: str, n_rows: int, seed: int) -> Matrix:
    """Return a table: rows of the case's law, mixed to condition 1e3, with means that are not zero.

    Parameters
    ----------
    case : str
        One of `CASES`.
    n_rows : int
        How many rows.
    seed : int
        Another one gives another table, of the same law.
    """
    law = np.random.default_rng(zlib.crc32(case.encode()))
    factor = law.standard_normal((N_COLUMNS, N_COLUMNS)) @ mixing(law, N_COLUMNS, 1e3)
    rows = CASES[case](np.random.default_rng([seed, 1]), n_rows, N_COLUMNS)
    return np.asarray(rows @ factor.T + np.arange(N_COLUMNS) / 2)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Of one release and kind of question: which intervals held the raw answer, and how wide they were."""

    held: NDArray[np.bool_]
    width: Matrix


def raw_answers(rows: Matrix) -> dict[str, Matrix]:
    """Return what the raw rows answer to each kind of question."""
    covariance = np.cov(rows.T, bias=True)
    upper = np.triu_indices(N_COLUMNS)
    spread = np.sqrt(np.diag(covariance))
    slopes = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    mean = rows.mean(axis=0)
    return {
        "covariance": covariance[upper],
        "coefficients": np.append(slopes, mean[-1] - slopes @ mean[:-1]),
        "eigenvalues": np.linalg.eigvalsh(covariance)[::-1],
        "means": mean,
        "correlation": (covariance / np.outer(spread, spread))[np.triu_indices(N_COLUMNS, 1)],
    }


def measure_release(case: str, n_rows: int, rho: float, seed: int) -> dict[str, Outcome] | None:
    """Release one table and check every interval; None if the release could not answer.

    Parameters
    ----------
    case : str
        One of `CASES`.
    n_rows : int
        Rows of the table.
    rho : float
        The budget.
    seed : int
        Of table and noise.
    """
    rows = make_table(case, n_rows, seed)
    with threadpool_limits(1):
        release = dpcov.release(rows, rho=rho, rng=np.random.default_rng([seed, 2]))
    exact = raw_answers(rows)
    columns = release.columns
    upper, above = np.triu_indices(N_COLUMNS), np.triu_indices(N_COLUMNS, 1)
    try:
        intervals = {
            "covariance": [bound[upper] for bound in release.covariance().interval()],
            "coefficients": release.regress(columns[-1], on=columns[:-1]).coefficients.interval(),
            "eigenvalues": release.pca(standardize=False).variances.interval(),
            "means": release.mean().interval(),
            "correlation": [bound[above] for bound in release.correlation().interval()],
        }
    except dpcov.UnresolvedError:
        return None
    return {
        name: Outcome((low <= exact[name]) & (exact[name] <= high), (high - low) / 2)
        for name, (low, high) in intervals.items()
    }


@dataclass(frozen=True)
class Coverage:
    """How often intervals held the raw answer.

    Attributes
    ----------
    case, question : str
        What was released and asked.
    rho : float
        The budget.
    rows, releases, refused : int
        Rows of each table, releases, and how many of them said that they cannot answer.
    coverage : float
        Over all entries and releases.
    error : float
        Standard error of `coverage`, over releases.
    least, most : float
        Of single entries.
    half_width : float
        Median over releases and entries.
    """

    case: str
    question: str
    rho: float
    rows: int
    releases: int
    refused: int
    coverage: float
    error: float
    least: float
    most: float
    half_width: float


def measure_case(case: str, n_rows: int, rho: float, releases: int, workers: int) -> list[Coverage]:
    """Measure the coverage of each kind of question.

    Parameters
    ----------
    case : str
        One of `CASES`.
    n_rows, rho, releases
        Rows of each table, budget of each release, and how many.
    workers : int
        Processes; 1 runs in this one.
    """
    task = partial(measure_release, case, n_rows, rho)
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            outcomes = list(pool.map(task, range(releases), chunksize=10))
    else:
        outcomes = [task(seed) for seed in range(releases)]
    answered = [outcome for outcome in outcomes if outcome is not None]
    results = []
    for question in QUESTIONS:
        held = np.array([outcome[question].held for outcome in answered])
        widths = np.array([outcome[question].width for outcome in answered])
        results.append(
            Coverage(
                case=case,
                question=question,
                rho=rho,
                rows=n_rows,
                releases=releases,
                refused=releases - len(answered),
                coverage=float(held.mean()),
                error=float(held.mean(axis=1).std() / math.sqrt(len(answered))),
                least=float(held.mean(axis=0).min()),
                most=float(held.mean(axis=0).max()),
                half_width=float(np.median(widths)),
            )
        )
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Coverage of 95% intervals.")
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rho", type=float, default=0.5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    results = []
    for case in given.case:
        for result in measure_case(case, given.rows, given.rho, given.releases, given.workers):
            print(
                f"{result.case:<18} {result.question:<13} {result.coverage:.3f} +- {result.error:.3f}  "
                f"entries {result.least:.3f} to {result.most:.3f}  half-width {result.half_width:.3g}  "
                f"refused {result.refused}",
                flush=True,
            )
            results.append(result)
        # After every case: a run that is stopped keeps what it has measured.
        given.output.parent.mkdir(parents=True, exist_ok=True)
        with given.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, [entry.name for entry in fields(Coverage)])
            writer.writeheader()
            writer.writerows(asdict(result) for result in results)


if __name__ == "__main__":
    main()
