"""Sources: where rows live. They move blocks of rows to the core's tasks and add up integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from dpcov.core import ArgumentError, Source
from dpcov.sources.arrays import ArraySource, FrameSource

__all__ = ["ArraySource", "FrameSource", "open_source"]


def open_source(data: Any, columns: Sequence[str] | None = None) -> Source:
    """Return the source that reads `data`.

    Parameters
    ----------
    data : object
        A two-dimensional numpy array, or a dataframe that narwhals reads.
    columns : sequence of str, optional
        Names for an array's columns; for a dataframe, which columns to use.
    """
    if isinstance(data, np.ndarray):
        return ArraySource(data, columns)
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
    except DuplicateError:
        raise ArgumentError("data has two columns of the same name; rename one first.") from None
    if isinstance(frame, nw.DataFrame):
        return FrameSource(frame, columns)
    raise ArgumentError(
        f"data of type {type(data).__name__} cannot be read; "
        "give a two-dimensional numpy array or a pandas, polars or pyarrow table."
    )
