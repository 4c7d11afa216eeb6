"""Speed of the core, as ratios to a reference in the same run.

One scan of every query that the default asks, alone and together, and a whole release by the default method,
all against plain ``X.T @ X``, a Gram matrix also without the compiled passes; and the noise sampler
beside OpenDP's. What runs in one thread is measured in CPU time, which other processes disturb least: of that
thread alone, as others of BLAS may still be waiting for work.
Writes ``benchmarks/results/core.csv``.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import opendp.prelude as opendp
from threadpoolctl import threadpool_limits

from dpcov.core import Clipping, Gram, NormHistogram, OSEntropy, Query, Rule, SeededBits, lattice
from dpcov.core.noise import rounded_gaussian
from dpcov.core.passes import NumpyPasses
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask, random_positions, sampled_rows
from dpcov.core.query import Table
from dpcov.core.tasks import RowTask
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening.looks import column_grid, wide_grid
from dpcov.methods.whitening.norms import fine_grid
from dpcov.methods.whitening.queries.columns import PerColumn
from dpcov.sources import ArraySource

RESULTS = Path(__file__).parent / "results" / "core.csv"
SHAPES = {10: 400_000, 50: 400_000, 200: 200_000, 1000: 20_000}
LIMITS = {10: 5.0, 50: 2.8, 200: 2.2, 1000: 2.5}
RELEASES = {
    (400_000, 10): 25.0,
    (400_000, 50): 9.0,
    (1_000_000, 50): 12.0,
    (200_000, 200): 9.0,
    (100_000, 1000): 8.0,
}
STEERED = ((200_000, 200, 100_000), (200_000, 200, 50_000))


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time one call."""
    begin = clock()
    action()
    return clock() - begin


def scan_tasks(n_rows: int, n_columns: int) -> dict[str, RowTask]:
    """Return what a scan of each kind of question runs: `gram` first, then others, alone and together."""
    rng = np.random.default_rng(n_columns)
    forms = rng.normal(size=(n_columns, n_columns))
    lattice_map = integer_map(forms)
    centres = np.append(rng.normal(size=n_columns - 1), 0.0)
    centred = integer_map(forms, np.geomspace(1, 1e3, n_columns), centres)
    table = Table.of_size(n_rows, n_columns, constant=False, in_memory=True)
    bits = SeededBits(rng)

    def gram(rule: Rule = Rule.SHRINK, *, coarse: bool = False) -> Query[Any]:
        return Gram(Clipping(lattice_map, 2.0 * n_columns, rule), 1, "", coarse=coarse)

    fine = NormHistogram(lattice_map, fine_grid(n_columns, n_rows), 1, "")
    column = NormHistogram(identity_map(1), column_grid(wide=False), 1, "")
    queries: dict[str, Sequence[Query[Any]]] = {
        "gram": [gram()],
        "gram, coarse": [gram(coarse=True)],
        "gram, centred": [Gram(Clipping(centred, 2.0 * n_columns), 1, "")],
        "gram of directions": [gram(Rule.DIRECTION, coarse=True)],
        "gram of the tail": [gram(Rule.TAIL, coarse=True)],
        "norms": [NormHistogram(lattice_map, wide_grid(), 1, "")],
        "norms, fine": [fine],
        "gram and norms": [gram(), fine],
        "two grams": [gram(), gram(Rule.TAIL)],
        "gram, 1 row in 8": [gram()],
        "columns, 1 row in 8": [PerColumn(tuple(range(n_columns)), (column,) * n_columns, "", alone=True)],
    }
    found: dict[str, RowTask] = {}
    for name, asked in queries.items():
        parts = [query.task(table, bits) for query in asked]
        task = parts[0] if len(parts) == 1 else JointTask(tuple(parts))
        positions = random_positions(bits, n_rows, sampled_rows(n_rows, 8))
        found[name] = SampledTask(task, positions) if "1 row in 8" in name else task
    return found


def scan_ratios(n_columns: int, n_rows: int, repeats: int = 7) -> dict[str, dict[str, float]]:
    """Compare scans with a plain product, alternating so that all see the same machine."""
    table = np.random.default_rng(n_columns).normal(size=(n_rows, n_columns))
    tasks = scan_tasks(n_rows, n_columns)
    one, two = ArraySource(table, threads=1), ArraySource(table, threads=2)
    plain, plain_double, wall, double = [], [], [], []
    by_numpy: list[float] = []
    single: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        with threadpool_limits(1, "blas"):
            plain.append(seconds(lambda: table.T @ table, time.thread_time))
        for name, task in tasks.items():
            single[name].append(seconds(partial(one.scan, task), time.thread_time))
        with mock.patch.object(lattice, "fastest_passes", NumpyPasses):
            by_numpy.append(seconds(partial(one.scan, tasks["gram"]), time.thread_time))
        wall.append(seconds(lambda: one.scan(tasks["gram"])))
        double.append(seconds(lambda: two.scan(tasks["gram"])))
        # Last: threads of BLAS keep a core busy for a while after it.
        plain_double.append(seconds(lambda: table.T @ table))
    found = {
        name: {"one thread": _median_ratio(times, plain), "one thread, best": min(times) / min(plain)}
        for name, times in {**single, "gram, numpy alone": by_numpy}.items()
    }
    found["gram"] |= {
        "two threads": _median_ratio(double, plain_double),
        "speed-up": _median_ratio(wall, double),
    }
    return found


def _median_ratio(times: Sequence[float], references: Sequence[float]) -> float:
    return statistics.median(time / reference for time, reference in zip(times, references, strict=True))


