"""``dpcov ask``: linear questions to a release. They cost nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dpcov
from dpcov.artefact import to_plain
from dpcov.cli.answers import print_answers
from dpcov.cli.arguments import AsJson, read_names, read_number, read_whole, to_float
from dpcov.cli.failures import reported
from dpcov.cli.output import cost_fields, print_csv, print_json, print_text
from dpcov.core import ArgumentError
from dpcov.privacy_unit import ROW
from dpcov.report.words import (
    USUAL_DELTAS,
    clipped_rows,
    epsilon_at,
    error_covers,
    guarantee,
    rounded_up,
)
from dpcov.sources.encoding import COMPLETE, PAIRWISE
from dpcov.tables import percent


class _Questions(TyperGroup):
    """Commands that follow a release; ``dpcov ask regress --help`` explains one without a release."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of a release before a question whose help is asked for."""
        if args and args[0] in self.commands and not Path(args[0]).exists():
            if not {"--help", "-h"} & set(args):
                ctx.fail(f"the release comes first: dpcov ask flights.dpcov {args[0]} ...")
            args = ["OUT", *args]
        return super().parse_args(ctx, args)


ask = typer.Typer(cls=_Questions, add_completion=False, no_args_is_help=True, rich_markup_mode="markdown")

Columns = Annotated[list[str] | None, typer.Option(metavar="A,B,C", help="Which columns; all by default.")]
Level = Annotated[float, typer.Option(help="The confidence level of the intervals.")]
Sampling = Annotated[bool, typer.Option("--sampling", help="Let intervals cover sampling error as well.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")]


@ask.callback()
def choose(
    context: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="OUT", help="The release, such as flights.dpcov.")],
) -> None:
    """Ask a release a linear question; asking costs nothing, however often.

    Every number comes with an interval that holds the answer of the raw rows with probability --level.

    ```text
    dpcov ask flights.dpcov regress arr_delay --on dep_delay,distance
    dpcov ask flights.dpcov correlation --columns dep_delay,arr_delay --csv
    ```
    """
    context.obj = release


@ask.command()
@reported
def regress(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="The target, or a formula: 'wage ~ educ + age'."),
    ],
    *,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,C", help="The predictors, if there is no formula."),
    ] = None,
    intercept: Annotated[bool, typer.Option(help="Fit an intercept.")] = True,
    ridge: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="Penalty on squared standardised coefficients; auto picks the one that suits the noise. "
            "By default there is none, or that of auto if slopes would follow the noise.",
        ),
    ] = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Regress one column on others, by least squares.

    ```text
    dpcov ask flights.dpcov regress arr_delay --on dep_delay,distance
    dpcov ask flights.dpcov regress 'arr_delay ~ dep_delay + C(origin)'
    ```
    """
    found = _load(context, as_json=as_json, as_csv=as_csv).regress(
        target,
        read_names(on) if on else None,
        intercept=intercept,
        ridge=None if ridge is None else _read_ridge(ridge),
        sampling=sampling,
    )
    if not (as_json or as_csv):
        print_text(str(found.summary(level)))
        return
    answers = {
        "coefficients": found.coefficients,
        "residual_variance": found.residual_variance,
        "r_squared": found.r_squared,
    }
    tested = (
        {}
        if found.untested
        else dict(zip(found.coefficients.labels[0], found.coefficients.p_values().tolist(), strict=True))
    )
    more = {
        "p_values": tested,
        "sampling": sampling,
        "adjusted_r_squared": found.adjusted_r_squared,
        "complete_rows": found.complete_rows,
        "ridge": found.ridge,
    }
    print_answers(answers, level, as_json=as_json, as_csv=as_csv, more=to_plain(more))


@ask.command()
@reported
def pca(
    context: typer.Context,
    *,
    components: Annotated[
        int,
        typer.Option(
            parser=read_whole, metavar="COUNT", help="How many components to show at most, largest first."
        ),
    ] = 5,
    columns: Columns = None,
    standardize: Annotated[
        bool, typer.Option(help="Bring each column to a variance of 1 first, whatever its unit.")
    ] = True,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the directions of largest variance.

    ```text
    dpcov ask flights.dpcov pca --components 2
    ```
    """
    release = _load(context, as_json=as_json, as_csv=as_csv)
    if components < 1:
        raise ArgumentError(f"--components must be at least 1, got {components}.")
    chosen = _chosen(columns)
    count = min(components, len(release.columns if chosen is None else chosen))
    found = release.pca(count, chosen, standardize=standardize, sampling=sampling)
    answers = {
        "variances": found.variances,
        "explained": found.explained,
        "directions": found.directions,
        "loadings": found.loadings,
    }
    print_answers(answers, level, as_json=as_json, as_csv=as_csv)


