"""What error to expect for so many rows, or how many rows an error needs, method by method.

No table is needed and no budget is spent: the answer is a function of public numbers. It is about tables with
light tails (Gaussian rows, eigenvalues spread evenly on a log scale). Other tables cost more: `Plan.ranges`
says how much more it was, by kind of table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from dpcov.checks import count, number, share
from dpcov.core import ArgumentError, Number, PrivacyCost, resolve_budget
from dpcov.guessing import greatest_guess, mu_of
from dpcov.methods import find_method, methods
from dpcov.paper.theory.bounds import least_rows
from dpcov.paper.theory.comparison import CALIBRATED, RATE, THEOREM
from dpcov.paper.theory.related import aden_ali_rows, alabi_rows, brown_rows, kothari_rows
from dpcov.plan_answer import Plan, PlanEntry, PlanRange
from dpcov.plan_errors import Case

_OF_UNITS = {method.name for method in methods() if method.takes_units}


def plan(
    *,
    n_columns: int,
    n_rows: int | None = None,
    n_units: int | None = None,
    rows_per_unit: float | None = None,
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
        How many rows there are. Give this, `n_units` or `error`.
    n_units : int, optional
        How many persons there are, if all rows of a person are to be protected together, as by
        ``dpcov.release(..., privacy_unit=)``. Only methods that do so are shown then.
    rows_per_unit : float, optional
        How many rows a person has on average, if persons are protected; 1, if that is not said: rows of a
        person that are all alike tell no more than one.
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
    >>> persons = dpcov.plan(n_units=100_000, rows_per_unit=10, n_columns=20, rho=0.5)
    >>> plan["whitening"].error < persons["whitening"].error
    True
    """
    d = count(n_columns, "n_columns")
    if sum(given is not None for given in (n_rows, n_units, error)) != 1:
        raise ArgumentError(
            "Give one of n_rows and n_units (persons), to learn the error, or error, to learn how many it "
            "needs."
        )
    if n_rows is not None and rows_per_unit is not None:
        raise ArgumentError("rows_per_unit goes with n_units, the number of persons, or with error.")
    of_units = n_units is not None or rows_per_unit is not None
    each = number(1 if rows_per_unit is None else rows_per_unit, "rows_per_unit", at_least=1)
    rows = n_rows if n_units is None else n_units
    if rows is not None:
        rows = count(rows, "n_rows" if n_units is None else "n_units")
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
    case = Case(
        d, budget, whole, None if whole is None else float(delta or 0), spread, chance, size, limit, each
    )

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
    entries = [
        entry("whitening", case.whitening, CALIBRATED, "Gaussian rows, an error below 0.05"),
        entry("gaussian", case.gaussian, CALIBRATED, "light tails, a tight radius"),
        entry("recursive", case.recursive, THEOREM, "Gaussian rows, known radius, eigenvalue and m"),
        entry("recursive-paper", case.recursive_paper, THEOREM, "the same; its proof has gaps"),
        aggregate,
        entry("leverage", case.rate(brown_rows), RATE, "no row of high leverage"),
        entry("aden-ali-2020", case.rate(aden_ali_rows), RATE, "Gaussian rows; no algorithm"),
        entry("kothari-2021", case.rate(kothari_rows), RATE, "sub-Gaussian rows, robust"),
        entry("alabi-2023", case.rate(alabi_rows), RATE, "Gaussian rows, robust"),
    ]
    if of_units:
        entries = [one for one in entries if one.method in _OF_UNITS]
    alike = replace(case, rows_per_unit=1.0).whitening
    ranges = tuple(_range(kind, case.whitening, rows, target) for kind in _measured())
    return Plan(
        d, budget, mu_of(spending) or math.nan, greatest_guess(spending), whole, case.delta, spread, chance,
        n_rows, n_units, each if of_units else None,
        alike(rows) if rows is not None else least_rows(alike, target or math.nan),
        target, tuple(entries), ranges,
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
