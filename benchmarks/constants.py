"""What halving and doubling each constant of the default method does to random tables.

    python benchmarks/constants.py --seeds 3000:3040 [--processes 2] [NAME ...]

Every table is drawn once, and released once as the method is and once for each change, with the same noise.
A run of all constants writes ``benchmarks/results/constants.csv``, which ``docs/whitening.md`` shows; a run
of some prints what it found.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from world_judge import Outcome, evaluate, measure_truth
from world_tables import draw_table

import dpcov
from dpcov.methods.whitening import constants

NAMES = (
    "AIM", "MOST_ROUND", "CAREFUL_LOOK", "LOOK", "DENSE", "TAIL_SHARE", "FALSE_ALARM",
    "KEPT_FOR_RELEASE", "VISIBLE",
)  # fmt: skip

RESULTS = Path(__file__).parent / "results" / "constants.csv"

_FACTORS = (0.5, 2.0)
_HOPELESS = 0.2
# A share of the budget that is kept must leave something to spend.
_MOST_KEPT = 0.8


def changed_value(name: str, factor: float) -> float:
    """Return what a constant becomes."""
    value = float(getattr(constants, name))
    return min(value * factor, _MOST_KEPT) if name == "KEPT_FOR_RELEASE" else value * factor


@contextmanager
def changed(name: str, factor: float) -> Iterator[None]:
    """Change a constant for a while."""
    before = getattr(constants, name)
    setattr(constants, name, changed_value(name, factor))
    try:
        yield
    finally:
        setattr(constants, name, before)


def judge_changes(seed: int, names: Sequence[str]) -> dict[tuple[str, float], Outcome]:
    """Release one table with each change; the name is empty where there is none."""
    table = draw_table(seed)
    truth = measure_truth(table)
    found = {("", 1.0): evaluate(table, dpcov.release, truth=truth)}
    for name in names:
        for factor in _FACTORS:
            with changed(name, factor):
                found[name, factor] = evaluate(table, dpcov.release, truth=truth)
    return found


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return how accurate releases are beside the oracle, and how often their claims fail."""
    answerable = [outcome for outcome in outcomes if outcome.oracle < _HOPELESS]
    ratios = np.array([outcome.ratio for outcome in answerable])
    claims = [o for o in answerable if not math.isnan(o.resolved_error) and not math.isnan(o.predicted_error)]
    return {
        "median_ratio": float(np.median(ratios)),
        "within_1.25": float(np.mean(ratios <= 1.25)),
        "within_2": float(np.mean(ratios <= 2)),
        "exceeded": float(np.mean([outcome.exceeded for outcome in claims])),
        "tables": len(outcomes),
        "counted": len(answerable),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Constants of the default method, halved and doubled.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--seeds", default="3000:3040", help="first and last seed, the last one left out")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    first, last = (int(part) for part in given.seeds.split(":"))
    # Threads of BLAS would fight over the cores; new processes read this before they load it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(given.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        judged = list(pool.map(partial(judge_changes, names=tuple(given.names)), range(first, last)))
    lines = [
        {
            "constant": name,
            "usual": getattr(constants, name) if name else None,
            "value": changed_value(name, factor) if name else None,
            **summarise([found[name, factor] for found in judged]),
            "first_seed": first,
            "last_seed": last - 1,
        }
        for name, factor in judged[0]
    ]
    found = pd.DataFrame(lines)
    print(found.to_string(index=False))
    if tuple(given.names) == NAMES:
        found.to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main()
