"""The release: one private matrix, and the function that makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Budget, Curator, OSEntropy, Receipt, SeededBits, resolve_budget
from dpcov.core.budget import Number
from dpcov.methods import find_method
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
    allow_unvetted: bool = False,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> Release:
    """Release the second-moment matrix of a table under differential privacy.

    Parameters
    ----------
    data : array or dataframe
        A two-dimensional numpy array, or a pandas, polars or pyarrow table. A row with a missing
        or infinite value counts as a row of zeros.
    rho : float, optional
        The budget in zero-concentrated differential privacy.
    epsilon, delta : float, optional
        The budget as (epsilon, delta)-differential privacy, instead of `rho`.
    columns : sequence of str, optional
        For a dataframe, which columns to use; for an array, their names.
    method : str, default "whitening"
        One of ``dpcov.methods()``.
    intercept : bool, default True
        Whether a constant column joins the table, which makes means and covariances available.
    allow_unvetted : bool, default False
        Whether a method may run whose guarantee holds for real numbers but not to the last bit.
    rng : numpy.random.Generator, optional
        For tests only: noise from a seeded generator, which makes the release NOT private.
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
    chosen.check_consent(allow_unvetted=allow_unvetted)
    limit = resolve_budget(
        rho=rho, epsilon=epsilon, delta=delta, approximate_share=chosen.delta_share(options)
    )
    bits = OSEntropy() if rng is None else SeededBits(rng)
    source = open_source(data, columns)
    curator = Curator(source, Budget(limit), bits, constant=intercept)
    estimate = chosen.run(curator, options, allow_unvetted=allow_unvetted)
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
