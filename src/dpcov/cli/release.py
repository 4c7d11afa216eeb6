"""``dpcov release``: make a private release of files, paid from a ledger."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import dpcov
from dpcov.cli.arguments import (
    AsJson,
    Delta,
    Epsilon,
    Mu,
    Rho,
    read_bounds,
    read_names,
    read_number,
    to_float,
)
from dpcov.cli.failures import reported
from dpcov.cli.files import OutputFile
from dpcov.cli.ledger import account_fields, describe
from dpcov.cli.output import cost_fields, print_json, print_text
from dpcov.cli.plan import show_plan
from dpcov.cli.report import page_file, page_of, write_page
from dpcov.core import ArgumentError, PrivacyCost, UnresolvedError
from dpcov.guessing import guessing_sentence, not_gaussian_sentence
from dpcov.ledger import Ledger
from dpcov.methods import find_method
from dpcov.opening import NothingUsableWarning
from dpcov.privacy_unit import ROW, PrivacyUnit, read_unit
from dpcov.release import NOTHING_USABLE
from dpcov.report.words import rounded_up, weakness
from dpcov.sources import Grouping, open_source
from dpcov.sources.encoding import Columns, Schema, declared, read_schema
from dpcov.sources.encoding.ids import with_ids, without_id
from dpcov.sources.sql import QueryResult, is_database, run_query

_BYTES_PER_ENTRY = 32
_BYTES_BESIDES = 1 << 16


def _method_names() -> list[str]:
    return [method.name for method in dpcov.methods() if method.available]


@reported
def release(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Parquet, Arrow or CSV files of one table, patterns, or the address of a database.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="The file to write, such as flights.dpcov."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="The report, an HTML page; by default beside the release."),
    ] = None,
    rho: Rho = None,
    mu: Mu = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,C", help="Which columns; all by default. CSV files need it, or a schema."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LOWER:UPPER",
            help="Public bounds of a column, such as age=0:120. Values are clipped to them. May be repeated.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="The SQL query to read. DATA is then the address of a database."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="TOML", help="What the columns hold; dpcov schema prints a template."),
    ] = None,
    terms: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Products, powers and logarithms of columns: age^2,age:sex,log(income)."
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="complete: leave out rows with gaps. pairwise: take the rows that have both columns.",
        ),
    ] = None,
    privacy_unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that says whose a row is, such as patient: protects all rows of a person.",
        ),
    ] = None,
    weighting: Annotated[
        str, typer.Option(help="With --privacy-unit: the same weight for each row, or for each unit.")
    ] = "row",
    contamination: Annotated[
        Fraction | None,
        typer.Option(
            parser=read_number, metavar="SHARE", help="Drop up to this share of outliers, such as 0.01."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="The method; see dpcov methods and dpcov plan.", autocompletion=_method_names)
    ] = "whitening",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An option of the method, such as radius=10. May be repeated."
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option(help="Add a constant column, which makes means and covariances available.")
    ] = True,
    allow_unvetted: Annotated[
        bool, typer.Option("--allow-unvetted", help="Accept a method that computes in floating point.")
    ] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that pays.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset in the ledger whose budget pays.")] = None,
    purpose: Annotated[str, typer.Option(help="What the release is for, for the ledger's history.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Release even a table that is too small to show anything.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show the plan, the predicted error and the cost. Reads no row, spends nothing."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: repeatable noise. Needs --not-private.")
    ] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Accept a seeded release; it is stamped as NOT PRIVATE.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Release the private second-moment matrix of a table.

    One release answers any linear question: means, covariances, correlations, PCA, regressions. Rows with a
    missing value are left out, unless --missing pairwise says otherwise. What was charged stays charged, even
    if the release fails half-way.

    ```text
    dpcov release f.parquet --epsilon 1 --delta 1e-6 -o f.dpcov
    dpcov release 'part-*.parquet' --rho 0.5 --columns age,height -o f.dpcov
    dpcov release f.parquet --rho 0.1 --ledger b.db --dataset flights -o f.dpcov
    dpcov release duckdb:///f.db --query "select age, wage from people" --rho 0.1 -o f.dpcov
    ```
    """
    if (seed is not None) != not_private:
        raise ArgumentError(
            "--seed makes a release that is not private: give --seed and --not-private, or neither."
        )
    options = _options(option)
    if contamination is not None:
        options["contamination"] = to_float(contamination, "--contamination")
    wanted = _Wanted(
        # A database is asked once, though the table is opened several times.
        data=run_query(data, query) if query is not None or is_database(data) else data,
        budget={"rho": rho, "mu": mu, "epsilon": epsilon, "delta": delta},
        columns=declared(
            read_names(columns) if columns else None,
            read_bounds(bounds or []),
            read_names(terms or []),
            None if schema is None else read_schema(schema),
            missing,
        ),
        method=method,
        options=options,
        intercept=intercept,
        ledger=None if ledger is None else Ledger.open(ledger),
        dataset=dataset,
        privacy_unit=privacy_unit,
        weighting=weighting,
    )
    if dry_run:
        _show_plan(wanted, as_json=as_json)
        return
    if output is None:
        raise ArgumentError("say where to write the release, such as: -o flights.dpcov")
    n_columns = wanted.n_columns()
    with ExitStack() as cleaning:
        room = _BYTES_BESIDES + _BYTES_PER_ENTRY * (n_columns + 1) ** 2
        file = OutputFile(output, room=room, overwrite=overwrite)
        cleaning.callback(file.discard)
        page = page_of(output, report)
        report_file = page_file(page, n_columns, overwrite=overwrite)
        cleaning.callback(report_file.discard)
        # What the warning says, the error at the end does.
        cleaning.enter_context(warnings.catch_warnings(action="ignore", category=NothingUsableWarning))
        result = dpcov.release(
            wanted.data,
            **wanted.budget,
            columns=wanted.columns,
            method=method,
            intercept=intercept,
            allow_unvetted=allow_unvetted,
            rng=None if seed is None else np.random.default_rng(seed),
            ledger=wanted.ledger,
            dataset=dataset,
            purpose=purpose,
            allow_seeded=not_private,
            force=force,
            privacy_unit=privacy_unit,
            weighting=weighting,
            **options,
        )
        try:
            file.write(result.save)
        except BaseException as error:
            error.add_note(f"The release is lost, and what it cost is spent: {result.receipt.spent}.")
            raise
        try:
            write_page(result, report_file, output.name, wanted.ledger, dataset)
        except BaseException as error:
            error.add_note(f"The release is in {output}; only its report is missing: dpcov report {output}")
            raise
    _show_result(wanted, result, output, page, as_json=as_json)
    if result.resolved == 0:
        raise UnresolvedError(NOTHING_USABLE)


