"""``dpcov report``: write the page about a release again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpcov
from dpcov._extras import require
from dpcov.cli.arguments import AsJson
from dpcov.cli.failures import FileError, reported
from dpcov.cli.files import OutputFile
from dpcov.cli.output import print_json, print_text
from dpcov.core import ArgumentError
from dpcov.ledger import Account, Entry, Ledger
from dpcov.report import write_report

_BYTES_BESIDES = 1 << 16
_BYTES_A_COLUMN = 700
_BYTES_A_PAIR = 12


@reported
def report(
    release: Annotated[Path, typer.Argument(metavar="OUT", help="The release, such as flights.dpcov.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PAGE", help="The page; by default beside the release."),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Show the budget and history of this ledger.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset in the ledger.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a release again: one HTML page that needs no network.

    An existing page is replaced. The same release and ledger give the same page.

    ```text
    dpcov report flights.dpcov --ledger budget.db --dataset flights
    ```
    """
    if (ledger is None) != (dataset is None):
        raise ArgumentError("--ledger and --dataset go together: give both, or neither.")
    found = dpcov.load(release)
    page = page_of(release, output)
    file = page_file(page, len(found.columns), overwrite=True)
    try:
        write_page(found, file, release.name, None if ledger is None else Ledger.open(ledger), dataset)
    finally:
        file.discard()
    if as_json:
        print_json({"release": str(release), "report": str(page)})
    else:
        print_text(f"Report: {page}")


def page_of(release: Path, given: Path | None = None) -> Path:
    """Return where the page of a release goes: beside it, unless said otherwise."""
    page = release.with_suffix(".html") if given is None else given
    if page == release:
        raise FileError(f"{page} is the release itself; give the page another name.")
    return page


def page_file(page: Path, n_columns: int, *, overwrite: bool) -> OutputFile:
    """Return the page as a file to be written later; its place and the package it needs are tried now."""
    require("jinja2", "report")
    room = _BYTES_BESIDES + _BYTES_A_COLUMN * n_columns + _BYTES_A_PAIR * n_columns**2
    return OutputFile(page, room=room, overwrite=overwrite)


def write_page(
    release: dpcov.Release, file: OutputFile, name: str, ledger: Ledger | None, dataset: str | None
) -> None:
    """Write the page, with the ledger's budget and history if there is a ledger."""
    account: Account | None = None
    history: tuple[Entry, ...] = ()
    if ledger is not None and dataset is not None:
        account, history = ledger.account(dataset), ledger.history(dataset)
    file.write(lambda path: write_report(release, path, name=name, account=account, history=history))
