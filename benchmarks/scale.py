"""Files larger than memory: time and peak memory of a scan and of a release from Parquet.

Generates 20,000,000 rows by 50 columns (8 GB) in a temporary folder. A whole release, by the number of
its questions, is compared with a bare read of the files plus plain ``X.T @ X`` of as many rows. So is a
single scan of all rows, the slowest kind, and also with the plainest program that reads the files and
adds up ``X.T @ X`` batch by batch: unlike a bare read it puts columns together. All take turns.
On a machine that others use too, compare processor times. Writes ``benchmarks/results/scale.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import dpcov
from dpcov.core import Clipping, Report, RowTask
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.sample import SampledTask
from dpcov.maps import integer_map
from dpcov.sources import open_source
from dpcov.sources._table import Table

RESULTS = Path(__file__).parent / "results" / "scale.csv"
N_COLUMNS = 50
FILE_ROWS = 1_000_000
MEMORY_LIMIT = 1500
TIME_LIMIT = 1.5


def write_file(path: Path, seed: int) -> None:
    """Write one file of Gaussian rows with a condition number of 10^6."""
    rng = np.random.default_rng(seed)
    mixing = np.linalg.qr(np.random.default_rng(0).normal(size=(N_COLUMNS, N_COLUMNS))).Q
    mixing *= np.geomspace(1, 1e-3, N_COLUMNS)
    names = [f"x{i}" for i in range(N_COLUMNS)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        rows = rng.normal(size=(FILE_ROWS, N_COLUMNS)) @ mixing.T
        writer.write_table(pa.table(dict(zip(names, rows.T, strict=True))))


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Return the time of one call, and the processor time of all its threads."""
    begin, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - begin, time.process_time() - processor


def peak_megabytes() -> float:
    """Return the most memory that this process ever held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def read(paths: list[Path]) -> None:
    """Read files as plainly as possible."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass


def read_and_multiply(paths: list[Path]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Read files and add up their Gram matrix as plainly as possible."""
    total = np.zeros((N_COLUMNS, N_COLUMNS))
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                rows = np.column_stack([column.to_numpy() for column in batch.columns])
                total += rows.T @ rows
    return total


def multiply(block: np.ndarray[tuple[int, int], np.dtype[np.float64]], times: int) -> None:
    """Multiply as many rows as plainly as possible."""
    for _ in range(times):
        block.T @ block


def measure_scan(paths: list[Path], repeats: int) -> dict[str, float]:
    """Time a scan of all rows, a scan of a sample, and the reference, in turns."""
    rng = np.random.default_rng(0)
    source = open_source(paths)
    lattice_map = integer_map(rng.normal(size=(N_COLUMNS, N_COLUMNS)))
    lattice = Lattice.for_table(source.n_rows, N_COLUMNS)
    task = GramTask(Clipping(lattice_map, 20.0), lattice, constant=False)
    sample = SampledTask(task, np.sort(rng.choice(source.n_rows, 200_000, replace=False)))
    block = rng.normal(size=(50_000, N_COLUMNS))
    steps: dict[str, Callable[[], object]] = {
        "read": lambda: read(paths),
        "scan": lambda: source.scan(task),
        "program": lambda: read_and_multiply(paths),
        "sampled": lambda: source.scan(sample),
        "product": lambda: multiply(block, source.n_rows // len(block)),
    }
    rounds = [{name: seconds(step) for name, step in steps.items()} for _ in range(repeats)]
    found = {}
    for clock, label in enumerate(("", " cpu")):
        for name in steps:
            found[name + label] = statistics.median(times[name][clock] for times in rounds)
        for name in ("scan", "sampled"):
            found[f"{name} ratio{label}"] = statistics.median(
                times[name][clock] / times["program"][clock] for times in rounds
            )
        found[f"bare ratio{label}"] = statistics.median(
            times["scan"][clock] / (times["read"][clock] + times["product"][clock]) for times in rounds
        )
    return found


def measure_release(paths: list[Path]) -> dict[str, float]:
    """Time a whole release and report the peak memory of its process."""
    before = peak_megabytes()
    scans: list[int] = []
    scan = Table.scan

    def counted(self: Table, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        scans.append(1)
        return scan(self, task, report)

    Table.scan = counted  # type: ignore[method-assign]
    made: list[dpcov.Release] = []
    clock, processor = seconds(lambda: made.append(dpcov.release(paths, rho=0.5)))
    return {
        "release": clock,
        "release cpu": processor,
        "questions": len(made[0].receipt.charges),
        "scans": len(scans),
        "megabytes": peak_megabytes(),
        "megabytes before": before,
    }


def in_a_process_of_its_own(what: str, folder: Path, files: int, repeats: int) -> dict[str, float]:
    """Run one measurement in a new process, so that its memory is its own."""
    command = [sys.executable, __file__, what, str(folder), str(files), str(repeats)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print and save all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 5, 20])
    sizes: list[int] = parser.parse_args().millions
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = 0
        print("A release, by question, and a scan of all rows, as multiples of a bare read plus X.T @ X;")
        print("a scan also as a multiple of a program that does both; by the clock and by processor time")
        print(f"{'rows':>12}{'release':>9}{'scans':>7}{'ratio':>7}{'cpu':>6}{'limit':>7}", end="")
        print(
            f"{'scan':>8}{'ratio':>7}{'cpu':>6}{'program':>9}{'ratio':>7}{'cpu':>6}{'peak MB':>9}{'limit':>7}"
        )
        for millions in sizes:
            while written < millions:
                write_file(folder / f"{written:03}.parquet", written)
                written += 1
            scan = in_a_process_of_its_own("scan", folder, millions, 3 if millions < 10 else 2)
            whole = in_a_process_of_its_own("release", folder, millions, 1)
            found = {**scan, **whole}
            for label in ("", " cpu"):
                bare = found["questions"] * (found["read" + label] + found["product" + label])
                found["release ratio" + label] = found["release" + label] / bare
            print(
                f"{millions * FILE_ROWS:>12,}{found['release']:>9.1f}{found['scans']:>7.0f}"
                f"{found['release ratio']:>7.2f}{found['release ratio cpu']:>6.2f}{TIME_LIMIT:>7}"
                f"{found['scan']:>8.1f}{found['bare ratio']:>7.2f}{found['bare ratio cpu']:>6.2f}"
                f"{found['program']:>9.1f}{found['scan ratio']:>7.2f}{found['scan ratio cpu']:>6.2f}"
                f"{found['megabytes']:>9.0f}{MEMORY_LIMIT:>7}",
                flush=True,
            )
            rows.append({"rows": millions * FILE_ROWS, **{k: round(v, 3) for k, v in found.items()}})
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] in {"scan", "release"}:
        chosen = sorted(Path(sys.argv[2]).glob("*.parquet"))[: int(sys.argv[3])]
        figures = measure_scan(chosen, int(sys.argv[4])) if sys.argv[1] == "scan" else measure_release(chosen)
        print(json.dumps(figures))
    else:
        main()