@dataclass(frozen=True)
class _Wanted:
    """A release as asked for."""

    data: list[str] | QueryResult
    budget: dict[str, Any]
    columns: Schema
    method: str
    options: dict[str, Any]
    intercept: bool
    ledger: Ledger | None
    dataset: str | None
    privacy_unit: str | None
    weighting: str

    def unit(self) -> tuple[PrivacyUnit | None, Grouping | None]:
        """Return whose rows are protected together, and how they are read."""
        unit, grouping = read_unit(self.privacy_unit, self.weighting)
        if unit is not None:
            find_method(self.method).check_units()
        return unit, grouping

    def limit(self) -> PrivacyCost:
        """Return what it may cost."""
        return find_method(self.method).limit(self.options, **self.budget)

    def n_columns(self) -> int:
        """Return how many columns there will be, without the constant."""
        grouping = self.unit()[1]
        # Nothing is sorted for this.
        columns: Columns = self.columns
        if grouping is not None and grouping.column is not None:
            columns = with_ids(columns, grouping.column, even=grouping.even)
        return len(without_id(open_source(self.data, columns).encoding).columns)


def _options(given: list[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in given or []:
        name, sign, value = text.partition("=")
        if not sign:
            raise ArgumentError(f"--option takes NAME=VALUE, such as radius=10; got '{text}'.")
        try:
            number = read_number(value)
        except typer.BadParameter as error:
            raise ArgumentError(f"--option {name}: {error}") from None
        whole = number.denominator == 1
        options[name.strip().replace("-", "_")] = int(number) if whole else to_float(number, f"option {name}")
    return options


def _show_plan(wanted: _Wanted, *, as_json: bool) -> None:
    cost = wanted.limit()
    unit, grouping = wanted.unit()
    named = ROW if unit is None else unit.name
    account = None
    if wanted.ledger is not None:
        if wanted.dataset is None:
            raise ArgumentError("--ledger needs --dataset as well: the name that the budget is kept under.")
        account = wanted.ledger.check(wanted.dataset, cost, unit=named)
    source = open_source(wanted.data, wanted.columns, grouping)
    n_columns = len(source.columns) + wanted.intercept
    size = {"n_rows" if unit is None else "n_units": source.n_rows}
    plan = dpcov.plan(n_columns=n_columns, **size, **wanted.budget)
    if as_json:
        print_json(
            {
                "dry_run": True,
                "protected": named,
                "units": source.n_rows,
                "columns": list(source.columns),
                "method": wanted.method,
                "vetted": find_method(wanted.method).vetted,
                "cost": cost_fields(cost),
                "account": None if account is None else account_fields(account),
                "plan": plan.to_dict(),
            }
        )
        return
    show_plan(plan)
    print_text(f"{len(source.columns)} columns: {', '.join(source.columns)}")
    print_text(f"Method: {wanted.method}, {find_method(wanted.method).status}.")
    print_text(guessing_sentence(cost, named))
    print_text(f"It would cost {cost}. No row was used, nothing was spent.")
    weak = weakness(cost, wanted.budget["delta"], source.n_rows, named)
    if weak:
        print_text(f"Warning: {weak}")
    if account is not None:
        print_text(f"'{account.name}' has {account.remaining} left, and {account.remaining - cost} after it.")


def _show_result(wanted: _Wanted, result: dpcov.Release, output: Path, page: Path, *, as_json: bool) -> None:
    account = None
    if wanted.ledger is not None and wanted.dataset is not None:
        account = wanted.ledger.account(wanted.dataset)
    if as_json:
        print_json(
            {
                "release": str(output),
                "report": str(page),
                "protected": ROW if result.unit is None else result.unit.name,
                "units": result.n_units,
                "columns": list(result.columns),
                "missing": wanted.columns.missing,
                "share_of_rows": result.share_of_rows,
                "method": result.method,
                "vetted": find_method(result.method).vetted,
                "private": result.receipt.private,
                "spent": cost_fields(result.receipt.spent),
                "account": None if account is None else account_fields(account),
            }
        )
        return
    named = ROW if result.unit is None else result.unit.name
    print_text(f"Release: {output} ({result.n_units:,} {named}s, {len(result.columns)} columns)")
    if result.share_of_rows:
        print_text(f"Rows:    {result.share_of_rows}")
    print_text(f"Report:  {page}")
    print_text(f"Method:  {result.method}, {find_method(result.method).status}")
    print_text(f"Spent:   {result.receipt.spent}{_as_epsilon(wanted, result)}")
    print_text(guessing_sentence(result.receipt.spent, named))
    reason = not_gaussian_sentence(result.receipt.not_gaussian)
    if reason:
        print_text(reason)
    if account is not None:
        print_text(f"Left:    {account.remaining} of {describe(account.total, account)} for '{account.name}'")
    if not result.receipt.private:
        print_text("NOT PRIVATE: the noise came from a seeded generator.")


def _as_epsilon(wanted: _Wanted, result: dpcov.Release) -> str:
    delta = wanted.budget["delta"]
    if delta is None or delta <= result.receipt.spent.delta:
        return ""
    return f" (epsilon={rounded_up(result.receipt.epsilon(delta)):g} at delta={float(delta):g})"
