"""Opening a table to private queries: rows, noise, and a budget that a ledger may pay for."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict, Unpack

import numpy as np

from dpcov.core import (
    ArgumentError,
    Curator,
    Number,
    OSEntropy,
    PrivacyCost,
    SeededBits,
    Source,
    resolve_budget,
)
from dpcov.core.budget import as_fraction
from dpcov.core.lattice import Lattice
from dpcov.laws import least_size
from dpcov.ledger import Ledger, budget_for
from dpcov.privacy_unit import ROW, read_unit
from dpcov.progress import ScanBars
from dpcov.sources import open_source
from dpcov.sources.encoding import Bounds, Columns, Encoding, Schema, declared, read_schema
from dpcov.sources.encoding.ids import without_id

_LARGEST_ROUNDING = 0.1


class Access(TypedDict, total=False):
    """What every function that asks a table takes.

    Attributes
    ----------
    columns : sequence of str or mapping, optional
        Which columns to use; for an array, their names. CSV files need it. A mapping tells their
        kinds as well.
    bounds : mapping, optional
        Public lower and upper ends of columns, by name; values beyond are moved to the nearest end.
    terms : sequence of str, optional
        Products, powers and logarithms of columns that join them.
    missing : str, optional
        What answers rest on: "complete" rows, or "pairwise" on those in which both columns are there.
    schema : Schema or path, optional
        A TOML file that says all of this; `columns` are then names of some of its columns.
    query : str, optional
        What to ask a database for.
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
    privacy_unit : str or array, optional
        The column that tells whose a row is, so that all rows of a person are protected together.
    weighting : str, default "row"
        With `privacy_unit`: whether every "row" counts the same, or every "unit".
    """

    columns: Columns
    bounds: Bounds | None
    terms: Sequence[str]
    missing: str | None
    schema: Schema | str | os.PathLike[str] | None
    query: str | None
    rng: np.random.Generator | None
    progress: bool | None
    ledger: Ledger | str | os.PathLike[str] | None
    dataset: str | None
    purpose: str
    allow_seeded: bool
    privacy_unit: Any
    weighting: str


@contextmanager
def opened(
    data: Any,
    limit: PrivacyCost,
    method: str,
    *,
    constant: bool = False,
    check_size: Callable[[int, int], None] | None = None,
    scans: int | None = None,
    **access: Unpack[Access],
) -> Iterator[OpenedCurator]:
    """Open `data` to queries that cost at most `limit`; on leaving, settle with the ledger.

    Before the ledger is charged, `check_size` gets the public numbers of rows and of columns, the constant
    included, and may raise. About how many `scans` there will be is shown as they go on.

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
    unit, grouping = read_unit(access.get("privacy_unit"), access.get("weighting", ROW))
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
        unit=ROW if unit is None else unit.name,
    )
    bars = ScanBars(show=access.get("progress"), expected=scans)
    source = open_source(data, schema_of(**access), grouping, access.get("query"))
    _warn_of_rounding(source, limit, constant=constant)
    if check_size is not None:
        check_size(source.n_rows, len(source.columns) + constant)
    with paid as budget:
        curator = OpenedCurator(source, budget, bits, constant=constant, progress=bars)
        curator.encoding = without_id(source.encoding)
        yield curator


class OpenedCurator(Curator):
    """A curator of a table whose columns have kinds.

    Attributes
    ----------
    encoding : Encoding
        Which columns are read, and the numbers that a row of them becomes.
    """

    encoding: Encoding


def schema_of(**access: Unpack[Access]) -> Schema:
    """Return what is said about the columns."""
    schema = access.get("schema")
    if isinstance(schema, str | os.PathLike):
        schema = read_schema(schema)
    return declared(
        access.get("columns"), access.get("bounds"), access.get("terms", ()), schema, access.get("missing")
    )


def check_size(
    limit: PrivacyCost, delta: Number | None, n_rows: int, n_columns: int, *, unit: str = ROW
) -> None:
    """Raise an `ArgumentError` if noise would hide all that any table of this size could show.

    Where a `unit` is protected as a whole, it counts in place of a row.
    """
    least, given = least_size(n_columns), math.sqrt(limit.rho)
    if n_rows * given > least:
        return
    rows, rho = math.floor(least / given) + 1, (least / n_rows) ** 2
    # Three digits, rounded up, so that what is named is enough.
    digit = 10.0 ** (math.floor(math.log10(rho)) - 2)
    rho = (math.floor(rho / digit + 1e-9) + 1) * digit
    budget = f"rho={rho:.3g}"
    if delta is not None and delta > 0:
        budget += f" (epsilon={resolve_budget(rho=rho).epsilon(delta):.3g})"
    raise ArgumentError(
        f"{n_rows} {unit}s are too few for {n_columns} columns (the constant one included) at {limit}: noise "
        "would hide every combination of the columns, whatever the rows are. To show a single one takes at "
        f"least {rows} {unit}s or {budget}; fewer columns take less. force=True goes on all the same."
    )


class WeakGuaranteeWarning(UserWarning):
    """A budget is so large that the guarantee protects hardly anyone."""


class NothingUsableWarning(UserWarning):
    """Nothing in a release stands above its noise; what it cost is spent."""


def warn_of_weakness(limit: PrivacyCost, delta: Number | None, n_units: int, unit: str = ROW) -> None:
    """Say so if a budget protects hardly anyone: an epsilon above 10, or a delta above one in the rows."""
    from dpcov.report.words import weakness  # noqa: PLC0415  (the report knows releases)

    told = weakness(limit, None if delta is None else as_fraction(delta, "delta"), n_units, unit)
    if told:
        warnings.warn(told, WeakGuaranteeWarning, stacklevel=3)


def _warn_of_rounding(source: Source, limit: PrivacyCost, *, constant: bool) -> None:
    """Say so if rounding to 64-bit sums is not small beside the noise: beyond about two billion rows.

    Rounding a row to the lattice adds 1/12 to a diagonal entry on average, n / 12 in all; the noise of a
    Gram matrix that spends all has a standard deviation of B^2 / sqrt(rho). Of grouped rows the number is not
    public.
    """
    if source.grouped:
        return
    lattice = Lattice.for_table(source.n_rows, len(source.columns) + constant)
    share = source.n_rows / 12 / lattice.bound**2 * math.sqrt(limit.rho)
    if share > _LARGEST_ROUNDING:
        warnings.warn(
            f"a table of {source.n_rows:,} rows is rounded to fit 64-bit sums, which adds up to "
            f"{share:.2g} standard deviations of the noise to every variance; privacy is not affected.",
            stacklevel=5,
        )
