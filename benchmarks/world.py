"""Releases of random tables from many families, judged beside an oracle: a benchmark that cannot be fitted.

    python benchmarks/world.py --seeds 1000:1200 [--releases 3] [--processes 2] [--out results/world.csv]

Every seed is another table (`world_tables.draw_table`). Tune on some seeds, report on others. From Python:

    from world import evaluate
    from world_tables import draw_table
    evaluate(draw_table(1000), functools.partial(dpcov.release, method="whitening")).ratio
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from world_answers import total
from world_judge import Outcome, ReleaseFunction, evaluate, measure_truth
from world_records import read_outcomes, write_outcomes
from world_tables import FAMILIES, draw_table

import dpcov

__all__ = ["Outcome", "evaluate", "judge_seed", "summarise"]

RESULTS = Path(__file__).parent / "results" / "world.csv"

_HOPELESS = 0.2
_MANY_ROWS = 2_000
_WORST = 15
_KINDS = ("means", "variances", "coefficients", "r_squared")


def judge_seed(
    seed: int, releases: int = 1, release_function: ReleaseFunction = dpcov.release
) -> list[Outcome]:
    """Draw the table of one seed, release it a few times, and judge each release.

    Parameters
    ----------
    seed : int
        Of the table.
    releases : int, default 1
        How many, with different noise.
    release_function : callable, optional
        What makes a release.
    """
    table = draw_table(seed)
    truth = measure_truth(table)
    return [evaluate(table, release_function, run=run, truth=truth) for run in range(releases)]


def judge_seeds(seeds: Sequence[int], releases: int, processes: int) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each seed as they come, in order.

    Parameters
    ----------
    seeds : sequence of int
        Of the tables.
    releases : int
        How many of each.
    processes : int
        1 runs in this one.
    """
    task = partial(judge_seed, releases=releases)
    if processes == 1:
        yield from map(task, seeds)
        return
    # Threads of BLAS would fight over the cores; new processes read this before they load it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(task, seeds)


def format_outcome(outcome: Outcome) -> str:
    """Return one line about a release."""
    missed = total(getattr(outcome, kind) for kind in _KINDS)
    claims = f"predicted {outcome.predicted_error:.2g}{' EXCEEDED' if outcome.exceeded else ''}"
    zeros = f"  false zeros: {len(outcome.false_zeros)}" if outcome.false_zeros else ""
    return (
        f"{outcome.seed:>6} {outcome.name:<52} error {outcome.error:<8.2g} oracle {outcome.oracle:<8.2g} "
        f"ratio {outcome.ratio:<7.3g} resolved {outcome.resolved_error:.2g} in {outcome.resolved_columns} "
        f"of {outcome.n_columns}, {claims}  held {missed.held}/{missed.asked}"
        f"{zeros}{'  ' + outcome.failure if outcome.failure else ''}  {outcome.seconds:.1f} s"
    )


def summarise(outcomes: Iterable[Outcome]) -> str:
    """Return what the bars are about: ratios, claims, coverage, false zeros and refusals.

    Parameters
    ----------
    outcomes : iterable of Outcome
        Releases of the same table follow each other.
    """
    every = list(outcomes)
    tables = [list(group) for _, group in groupby(every, key=lambda outcome: outcome.seed)]
    failed = [outcome for outcome in every if outcome.failure]
    lines = [f"{len(tables)} tables, {len(every)} releases, {len(failed)} without a release"]
    lines += [f"  {outcome.seed} {outcome.name}: {outcome.failure}" for outcome in failed]
    return "\n".join(
        [
            *lines,
            *_ratio_lines(tables),
            *_claim_lines(every),
            *_coverage_lines(tables),
            _refusals(every),
        ]
    )


def _ratio_lines(tables: Sequence[Sequence[Outcome]]) -> list[str]:
    answerable = [table for table in tables if table[0].oracle < _HOPELESS]
    if not answerable:
        return [f"no table has an oracle's error below {_HOPELESS:g}"]
    medians = [float(np.median([outcome.ratio for outcome in table])) for table in answerable]
    single = [outcome for table in answerable for outcome in table]
    lines = [
        f"oracle's error < {_HOPELESS:g}: {len(answerable)} tables",
        _spread("  tables (median of releases)", medians),
        _spread("  single releases", [outcome.ratio for outcome in single]),
        _spread("  the oracle's own", [outcome.oracle_draw / outcome.oracle for outcome in single]),
        "  worst:",
    ]
    worst = sorted(single, key=lambda outcome: -outcome.ratio)[:_WORST]
    return lines + [
        f"    {outcome.ratio:<9.3g} seed {outcome.seed} {outcome.name}: error {outcome.error:.2g}, oracle "
        f"{outcome.oracle:.2g}, predicted {outcome.predicted_error:.2g}, {outcome.unresolved} unresolved, "
        f"least direction {outcome.least_direction:.1g}"
        for outcome in worst
    ]


