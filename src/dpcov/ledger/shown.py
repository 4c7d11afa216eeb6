"""Accounts as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpcov.ledger.accounts import Account
from dpcov.tables import html_table


def accounts_table(path: str, accounts: Sequence[Account]) -> str:
    """Return what each dataset may spend, has spent and has left, as HTML."""
    head = ["dataset", "total rho", "spent rho", "rho left", "delta left", "state"]
    lines = [
        [
            account.name,
            _amount(account.total.rho),
            _amount(account.spent.rho),
            _amount(account.remaining.rho),
            _amount(account.remaining.delta),
            ("closed" if account.closed else "open") + ("" if account.private else ", NOT PRIVATE (seeded)"),
        ]
        for account in accounts
    ]
    return html_table(f"dpcov ledger: {path}", head, lines, [])


def _amount(value: Fraction) -> str:
    return f"{float(value):.6g}"
