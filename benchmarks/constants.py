"""What halving and doubling each constant of the default method does to random tables.

    python benchmarks/constants.py --seeds 3100:3160 [--processes 2] [NAME ...]

Every table is drawn once, and released several times as the method is and with each change. Releases of the
same number draw the same noise, so that a change is compared with what would have been without it. A run of
all constants writes ``benchmarks/results/constants.csv``, which ``docs/whitening.md`` shows; a run of some
prints what it found.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from world_judge import judge_matrix, measure_truth
from world_tables import draw_table

import dpcov
from dpcov.methods.whitening import constants

NAMES = tuple(name for name in vars(constants) if name.isupper())

RESULTS = Path(__file__).parent / "results" / "constants.csv"

_FACTORS = (0.5, 2.0)
_HOPELESS = 0.2
_RELEASES = 2
# Beyond, nothing would be left to spend, rows could not come closer, and no gain would be enough.
_MOST = {"KEPT_FOR_RELEASE": 0.8, "KEPT_IN_THE_DARK": 0.8, "CLOSER": 0.95, "ENOUGH_GAIN": 0.99}
# A release that lost a direction is off by any factor: all beyond this are as bad.
_LOST = 20.0


@dataclass(frozen=True)
class Judged:
    """One release: its error as a multiple of the oracle's, and what became of its claims."""

    ratio: float
    exceeded: bool
    unresolved: int


def changed_value(name: str, factor: float) -> float:
    """Return what a constant becomes; a number of rounds or rows stays a whole number."""
    value = getattr(constants, name)
    if isinstance(value, int):
        return max(round(value * factor), 1)
    return float(min(value * factor, _MOST.get(name, math.inf)))


@contextmanager
def changed(name: str, factor: float) -> Iterator[None]:
    """Change a constant for a while; none if the name is empty."""
    if not name:
        yield
        return
    before = getattr(constants, name)
    setattr(constants, name, changed_value(name, factor))
    try:
        yield
    finally:
        setattr(constants, name, before)


def judge_changes(seed: int, names: Sequence[str]) -> dict[tuple[str, float], list[Judged]] | None:
    """Release one table with each change, and without any; None if even an oracle has nothing to show."""
    table = draw_table(seed)
    truth = measure_truth(table)
    if truth.oracle >= _HOPELESS:
        return None
    found = {}
    for name, factor in [("", 1.0), *((name, factor) for name in names for factor in _FACTORS)]:
        with changed(name, factor):
            found[name, factor] = [_judge(table, truth, run) for run in range(_RELEASES)]
    return found


def _judge(table: Any, truth: Any, run: int) -> Judged:
    rng = np.random.default_rng([table.seed, run, 7])
    try:
        release = dpcov.release(table.rows, rho=table.rho, columns=table.columns, rng=rng)
    except dpcov.DpcovError:
        return Judged(_LOST, exceeded=False, unresolved=len(table.columns))
    facts = judge_matrix(release, table, truth.reference)
    ratio = min(facts["error"] / truth.oracle, _LOST)
    return Judged(ratio, exceeded=bool(facts.get("exceeded", False)), unresolved=facts["unresolved"])


def summarise(changes: Sequence[Sequence[Judged]], usual: Sequence[Sequence[Judged]]) -> dict[str, Any]:
    """Return what a change did, table by table: to errors on average, and to claims."""
    logs = np.array(
        [
            np.mean([math.log(new.ratio / old.ratio) for new, old in zip(*pair, strict=True)])
            for pair in zip(changes, usual, strict=True)
        ]
    )
    ratios = np.array([one.ratio for judged in changes for one in judged])
    return {
        "change": float(np.expm1(logs.mean())),
        "standard_error": float(logs.std(ddof=1) / math.sqrt(len(logs))),
        "better": int((logs < -math.log(1.05)).sum()),
        "worse": int((logs > math.log(1.05)).sum()),
        "median_ratio": float(np.median(ratios)),
        "within_1.25": float(np.mean(ratios <= 1.25)),
        "within_2": float(np.mean(ratios <= 2)),
        "exceeded": float(np.mean([one.exceeded for judged in changes for one in judged])),
        "unresolved": float(np.mean([one.unresolved for judged in changes for one in judged])),
        "counted": len(changes),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Constants of the default method, halved and doubled.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--seeds", default="3100:3160", help="first and last seed, the last one left out")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    first, last = (int(part) for part in given.seeds.split(":"))
    # Threads of BLAS would fight over the cores; new processes read this before they load it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(given.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        every = pool.map(partial(judge_changes, names=tuple(given.names)), range(first, last))
        judged = [found for found in every if found is not None]
    lines = [
        {
            "constant": name,
            "usual": getattr(constants, name) if name else None,
            "value": changed_value(name, factor) if name else None,
            **summarise([found[name, factor] for found in judged], [found["", 1.0] for found in judged]),
            "releases": _RELEASES,
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
