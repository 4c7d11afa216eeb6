"""Releases of real tables: whether claims hold, what is refused, how well regressions predict.

    python benchmarks/real.py [--table NAME ...] [--epsilons 0.3,1,3] [--releases 5] [--own] [--processes 2]

The R squared of a regression is that of private coefficients on the complete rows: below 0 they predict
worse than the mean. A refusal counts as 0. A regression is due if n sqrt(rho) / (p + 2)^1.5 > 30. Results
go to benchmarks/results/real.csv (one line a release) and real-regressions.csv (one line a regression).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from real_judge import OWN, WHOLE, RegressionOutcome, ReleaseOutcome, measure_table
from real_peers import PEERS
from real_tables import LOADERS, RealTable, load_table
from world_answers import total
from world_records import write_outcomes

RESULTS = Path(__file__).parent / "results"

_KINDS = ("means", "variances", "coefficients", "r_squared")
# R squared that differ by less than this are called equal.
_EQUAL = 0.01
_WORST = 10


def summarise_releases(outcomes: Sequence[ReleaseOutcome]) -> str:
    """Return errors, claims, coverage and refusals of releases, for each budget and each table.

    Parameters
    ----------
    outcomes : sequence of ReleaseOutcome
        Of any tables and budgets.
    """
    lines = []
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        chosen = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        lines.append(f"epsilon {epsilon:g}, {len(chosen)} releases")
        lines += [f"  {_table_line(table, chosen)}" for table in dict.fromkeys(o.table for o in chosen)]
        plain = [o.exceeded for o in chosen if not o.noted]
        lines.append(
            f"  predicted error exceeded: {np.mean([o.exceeded for o in chosen]):.0%}; without a note "
            f"{sum(plain)} of {len(plain)}"
        )
        zeros = {f"{o.table}.{column}" for o in chosen for column in o.false_zeros}
        count = sum(len(o.false_zeros) for o in chosen)
        lines.append(
            f"  false zeros: {count} in {sum(o.n_columns for o in chosen)} columns, "
            f"{sum(len(o.noted_zeros) for o in chosen)} of them with a note "
            f"({', '.join(sorted(zeros)) or 'none'})"
        )
        for kind in _KINDS:
            tally = total(getattr(outcome, kind) for outcome in chosen)
            held = f"{tally.held / tally.asked:.1%}" if tally.asked else "-"
            noted = f"{tally.flagged_held / tally.flagged:.1%}" if tally.flagged else "-"
            lines.append(
                f"  {kind:<13} held {held} of {tally.asked}; with a note {noted} of {tally.flagged}; "
                f"refused {tally.refused}"
            )
    return "\n".join(lines)


def _table_line(table: str, outcomes: Sequence[ReleaseOutcome]) -> str:
    mine = [outcome for outcome in outcomes if outcome.table == table]
    whole = total(getattr(outcome, kind) for outcome in mine for kind in _KINDS)

    def middle(name: str) -> float:
        # A release that answers no mean has no error of means.
        values = [getattr(outcome, name) for outcome in mine]
        answered = [value for value in values if not math.isnan(value)]
        return float(np.median(answered)) if answered else math.nan

    return (
        f"{table:<15} {mine[0].n_rows:>6}x{mine[0].n_columns:<3} error {middle('error'):<8.2g} "
        f"oracle {middle('oracle'):<7.2g} ratio {middle('ratio'):<7.3g} predicted "
        f"{middle('predicted_error'):<7.2g} exceeded {sum(o.exceeded for o in mine)} of {len(mine)}, "
        f"means off by {middle('mean_error'):.2g} sd, at most {middle('worst_mean_error'):.2g}; "
        f"held {whole.held}/{whole.asked}, refused {whole.refused}; {middle('seconds'):.1f} s"
    )


def summarise_regressions(outcomes: Sequence[RegressionOutcome]) -> str:
    """Return how well regressions predict, what is refused, and how the default compares with others.

    Parameters
    ----------
    outcomes : sequence of RegressionOutcome
        Of any tables, budgets and methods.
    """
    lines = []
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        chosen = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        methods = dict.fromkeys(outcome.method for outcome in chosen)
        for method in methods:
            mine = [outcome for outcome in chosen if outcome.method == method]
            due = [outcome for outcome in mine if outcome.due]
            answered = [outcome for outcome in mine if not outcome.refused]
            silent = [outcome for outcome in answered if outcome.r_squared < 0 and not outcome.flagged]
            lost = np.median([outcome.raw_r_squared - outcome.r_squared for outcome in mine])
            largest = np.median([outcome.largest_error for outcome in answered]) if answered else np.nan
            lines.append(
                f"epsilon {epsilon:g}, {method}: refused {sum(o.refused for o in mine)} of {len(mine)} "
                f"regressions, {sum(o.refused for o in due)} of {len(due)} that are due; "
                f"R squared below least squares by {lost:.2g} (median); below 0 without a note "
                f"{len(silent)}; largest relative error of a slope {largest:.2g} (median)"
            )
            lines += [
                f"    {outcome.r_squared:.3g}: {outcome.table} {outcome.target} on {outcome.predictors}"
                for outcome in sorted(silent, key=lambda outcome: outcome.r_squared)[:_WORST]
            ]
        lines += [
            f"epsilon {epsilon:g}, {ours} beside {method}: " + compare(chosen, method, ours)
            for ours in (WHOLE, OWN)
            for method in methods
            if ours in methods and method not in {WHOLE, OWN}
        ]
    return "\n".join(lines)


def compare(outcomes: Sequence[RegressionOutcome], method: str, ours: str = WHOLE) -> str:
    """Return in how many regressions the default's median R squared is better, equal or worse.

    Parameters
    ----------
    outcomes : sequence of RegressionOutcome
        Of one budget.
    method : str
        What to compare the default with.
    ours : {`WHOLE`, `OWN`}
        A release of the whole table, or of the regression's columns and told bounds, as peers are.
    """
    medians: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    for outcome in outcomes:
        cell = medians.setdefault((outcome.table, outcome.target, outcome.predictors), {})
        cell.setdefault(outcome.method, []).append(outcome.r_squared)
    gains = np.array([np.median(cell[ours]) - np.median(cell[method]) for cell in medians.values()])
    better, worse = int((gains > _EQUAL).sum()), int((gains < -_EQUAL).sum())
    return f"better/equal/worse {better}/{len(gains) - better - worse}/{worse}"


def measure_tables(
    tables: Iterable[RealTable],
    epsilons: Sequence[float],
    releases: int,
    processes: int,
    *,
    own: bool,
    peers: Sequence[str] = (),
) -> Iterator[tuple[list[ReleaseOutcome], list[RegressionOutcome]]]:
    """Yield the outcomes of each table as they come, in order.

    Parameters
    ----------
    tables : iterable of RealTable
        Of any origin.
    epsilons, releases, own, peers
        As for `real_judge.measure_table`.
    processes : int
        1 runs in this one.
    """
    task = partial(measure_table, epsilons=epsilons, releases=releases, own=own, peers=peers)
    if processes == 1:
        yield from map(task, tables)
        return
    # Threads of BLAS would fight over the cores; new processes read this before they load it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(task, tables)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Releases of real tables.")
    parser.add_argument("--table", nargs="+", default=list(LOADERS), choices=list(LOADERS))
    parser.add_argument("--epsilons", default="0.3,1,3", help="budgets, each with delta 1e-6")
    parser.add_argument("--releases", type=int, default=5, help="of each table and budget")
    parser.add_argument(
        "--own",
        action="store_true",
        help="as well, release the columns of each regression alone and told bounds",
    )
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="a directory")
    given = parser.parse_args(arguments)
    epsilons = [float(part) for part in given.epsilons.split(",")]
    releases: list[ReleaseOutcome] = []
    regressions: list[RegressionOutcome] = []
    tables = map(load_table, given.table)
    for judged, fits in measure_tables(
        tables, epsilons, given.releases, given.processes, own=given.own, peers=given.peers
    ):
        releases += judged
        regressions += fits
        # After every table: a run that is stopped keeps what it has measured.
        if releases:
            write_outcomes(releases, given.out / "real.csv")
        write_outcomes(regressions, given.out / "real-regressions.csv")
    print(summarise_releases(releases))
    print(summarise_regressions(regressions))


if __name__ == "__main__":
    main()
