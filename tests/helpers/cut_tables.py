"""A table as every kind of source may hold it, cut by a private column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcov.sources.arrays import ArraySource, FrameSource
from dpcov.sources.arrow import DatasetSource, LazySource, StreamSource
from dpcov.sources.csv_files import CsvSource
from dpcov.sources.dask import DaskSource
from dpcov.sources.files import ArrowFileSource, ParquetSource

Rows = NDArray[np.float64]

NAMES = ["a", "b"]
ROWS = np.random.default_rng(0).normal(size=(400, 2))
OTHER = ROWS * np.where(np.arange(400) == 7, -1.0, 1.0)[:, None]


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=NAMES)


def arrow_parts(rows: Rows) -> list[pa.Table]:
    """Cut by a private column: one person's value moves their row to the other part."""
    return [pa.table(frame(rows[rows[:, 0] > 0])), pa.table(frame(rows[rows[:, 0] <= 0]))]


def parquet_file(rows: Rows, folder: Path) -> Path:
    with pq.ParquetWriter(folder / "t.parquet", arrow_parts(rows)[0].schema) as writer:
        for part in arrow_parts(rows):
            writer.write_table(part)
    return folder / "t.parquet"


def arrow_file(rows: Rows, folder: Path) -> Path:
    with pa_ipc.new_file(folder / "t.arrow", arrow_parts(rows)[0].schema) as writer:
        for part in arrow_parts(rows):
            writer.write_table(part)
    return folder / "t.arrow"


def csv_file(rows: Rows, folder: Path) -> Path:
    # The length of a line follows from its values, and that of blocks in lines from the lines.
    lines = [f"{a!r},{b!r},{'x' * (900 if a > 0 else 0)}" for a, b in rows.tolist()]
    (folder / "t.csv").write_text("\n".join(["a,b,text", *lines]) + "\n")
    return folder / "t.csv"


def filtered(rows: Rows, folder: Path) -> pa_dataset.Dataset:
    for i, part in enumerate(arrow_parts(rows)):
        more = pa.table({"a": [9.0] * 5, "b": [9.0] * 5})
        pq.write_table(pa.concat_tables([part, more]), folder / f"{i}.parquet")
    paths = [str(folder / f"{i}.parquet") for i in range(2)]
    return pa_dataset.dataset(paths).filter(pa_dataset.field("a") < 9)


class Stream:
    def __init__(self, rows: Rows) -> None:
        self._table = pa.concat_tables(arrow_parts(rows))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def dask_frame(rows: Rows, _: Path) -> Any:
    parts = [dask.delayed(part.to_pandas()) for part in arrow_parts(rows)]
    return dd.from_delayed(parts, meta=frame(rows)[:0])


TABLES: dict[type, Callable[[Rows, Path], Any]] = {
    ArraySource: lambda rows, _: rows,
    FrameSource: lambda rows, _: pl.concat([pl.DataFrame(t) for t in arrow_parts(rows)], rechunk=False),
    ParquetSource: parquet_file,
    ArrowFileSource: arrow_file,
    CsvSource: csv_file,
    DatasetSource: filtered,
    StreamSource: lambda rows, _: Stream(rows),
    LazySource: lambda rows, folder: pl.scan_parquet(parquet_file(rows, folder)),
    DaskSource: dask_frame,
}
