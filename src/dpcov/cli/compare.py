"""``dpcov compare``: methods side by side, on public or synthetic rows only."""

from __future__ import annotations

import dataclasses
import math
import sys
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import typer

import dpcov
from dpcov._extras import require
from dpcov.cli.arguments import AsJson, read_names, read_number, read_whole
from dpcov.cli.failures import reported
from dpcov.cli.output import print_json, print_text
from dpcov.core import ArgumentError
from dpcov.sources import open_source
from dpcov.sources.files import find_files

_NOTICE = "NOT PRIVATE: compare reads the rows in the clear. Use it on public or synthetic data only."


@reported
def compare(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA", help="Parquet, Arrow or CSV files of public or synthetic rows."),
    ],
    *,
    public: Annotated[
        bool, typer.Option("--public", help="Confirm that the rows are public or synthetic.")
    ] = False,
    rho: Annotated[
        Fraction, typer.Option(parser=read_number, metavar="NUMBER", help="The budget of every run in zCDP.")
    ],
    delta: Annotated[
        Fraction,
        typer.Option(parser=read_number, metavar="NUMBER", help="For methods with a delta of their own."),
    ] = Fraction(1, 10**6),
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,C", help="Which columns; all by default. CSV files need it."),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(metavar="A,B,C", help="Which methods; all that are vetted by default.")
    ] = None,
    runs: Annotated[
        int, typer.Option(parser=read_whole, metavar="COUNT", help="How many runs of each method.")
    ] = 5,
    intercept: Annotated[bool, typer.Option(help="Add a constant column.")] = False,
    allow_unvetted: Annotated[
        bool, typer.Option("--allow-unvetted", help="Also run methods that compute in floating point.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run methods side by side on PUBLIC or SYNTHETIC rows, with the same budget.

    What it prints is NOT private: errors are measured against the true matrix, and what a method must be
    told is read off the rows.

    ```text
    dpcov compare public.parquet --public --rho 0.5
    ```
    """
    if not public:
        raise ArgumentError(f"{_NOTICE} Give --public to say that they are.")
    sys.stderr.write(f"{_NOTICE}\n")
    found = dpcov.compare(
        _rows(data, read_names(columns) if columns else None),
        public=True,
        rho=rho,
        delta=delta,
        methods=read_names(methods) if methods else None,
        runs=runs,
        intercept=intercept,
        allow_unvetted=allow_unvetted,
    )
    if as_json:
        print_json(_plain({"private": False, **dataclasses.asdict(found)}))
    else:
        print_text(str(found))


def _rows(data: list[str], columns: list[str] | None) -> Any:
    """Read files of public rows whole. The source checks their names, columns and types first."""
    names = list(open_source(data, columns).columns)
    paths = find_files(data)
    kind = "csv" if paths[0].lower().endswith(".csv") else "feather"
    if paths[0].lower().endswith((".parquet", ".pq")):
        kind = "parquet"
    table = require("pyarrow.dataset", "arrow").dataset(paths, format=kind).to_table(columns=names)
    return np.column_stack([_numbers(table.column(name)) for name in names])


def _numbers(column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
