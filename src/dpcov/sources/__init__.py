"""Sources: where rows live. They move blocks of rows to the core's tasks and add up integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from dpcov.core import ArgumentError
from dpcov.sources._scan import check_fork
from dpcov.sources._table import EncodedSource, Table
from dpcov.sources.arrays import ArraySource, FrameSource
from dpcov.sources.arrow import DatasetSource, LazySource, StreamSource
from dpcov.sources.dask import DaskSource
from dpcov.sources.encoding import Columns
from dpcov.sources.encoding.ids import with_ids
from dpcov.sources.files import is_paths, open_files
from dpcov.sources.grouped import Grouping, grouped_array, grouped_frame
from dpcov.sources.spark import SparkSource
from dpcov.sources.spooled import spooled
from dpcov.sources.sql import QueryResult, is_database, run_query

__all__ = ["ArraySource", "FrameSource", "Grouping", "open_source"]

_BY_MODULE: Mapping[str, Callable[[Any, Columns], EncodedSource]] = {
    "polars.lazyframe": LazySource,
    "pyarrow._dataset": DatasetSource,
    "dask.array": DaskSource,
    "dask.dataframe": DaskSource,
    "pyspark.sql": SparkSource,
}


def open_source(  # noqa: PLR0911  (one for each kind of data)
    data: Any, columns: Columns = None, grouping: Grouping | None = None, query: str | None = None
) -> EncodedSource:
    """Return the source that reads `data`.

    Parameters
    ----------
    data : object
        A two-dimensional numpy array; a dataframe that narwhals reads, or a lazy polars frame; a path,
        pattern or list of Parquet, Arrow or CSV files; a ``pyarrow.dataset``; a Dask dataframe or
        array; a Spark dataframe; a database or its address; anything that gives an Arrow stream when
        asked again.
    columns : sequence of str, mapping or Schema, optional
        Names for an array's columns; for all else, which columns to use. A mapping tells their kinds as well.
    grouping : Grouping, optional
        Which rows make a unit that is protected as a whole; each is one of its own by default.
    """
    check_fork()
    if query is not None or is_database(data):
        data = run_query(data, query)
    data = nw.to_native(data, pass_through=True)
    if grouping is not None:
        return _open_grouped(data, columns, grouping)
    for module, source in _BY_MODULE.items():
        if _comes_from(data, module):
            return source(data, columns)
    if isinstance(data, QueryResult):
        return data.open(columns)
    if isinstance(data, np.ndarray):
        return ArraySource(data, columns)
    if is_paths(data):
        return open_files(data, columns)
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
    except DuplicateError:
        raise ArgumentError("data has two columns of the same name; rename one first.") from None
    if isinstance(frame, nw.DataFrame):
        return FrameSource(frame, columns)
    if isinstance(nw.from_native(data, series_only=True, pass_through=True), nw.Series):
        raise ArgumentError("data is a single column, not a table; give data.to_frame().")
    if hasattr(data, "__arrow_c_stream__"):
        return StreamSource(data, columns)
    raise ArgumentError(
        f"data of type {type(data).__name__} cannot be read; give a numpy array, a pandas, polars or pyarrow "
        "table, a path of Parquet, Arrow or CSV files, or a Dask or Spark dataframe."
    )


def _open_grouped(data: Any, columns: Columns, grouping: Grouping) -> EncodedSource:
    """Return the source that reads `data` unit by unit."""
    if isinstance(data, np.ndarray):
        return grouped_array(data, columns, grouping)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return grouped_frame(frame, columns, grouping)
    own = grouping.column
    if own is None:
        raise ArgumentError("privacy_unit must be the name of a column, unless data is a table in memory.")
    if _comes_from(data, "dask.array"):
        raise ArgumentError("a Dask array cannot be grouped by privacy_unit; give a Dask dataframe.")
    source = open_source(data, with_ids(columns, own, even=grouping.even))
    # Those of a cluster group rows there.
    return spooled(source) if isinstance(source, Table) else source


def _comes_from(data: Any, module: str) -> bool:
    """Whether `data` is of a class of this module, which need not be installed."""
    names = (kind.__module__ for kind in type(data).__mro__)
    return any(name == module or name.startswith(f"{module}.") for name in names)
