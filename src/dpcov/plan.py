"""What error to expect for so many rows, or how many rows an error needs, method by method.

No table is needed and no budget is spent: the answer is a function of public numbers. It is about tables with
light tails (Gaussian rows, eigenvalues spread evenly on a log scale). Other tables cost more: `Plan.ranges`
says how much more it was, by kind of table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dpcov.checks import count, number, share
from dpcov.core import ArgumentError, Number, PrivacyCost, resolve_budget
from dpcov.guessing import greatest_guess, guessing_sentence, mu_of
from dpcov.methods import find_method, methods
from dpcov.paper.theory.bounds import least_rows
from dpcov.paper.theory.comparison import CALIBRATED, RATE, THEOREM
from dpcov.paper.theory.related import aden_ali_rows, alabi_rows, brown_rows, kothari_rows
from dpcov.pictures import draw_curves
from dpcov.plan_errors import Case
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
        Rows needed, if the error was given.
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
    n_rows, error : float or None
        The one that was given.
    entries : tuple of PlanEntry
        One answer for each method, for Gaussian rows.
    ranges : tuple of PlanRange
        For the default method: what other kinds of tables cost.

    Notes
    -----
    On the benchmark's Gaussian tables the errors of "whitening" were 0.84 to 1.23 times the predicted
    ones, where those are below 0.1, and up to 4 times above; those of "gaussian" 0.75 to 2.1 times. `ranges`
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
    error: float | None
    entries: tuple[PlanEntry, ...]
    ranges: tuple[PlanRange, ...]

    def __getitem__(self, method: str) -> PlanEntry:
        for entry in self.entries:
            if entry.method == method:
                return entry
        known = ", ".join(entry.method for entry in self.entries)
        raise ArgumentError(f"the plan has no method '{method}'. There are: {known}.")

    def plot(self, ax: Any = None) -> Any:
        """Draw the error (or the rows needed) against epsilon, for the methods that can be run.

        At the plan's delta, or at 1e-6 if it has none. Rates without constants are left out. Returns the
        axes; needs the extra ``plot``.
        """
        delta = self.delta if self.delta is not None else _USUAL_DELTA
        here = self.epsilon or PrivacyCost(Fraction(self.rho), gaussian=True).epsilon(delta)
        steps = [here * _PLOT_SPAN**step for step in np.linspace(-1, 1, _PLOT_POINTS)]
        asked: dict[str, Any] = {
            "n_columns": self.n_columns, "n_rows": self.n_rows, "error": self.error, "delta": delta,
            "condition": self.condition, "failure": self.failure,
        }  # fmt: skip
        plans = [plan(epsilon=step, **asked) for step in steps]
        curves = {
            entry.method: (steps, [_drawn(one, entry.method) for one in plans])
            for entry in self.entries
            if entry.available and entry.basis != RATE
        }
        promised = {name: curve for name, curve in curves.items() if np.isfinite(curve[1]).any()}
        y = "relative error" if self.n_rows is not None else "rows needed"
        return draw_curves(promised, here, f"epsilon, at delta = {delta:g}", y, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; infinite and missing numbers become None."""
        result = asdict(self)
        result["entries"] = [
            {key: _plain(value) for key, value in asdict(entry).items()} for entry in self.entries
        ]
        result["ranges"] = [
            {key: _plain(value) for key, value in asdict(kind).items()} for kind in self.ranges
        ]
        return result

    def _repr_html_(self) -> str:
        by_rows = self.n_rows is not None
        head = ["method", "error" if by_rows else "rows needed", "known from", "assumes"]
        lines = [
            [one.method, _shown(one.error if by_rows else one.rows), one.basis, one.assumes]
            for one in self.entries
        ]
        promise = guessing_sentence(PrivacyCost(Fraction(self.rho), gaussian=True))
        return html_table(self._title(), head, lines, [self.describe_ranges(), promise], text=True)

    def describe_ranges(self) -> str:
        """Return in words what the default costs, by kind of table.

        Examples
        --------
        >>> import dpcov
        >>> print(dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5).describe_ranges()[:63])
        The middle half of measured releases by whitening had errors of
        """
        if self.n_rows is not None:
            head, shown = "The middle half of measured releases by whitening had errors of", _share
        else:
            head, shown = "The middle half of measured tables needed this many rows for whitening:", _rounded
        ends = [(shown(kind.low), shown(kind.high), kind.tables) for kind in self.ranges]
        kinds = [f"{low if low == high else f'{low} to {high}'} ({tables})" for low, high, tables in ends]
        return f"{head} {', '.join(kinds)}."

    def _title(self) -> str:
        asked = f"{self.n_rows:,} rows" if self.n_rows is not None else f"error {self.error:g}"
        budget = f"mu={self.mu:.4g}, rho={self.rho:.4g}"
        if self.epsilon is not None:
            budget += f" (epsilon={self.epsilon:.4g}, delta={self.delta:g})"
        return f"plan: {asked}, {self.n_columns} columns, {budget}, condition {self.condition:g}"

    def __repr__(self) -> str:
        head = "error" if self.n_rows is not None else "rows"
        lines = [
            guessing_sentence(PrivacyCost(Fraction(self.rho), gaussian=True)),
            self._title(),
            f"{'method':<18}{head:>12}  basis",
        ]
        for entry in self.entries:
            value = entry.error if self.n_rows is not None else entry.rows
            lines.append(f"{entry.method:<18}{_shown(value):>12}  {entry.basis}; {entry.assumes}")
        return "\n".join([*lines, self.describe_ranges()])


