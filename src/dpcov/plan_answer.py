"""The answer of `dpcov.plan`: numbers, and how they are shown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcov.core import ArgumentError, PrivacyCost
from dpcov.guessing import guessing_sentence
from dpcov.paper.theory.comparison import RATE
from dpcov.pictures import draw_curves
from dpcov.privacy_unit import ROW, UNNAMED
from dpcov.tables import html_table

_USUAL_DELTA = 1e-6
_PLOT_SPAN = 10.0
_PLOT_POINTS = 13
_LARGEST_DRAWN = 100.0


@dataclass(frozen=True)
class PlanEntry:
    """One method's answer.

    Attributes
    ----------
    method : str
        The method's name, as in ``dpcov.methods()``; with ``-paper``, with the constants of the paper.
    error : float
        Relative error in the worst direction, ``|S^-1/2 S~ S^-1/2 - I|``: predicted if the rows were given.
        Infinite where nothing is promised, NaN where the method needs epsilon and delta and has none.
    rows : float
        Rows needed, or persons where those are protected, if the error was given.
    basis : {"calibrated on benchmarks", "theorem", "rate only"}
        A typical error that benchmarks confirm, a guarantee with explicit constants, or a rate whose
        hidden constants are taken as 1.
    assumes : str
        What it takes for granted.
    available : bool
        Whether ``dpcov.release`` can run it, and would: "aggregate" refuses too few rows.
    """

    method: str
    error: float
    rows: float
    basis: str
    assumes: str
    available: bool


@dataclass(frozen=True)
class PlanRange:
    """What the default method does to tables of one kind.

    Attributes
    ----------
    tables : str
        The kind.
    low, high : float
        Errors if the rows were given, rows if the error was: half of the measured releases lie between. An
        error of 1 or more means that a combination of columns was lost, or is noise.
    releases : int
        How many releases were measured.
    """

    tables: str
    low: float
    high: float
    releases: int


@dataclass(frozen=True, repr=False)
class Plan:
    """What to expect, method by method.

    Attributes
    ----------
    n_columns : int
        Columns, the constant one included.
    rho, mu : float
        The budget in zCDP, and in Gaussian differential privacy for methods whose noise is all Gaussian.
    guess : float
        How often someone guesses right at most which of two candidates a row is, if such a method spends it.
    epsilon, delta : float or None
        For methods that need them.
    condition : float
        The ratio of the largest to the least eigenvalue that the answers are about.
    failure : float
        The probability with which a guarantee may fail.
    n_rows, n_units, error : float or None
        The one that was given.
    rows_per_unit : float or None
        How many rows each person has, if persons are protected rather than rows.
    alike : float
        The answer for the default if all rows of a person are alike: an error, or how many are needed.
    entries : tuple of PlanEntry
        One answer for each method, for Gaussian rows.
    ranges : tuple of PlanRange
        For the default method: what other kinds of tables cost.

    Notes
    -----
    On the benchmark's Gaussian tables the errors of "whitening" were 0.89 to 1.11 times the predicted ones,
    where those are below 0.05, up to 1.5 times where they are below 0.1, and up to 3 times above, or far less
    where rows are too few to look for small directions; those of "gaussian" 0.75 to 2.1 times. `ranges`
    rest on releases of random tables of many families (``benchmarks/world.py``): typical ones, such as
    clusters, categories, factors, lags and bounded values, and those with rare or skewed columns, such as
    rare 0/1 values, counts, spikes at zero, polynomials and long tails.

    Examples
    --------
    >>> import dpcov
    >>> plan = dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5)
    >>> plan["whitening"].error < 0.001 < plan["gaussian"].error
    True
    """

    n_columns: int
    rho: float
    mu: float
    guess: float
    epsilon: float | None
    delta: float | None
    condition: float
    failure: float
    n_rows: int | None
    n_units: int | None
    rows_per_unit: float | None
    alike: float
    error: float | None
    entries: tuple[PlanEntry, ...]
    ranges: tuple[PlanRange, ...]

    def __getitem__(self, method: str) -> PlanEntry:
        for entry in self.entries:
            if entry.method == method:
                return entry
        known = ", ".join(entry.method for entry in self.entries)
        raise ArgumentError(f"the plan has no method '{method}'. There are: {known}.")

    @property
    def unit(self) -> str:
        """What is protected: "row" or "person"."""
        return ROW if self.rows_per_unit is None else UNNAMED

    @property
    def size(self) -> int | None:
        """How many of them there are, if that was given."""
        return self.n_rows if self.rows_per_unit is None else self.n_units

    def plot(self, ax: Any = None) -> Any:
        """Draw the error (or the rows needed) against epsilon, for the methods that can be run.

        At the plan's delta, or at 1e-6 if it has none. Rates without constants are left out. Returns the
        axes; needs the extra ``plot``.
        """
        from dpcov.plan import plan  # noqa: PLC0415  (the function knows its answer)

        delta = self.delta if self.delta is not None else _USUAL_DELTA
        here = self.epsilon or PrivacyCost(Fraction(self.rho), gaussian=True).epsilon(delta)
        steps = [here * _PLOT_SPAN**step for step in np.linspace(-1, 1, _PLOT_POINTS)]
        asked: dict[str, Any] = {
            "n_columns": self.n_columns, "n_rows": self.n_rows, "n_units": self.n_units,
            "rows_per_unit": self.rows_per_unit, "error": self.error, "delta": delta,
            "condition": self.condition, "failure": self.failure,
        }  # fmt: skip
        plans = [plan(epsilon=step, **asked) for step in steps]
        curves = {
            entry.method: (steps, [_drawn(one, entry.method) for one in plans])
            for entry in self.entries
            if entry.available and entry.basis != RATE
        }
        promised = {name: curve for name, curve in curves.items() if np.isfinite(curve[1]).any()}
        y = "relative error" if self.size is not None else f"{self.unit}s needed"
        return draw_curves(promised, here, f"epsilon, at delta = {delta:g}", y, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; infinite and missing numbers become None."""
        result = {key: _plain(value) for key, value in asdict(self).items()}
        result["entries"] = [
            {key: _plain(value) for key, value in asdict(entry).items()} for entry in self.entries
        ]
        result["ranges"] = [
            {key: _plain(value) for key, value in asdict(kind).items()} for kind in self.ranges
        ]
        return result

    def _repr_html_(self) -> str:
        sized = self.size is not None
        head = ["method", "error" if sized else f"{self.unit}s needed", "known from", "assumes"]
        lines = [
            [one.method, _shown(one.error if sized else one.rows), one.basis, one.assumes]
            for one in self.entries
        ]
        notes = [*self.describe_persons(), self.describe_ranges(), self.promise()]
        return html_table(self._title(), head, lines, notes, text=True)

    def promise(self) -> str:
        """Return what the budget means for someone who guesses, in one sentence.

        Examples
        --------
        >>> import dpcov
        >>> dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5).promise()[-43:]
        'at most 69.2% of the time; a coin gets 50%.'
        """
        return guessing_sentence(PrivacyCost(Fraction(self.rho), gaussian=True), self.unit)

    def describe_persons(self) -> list[str]:
        """Return in words how the rows of persons matter; nothing where rows are protected.

        Examples
        --------
        >>> import dpcov
        >>> dpcov.plan(n_units=10_000, n_columns=20, rho=0.5).describe_persons()[0][:49]
        'Persons are taken to have one row each. If some h'
        """
        if self.rows_per_unit is None:
            return []
        told = "Persons are taken to have one row each."
        if self.rows_per_unit > 1:
            found = f"error is {_share(self.alike)}"
            if self.size is None:
                found = f"number needed is {_rounded(self.alike)}"
            told = (
                f"Persons are taken to have {self.rows_per_unit:g} rows each, independent of each other. If "
                f"the rows of a person are all alike, whitening's {found}."
            )
        return [f"{told} If some have c times as many rows as the mean, errors are up to c times as large."]

    def describe_ranges(self) -> str:
        """Return in words what the default costs, by kind of table.

        Examples
        --------
        >>> import dpcov
        >>> print(dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5).describe_ranges()[:63])
        The middle half of measured releases by whitening had errors of
        """
        if self.size is not None:
            head, shown = "The middle half of measured releases by whitening had errors of", _share
        else:
            needed = f"this many {self.unit}s"
            head, shown = f"The middle half of measured tables needed {needed} for whitening:", _rounded
        ends = [(shown(kind.low), shown(kind.high), kind.tables) for kind in self.ranges]
        kinds = [f"{low if low == high else f'{low} to {high}'} ({tables})" for low, high, tables in ends]
        return f"{head} {', '.join(kinds)}."

    def _title(self) -> str:
        asked = f"{self.size:,} {self.unit}s" if self.size is not None else f"error {self.error:g}"
        budget = f"mu={self.mu:.4g}, rho={self.rho:.4g}"
        if self.epsilon is not None:
            budget += f" (epsilon={self.epsilon:.4g}, delta={self.delta:g})"
        return f"plan: {asked}, {self.n_columns} columns, {budget}, condition {self.condition:g}"

    def __repr__(self) -> str:
        head = "error" if self.size is not None else f"{self.unit}s"
        lines = [
            self.promise(),
            self._title(),
            f"{'method':<18}{head:>12}  basis",
        ]
        for entry in self.entries:
            value = entry.error if self.size is not None else entry.rows
            lines.append(f"{entry.method:<18}{_shown(value):>12}  {entry.basis}; {entry.assumes}")
        return "\n".join([*lines, *self.describe_persons(), self.describe_ranges()])


def _drawn(one: Plan, method: str) -> float:
    if one.size is None:
        return one[method].rows
    # Beyond that a matrix is noise alone.
    return one[method].error if one[method].error < _LARGEST_DRAWN else math.nan


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _share(value: float) -> str:
    return "100% or more" if value >= 1 else f"{100 * value:.2g}%"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}" if math.isfinite(value) else _shown(value)


def _shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no promise"
    return f"{value:.3g}" if value < 1e4 else f"{value:.2e}"
