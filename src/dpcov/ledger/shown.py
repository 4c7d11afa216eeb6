"""Accounts as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpcov.ledger.accounts import Account
from dpcov.tables import html_table


def accounts_table(path: str, accounts: Sequence[Account]) -> str:
    """Return what each dataset may spend, has spent and has left, as HTML."""
    head = [
        "dataset",
        "protects each",
        "opened with",
        "spent",
        "total rho",
        "spent rho",
        "rho left",
        "delta left",
        "state",
    ]
    lines = [
        [
            account.name,
            account.unit,
            _asked(account),
            f"{float(account.spent.rho / account.total.rho):.1%}" if account.total.rho else "",
            _amount(account.total.rho),
            _amount(account.spent.rho),
            _amount(account.remaining.rho),
            _amount(account.remaining.delta),
            ("closed" if account.closed else "open") + ("" if account.private else ", NOT PRIVATE (seeded)"),
        ]
        for account in accounts
    ]
    return html_table(f"dpcov ledger: {path}", head, lines, [])


def _asked(account: Account) -> str:
    """Return the total as the custodian gave it."""
    if account.asked is None:
        return f"rho {_amount(account.total.rho)}"
    epsilon, delta = account.asked
    return f"epsilon {_amount(epsilon)} at delta {_amount(delta)}"


def _amount(value: Fraction) -> str:
    return f"{float(value):.6g}"
