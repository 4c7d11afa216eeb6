"""The release: one private matrix that answers any linear question, and the function that makes it."""

from __future__ import annotations

import inspect
import math
import os
import platform
import tempfile
import warnings
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from dpcov._version import VERSION
from dpcov.arrays import Array
from dpcov.checks import did_you_mean, flag
from dpcov.core import ArgumentError, Number, Receipt, UnresolvedError
from dpcov.core.budget import as_fraction
from dpcov.laws import LossLaw, NoiseLaw
from dpcov.ledger import Ledger
from dpcov.linear import Questions
from dpcov.linear.ask_models import AsksModels
from dpcov.linear.ask_moments import AsksMoments
from dpcov.linear.description import share_of_rows
from dpcov.linear.pairwise_questions import pairwise_questions
from dpcov.methods import find_method, methods
from dpcov.opening import NothingUsableWarning, check_size, opened, schema_of, warn_of_weakness
from dpcov.privacy_unit import ROW, PrivacyUnit, read_unit
from dpcov.provenance import Provenance, today
from dpcov.receipts import receipt_table
from dpcov.sources.encoding import PAIRWISE, Bounds, Columns, Encoding, Schema
from dpcov.tables import html_table, number, percent

# The kernel knows nothing of notebooks.
Receipt._repr_html_ = receipt_table  # type: ignore[attr-defined]


NOTHING_USABLE = (
    "nothing in this release stands above the noise, and its cost stays charged. Either the rows are too few "
    "for this budget, or nearly all of them miss a value: is every column of the kind that it was read as?"
)
"""What is said of a release that no question can be asked of. That is a private answer too."""


@dataclass(frozen=True)
class Part:
    """One of the releases that a combined release is made of.

    Attributes
    ----------
    n_units : int
        The public number of rows or units of its table.
    receipt : Receipt
        What was spent on it.
    provenance : Provenance
        Where it comes from.
    """

    n_units: int
    receipt: Receipt
    provenance: Provenance


