"""What benchmarks of releases of one kind of table after another share: their command line and their file."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Case = TypeVar("Case")


def measure_all(
    cases: Iterable[Case],
    measure: Callable[[Case, Sequence[int]], dict[str, Any]],
    target: Path,
    arguments: Sequence[str] | None,
    *,
    releases: int,
    first_seed: int,
) -> None:
    """Measure every case with the seeds that the command line tells, print the lines and write them.

    Parameters
    ----------
    cases : iterable
        What to measure.
    measure : callable
        Returns a line about one case and some seeds.
    target : Path
        Where the lines go.
    arguments : sequence of str, optional
        Of the command line.
    releases, first_seed : int
        How many seeds there are, and the first of them, unless the command line says otherwise.
    """
    parser = argparse.ArgumentParser(description=f"Writes {target.name}.")
    parser.add_argument("--releases", type=int, default=releases)
    parser.add_argument("--first-seed", type=int, default=first_seed)
    given = parser.parse_args(arguments)
    lines = []
    for case in cases:
        lines.append(measure(case, range(given.first_seed, given.first_seed + given.releases)))
        print(lines[-1], flush=True)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
