"""Columns of ordinary tables one by one: how often the intervals of their means and deviations hold.

    python benchmarks/ordinary.py [--releases 25] [--processes 2]

Averages over many columns hide a kind of column whose intervals hardly ever hold. So these tables have the
columns that a survey, a hospital, a shop, a bank, a school, a web server, an insurer or a building has, and
figures are about single columns. While the treatment of skewed columns was made, the first four were looked
at; the others were not. Results go to benchmarks/results/ordinary.csv.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpcov

RESULTS = Path(__file__).parent / "results" / "ordinary.csv"
LOOKED_AT = ("survey", "hospital", "shop", "building")
SIZES = (5_000, 50_000)
EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-6

Maker = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Outcome:
    """What a number of releases said of one column.

    Attributes
    ----------
    table, column : str
        Which.
    n_rows : int
        Of the table.
    epsilon : float
        The budget, with delta 1e-6.
    skewness : float
        Of the column.
    answers : int
        Releases that answered.
    mean_held, deviation_held : float
        Share of 95% intervals that held the raw rows' mean, or their standard deviation.
    mean_noted : float
        Share of answers about the mean that carry a note.
    unnoted_held : float
        Share of intervals of the mean without a note that held; NaN if there is none.
    bias : float
        Of the mean, in standard deviations of the column.
    deviation : float
        The released standard deviation over that of the rows, on average.
    """

    table: str
    column: str
    n_rows: int
    epsilon: float
    skewness: float
    answers: int
    mean_held: float
    deviation_held: float
    mean_noted: float
    unnoted_held: float
    bias: float
    deviation: float


def _flag(rng: np.random.Generator, n: int, share: float | np.ndarray) -> np.ndarray:
    return (rng.random(n) < share).astype(np.float64)


def _survey(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    education = np.clip(rng.normal(13, 3, n).round(), 0, 21)
    income = rng.lognormal(10, 0.8, n) * np.exp(0.05 * education) * (rng.random(n) > 0.08)
    hours = np.where(rng.random(n) < 0.3, 0, np.clip(rng.normal(38, 10, n), 1, 80).round())
    return {
        "age": rng.integers(18, 95, n), "female": _flag(rng, n, 0.5), "education": education,
        "income": income.round(2), "children": rng.poisson(1.2, n), "hours": hours,
    }  # fmt: skip


def _hospital(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    stay, intensive = rng.geometric(0.2, n), _flag(rng, n, 0.05)
    return {
        "stay": stay, "age": np.clip(rng.normal(60, 20, n), 0, 100).round(),
        "cost": rng.lognormal(8, 1, n) * np.sqrt(stay), "intensive": intensive,
        "died": _flag(rng, n, 0.02 + 0.1 * intensive), "pressure": rng.normal(130, 18, n).round(),
        "temperature": rng.normal(37, 0.6, n).round(1),
    }  # fmt: skip


def _shop(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    items, price = rng.poisson(3, n) + 1, rng.lognormal(2.5, 0.7, n).round(2)
    discount = np.where(rng.random(n) < 0.8, 0, rng.choice([5, 10, 20, 50], n))
    return {
        "items": items, "price": price, "total": (items * price).round(2), "discount": discount,
        "returned": _flag(rng, n, 0.03), "week": rng.integers(1, 53, n),
    }  # fmt: skip


def _building(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    wave = np.sin(np.arange(n) / 500)
    return {
        "temperature": 20 + 5 * wave + rng.normal(0, 0.3, n),
        "humidity": 50 - 10 * wave + rng.normal(0, 2, n),
        "pressure": 1013 + rng.normal(0, 5, n),
        "co2": 400 + rng.gamma(2, 50, n),
        "motion": _flag(rng, n, 0.1),
    }


def _bank(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    default = _flag(rng, n, 0.04)
    balance = rng.lognormal(7, 1.3, n) - rng.lognormal(6, 1, n) * default
    return {
        "age": np.clip(rng.gamma(9, 5, n), 18, 95).round(), "balance": balance.round(),
        "calls": rng.geometric(0.35, n), "duration": rng.exponential(260, n).round(),
        "rate": rng.normal(3.2, 0.7, n).round(2), "default": default, "loan": _flag(rng, n, 0.16),
    }  # fmt: skip


def _school(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    talent = rng.normal(size=n)
    return {
        "maths": np.clip(500 + 90 * talent + rng.normal(0, 50, n), 200, 800).round(),
        "reading": np.clip(505 + 80 * talent + rng.normal(0, 60, n), 200, 800).round(),
        "absences": rng.negative_binomial(0.8, 0.12, n), "class_size": rng.normal(24, 4, n).round(),
        "grade": rng.integers(1, 13, n), "lunch": _flag(rng, n, 0.35),
    }  # fmt: skip


def _server(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    error = _flag(rng, n, 0.015)
    return {
        "bytes": rng.lognormal(8, 1.5, n).round(), "latency": rng.gamma(1.5, 40, n) * (1 + 4 * error),
        "hour": rng.integers(0, 24, n), "status": np.where(error > 0, 500, 200),
        "retries": rng.poisson(0.1, n),
    }  # fmt: skip


def _insurer(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    smoker, claims = _flag(rng, n, 0.2), rng.poisson(0.15, n)
    return {
        "age": rng.integers(18, 80, n), "bmi": rng.normal(27, 5, n).round(1), "smoker": smoker,
        "premium": (rng.lognormal(6, 0.4, n) * (1 + smoker)).round(2), "claims": claims,
        "paid": (claims * rng.lognormal(7, 0.9, n)).round(2), "years": rng.exponential(6, n).round(),
    }  # fmt: skip


TABLES: dict[str, Maker] = {
    "survey": _survey, "hospital": _hospital, "shop": _shop, "building": _building,
    "bank": _bank, "school": _school, "server": _server, "insurer": _insurer,
}  # fmt: skip


def judge(table: str, n_rows: int, epsilon: float, releases: int) -> list[Outcome]:
    """Release so many tables of a kind, and say how the answers about each column did."""
    kinds = ("mean held", "deviation held", "noted", "off", "deviation")
    found: dict[str, dict[str, list[float]]] = {}
    skewness: dict[str, float] = {}
    for number in range(releases):
        rng = np.random.default_rng([list(TABLES).index(table), n_rows, int(10 * epsilon), number])
        rows = pd.DataFrame(TABLES[table](rng, n_rows)).astype(np.float64)
        skewness |= {str(name): float(value) for name, value in rows.skew().items()}
        made = dpcov.release(rows, epsilon=epsilon, delta=DELTA, rng=rng, progress=False)
        for column in map(str, rows):
            kept = found.setdefault(column, {kind: [] for kind in kinds})
            try:
                mean, deviation = made.mean([column]), made.std([column])
            except dpcov.UnresolvedError:
                continue
            low, high = (float(end[0]) for end in mean.interval())
            least, most = (float(end[0]) for end in deviation.interval())
            true, spread = float(rows[column].mean()), float(rows[column].std(ddof=0))
            kept["mean held"].append(low <= true <= high)
            kept["deviation held"].append(least <= spread <= most)
            kept["noted"].append(bool(mean.notes))
            kept["off"].append((float(mean.values[0]) - true) / spread)
            kept["deviation"].append(float(deviation.values[0]) / spread)
    cell: dict[str, Any] = {"table": table, "n_rows": n_rows, "epsilon": epsilon}
    return [
        Outcome(**cell, column=column, skewness=skewness[column], **_averages(kept))
        for column, kept in found.items()
    ]


def _averages(kept: dict[str, list[float]]) -> dict[str, Any]:
    def average(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    plain = [held for held, noted in zip(kept["mean held"], kept["noted"], strict=True) if not noted]
    return {
        "answers": len(kept["off"]),
        "mean_held": average(kept["mean held"]),
        "deviation_held": average(kept["deviation held"]),
        "mean_noted": average(kept["noted"]),
        "unnoted_held": average(plain),
        "bias": average(kept["off"]),
        "deviation": average(kept["deviation"]),
    }


def summarise(outcomes: list[Outcome]) -> str:
    """Return what intervals of skewed and of other columns do, and the worst of them."""
    lines = []
    for name, mine in (
        ("looked at", [o for o in outcomes if o.table in LOOKED_AT]),
        ("not looked at", [o for o in outcomes if o.table not in LOOKED_AT]),
    ):
        for kind, some in (
            ("skewness below 1", [o for o in mine if abs(o.skewness) < 1 and o.answers]),
            ("skewness from 1 on", [o for o in mine if abs(o.skewness) >= 1 and o.answers]),
        ):
            if not some:
                continue
            means = np.array([o.mean_held for o in some])
            plain = np.array([o.unnoted_held for o in some])
            deviations = np.array([o.deviation_held for o in some])
            lines.append(
                f"{name}, {kind}: {len(some)} columns; means held {means.mean():.1%}, without a note "
                f"{np.nanmean(plain):.1%}, below 80% in {(means < 0.8).sum()}; with a note "
                f"{np.mean([o.mean_noted for o in some]):.0%}; deviations held {deviations.mean():.1%}, "
                f"below 80% in {(deviations < 0.8).sum()}"
            )
    worst = sorted((o for o in outcomes if o.answers), key=lambda o: o.mean_held)[:12]
    lines += [
        f"  {o.table}.{o.column} {o.n_rows} epsilon {o.epsilon:g}: means held {o.mean_held:.0%} (noted "
        f"{o.mean_noted:.0%}), bias {o.bias:.3f} sd, deviation {o.deviation:.2f}, held {o.deviation_held:.0%}"
        for o in worst
    ]
    return "\n".join(lines)


def main() -> None:
    """Print and save all figures."""
    parser = argparse.ArgumentParser(description="Columns of ordinary tables, one by one.")
    parser.add_argument("--releases", type=int, default=25)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    cells = [(table, n, epsilon) for table in TABLES for n in SIZES for epsilon in EPSILONS]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.processes, mp_context=context) as pool:
        futures = [pool.submit(judge, *cell, given.releases) for cell in cells]
        outcomes = [outcome for future in futures for outcome in future.result()]
    print(summarise(outcomes))
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(outcomes[0])))
        writer.writeheader()
        for outcome in outcomes:
            plain = asdict(outcome)
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in plain.items()})


if __name__ == "__main__":
    main()
