"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import dpcov
from dpcov.cli.ask import ask
from dpcov.cli.compare import compare
from dpcov.cli.demo import demo
from dpcov.cli.ledger import ledger
from dpcov.cli.methods import methods
from dpcov.cli.plan import plan
from dpcov.cli.release import release
from dpcov.cli.report import report

app = typer.Typer(
    name="dpcov",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(release)
app.add_typer(ask, name="ask")
app.command()(report)
app.command()(plan)
app.command()(methods)
app.add_typer(ledger, name="ledger")
app.command()(compare)
app.command()(demo)


def _version(asked: bool) -> None:  # noqa: FBT001  (typer calls it so)
    if asked:
        typer.echo(f"dpcov {dpcov.__version__}")
        raise typer.Exit


@app.callback()
def describe(
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Release the second-moment matrix of a sensitive table once, ask any linear question.

    A custodian opens an account that says how much may ever be learned about a dataset, and releases:

    ```text
    dpcov ledger create budget.db --dataset flights --epsilon 3 --delta 1e-6
    dpcov release f.parquet --rho 0.02 --ledger budget.db --dataset flights -o f.dpcov
    ```

    Whoever gets the release reads its report, f.html, and asks:

    ```text
    dpcov ask f.dpcov regress arr_delay --on dep_delay,distance
    ```

    Every command takes --json and explains itself with --help. Exit codes:

    ```text
      0  done                            5  a file cannot be read or written
      1  a bug in dpcov                  6  there is no answer: noise hides it
      2  a wrong argument                7  a package is missing
      3  not enough budget             130  interrupted
      4  the ledger cannot be used     141  the output was cut off, as by head
    ```
    """