def noise_nanoseconds(sigma_log2: int, count: int = 1 << 20) -> float:
    """Nanoseconds a sample."""
    return (
        min(
            seconds(lambda: rounded_gaussian(OSEntropy(), 4**sigma_log2, count), time.process_time)
            for _ in range(3)
        )
        / count
        * 1e9
    )


def opendp_nanoseconds(sigma_log2: int, count: int = 5000) -> float:
    """Nanoseconds a sample of OpenDP's discrete Gaussian."""
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64"), size=count), opendp.l2_distance(T="f64")
    mechanism = opendp.m.make_gaussian(*space, scale=2.0**sigma_log2)
    zeros = [0] * count
    return min(seconds(lambda: mechanism(zeros), time.process_time) for _ in range(2)) / count * 1e9


def release_cost(n_rows: int, n_columns: int, steering_rows: int | None = None) -> dict[str, float]:
    """Time, memory and error of one whole release by the default method, in a process of one thread.

    Returns the CPU time as a multiple of that of ``X.T @ X`` in the same run, the numbers of scans of the
    table and of the sample that rounds share, the peak memory above what the process held with the table
    alone, and by what share the worst direction is off.
    With `steering_rows`, rounds that only steer read so many rows, whatever their noise.
    """
    code = f"""
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import json, time, numpy as np, dpcov
from dpcov.methods.whitening import constants
from dpcov.sources import ArraySource
from dpcov.sources._held import HeldTable
if {steering_rows}:
    constants.STEERING_ROWS = constants.QUICK_ROWS = {steering_rows}
rng = np.random.default_rng(0)
mixing = np.linalg.qr(rng.normal(size=({n_columns}, {n_columns}))).Q * np.geomspace(1, 1e-3, {n_columns})
table = np.empty(({n_rows}, {n_columns}))
for first in range(0, len(table), 10_000):
    table[first : first + 10_000] = rng.normal(size=table[first : first + 10_000].shape) @ mixing.T
table.T @ table
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
def middle(action):
    times, found = [], []
    for _ in range(5):
        begin = time.process_time()
        found.append(action())
        times.append(time.process_time() - begin)
    return sorted(times)[2], found
scans, held = [], []
def counting(kind, found):
    scan = kind.scan
    def counted(self, task, *arguments):
        found.append(1)
        return scan(self, task, *arguments)
    kind.scan = counted
counting(ArraySource, scans)
counting(HeldTable, held)
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
taken, made = middle(lambda: dpcov.release(table, rho=0.5, intercept=False, progress=False))
megabytes = (peak() - before) / 1024
plain, sums = middle(lambda: table.T @ table)
whiten = np.linalg.inv(np.linalg.cholesky(sums[0] / len(table)))
whitened = [whiten @ np.asarray(release.second_moment()) @ whiten.T for release in made]
error = sorted(np.linalg.norm(moment - np.eye({n_columns}), 2) for moment in whitened)[2]
facts = {{"ratio": taken / plain, "scans": len(scans) / 5, "of a sample": len(held) / 5}}
facts |= {{"megabytes": megabytes, "error": error}}
print(json.dumps(facts))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    return dict(json.loads(found.stdout))


def main() -> None:
    """Print and save all figures."""
    rows: list[dict[str, object]] = []
    print("One scan as a multiple of X.T @ X: CPU time of one thread, wall time of two")
    print(
        f"{'d':>6}  {'scan':<20}{'median':>8}{'best':>8}{'limit':>8}{'two threads':>13}{'speed-up 1->2':>15}"
    )
    for d, n in SHAPES.items():
        for name, r in scan_ratios(d, n).items():
            line = f"{d:>6}  {name:<20}{r['one thread']:>8.2f}{r['one thread, best']:>8.2f}"
            if name == "gram":
                line += f"{LIMITS[d]:>8.1f}{r['two threads']:>13.2f}{r['speed-up']:>15.2f}"
            print(line)
            rows.append({"what": f"scan d={d}: {name}", **{k: round(v, 3) for k, v in r.items()}})
    print("\nGaussian noise, nanoseconds a sample (ours rounded, OpenDP's discrete)")
    print(f"{'sigma':>8}{'dpcov':>8}{'OpenDP':>10}{'ratio':>8}")
    for log2 in (10, 20, 30, 40):
        ours, theirs = noise_nanoseconds(log2), opendp_nanoseconds(log2)
        print(f"{'2^' + str(log2):>8}{ours:>8.0f}{theirs:>10.0f}{theirs / ours:>8.0f}")
        rows.append({"what": f"noise sigma=2^{log2}", "ns": round(ours), "OpenDP ns": round(theirs)})
    print("\nOne release as a multiple of X.T @ X, in CPU time of one thread")
    print(
        f"{'n':>10}{'d':>6}{'ratio':>8}{'limit':>8}{'scans':>8}{'MB above the table':>20}{'error':>8}"
        "  rows that steer"
    )
    for n, d, steering in [*((n, d, None) for n, d in RELEASES), *STEERED]:
        cost = release_cost(n, d, steering)
        print(
            f"{n:>10,}{d:>6}{cost['ratio']:>8.1f}{RELEASES[n, d]:>8.1f}{cost['scans']:>8.1f}"
            f"{cost['megabytes']:>20.0f}{cost['error']:>8.4f}  {steering or 'as many rows as it asks for'}"
        )
        name = f"release n={n} d={d}" + (f", steered by {steering}" if steering else "")
        rows.append({"what": name, **{k: float(f"{v:.3g}") for k, v in cost.items()}})
    RESULTS.parent.mkdir(exist_ok=True)
    fields = list(dict.fromkeys(key for row in rows for key in row))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