@dataclass(frozen=True, eq=False, repr=False)
class Release(AsksMoments, AsksModels):
    """A private second-moment matrix with its account, ready for any linear question.

    Every answer is post-processing: it costs no budget, and is as private as the release. Numbers come
    with standard errors and intervals for the answer that the raw rows would give; with
    ``sampling=True``, for that of the population the rows were drawn from, if it is normal. Means,
    covariances and regressions are those of the complete rows: one with a missing value is left out. With
    ``missing="pairwise"``, each covariance is that of the rows in which both columns are there.

    Attributes
    ----------
    columns : tuple of str
        The table's columns, without the constant one.
    n_units : int
        The public number of rows, or of persons if `unit` says so.
    method : str
        The name of the method that made it.
    options : mapping
        What the method was told.
    receipt : Receipt
        What was spent, on what.
    diagnostics : mapping
        Facts from public parameters and private answers only.
    intercept : bool
        Whether the matrix has a last row and column for the constant.
    noise : NoiseLaw, optional
        The law of the noise in the matrix.
    losses : tuple of LossLaw
        What shrinking long rows took away; empty where that is not known.
    versions : mapping
        Of dpcov, numpy and Python, at the time of the release.
    provenance : Provenance
        When it was made, of which dataset and what for, as far as that was said.
    encoding : Encoding, optional
        What the columns of the table hold, and the numbers that they became.
    unit : PrivacyUnit, optional
        Whose rows are protected together; None if each row is by itself.
    parts : tuple of Part
        What it was combined from; empty if it was not.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> made.columns
    ('height', 'weight')
    >>> made.mean().values.round()
    array([170.,  62.])
    >>> print(made.receipt.spent)
    rho=1
    """

    columns: tuple[str, ...]
    n_units: int
    method: str
    options: Mapping[str, Any]
    receipt: Receipt
    diagnostics: Mapping[str, Any]
    intercept: bool
    noise: NoiseLaw | None
    losses: tuple[LossLaw, ...]
    versions: Mapping[str, str]
    _matrix: Array
    provenance: Provenance = field(default=Provenance(), kw_only=True)
    encoding: Encoding | None = field(default=None, kw_only=True)
    unit: PrivacyUnit | None = field(default=None, kw_only=True)
    parts: tuple[Part, ...] = field(default=(), kw_only=True)

    @property
    def n_rows(self) -> int:
        """The public number of rows; with a privacy unit it is not public, and there is none.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> dpcov.release(np.random.default_rng(0).normal(size=(5_000, 2)), rho=1).n_rows
        5000
        """
        if self.unit is not None:
            raise ArgumentError(
                f"the number of rows is not public, only that of {self.unit.name}s: n_units. "
                "describe() estimates how many rows are complete."
            )
        return self.n_units

    @property
    def pairwise(self) -> bool:
        """Whether each answer rests on the rows in which both columns are there, not on complete rows alone.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) + [170, 62]
        >>> dpcov.release(people, rho=1, missing="pairwise").pairwise
        True
        """
        return self.encoding is not None and self.encoding.missing == PAIRWISE

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The columns of the released matrix: `columns`, and of a pairwise release where they are missing.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 1)) + 170
        >>> dpcov.release(people, rho=1, columns=["height"], missing="pairwise").released_columns
        ('height', 'missing(height)')
        """
        return self.encoding.columns if self.encoding is not None and self.pairwise else self.columns

    @cached_property
    def _questions(self) -> Questions:
        released = Questions(
            self.released_columns,
            self.n_units,
            self._matrix,
            self.noise,
            self.losses,
            _rows_beyond(self.diagnostics, self._named),
            grouped=self.unit is not None,
            even=self.unit is not None and self.unit.even,
            shares=() if self.encoding is None or not self.intercept else self.encoding.shares,
            levels={} if self.encoding is None else self.encoding.levels,
            exposed=_exposed_columns(self.diagnostics, self._named),
        )
        if self.encoding is None or not self.pairwise:
            return released
        gaps = [(gap.columns, gap.fills) for gap in self.encoding.gaps]
        return pairwise_questions(released, self.columns, gaps)

    @property
    def share_of_rows(self) -> str:
        """About what share of the rows answers rest on, with its interval, in words; empty if not known.

        The complete ones, or of a pairwise release those with the column that has most gaps. With a privacy
        unit, how many rows each has: the number of rows is not public.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) + [170, 62]
        >>> people[:10_000, 1] = np.nan
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> about, share, *words = made.share_of_rows.split()
        >>> round(float(share.rstrip("%"))), " ".join(words[:3])
        (80, 'of rows complete')
        """
        if not (self.intercept and self.noise is not None and self.resolved):
            return ""
        return share_of_rows(self._questions, of_rows=self.unit is None)

    @property
    def _named(self) -> str:
        return ROW if self.unit is None else self.unit.name

    def save(self, path: str | Path) -> None:
        """Write the release to one file that needs neither dpcov nor pickle to be read.

        A zip of CSV matrices and a JSON manifest; ``docs/release.md`` describes it. The same release gives
        the same bytes.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.save("people.dpcov")
        >>> dpcov.load("people.dpcov").columns
        ('height', 'weight')
        """
        from dpcov.artefact import save_release  # noqa: PLC0415 - the artefact knows releases, not they it

        save_release(self, path)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page about this release, and open it in a browser unless `path` says where it goes.

        One HTML file that needs no network: the guarantee in words, each column, correlations, what noise
        hides, what was spent. Needs the extra ``report``.

        Parameters
        ----------
        path : path, optional
            The file to write; an existing one is replaced. A new file among the temporary ones by default.

        Returns
        -------
        Path
            Where the page is.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.report("people.html").name
        'people.html'
        """
        from dpcov.report import write_report  # noqa: PLC0415  (the report knows releases)

        page = Path(tempfile.mkdtemp(prefix="dpcov-")) / "release.html" if path is None else Path(path)
        write_report(self, page, name=page.with_suffix(".dpcov").name)
        if path is None:
            webbrowser.open(page.as_uri())
        return page

    def _facts(self) -> list[str]:
        spent = f"spent {self.receipt.spent}" + ("" if self.receipt.private else " - NOT PRIVATE (seeded)")
        vetted = any(known.name == self.method and known.vetted for known in methods())
        unvetted = "" if vetted else " (UNVETTED)"
        facts = [
            f"{self.n_units:,} {self._named}s, {len(self.columns)} columns",
            f"method '{self.method}'{unvetted}",
            spent,
        ]
        if self.share_of_rows:
            facts.insert(1, self.share_of_rows)
        if self.resolved is not None:
            error = float(self.diagnostics.get("predicted_error", math.inf))
            each = f", variances within {percent(error)}" if self.resolved and error < 1 else ""
            facts.append(f"{self.resolved} of {len(self.columns)} directions resolved{each}")
        return facts

    def __repr__(self) -> str:
        return f"<dpcov release: {', '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        from dpcov.report.words import USUAL_DELTAS, headline  # noqa: PLC0415  (the report knows releases)

        title = f"dpcov release: {headline(self.receipt, self.provenance.delta or USUAL_DELTAS[1])}"
        each = "each protected by itself" if self.unit is None else "all rows of each protected together"
        facts = [f"{self.n_units:,} {self._named}s, {each}", *self._facts()[1:]]
        try:
            if not self.intercept:
                spreads = np.sqrt(np.diag(self.second_moment().values)[: len(self.columns)])
                lines = [[name, number(v)] for name, v in zip(self.columns, spreads, strict=True)]
                return html_table(title, ["column", "root mean square"], lines, [", ".join(facts)])
            told = self.describe()
        except UnresolvedError as error:
            lines = [[name, "below the noise"] for name in self.columns]
            return html_table(title, ["column", ""], lines, [", ".join(facts), str(error)])
        lines = [
            [name, number(mean), number(spread)]
            for name, mean, spread in zip(self.columns, told.mean.values, told.std.values, strict=True)
        ]
        head = ["column", "mean", "standard deviation"]
        return html_table(title, head, lines, [", ".join(facts), "Intervals: .describe()"])


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


def _rows_beyond(diagnostics: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    """Return a note if units are seen far beyond the region of a release: nobody knows how far."""
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping) or beyond.get("explained") is not False:
        return ()
    return (f"{_count_beyond(beyond, unit)}.",)


def _exposed_columns(diagnostics: Mapping[str, Any], unit: str) -> dict[str, str]:
    """Return the columns along which most of the units beyond the region may lie, each with a note."""
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping):
        return {}
    count = _count_beyond(beyond, unit)
    notes = {}
    for name in map(str, beyond.get("columns", ())):
        far = f"Many far {unit}s lie along {name}: they can move it by more than its interval says."
        notes[name] = f"{count}. {far}"
    return notes


def _count_beyond(beyond: Mapping[str, Any], unit: str) -> str:
    about, at_most = float(beyond["about"]), float(beyond["at_most"])
    seen = f"About {about:.0f} {unit}s, at most {at_most:.0f}, lie"
    return f"{seen} beyond the region that {unit}s were clipped to"
