"""Sources: where rows live. They move blocks of rows to the core's tasks and add up integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from dpcov.core import ArgumentError, Source
from dpcov.sources.arrays import ArraySource, FrameSource
from dpcov.sources.arrow import DatasetSource, LazySource, StreamSource
from dpcov.sources.files import is_paths, open_files

__all__ = ["ArraySource", "FrameSource", "open_source"]


def open_source(data: Any, columns: Sequence[str] | None = None) -> Source:
    """Return the source that reads `data`.

    Parameters
    ----------
    data : object
        A two-dimensional numpy array; a dataframe that narwhals reads, or a lazy polars frame; a path,
        pattern or list of Parquet, Arrow or CSV files; a ``pyarrow.dataset``; anything that gives an
        Arrow stream when asked again.
    columns : sequence of str, optional
        Names for an array's columns; for all else, which columns to use.
    """
    if isinstance(data, np.ndarray):
        return ArraySource(data, columns)
    if is_paths(data):
        return open_files(data, columns)
    if _comes_from(data, "pyarrow._dataset"):
        return DatasetSource(data, columns)
    try:
        frame = nw.from_native(data, pass_through=True)
    except DuplicateError:
        raise ArgumentError("data has two columns of the same name; rename one first.") from None
    if isinstance(frame, nw.DataFrame):
        return FrameSource(frame, columns)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        return LazySource(frame, columns)
    if hasattr(data, "__arrow_c_stream__"):
        return StreamSource(data, columns)
    raise ArgumentError(
        f"data of type {type(data).__name__} cannot be read; give a two-dimensional numpy array, "
        "a pandas, polars or pyarrow table, or a path of Parquet, Arrow or CSV files."
    )


def _comes_from(data: Any, module: str) -> bool:
    """Whether `data` is of a class of this module, which need not be installed."""
    names = (kind.__module__ for kind in type(data).__mro__)
    return any(name == module or name.startswith(f"{module}.") for name in names)
