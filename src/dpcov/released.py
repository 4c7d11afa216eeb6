"""The release: one private matrix that answers any linear question."""

from __future__ import annotations

import math
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.core import ArgumentError, Receipt, UnresolvedError
from dpcov.laws import NoiseLaw
from dpcov.linear import Questions
from dpcov.linear.ask_models import AsksModels
from dpcov.linear.ask_moments import AsksMoments
from dpcov.linear.beyond import exposed_columns, unexplained_rows, which_were_clipped
from dpcov.linear.description import share_of_rows
from dpcov.linear.pairwise_questions import pairwise_questions
from dpcov.losses import LossLaw
from dpcov.methods import methods
from dpcov.privacy_unit import ROW, PrivacyUnit
from dpcov.provenance import Provenance
from dpcov.receipts import receipt_table
from dpcov.sources.encoding import PAIRWISE, Encoding
from dpcov.tables import html_table, number, percent

# The kernel knows nothing of notebooks.
Receipt._repr_html_ = receipt_table  # type: ignore[attr-defined]


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
            unexplained_rows(self.diagnostics, self._named),
            grouped=self.unit is not None,
            even=self.unit is not None and self.unit.even,
            shares=() if self.encoding is None or not self.intercept else self.encoding.shares,
            levels={} if self.encoding is None else self.encoding.levels,
            exposed=exposed_columns(self.diagnostics, self._named),
            clipped=which_were_clipped(self.diagnostics, self._named),
            ends=None if self.encoding is None else self.encoding.bounds,
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
    def predicted_error(self) -> float | None:
        """What a variance that is called resolved is off by at most, as a share of it, in 19 releases of 20.

        It covers noise and what clipping likely took, but not rows that are too few to be seen and lie far
        beyond all others. None if there is no such bound below 1: nothing is resolved, the method states no
        bound, or rows are seen so far out that no law tells how far.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> noise = np.random.default_rng(1)
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"], rng=noise)
        >>> made.predicted_error < 0.02
        True
        """
        error = float(self.diagnostics.get("predicted_error", math.inf))
        known = self.resolved and error < 1 and not unexplained_rows(self.diagnostics, self._named)
        return error if known else None

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
            error = self.predicted_error
            each = (
                ""
                if error is None
                else f", variances within {percent(error)} but for rows too far out to be seen"
            )
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