def plan(
    *,
    n_columns: int,
    n_rows: int | None = None,
    error: float | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    condition: float = 1e6,
    failure: float = 0.05,
    m: float | None = None,
) -> Plan:
    """Predict the error for a number of rows, or the rows for an error, method by method.

    Parameters
    ----------
    n_columns : int
        Columns of the table; one more with an intercept.
    n_rows : int, optional
        How many rows there are. Give this or `error`.
    error : float, optional
        The relative error wanted in the worst direction, below 1.
    rho, mu, epsilon, delta : float, optional
        The budget, as for ``dpcov.release``. Methods that are not zCDP need `delta`; with `rho` and
        `delta` they are compared at the epsilon that rho-zCDP implies.
    condition : float, default 1e6
        Largest over least eigenvalue of the second moment, as far as it is guessed.
    failure : float, default 0.05
        The probability with which guarantees may fail.
    m : float, optional
        The subsample size at alpha = 1/2 told to "recursive"; that of Gaussian rows by default.

    Returns
    -------
    Plan
        Prints as a table.

    Examples
    --------
    >>> import dpcov
    >>> plan = dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5)
    >>> f"{plan['whitening'].error:.1e}"
    '4.9e-04'
    >>> needed = dpcov.plan(error=0.01, n_columns=20, rho=0.5)["whitening"].rows
    >>> 10_000 < needed < 1_000_000
    True
    """
    d = count(n_columns, "n_columns")
    if (n_rows is None) == (error is None):
        raise ArgumentError("Give either n_rows, to learn the error, or error, to learn the rows.")
    rows = None if n_rows is None else count(n_rows, "n_rows")
    target = None if error is None else share(error, "error")
    spread = number(condition, "condition", at_least=1)
    chance = share(failure, "failure")
    size = None if m is None else number(m, "m", at_least=1)
    limit = resolve_budget(rho=rho, mu=mu, epsilon=epsilon, delta=delta, gaussian=True)
    spending = PrivacyCost(limit.rho, gaussian=True)
    budget = float(limit.rho)
    whole = None
    if delta is not None and float(delta) > 0:
        whole = float(epsilon) if epsilon is not None else PrivacyCost(limit.rho).epsilon(delta)
        share_of_delta = find_method("aggregate").delta_share({})
        limit = resolve_budget(rho=rho, epsilon=epsilon, delta=delta, approximate_share=share_of_delta)
    case = Case(d, budget, whole, None if whole is None else float(delta or 0), spread, chance, size, limit)

    runnable = {method.name for method in methods() if method.available}

    def entry(
        method: str,
        error_at: Callable[[int], float] | None,
        basis: str,
        assumes: str,
        rows_for: Callable[[float], float] | None = None,
    ) -> PlanEntry:
        available = method.removesuffix("-paper") in runnable
        if error_at is None:
            found = math.nan
            return PlanEntry(method, found, found, basis, f"{assumes}; give delta to compare", available)
        if rows is not None:
            return PlanEntry(method, error_at(rows), float(rows), basis, assumes, available)
        wanted = target or math.nan
        needed = rows_for(wanted) if rows_for else least_rows(error_at, wanted)
        return PlanEntry(method, wanted, needed, basis, assumes, available)

    learnt = whole is not None
    aggregate = entry(
        "aggregate",
        case.aggregate if learnt else None,
        THEOREM,
        "Gaussian rows",
        lambda wanted: case.aggregate_rows(wanted / 2),
    )
    if math.isfinite(aggregate.error + aggregate.rows):
        size = case.aggregate_groups(aggregate.error / 2)[1]
        aggregate = replace(aggregate, assumes=f"Gaussian rows, m={size:,}, alpha={aggregate.error / 2:.3g}")
    elif learnt:
        # It refuses too few rows, and more groups than fit into memory.
        aggregate = replace(aggregate, available=False)
    entries = (
        entry("whitening", case.whitening, CALIBRATED, "Gaussian rows, an error below 0.1"),
        entry("gaussian", case.gaussian, CALIBRATED, "light tails, a tight radius"),
        entry("recursive", case.recursive, THEOREM, "Gaussian rows, known radius, eigenvalue and m"),
        entry("recursive-paper", case.recursive_paper, THEOREM, "the same; its proof has gaps"),
        aggregate,
        entry("leverage", case.rate(brown_rows), RATE, "no row of high leverage"),
        entry("aden-ali-2020", case.rate(aden_ali_rows), RATE, "Gaussian rows; no algorithm"),
        entry("kothari-2021", case.rate(kothari_rows), RATE, "sub-Gaussian rows, robust"),
        entry("alabi-2023", case.rate(alabi_rows), RATE, "Gaussian rows, robust"),
    )
    ranges = tuple(_range(kind, case.whitening, rows, target) for kind in _measured())
    return Plan(
        d, budget, mu_of(spending) or math.nan, greatest_guess(spending), whole, case.delta, spread, chance,
        rows, target, entries, ranges,
    )  # fmt: skip


@cache
def _measured() -> tuple[dict[str, Any], ...]:
    """Return measured over planned errors by kind of table; the file says where they come from."""
    return tuple(json.loads(files("dpcov").joinpath("plan_ranges.json").read_text())["kinds"])


def _range(
    kind: dict[str, Any], error_at: Callable[[int], float], rows: int | None, target: float | None
) -> PlanRange:
    """Return what one kind of table costs: the error of so many rows, or the rows for an error."""
    ends = [float(kind["low"]), float(kind["high"])]
    if rows is not None:
        low, high = (ratio * error_at(rows) for ratio in ends)
    else:
        low, high = (least_rows(error_at, (target or math.nan) / ratio) for ratio in ends)
    return PlanRange(str(kind["tables"]), low, high, int(kind["releases"]))


def _drawn(one: Plan, method: str) -> float:
    if one.n_rows is None:
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
