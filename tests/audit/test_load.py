"""Load: many releases against one ledger at once, many columns, many rows in little memory."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit.load_processes import COST, THREADS, release_in_threads
from audit.record import record

from dpcov.ledger import Ledger

pytestmark = pytest.mark.audit

AT_ONCE = 50


def test_fifty_releases_at_once_spend_what_they_say(tmp_path: Path) -> None:
    # Ten processes of five threads; the ledger holds enough for thirty.
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=30 * COST)
    started = time.perf_counter()
    with ProcessPoolExecutor(10, mp_context=multiprocessing.get_context("spawn")) as pool:
        told = [
            line
            for lines in pool.map(release_in_threads, [str(ledger.path)] * (AT_ONCE // THREADS))
            for line in lines
        ]
    outcomes = {outcome: told.count(outcome) for outcome in sorted(set(told))}
    spent = ledger.account("people").spent.rho
    record("load", "50 releases at once", seconds=round(time.perf_counter() - started, 1), outcomes=outcomes,
           spent=str(spent), limit=str(30 * COST))  # fmt: skip
    assert outcomes == {"refused": 20, "released": 30}
    assert spent == 30 * COST


def in_process(code: str, memory: int | None = None) -> tuple[int, str, float, float]:
    """Run code in a process of its own; return its code, last words, seconds and peak gigabytes."""
    # The child limits itself before it imports anything: code between fork and exec may hang.
    limit = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n" if memory else ""
    )
    started = time.perf_counter()
    source = str(Path(__file__).parents[2] / "src")
    # Threads and pools of memory reserve address space that they may never use (docs/limitations.md).
    lean = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment = {**os.environ, "PYTHONPATH": source, **lean}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", limit + textwrap.dedent(code)], env=environment, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    words = (done.stdout + done.stderr).strip().splitlines() or [""]
    # Warnings may follow on the other stream.
    peak = float(done.stdout.split()[-1]) if done.returncode == 0 else float("nan")
    return done.returncode, words[-1], time.perf_counter() - started, peak


PEAK = """
    import resource
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def test_two_thousand_columns() -> None:
    code = """
    import numpy as np, dpcov
    rows = np.random.default_rng(0).normal(size=(20_000, 2000))
    made = dpcov.release(rows, rho=1, progress=False, intercept=False)
    print(made)
    """
    status, words, seconds, peak = in_process(code + PEAK)
    record("load", "20,000 rows of 2,000 columns", seconds=round(seconds, 1), peak_gigabytes=round(peak, 2),
           outcome="released" if status == 0 else words)  # fmt: skip
    assert status == 0, words


@pytest.mark.parametrize("gigabytes", [3.0, 1.0])
def test_ten_million_rows_in_little_memory(gigabytes: float, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    random = np.random.default_rng(0)
    schema = pa.schema([(f"c{k}", pa.float64()) for k in range(5)])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(20):
            columns = [pa.array(random.normal(size=500_000)) for _ in range(5)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    code = f"""
    import dpcov
    made = dpcov.release({str(path)!r}, rho=0.1, progress=False)
    assert made.n_rows == 10_000_000
    """
    status, words, seconds, peak = in_process(code + PEAK, int(gigabytes * 1e9))
    record("load", f"10 million rows, address space of {gigabytes:g} GB", seconds=round(seconds, 1),
           peak_gigabytes=None if status else round(peak, 2), exit_code=status,
           outcome="released" if status == 0 else words[:200])  # fmt: skip
    assert status == 0, words
