"""The functions that release a table: `release`, and two that return a matrix alone."""

from __future__ import annotations

import inspect
import os
import platform
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpcov._version import VERSION
from dpcov.arrays import Array
from dpcov.checks import did_you_mean, flag
from dpcov.core import ArgumentError, Number
from dpcov.core.budget import as_fraction
from dpcov.ledger import Ledger
from dpcov.methods import find_method
from dpcov.opening import NothingUsableWarning, check_size, opened, schema_of, warn_of_weakness
from dpcov.privacy_unit import ROW, read_unit
from dpcov.provenance import Provenance, today
from dpcov.released import Release
from dpcov.sources.encoding import PAIRWISE, Bounds, Columns, Schema

NOTHING_USABLE = (
    "nothing in this release stands above the noise, and its cost stays charged. Either the rows are too few "
    "for this budget, or nearly all of them miss a value: is every column of the kind that it was read as?"
)
"""What is said of a release that no question can be asked of. That is a private answer too."""


def release(
    data: Any,
    *,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    columns: Columns = None,
    bounds: Bounds | None = None,
    terms: Sequence[str] = (),
    missing: str | None = None,
    schema: Schema | str | os.PathLike[str] | None = None,
    query: str | None = None,
    method: str = "whitening",
    intercept: bool = True,
    allow_unvetted: bool = False,
    rng: np.random.Generator | None = None,
    progress: bool | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    allow_seeded: bool = False,
    force: bool = False,
    privacy_unit: Any = None,
    weighting: str = "row",
    **options: Any,
) -> Release:
    """Release the second-moment matrix of a table under differential privacy.

    Parameters
    ----------
    data : array, dataframe or path
        A two-dimensional numpy array; a pandas, polars or pyarrow table; a path, pattern or list of
        Parquet, Arrow or CSV files, or a ``pyarrow.dataset``, streamed; a lazy polars frame; a Dask
        dataframe or array; a Spark dataframe; a connection to DuckDB, PostgreSQL or SQLite, or its address,
        with a `query`. A row with a missing or infinite value counts as a row of zeros. Column types are
        public and must not depend on the rows: a single cell of text turns a pandas column into ``object``,
        and the error would reveal it.
    epsilon, delta : float, optional
        The budget as (epsilon, delta)-differential privacy.
    mu : float, optional
        The budget in Gaussian differential privacy, instead of `epsilon`, for methods whose noise is all
        Gaussian. Someone who knows every other row, and two candidates for the last one, guesses right at
        most Phi(mu / 2) of the time.
    rho : float, optional
        The budget in zero-concentrated differential privacy, instead of `epsilon`.
    columns : sequence of str or mapping, optional
        Which columns to use; for an array, their names. CSV files need it. A mapping also says what they
        hold, such as ``{"age": dpcov.number(0, 120), "sex": dpcov.category(["f", "m"])}``.
    bounds : mapping, optional
        Lower and upper bounds of numeric columns, such as ``{"age": (0, 120)}``. Values beyond are moved to
        the nearest bound. Bounds must be public, and must not come from the rows.
    terms : sequence of str, optional
        Products, powers and logarithms to add as columns, such as ``["age^2", "age:sex", "log(income)"]``.
    missing : str, optional
        Which rows answers are about: "complete" ones, the default, so that one missing value leaves a row
        out; or "pairwise" the rows that have both columns, as in pandas' ``cov``. Each column that may have
        gaps then costs one more column, which says where the gaps are.
    schema : path, optional
        A TOML file with kinds and terms, as ``dpcov schema`` prints it; `columns` may then name some of
        its columns.
    query : str, optional
        The SQL query to run on a database, such as ``"select age, region from people"``. It runs once, and
        its result is kept in a temporary file while the release is made.
    method : str, default "whitening"
        One of ``dpcov.methods()``.
    intercept : bool, default True
        Whether to add a constant column, which makes means and covariances available.
    allow_unvetted : bool, default False
        Whether to allow a method whose guarantee is proved for real numbers but not to the last bit.
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
    force : bool, default False
        Whether to release a table even if it is too small for its columns and budget to show anything.
    privacy_unit : str or array, optional
        The column that says to whom a row belongs, such as ``"patient"``; for a table in memory, also one id
        for each row. All rows of a person are then protected together, however many there are. The number of
        persons is public, the number of rows is not. A row without an id belongs to nobody and is left out.
    weighting : str, default "row"
        With `privacy_unit`: whether every "row" has the same weight, or every "unit". In the latter case each
        of k rows of a person weighs 1 / k.
    **options
        Options of the method, such as `radius`.

    Returns
    -------
    Release

    Raises
    ------
    ArgumentError
        If something given does not fit, or the table is so small that noise would hide every combination of
        its columns, whatever its rows are. Nothing is spent then.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP, `mu`-GDP or `rho`-zCDP, for tables of the same public size
    that differ in one row. Column names, dtypes, bounds and the number of rows are public. With
    `privacy_unit`, for tables of the same public number of persons that differ in all rows of one.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, epsilon=1, delta=1e-6, columns=["height", "weight"])
    >>> made.covariance().values.round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    >>> made.receipt.epsilon(1e-6) <= 1
    True
    """
    flag(intercept, "intercept")
    chosen = find_method(method)
    for name in options:
        near = did_you_mean([name], [*_ARGUMENTS, *chosen.parameters()])
        if near and name not in chosen.parameters():
            raise ArgumentError(f"dpcov.release takes no {name}. {near}")
    chosen.check_consent(allow_unvetted=allow_unvetted)
    told = schema_of(columns=columns, bounds=bounds, terms=terms, missing=missing, schema=schema)
    if told.missing == PAIRWISE and not intercept:
        raise ArgumentError('missing="pairwise" needs the constant column: leave out intercept=False.')
    unit, _ = read_unit(privacy_unit, weighting)
    if unit is not None:
        chosen.check_units()
    named = ROW if unit is None else unit.name
    limit = chosen.limit(options, rho=rho, mu=mu, epsilon=epsilon, delta=delta)
    checked = (
        None
        if flag(force, "force") or not chosen.gram_noise
        else partial(check_size, limit, delta, unit=named)
    )
    with opened(
        data, limit, method, constant=intercept, check_size=checked, scans=chosen.scans, columns=told,
        query=query, rng=rng, progress=progress, ledger=ledger, dataset=dataset, purpose=purpose,
        allow_seeded=allow_seeded, privacy_unit=privacy_unit, weighting=weighting,
    ) as curator:  # fmt: skip
        warn_of_weakness(limit, delta, curator.n_rows, named)
        estimate = chosen.run(curator, options, allow_unvetted=allow_unvetted)
    made = Release(
        columns=curator.encoding.values,
        n_units=curator.n_rows,
        method=chosen.name,
        options=dict(options),
        receipt=curator.receipt(),
        diagnostics=estimate.diagnostics,
        intercept=intercept,
        noise=estimate.noise,
        losses=estimate.losses,
        versions={"dpcov": VERSION, "numpy": np.__version__, "python": platform.python_version()},
        _matrix=estimate.second_moment,
        encoding=curator.encoding,
        provenance=Provenance(
            today(), dataset or "", purpose, None if delta is None else as_fraction(delta, "delta")
        ),
        unit=unit,
    )
    if made.resolved == 0:
        warnings.warn(NOTHING_USABLE, NothingUsableWarning, stacklevel=2)
    return made


_ARGUMENTS = tuple(
    name for name, one in inspect.signature(release).parameters.items() if one.kind is one.KEYWORD_ONLY
)


def second_moment(data: Any, **arguments: Any) -> Array:
    """Return a private second-moment matrix: `release` without an intercept, as an array.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> dpcov.second_moment(people - [170, 62], rho=1).round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    """
    return np.array(_private_release(data, intercept=False, **arguments).second_moment())


def covariance(data: Any, **arguments: Any) -> Array:
    """Return a private covariance matrix: that of `release`, as an array.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> dpcov.covariance(people, rho=1).round(-1)
    array([[100.,  60.],
           [ 60.,  60.]])
    """
    return np.array(_private_release(data, **arguments).covariance())


def _private_release(data: Any, **arguments: Any) -> Release:
    if arguments.get("rng") is not None:
        raise ArgumentError(
            "rng makes a release that is not private, and an array cannot say so; "
            "give rng to dpcov.release, and ask that for the matrix."
        )
    return release(data, **arguments)