@ask.command()
@reported
def correlation(
    context: typer.Context,
    *,
    columns: Columns = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the correlation of each pair of columns.

    ```text
    dpcov ask flights.dpcov correlation --columns dep_delay,arr_delay
    ```
    """
    answer = _load(context, as_json=as_json, as_csv=as_csv).correlation(_chosen(columns), sampling=sampling)
    print_answers({"correlation": answer}, level, as_json=as_json, as_csv=as_csv)


@ask.command()
@reported
def covariance(
    context: typer.Context,
    *,
    columns: Columns = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show variances and covariances.

    ```text
    dpcov ask flights.dpcov covariance --columns dep_delay,arr_delay
    ```
    """
    answer = _load(context, as_json=as_json, as_csv=as_csv).covariance(_chosen(columns), sampling=sampling)
    print_answers({"covariance": answer}, level, as_json=as_json, as_csv=as_csv)


@ask.command("partial-correlation")
@reported
def partial_correlation(
    context: typer.Context,
    *,
    columns: Columns = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the correlation of each pair of columns, given all the others.

    ```text
    dpcov ask flights.dpcov partial-correlation --columns dep_delay,arr_delay,distance
    ```
    """
    release = _load(context, as_json=as_json, as_csv=as_csv)
    answer = release.partial_correlation(_chosen(columns), sampling=sampling)
    print_answers({"partial_correlation": answer}, level, as_json=as_json, as_csv=as_csv)


@ask.command()
@reported
def describe(
    context: typer.Context,
    *,
    columns: Columns = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the mean and standard deviation of each column, and how many rows are complete.

    ```text
    dpcov ask flights.dpcov describe
    ```
    """
    found = _load(context, as_json=as_json, as_csv=as_csv).describe(_chosen(columns), sampling=sampling)
    answers = {"mean": found.mean, "std": found.std, found.rows.name.replace(" ", "_"): found.rows}
    print_answers(answers, level, as_json=as_json, as_csv=as_csv)


@ask.command()
@reported
def mean(
    context: typer.Context,
    *,
    columns: Columns = None,
    level: Level = 0.95,
    sampling: Sampling = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show means.

    ```text
    dpcov ask flights.dpcov mean --level 0.99 --json
    ```
    """
    answer = _load(context, as_json=as_json, as_csv=as_csv).mean(_chosen(columns), sampling=sampling)
    print_answers({"mean": answer}, level, as_json=as_json, as_csv=as_csv)


@ask.command()
@reported
def summary(context: typer.Context, *, as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """Describe the release: columns, rows, guarantee, cost, error, and what noise hides.

    ```text
    dpcov ask flights.dpcov summary
    ```
    """
    release = _load(context, as_json=as_json, as_csv=as_csv)
    facts = _facts(release)
    if as_json:
        print_json(facts)
    elif as_csv:
        names = ("column", "mean", "mean lower", "mean upper", "sd", "sd lower", "sd upper")
        print_csv(names, _column_lines(release))
    else:
        _print_summary(release, facts)


def _facts(release: dpcov.Release) -> dict[str, Any]:
    receipt, delta = release.receipt, release.provenance.delta or USUAL_DELTAS[1]
    return {
        "protected": ROW if release.unit is None else release.unit.name,
        "units": release.n_units,
        "columns": list(release.columns),
        "method": release.method,
        "private": receipt.private,
        "spent": cost_fields(receipt.spent),
        "epsilon": {
            f"{float(delta):g}": epsilon_at(receipt.spent, delta)
            for delta in USUAL_DELTAS
            if delta > receipt.spent.delta
        },
        "guarantee": list(guarantee(receipt, delta, release.n_units, release.unit)),
        "predicted_error": release.predicted_error,
        "clipped": clipped_rows(release.diagnostics, ROW if release.unit is None else release.unit.name),
        "missing": PAIRWISE if release.pairwise else COMPLETE,
        "share_of_rows": release.share_of_rows,
        "unresolved": [f"{found.describe()}." for found in release.unresolved],
    }


def _print_summary(release: dpcov.Release, facts: dict[str, Any]) -> None:
    named, complete = ROW if release.unit is None else release.unit.name, facts["share_of_rows"]
    told = f"{release.n_units:,}" + (f", {complete}" if complete else "")
    print_text(f"{f'{named.capitalize()}s:':<10} {told}")
    print_text(f"Columns:   {len(release.columns)}: {', '.join(release.columns)}")
    print_text(f"Method:    {release.method}")
    print_text(f"Spent:     {release.receipt.spent}")
    for delta, epsilon in facts["epsilon"].items():
        print_text(f"           epsilon={rounded_up(epsilon):g} at delta={delta}")
    if facts["predicted_error"] is not None:
        error, covers = percent(facts["predicted_error"]), error_covers(release.method)
        print_text(f"Error:     up to {error} of any variance reported as resolved ({covers}, 95%)")
    if facts["clipped"]:
        print_text(f"Clipped:   {facts['clipped']}")
    for i, sentence in enumerate(facts["unresolved"]):
        print_text(f"{'' if i else 'Hidden:':<10} {sentence}")
    if not facts["unresolved"]:
        print_text(f"Hidden:    {'not known' if release.resolved is None else 'nothing'}")
    print_text("")
    for sentence in facts["guarantee"]:
        print_text(sentence)


def _column_lines(release: dpcov.Release) -> list[list[str]]:
    found, variances = release.mean(), release.variance()
    means, spreads = found.interval(), variances.interval()
    return [
        [name, *(repr(float(v)) for v in (found.values[i], means.lower[i], means.upper[i])),
         *(repr(float(v) ** 0.5) for v in (variances.values[i], spreads.lower[i], spreads.upper[i]))]
        for i, name in enumerate(release.columns)
    ]  # fmt: skip


def _load(context: typer.Context, *, as_json: bool, as_csv: bool) -> dpcov.Release:
    if as_json and as_csv:
        raise ArgumentError("give --json or --csv, not both.")
    return dpcov.load(context.obj)


def _read_ridge(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return to_float(read_number(text), "--ridge")
    except typer.BadParameter:
        raise ArgumentError(f"--ridge must be a number or auto, got '{text}'.") from None


def _chosen(columns: list[str] | None) -> list[str] | None:
    return read_names(columns) if columns else None
