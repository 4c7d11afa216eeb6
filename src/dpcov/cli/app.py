"""The commands, put together. Each is imported when it is run: ``dpcov --version`` loads none of them."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import dpcov

_COMMANDS = ("release", "ask", "report", "schema", "plan", "methods", "ledger", "compare", "demo")
"""Each has a module of its name, which holds a function or a group of commands of that name."""


class _Commands(TyperGroup):
    """A group that imports a command when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # The names are all that suggestions for a misspelt command need.
        self.commands = dict.fromkeys(_COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  (click calls it so)
        """Return a command, imported now; None if there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        found = getattr(importlib.import_module(f"dpcov.cli.{cmd_name}"), cmd_name)
        if isinstance(found, typer.Typer):
            command = get_command(found)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            single.command(cmd_name)(found)
            command = get_command(single)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="dpcov",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Release the second-moment matrix of a sensitive table once, then ask any linear question.

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
