"""Releases of every table on the shelf, told nothing: claims, refusals and R squared on tables nobody chose.

    python benchmarks/shelf.py [--part judging] [--epsilons 0.3,1,3] [--releases 3] [--processes 2]

As `real.py`, without peers, which want bounds. Constants may be chosen on the part named "tuning"; what is
reported are the other one, on which none may be, and the library, of which `USUAL_DOUBLINGS` has seen half.
Results go to shelf.csv and shelf-regressions.csv in benchmarks/results, or library.csv and
library-regressions.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from library_tables import LIBRARY, read_library
from real import RESULTS, measure_tables, summarise_regressions, summarise_releases
from real_judge import RegressionOutcome, ReleaseOutcome
from real_tables import RealTable
from shelf_tables import JUDGING, TUNING, part, read_shelf
from world_records import write_outcomes

_REFUSALS_NAMED = 12


def summarise_refusals(outcomes: Sequence[RegressionOutcome]) -> str:
    """Return, for each budget, mean R squared of regressions that are due, and where they are refused.

    Parameters
    ----------
    outcomes : sequence of RegressionOutcome
        Of any tables and budgets. A refusal counts as 0, an R squared below -1 as -1.
    """
    lines = []
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        due = [outcome for outcome in outcomes if outcome.epsilon == epsilon and outcome.due]
        if not due:
            continue
        refused: dict[str, int] = {}
        for outcome in due:
            if outcome.refused:
                refused[outcome.table] = refused.get(outcome.table, 0) + 1
        worst = sorted(refused, key=lambda table: -refused[table])[:_REFUSALS_NAMED]
        found, raw = (
            np.mean([max(getattr(outcome, name), -1.0) for outcome in due])
            for name in ("r_squared", "raw_r_squared")
        )
        lines.append(
            f"epsilon {epsilon:g}: refused {sum(refused.values())} of {len(due)} that are due "
            f"({sum(refused.values()) / len(due):.1%}); R squared {found:.3f} of {raw:.3f}; most of "
            + (", ".join(f"{table} {refused[table]}" for table in worst) or "none")
        )
    return "\n".join(lines)


def _of_part(name: str) -> Iterator[RealTable]:
    return (table for table in read_shelf() if part(table.name) == name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Releases of every table on the shelf.")
    parser.add_argument("--part", default=JUDGING, choices=(TUNING, JUDGING, LIBRARY))
    parser.add_argument("--epsilons", default="0.3,1,3", help="budgets, each with delta 1e-6")
    parser.add_argument("--releases", type=int, default=3, help="of each table and budget")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="a directory")
    given = parser.parse_args(arguments)
    epsilons = [float(text) for text in given.epsilons.split(",")]
    of_library = given.part == LIBRARY
    tables = list(read_library() if of_library else _of_part(given.part))
    releases: list[ReleaseOutcome] = []
    regressions: list[RegressionOutcome] = []
    for judged, fits in measure_tables(tables, epsilons, given.releases, given.processes, own=False):
        releases += judged
        regressions += fits
    name = LIBRARY if of_library else "shelf"
    write_outcomes(releases, given.out / f"{name}.csv")
    write_outcomes(regressions, given.out / f"{name}-regressions.csv")
    print(summarise_releases(releases))
    print(summarise_regressions(regressions))
    print(summarise_refusals(regressions))


if __name__ == "__main__":
    main()
