"""Memory of a release of 20 million rows that a query makes up.

    python benchmarks/sql.py [--rows 20000000]

DuckDB computes the rows as they are asked for, so that no table has to be stored first: two numbers, a number
with gaps and a category of text, released pairwise. The result is spooled into a temporary file of about 30
bytes a row. Results go to benchmarks/results/sql.csv.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

import dpcov

RESULTS = Path(__file__).parent / "results" / "sql.csv"
QUERY = """
select sin(i * 0.37) + cos(i * 1.1) as x, (i % 97) / 97.0 as y,
    case when i % 3 = 0 then 'north' when i % 5 = 0 then 'south' else 'east' end as region,
    case when i % 4 = 0 then null else ln(1 + i % 1000) end as z
from range({rows}) t(i)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    rows = parser.parse_args(arguments).rows
    kinds = {
        "x": dpcov.number(), "y": dpcov.number(0, 1), "z": dpcov.number(),
        "region": dpcov.category(["north", "south", "east"], other=False),
    }  # fmt: skip
    began = time.perf_counter()
    with duckdb.connect() as connection:
        made = dpcov.release(
            connection, query=QUERY.format(rows=rows), epsilon=1, delta=1e-8, columns=kinds,
            missing="pairwise", progress=False,
        )  # fmt: skip
    line = {
        "rows": rows,
        "columns": len(made.columns),
        "seconds": round(time.perf_counter() - began),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "resolved": made.resolved,
    }
    print(line)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(line))
        writer.writeheader()
        writer.writerow(line)


if __name__ == "__main__":
    main()
