"""Many persons from one unsorted Parquet file: how long it takes to sort and release it, in how much memory.

    python benchmarks/persons_scale.py [--millions 20]

There are ten rows a person on average, in no order. Opening reads the file once and sorts it out of core.
Memory is the peak of a process of its own. Writes benchmarks/results/persons_scale.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scale import peak_megabytes

import dpcov
from dpcov.sources import Grouping, open_source

RESULTS = Path(__file__).parent / "results" / "persons_scale.csv"
N_COLUMNS = 10
ROWS_PER_PERSON = 10
MILLION = 1_000_000


def write(path: Path, millions: int) -> None:
    """Write the file a million rows at a time."""
    rng = np.random.default_rng(0)
    stretch = rng.normal(size=(N_COLUMNS, N_COLUMNS))
    names = [f"c{k}" for k in range(N_COLUMNS)]
    fields = [("person", pa.int64()), *[(name, pa.float64()) for name in names]]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for _ in range(millions):
            rows = rng.normal(size=(MILLION, N_COLUMNS)) @ stretch
            ids = rng.integers(0, millions * MILLION // ROWS_PER_PERSON, size=MILLION)
            writer.write_table(pa.table([ids, *rows.T], schema=writer.schema))


def measure(path: Path) -> dict[str, float]:
    """Sort the file, then release it, which sorts it again."""
    start, before = time.perf_counter(), peak_megabytes()
    persons = open_source(path, None, Grouping("person")).n_rows
    sorting = time.perf_counter() - start
    start = time.perf_counter()
    dpcov.release(path, rho=0.5, privacy_unit="person", progress=False)
    whole = time.perf_counter() - start
    return {"persons": persons, "columns": N_COLUMNS, "sorting": sorting, "release": whole,
            "megabytes": peak_megabytes(), "megabytes before": before}  # fmt: skip


def main() -> None:
    """Print and save the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=20)
    parser.add_argument("--measure", type=Path, help="Measure this file, in this process.")
    told = parser.parse_args()
    if told.measure is not None:
        print(json.dumps(measure(told.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(path, told.millions)
        command = [sys.executable, __file__, "--measure", str(path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    found = {"rows": told.millions * MILLION, **json.loads(done.stdout)}
    line = {key: round(value, 1) for key, value in found.items()}
    print(line)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(line), lineterminator="\n")
        writer.writeheader()
        writer.writerow(line)


if __name__ == "__main__":
    main()
