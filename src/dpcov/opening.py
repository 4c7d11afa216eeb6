"""Opening a table to private queries: rows, noise, and a budget that a ledger may pay for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict, Unpack

import numpy as np

from dpcov.core import Curator, OSEntropy, PrivacyCost, SeededBits
from dpcov.ledger import Ledger, budget_for
from dpcov.progress import ScanBars
from dpcov.sources import open_source


class Access(TypedDict, total=False):
    """What every function that asks a table takes.

    Attributes
    ----------
    columns : sequence of str, optional
        Which columns to use; for an array, their names. CSV files need it.
    rng : numpy.random.Generator, optional
        For tests only: noise from a seeded generator, which makes the answer NOT private.
    progress : bool, optional
        Whether to show a bar for each scan of the rows; by default only on a terminal.
    ledger : Ledger or path, optional
        The ledger that pays: all that may be spent is charged there before any noise is drawn.
    dataset : str, optional
        The name that the ledger keeps this table's budget under.
    purpose : str, optional
        What it is for, for the ledger's history.
    allow_seeded : bool, default False
        Whether `rng` may be used with a ledger. The charge is then marked as not private.
    """

    columns: Sequence[str] | None
    rng: np.random.Generator | None
    progress: bool | None
    ledger: Ledger | str | os.PathLike[str] | None
    dataset: str | None
    purpose: str
    allow_seeded: bool


@contextmanager
def opened(
    data: Any, limit: PrivacyCost, method: str, *, constant: bool = False, **access: Unpack[Access]
) -> Iterator[Curator]:
    """Open `data` to queries that cost at most `limit`; on leaving, settle with the ledger.

    Examples
    --------
    >>> from fractions import Fraction
    >>> import numpy as np
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.opening import opened
    >>> with opened(np.ones((20, 3)), PrivacyCost(Fraction(1)), "example") as curator:
    ...     curator.n_rows, curator.columns
    (20, ('x0', 'x1', 'x2'))
    """
    rng = access.get("rng")
    bits = OSEntropy() if rng is None else SeededBits(rng)
    paid = budget_for(
        limit,
        ledger=access.get("ledger"),
        dataset=access.get("dataset"),
        method=method,
        purpose=access.get("purpose", ""),
        private=bits.private,
        allow_seeded=access.get("allow_seeded", False),
    )
    bars = ScanBars(show=access.get("progress"))
    source = open_source(data, access.get("columns"))
    with paid as budget:
        yield Curator(source, budget, bits, constant=constant, progress=bars)
