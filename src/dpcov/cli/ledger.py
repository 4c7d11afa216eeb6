"""``dpcov ledger``: make, show and close the budgets that releases are paid from."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcov.cli.arguments import AsJson, Delta, Epsilon, Mu, Rho, read_number
from dpcov.cli.failures import reported
from dpcov.cli.output import amount, cost_fields, print_json, print_table, print_text
from dpcov.core import ArgumentError, PrivacyCost
from dpcov.guessing import greatest_guess, guessing_sentence, percent
from dpcov.ledger import Account, Entry, Ledger
from dpcov.ledger.accounts import opening_total
from dpcov.ledger.names import unit_name
from dpcov.report.words import rounded_up

ledger = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Create, show and close the budgets that pay for releases.

    A ledger is one file. It holds each dataset's total budget, which never changes, and every charge against
    it. A release charges it before any noise is drawn, and is refused if too little is left.

    ```text
    dpcov ledger create budget.db --dataset flights --epsilon 3 --delta 1e-6
    dpcov ledger show budget.db
    ```
    """,
)

_GUESSES = (
    "Guesses: how often someone who knows every other row (or person, if that is protected), and two "
    "candidates for the last one, picks the right candidate at most. Now: after all releases so far. In the "
    "end: once all is spent. A coin gets 50%."
)

File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file, such as budget.db.")]
Dataset = Annotated[str, typer.Option(help="The dataset's name.")]
AnyDataset = Annotated[str | None, typer.Option(help="Only this dataset.")]


