"""One table of text, flags, dates and numbers, as every kind of source may hold it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcov.core import Clipping
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.maps import identity_map
from dpcov.sources import open_source

Cell = str | float | bool | dt.date | dt.datetime | None
Table = Mapping[str, Sequence[Cell]]


def gram(data: Any, columns: Any = None) -> NDArray[np.int64]:
    """The exact Gram matrix of the encoded rows: the same bits, the same rows."""
    source = open_source(data, columns)
    d = len(source.columns)
    task = GramTask(Clipping(identity_map(d), 99.0), Lattice.for_table(source.n_rows, d), constant=False)
    return source.scan(task)


class Stream:
    """Something that gives an Arrow stream each time that it is asked."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def parquet(table: Table, folder: Path) -> Path:
    pq.write_table(pa.table(dict(table)), folder / "t.parquet", row_group_size=3)
    return folder / "t.parquet"


def arrow_file(table: Table, folder: Path) -> Path:
    found = pa.table(dict(table))
    with pa_ipc.new_file(folder / "t.arrow", found.schema) as writer:
        writer.write_table(found, max_chunksize=3)
    return folder / "t.arrow"


def csv_file(table: Table, folder: Path) -> Path:
    pl.DataFrame(dict(table)).write_csv(folder / "t.csv", quote_style="non_numeric")
    return folder / "t.csv"


def pandas_csv(table: Table, folder: Path) -> Path:
    pd.DataFrame(dict(table)).to_csv(folder / "p.csv", index=False)
    return folder / "p.csv"


def dictionaries(table: Table) -> pa.Table:
    found = pa.table(dict(table))
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column for column in found.columns
    ]
    return pa.table(columns, names=found.column_names)


HOLDERS: dict[str, Callable[[Table, Path], Any]] = {
    "pandas": lambda table, _: pd.DataFrame(dict(table)),
    "pandas objects": lambda table, _: pd.DataFrame(dict(table), dtype=object),
    "pandas pyarrow": lambda table, _: pd.DataFrame(dict(table)).convert_dtypes(dtype_backend="pyarrow"),
    "pandas nullable": lambda table, _: pd.DataFrame(dict(table)).convert_dtypes(),
    "polars": lambda table, _: pl.DataFrame(dict(table)),
    "polars lazy": lambda table, _: pl.DataFrame(dict(table)).lazy(),
    "pyarrow": lambda table, _: pa.table(dict(table)),
    "dictionaries": lambda table, _: dictionaries(table),
    "stream": lambda table, _: Stream(pa.table(dict(table))),
    "parquet": parquet,
    "arrow": arrow_file,
    "csv": csv_file,
    "csv of pandas": pandas_csv,
    "dataset": lambda table, folder: pa_dataset.dataset(parquet(table, folder)),
    "dask": lambda table, _: dd.from_pandas(pd.DataFrame(dict(table)), npartitions=2),
}
"""Spark has tests beside the others that need a session."""
