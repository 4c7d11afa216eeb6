"""The release: one private matrix, and the function that makes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Curator, OSEntropy, Receipt, SeededBits, resolve_budget
from dpcov.core.budget import Number
from dpcov.ledger import Ledger, budget_for
from dpcov.methods import find_method
from dpcov.progress import ScanBars
from dpcov.sources import open_source


@dataclass(frozen=True, eq=False)
class Release:
    """A private second-moment matrix with its account.

    Attributes
    ----------
    columns : tuple of str
        The table's columns, without the constant one.
    n_rows : int
        The public number of rows.
    method : str
        Which method made it.
    receipt : Receipt
        What was spent, on what.
    diagnostics : mapping
        Facts from public parameters and private answers only.
    intercept : bool
        Whether the matrix has a last row and column for the constant.
    """

    columns: tuple[str, ...]
    n_rows: int
    method: str
    receipt: Receipt
    diagnostics: Mapping[str, Any]
    intercept: bool
    _matrix: NDArray[np.float64]

    def second_moment(self) -> NDArray[np.float64]:
        """Return the mean of ``x x^T`` over the rows; with an intercept, its column is the last."""
        return self._matrix.copy()

    def __repr__(self) -> str:
        spent = self.receipt.spent
        note = "" if self.receipt.private else ", NOT PRIVATE (seeded)"
        shape = f"{self.n_rows} rows, {len(self.columns)} columns"
        return f"<dpcov release: {shape}, method '{self.method}', {spent}{note}>"


def release(
    data: Any,
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    columns: Sequence[str] | None = None,
    method: str = "whitening",
    intercept: bool = True,
    rng: np.random.Generator | None = None,
    progress: bool | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    allow_seeded: bool = False,
    **options: Any,
) -> Release:
    """Release the second-moment matrix of a table under differential privacy.

    Parameters
    ----------
    data : array, dataframe or path
        A two-dimensional numpy array; a pandas, polars or pyarrow table; a path, pattern or list of
        Parquet, Arrow or CSV files, or a ``pyarrow.dataset``, streamed; a lazy polars frame; a Dask
        dataframe or array; a Spark dataframe. A row with a missing or infinite value counts as a row
        of zeros.
    rho : float, optional
        The budget in zero-concentrated differential privacy.
    epsilon, delta : float, optional
        The budget as (epsilon, delta)-differential privacy, instead of `rho`.
    columns : sequence of str, optional
        Which columns to use; for an array, their names. CSV files need it.
    method : str, default "whitening"
        One of ``dpcov.methods()``.
    intercept : bool, default True
        Whether a constant column joins the table, which makes means and covariances available.
    rng : numpy.random.Generator, optional
        For tests only: noise from a seeded generator, which makes the release NOT private.
    progress : bool, optional
        Whether to show a bar for each scan of the rows; by default only on a terminal.
    ledger : Ledger or path, optional
        The ledger that pays: all that may be spent is charged there before any noise is drawn.
    dataset : str, optional
        The name that the ledger keeps this table's budget under.
    purpose : str, optional
        What the release is for, for the ledger's history.
    allow_seeded : bool, default False
        Whether `rng` may be used with a ledger. The charge is then marked as not private.
    **options
        What the method takes, such as `radius`.

    Returns
    -------
    Release

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP, or (`epsilon`, `delta`)-DP, for tables of the same public size
    that differ in one row. Column names, dtypes and the number of rows are public.
    """
    if not isinstance(intercept, bool):
        raise ArgumentError(f"intercept must be True or False, got {intercept!r}.")
    chosen = find_method(method)
    chosen.check(options)
    limit = resolve_budget(
        rho=rho, epsilon=epsilon, delta=delta, approximate_share=chosen.delta_share(options)
    )
    bits = OSEntropy() if rng is None else SeededBits(rng)
    paid = budget_for(
        limit, ledger=ledger, dataset=dataset, method=method, purpose=purpose,
        private=bits.private, allow_seeded=allow_seeded,
    )  # fmt: skip
    bars = ScanBars(show=progress)
    source = open_source(data, columns)
    with paid as budget:
        curator = Curator(source, budget, bits, constant=intercept, progress=bars)
        estimate = chosen.run(curator, options)
    return Release(
        columns=source.columns,
        n_rows=source.n_rows,
        method=chosen.name,
        receipt=curator.receipt(),
        diagnostics=estimate.diagnostics,
        intercept=intercept,
        _matrix=estimate.second_moment,
    )


def second_moment(data: Any, **arguments: Any) -> NDArray[np.float64]:
    """Return a private second-moment matrix: `release` without an intercept, as an array."""
    return release(data, intercept=False, **arguments).second_moment()
