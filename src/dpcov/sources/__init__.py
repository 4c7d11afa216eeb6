"""Sources: where rows live. They move blocks of rows to the core's tasks and add up integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from dpcov.core import ArgumentError, Source
from dpcov.sources._scan import check_fork
from dpcov.sources.arrays import ArraySource, FrameSource
from dpcov.sources.arrow import DatasetSource, LazySource, StreamSource
from dpcov.sources.dask import DaskSource
from dpcov.sources.encoding import Columns
from dpcov.sources.files import is_paths, open_files
from dpcov.sources.spark import SparkSource

__all__ = ["ArraySource", "FrameSource", "open_source"]

_BY_MODULE: Mapping[str, Callable[[Any, Columns], Source]] = {
    "polars.lazyframe": LazySource,
    "pyarrow._dataset": DatasetSource,
    "dask.array": DaskSource,
    "dask.dataframe": DaskSource,
    "pyspark.sql": SparkSource,
}


def open_source(data: Any, columns: Columns = None) -> Source:
    """Return the source that reads `data`.

    Parameters
    ----------
    data : object
        A two-dimensional numpy array; a dataframe that narwhals reads, or a lazy polars frame; a path,
        pattern or list of Parquet, Arrow or CSV files; a ``pyarrow.dataset``; a Dask dataframe or
        array; a Spark dataframe; anything that gives an Arrow stream when asked again.
    columns : sequence of str, mapping or Schema, optional
        Names for an array's columns; for all else, which columns to use. A mapping tells their kinds as well.
    """
    check_fork()
    data = nw.to_native(data, pass_through=True)
    for module, source in _BY_MODULE.items():
        if _comes_from(data, module):
            return source(data, columns)
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


def _comes_from(data: Any, module: str) -> bool:
    """Whether `data` is of a class of this module, which need not be installed."""
    names = (kind.__module__ for kind in type(data).__mro__)
    return any(name == module or name.startswith(f"{module}.") for name in names)