def _spread(title: str, ratios: Sequence[float]) -> str:
    values = np.array(ratios)
    within = ", ".join(f"<= {limit:g}: {np.mean(values <= limit):.0%}" for limit in (1.1, 1.25, 2.0))
    # Interpolating between infinite ratios would give NaN.
    nearest = partial(np.quantile, values, method="higher")
    return (
        f"{title + ':':<31} {within}; median {np.median(values):.3g}, 90% {nearest(0.9):.3g}, "
        f"max {values.max():.3g}"
    )


def _claim_lines(every: Sequence[Outcome]) -> list[str]:
    lines = []
    for title, chosen in (
        ("all tables", every),
        (f"oracle's error < {_HOPELESS:g}", [outcome for outcome in every if outcome.oracle < _HOPELESS]),
    ):
        claims = [o for o in chosen if not math.isnan(o.resolved_error) and not math.isnan(o.predicted_error)]
        if claims:
            share = np.mean([outcome.exceeded for outcome in claims])
            at_least = np.mean([outcome.trimmed_error > outcome.predicted_error for outcome in claims])
            plain = [outcome.exceeded for outcome in claims if not outcome.noted]
            lines.append(
                f"predicted error exceeded, {title}: {share:.1%} of {len(claims)} releases "
                f"(whatever resolved means: {at_least:.1%}), {sum(plain)} of {len(plain)} without a note"
            )
    zeros = [(outcome, len(outcome.false_zeros)) for outcome in every if outcome.false_zeros]
    columns = sum(outcome.n_columns for outcome in every)
    noted = sum(len(outcome.noted_zeros) for outcome in every)
    lines.append(
        f"false zeros: {sum(count for _, count in zeros)} in {columns} columns, {noted} of them with a note"
    )
    for outcome, count in sorted(zeros, key=lambda pair: -pair[1])[:_WORST]:
        shown = " ".join(outcome.false_zeros[:6])
        lines.append(f"  {count} of {outcome.n_columns}: seed {outcome.seed} {outcome.name} ({shown})")
    return lines


def _coverage_lines(tables: Sequence[Sequence[Outcome]]) -> list[str]:
    large = [table for table in tables if table[0].n_rows >= _MANY_ROWS]
    lines = [f"95% intervals that held, tables of at least {_MANY_ROWS} rows:"]
    for kind in _KINDS:
        tallies = [total(getattr(outcome, kind) for outcome in table) for table in large]
        shares = [tally.held / tally.asked for tally in tallies if tally.asked]
        whole = total(tallies)
        if not shares:
            continue
        flagged = f"{whole.flagged_held / whole.flagged:.1%}" if whole.flagged else "-"
        lines.append(
            f"  {kind:<13} {np.mean(shares):.1%} averaged over tables, {whole.held / whole.asked:.1%} of "
            f"{whole.asked} answers; {np.mean(np.array(shares) < 0.93):.0%} of tables below 93%; "
            f"with a note {flagged} of {whole.flagged}; {whole.refused} refused"
        )
    answerable = [outcome for table in tables for outcome in table if outcome.oracle < _HOPELESS]
    asked = total(getattr(outcome, kind) for outcome in answerable for kind in _KINDS)
    if asked.asked + asked.flagged:
        share = asked.flagged / (asked.asked + asked.flagged)
        lines.append(f"  answers with a note where the oracle's error is below {_HOPELESS:g}: {share:.1%}")
    return lines


def _refusals(every: Sequence[Outcome]) -> str:
    asked = sum(outcome.regressions - outcome.singular for outcome in every)
    refused = sum(outcome.refused for outcome in every)
    due, due_refused = sum(outcome.due for outcome in every), sum(outcome.due_refused for outcome in every)
    silent = sum(outcome.means.refused == outcome.n_columns for outcome in every)
    return (
        f"refused: {refused} of {asked} regressions; with n sqrt(rho) / (p+2)^1.5 > 30: "
        f"{due_refused} of {due}; {silent} of {len(every)} releases answer no mean"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=f"Random tables of {len(FAMILIES)} families.")
    parser.add_argument("--seeds", default="0:60", help="first and last seed, the last one left out")
    parser.add_argument("--releases", type=int, default=3, help="of each table")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--read", nargs="+", type=Path, help="summarise earlier results instead")
    given = parser.parse_args(arguments)
    if given.read:
        print(summarise([outcome for path in given.read for outcome in read_outcomes(Outcome, path)]))
        return
    first, last = (int(part) for part in given.seeds.split(":"))
    start, outcomes = time.perf_counter(), []
    for found in judge_seeds(range(first, last), given.releases, given.processes):
        outcomes += found
        for outcome in found:
            print(format_outcome(outcome), file=sys.stderr, flush=True)
        # After every table: a run that is stopped keeps what it has measured.
        write_outcomes(outcomes, given.out)
    print(f"seeds {first} to {last - 1}, {time.perf_counter() - start:.0f} s")
    print(summarise(outcomes))


if __name__ == "__main__":
    main()
