"""``dpcov plan``: what error to expect, or how many rows an error needs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any

import typer

import dpcov
from dpcov.cli.arguments import AsJson, Delta, Epsilon, Mu, Rho, read_number, read_whole, to_float
from dpcov.cli.chart import log_chart
from dpcov.cli.failures import reported
from dpcov.cli.output import page_width, print_json, print_table, print_text
from dpcov.cli.plan_distribution import Asked, compare_distribution, show_comparison
from dpcov.core import ArgumentError
from dpcov.methods import find_method
from dpcov.paper.theory.comparison import RATE
from dpcov.paper.theory.named import DISTRIBUTIONS
from dpcov.privacy_unit import ROW

_CHART_POINTS = 9
_CHART_SPAN = 100.0
_LARGEST_CHARTED_ERROR = 100.0


@reported
def plan(
    *,
    columns: Annotated[
        int, typer.Option(parser=read_whole, metavar="COUNT", help="How many columns the table has.")
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            parser=read_whole, metavar="COUNT", help="How many rows: predict the error of each method."
        ),
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(
            parser=read_whole,
            metavar="COUNT",
            help="How many persons, instead of rows, if all rows of a person are protected together.",
        ),
    ] = None,
    rows_per_unit: Annotated[
        Fraction | None,
        typer.Option(
            parser=read_number, metavar="NUMBER", help="How many rows a person has on average; 1 by default."
        ),
    ] = None,
    error: Annotated[
        Fraction | None,
        typer.Option(
            parser=read_number,
            metavar="NUMBER",
            help="The error wanted, such as 0.1: say how many rows it needs.",
        ),
    ] = None,
    rho: Rho = None,
    mu: Mu = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    condition: Annotated[
        float,
        typer.Option(
            help="A guess at the condition number: largest over least eigenvalue of the second moment."
        ),
    ] = 1e6,
    distribution: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Compare how many rows theorems and rates ask for if rows follow a distribution: "
            f"{', '.join(DISTRIBUTIONS)}.",
        ),
    ] = None,
    shape: Annotated[
        float | None,
        typer.Option(help="For Pareto distributions: how fast the tail falls; 5 in the paper."),
    ] = None,
    bound: Annotated[
        float | None,
        typer.Option(help="For Pareto distributions: where the tail ends; 10 in the paper."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the error for a number of rows, or the rows needed for an error, method by method.

    No table is needed and no budget is spent. The error is relative, in the worst direction: 0.1 means that
    the variance of every combination of columns is off by at most a tenth. Predictions are for Gaussian rows;
    the line below them says what other kinds of tables cost.

    ```text
    dpcov plan --rows 1e6 --columns 20 --epsilon 1 --delta 1e-6
    dpcov plan --error 0.1 --columns 20 --epsilon 1 --delta 1e-6
    dpcov plan --units 1e5 --rows-per-unit 8 --columns 20 --epsilon 1 --delta 1e-6
    ```

    With --distribution the answer is the paper's comparison (its equation 1 and Appendix D): the rows that
    the second moment of a distribution takes, with explicit constants where a theorem has them, for every
    method. No constant column is added.

    ```text
    dpcov plan --distribution pareto --shape 4 --error 0.1 --columns 20 --epsilon 1 --delta 1e-6
    ```
    """
    if columns < 1:
        raise ArgumentError(f"--columns must be at least 1, got {columns}.")
    if distribution is not None:
        if error is None or any(given is not None for given in (rows, units, rows_per_unit)):
            raise ArgumentError("--distribution says how many rows an error needs: give --error, not --rows.")
        asked_law = Asked(distribution, columns, to_float(error, "--error"), condition, shape, bound)
        found = compare_distribution(asked_law, rho=rho, mu=mu, epsilon=epsilon, delta=delta)
        print_json(found.to_dict()) if as_json else show_comparison(found)
        return
    for name, given in (("--shape", shape), ("--bound", bound)):
        if given is not None:
            raise ArgumentError(f"{name} goes with --distribution pareto or pareto-beside: give it too.")
    if sum(given is not None for given in (rows, units, error)) != 1:
        raise ArgumentError(
            "Give one of --rows and --units (persons), to learn the error, or --error, to learn how many "
            "it needs."
        )
    # A release adds a constant column.
    asked: dict[str, Any] = {
        "n_columns": columns + 1, "rho": rho, "mu": mu, "epsilon": epsilon, "delta": delta,
        "condition": condition,
        "rows_per_unit": None if rows_per_unit is None else to_float(rows_per_unit, "--rows-per-unit"),
    }  # fmt: skip
    answer = dpcov.plan(
        n_rows=rows, n_units=units, error=None if error is None else to_float(error, "--error"), **asked
    )
    if as_json:
        print_json(answer.to_dict())
        return
    show_plan(answer)
    centre = answer.size or answer["whitening"].rows
    if math.isfinite(centre):
        print_text(_chart(centre, answer.unit, asked))


def show_plan(answer: dpcov.Plan) -> None:
    """Print a plan as a table."""
    sized = answer.size is not None
    header = (
        "method",
        "error" if sized else f"{answer.unit}s needed",
        "known from",
        "assumes",
        "dpcov runs it",
    )
    lines = [
        (
            entry.method,
            _error(entry.error) if sized else _rows(entry.rows),
            entry.basis,
            entry.assumes,
            f"yes, {find_method(_registered(entry.method)).status}" if entry.available else "no",
        )
        for entry in answer.entries
    ]
    asked = f"{answer.size:,} {answer.unit}s" if answer.size is not None else f"error {answer.error:g}"
    budget = f"mu = {answer.mu:.4g}, rho = {answer.rho:.4g}"
    if answer.epsilon is not None:
        budget += f" (epsilon = {answer.epsilon:.4g}, delta = {answer.delta:g})"
    print_text(answer.promise())
    print_table(f"{asked}, {answer.n_columns} columns with the constant one, {budget}", header, lines)
    for line in (*answer.describe_persons(), answer.describe_ranges()):
        print_text(line)


def _registered(name: str) -> str:
    """Return the method of an entry: one stands there twice, once with the constants of its paper."""
    return name.removesuffix("-paper")


def _chart(centre: float, unit: str, asked: dict[str, Any]) -> str:
    steps = [_CHART_SPAN ** (2 * k / (_CHART_POINTS - 1) - 1) for k in range(_CHART_POINTS)]
    counted = "n_rows" if unit == ROW else "n_units"
    plans = [dpcov.plan(**{counted: max(2, round(centre * step))}, **asked) for step in steps]
    series = {
        entry.method: [
            (float(one.size or 0), one[entry.method].error)
            for one in plans
            if one[entry.method].error < _LARGEST_CHARTED_ERROR
        ]
        for entry in plans[0].entries
        # Rates leave their constants out: a curve of one says nothing beside those of errors.
        if entry.available and entry.basis != RATE
    }
    return log_chart(series, x=f"{unit}s", y="error", width=min(60, max(20, page_width() - 18)))


def _error(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "no promise" if math.isinf(value) else f"{value:.3g}"


def _rows(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "no promise" if math.isinf(value) else f"{value:,.0f}" if value < 1e9 else f"{value:.2e}"
