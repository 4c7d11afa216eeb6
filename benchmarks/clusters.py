"""What a release asks of a cluster: jobs, partitions, time and what reaches the driver.

A table of 400,000 rows by 20 columns in 200 partitions, with Spark (two local workers) and with Dask (two
local processes), beside the same table in memory, and beside a plain ``X.T @ X`` on the same cluster. The
released matrix must be that of the table in memory, bit for bit. Writes ``benchmarks/results/clusters.csv``.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array
import numpy as np
import pyarrow as pa
from dask.distributed import Client, LocalCluster
from numpy.typing import NDArray
from pyspark.sql import SparkSession, functions

import dpcov
from dpcov.core.tasks import RowTask
from dpcov.sources import ArraySource
from dpcov.sources._held import HeldTable
from dpcov.sources.dask import DaskHeldRows, DaskSource
from dpcov.sources.spark import SparkHeldRows, SparkSource

RESULTS = Path(__file__).parent / "results" / "clusters.csv"
ROWS, COLUMNS, PARTITIONS = 400_000, 20, 200


@dataclass(frozen=True)
class Cost:
    """What one release cost on one kind of cluster.

    Attributes
    ----------
    where : str
        The kind of cluster.
    partitions : int
        Of the table.
    scans, held, jobs : int
        Scans of all partitions, scans of rows that were kept, and jobs that the cluster ran for them and for
        opening the table.
    seconds : float
        For the release.
    plain_seconds : float
        For one ``X.T @ X`` on the same cluster.
    largest_total : int
        Integers of the largest total that reached the driver.
    same_bits : bool
        Whether the matrix is that of the table in memory.
    """

    where: str
    partitions: int
    scans: int
    held: int
    jobs: int
    seconds: float
    plain_seconds: float
    largest_total: int
    same_bits: bool


def make_table() -> NDArray[np.float64]:
    """Return correlated columns, half of them skewed, whose centres and scales differ."""
    rng = np.random.default_rng(23)
    rows = rng.normal(size=(ROWS, COLUMNS)) @ rng.normal(size=(COLUMNS, COLUMNS))
    rows[:, ::2] = np.exp(rows[:, ::2] / 10)
    return rows * np.geomspace(1e-3, 1e3, COLUMNS) + np.linspace(-5, 5, COLUMNS)


def measured_release(data: Any, *kinds: Any) -> tuple[dpcov.Release, float, list[list[int]]]:
    """Release with fixed noise; return also the seconds that took, and the lengths of totals of each kind."""
    with ExitStack() as stack:
        totals = [stack.enter_context(counted_scans(kind)) for kind in kinds]
        begin = time.perf_counter()
        columns = [f"x{i}" for i in range(COLUMNS)]
        release = dpcov.release(data, rho=0.5, columns=columns, progress=False, rng=np.random.default_rng(1))
        return release, time.perf_counter() - begin, totals


@contextmanager
def counted_scans(kind: Any) -> Iterator[list[int]]:
    """Note how long the total of every scan is."""
    totals: list[int] = []
    scan = kind.scan

    def counted(self: Any, task: RowTask, *arguments: Any) -> NDArray[np.int64]:
        total: NDArray[np.int64] = scan(self, task, *arguments)
        totals.append(total.size)
        return total

    kind.scan = counted
    try:
        yield totals
    finally:
        kind.scan = scan


def cost(
    where: str, jobs: int, seconds: float, plain: float, totals: list[list[int]], *, same_bits: bool
) -> Cost:
    """Return what a release cost, from the totals of its scans."""
    scans, held = totals
    in_memory = where == "memory"
    # On a cluster, one more scan keeps rows there.
    count, partitions = len(scans) + (not in_memory), 1 if in_memory else PARTITIONS
    return Cost(where, partitions, count, len(held), jobs, seconds, plain, max(scans + held), same_bits)


def on_spark(rows: NDArray[np.float64], expected: bytes) -> Cost:
    """Measure a release of a Spark dataframe that is cached on its workers."""
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "4g")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    names = [f"x{i}" for i in range(COLUMNS)]

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch(list(rows[batch.column(0).to_numpy()].T), names=names)

    schema = ", ".join(f"{name} double" for name in names)
    data = session.range(0, ROWS, numPartitions=PARTITIONS).mapInArrow(fill, schema).cache()
    data.count()

    def product(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = np.zeros((COLUMNS, COLUMNS))
        for batch in batches:
            block = np.column_stack(batch.columns)
            total += block.T @ block
        yield pa.record_batch([np.arange(total.size), total.ravel()], names=["cell", "value"])

    def plain() -> None:
        partial = data.mapInArrow(product, "cell bigint, value double")
        partial.groupBy("cell").agg(functions.sum("value")).toArrow()

    plain()
    plain_seconds = timed(plain)
    tracker = session.sparkContext.statusTracker()
    session.sparkContext.setJobGroup("release", "release")
    release, seconds, totals = measured_release(data, SparkSource, SparkHeldRows)
    jobs = len(tracker.getJobIdsForGroup("release"))
    session.stop()
    same = matrix_bytes(release) == expected
    return cost("Spark", jobs, seconds, plain_seconds, totals, same_bits=same)


def on_dask(rows: NDArray[np.float64], expected: bytes) -> Cost:
    """Measure a release of a Dask array that is kept by its workers."""
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        data = client.persist(dask.array.from_array(rows, chunks=(ROWS // PARTITIONS, COLUMNS)))
        data.sum().compute()

        def plain() -> None:
            (data.T @ data).compute()

        plain()
        plain_seconds = timed(plain)
        computed: list[int] = []
        compute = dask.compute

        def counted(*arguments: Any, **options: Any) -> Any:
            computed.append(1)
            return compute(*arguments, **options)

        dask.compute = counted
        try:
            release, seconds, totals = measured_release(data, DaskSource, DaskHeldRows)
        finally:
            dask.compute = compute
    same = matrix_bytes(release) == expected
    return cost("Dask", len(computed), seconds, plain_seconds, totals, same_bits=same)


def timed(action: Callable[[], object]) -> float:
    """Return the seconds of the fastest of three calls."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def matrix_bytes(release: dpcov.Release) -> bytes:
    """Return the released matrix, to compare it bit for bit."""
    return np.asarray(release.second_moment()).tobytes()


def main() -> None:
    """Print and save all figures."""
    rows = make_table()
    release, seconds, totals = measured_release(rows, ArraySource, HeldTable)
    expected = matrix_bytes(release)
    plain = timed(lambda: rows.T @ rows)
    costs = [cost("memory", 0, seconds, plain, totals, same_bits=True)]
    costs += [on_spark(rows, expected), on_dask(rows, expected)]
    print(
        f"{'':>8}{'partitions':>12}{'scans':>8}{'held':>8}{'jobs':>8}{'seconds':>10}{'X.T @ X':>10}"
        "  same bits"
    )
    for one in costs:
        print(
            f"{one.where:>8}{one.partitions:>12}{one.scans:>8}{one.held:>8}{one.jobs:>8}{one.seconds:>10.1f}"
            f"{one.plain_seconds:>10.3f}  {one.same_bits}"
        )
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(costs[0])))
        writer.writeheader()
        writer.writerows(
            {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(c).items()} for c in costs
        )


if __name__ == "__main__":
    main()