@ledger.command()
@reported
def create(
    path: File,
    *,
    dataset: Dataset,
    rho: Rho = None,
    mu: Mu = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    delta_share: Annotated[
        Fraction,
        typer.Option(
            parser=read_number,
            metavar="SHARE",
            show_default=False,
            help="With epsilon: the share of delta kept for methods that need one of their own, such as 0.5; "
            "none by default.",
        ),
    ] = Fraction(0),
    privacy_unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that says whose a row is, such as patient. Releases must protect the same unit.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open an account for a dataset. Creates the file if it does not exist.

    The total can never be raised: it is the promise made to the people in the data. Most methods need no
    delta of their own; for those that do, keep a share of it with --delta-share, or give --rho and --delta.

    ```text
    dpcov ledger create budget.db --dataset flights --epsilon 3 --delta 1e-6
    ```
    """
    opening_total(rho=rho, mu=mu, epsilon=epsilon, delta=delta, delta_share=delta_share)
    unit_name(privacy_unit)
    if not dataset.strip():
        raise ArgumentError("dataset must have a name.")
    book = Ledger.open(path) if path.exists() else Ledger.create(path)
    account = book.add_dataset(
        dataset, rho=rho, mu=mu, epsilon=epsilon, delta=delta, delta_share=delta_share,
        privacy_unit=privacy_unit,
    )  # fmt: skip
    if as_json:
        print_json({"ledger": str(path), **account_fields(account)})
    else:
        print_text(
            f"{path}: '{account.name}' may spend {describe(account.total, account)} in total, "
            f"for each {account.unit}."
        )
        print_text(guessing_sentence(account.total, account.unit))


@ledger.command()
@reported
def show(path: File, *, dataset: AnyDataset = None, as_json: AsJson = False) -> None:
    """Show what each dataset may spend, has spent, and has left.

    ```text
    dpcov ledger show budget.db
    ```
    """
    book = Ledger.open(path)
    accounts = book.accounts() if dataset is None else (book.account(dataset),)
    if as_json:
        print_json({"ledger": str(path), "datasets": [account_fields(account) for account in accounts]})
        return
    rows = [
        (
            account.name,
            account.unit,
            percent(greatest_guess(account.spent)),
            percent(greatest_guess(account.total)),
            amount(account.total.rho),
            amount(account.spent.rho),
            amount(account.remaining.rho),
            amount(account.remaining.delta),
            spent_epsilon(account),
            _state(account),
        )
        for account in accounts
    ]
    print_text(_GUESSES)
    header = (
        "dataset",
        "protects each",
        "guessed now",
        "in the end",
        "total rho",
        "spent rho",
        "rho left",
        "delta left",
        "spent means",
        "state",
    )
    print_table(str(path), header, rows)


@ledger.command()
@reported
def history(path: File, *, dataset: AnyDataset = None, as_json: AsJson = False) -> None:
    """Show every line: when, who, how much, by which method, what for.

    ```text
    dpcov ledger history budget.db --dataset flights
    ```
    """
    entries = Ledger.open(path).history(dataset)
    if as_json:
        print_json({"ledger": str(path), "history": [entry_fields(entry) for entry in entries]})
        return
    rows = [
        (
            str(entry.number),
            f"{entry.time:%Y-%m-%d %H:%M:%S}",
            entry.user,
            entry.dataset,
            _kind(entry),
            amount(entry.cost.rho),
            amount(entry.cost.delta),
            entry.method,
            entry.purpose,
        )
        for entry in entries
    ]
    header = ("line", "time (UTC)", "user", "dataset", "kind", "rho", "delta", "method", "purpose")
    print_table(str(path), header, rows)


@ledger.command()
@reported
def close(
    path: File,
    *,
    dataset: Dataset,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Close a dataset for good: it accepts no more charges.

    ```text
    dpcov ledger close budget.db --dataset flights --yes
    ```
    """
    book = Ledger.open(path)
    account = book.account(dataset)
    if not yes and not sys.stdin.isatty():
        raise ArgumentError("closing cannot be undone; give --yes to say that you mean it.")
    if not yes and not typer.confirm(f"Close '{account.name}' for ever?", err=True):
        print_text("Nothing was changed.")
        return
    account = book.close_dataset(dataset)
    if as_json:
        print_json({"ledger": str(path), **account_fields(account)})
    else:
        print_text(f"{path}: '{account.name}' is closed; {describe(account.spent, account)} was spent.")


def account_fields(account: Account) -> dict[str, Any]:
    """Return an account for JSON."""
    asked = None
    if account.asked is not None:
        asked = {"epsilon": float(account.asked[0]), "delta": float(account.asked[1])}
    return {
        "dataset": account.name,
        "protected": account.unit,
        "total": cost_fields(account.total),
        "asked": asked,
        "spent": cost_fields(account.spent),
        "left": cost_fields(account.remaining),
        "closed": account.closed,
        "private": account.private,
        "created": account.time.isoformat(),
        "user": account.user,
    }


def entry_fields(entry: Entry) -> dict[str, Any]:
    """Return a line of the history for JSON."""
    return {
        "line": entry.number,
        "time": entry.time.isoformat(),
        "user": entry.user,
        "dataset": entry.dataset,
        "kind": entry.kind,
        "settles": entry.settles,
        "cost": cost_fields(entry.cost),
        "private": entry.private,
        "method": entry.method,
        "purpose": entry.purpose,
    }


def describe(cost: PrivacyCost, account: Account) -> str:
    """Return a cost in words, with the epsilon that it means if the account was asked for in epsilon."""
    if account.asked is None or cost.delta >= account.asked[1]:
        return str(cost)
    delta = account.asked[1]
    return f"{cost} (epsilon={rounded_up(cost.epsilon(delta)):g} at delta={float(delta):g})"


def spent_epsilon(account: Account) -> str:
    """Return what was spent as epsilon, at the delta that was asked for."""
    if account.asked is None or account.spent.delta >= account.asked[1]:
        return "-"
    delta = account.asked[1]
    return f"epsilon {rounded_up(account.spent.epsilon(delta)):g} at delta {float(delta):g}"


def _state(account: Account) -> str:
    state = "closed" if account.closed else "open"
    return state if account.private else f"{state}, NOT PRIVATE (seeded)"


def _kind(entry: Entry) -> str:
    kind = entry.kind if entry.settles is None else f"settles line {entry.settles}"
    return kind if entry.private else f"{kind}, NOT PRIVATE"
