"""The ledger: what may still be learned about each dataset, kept across releases.

A ledger is one file. It holds every dataset's total budget and every charge against it. A
release charges all that it may spend, in one transaction, before any noise is drawn; when it ends
it settles what it did not spend. A release that is killed keeps its whole charge. Why two
processes never overspend and a crash never refunds: ``docs/ledger.md``.
"""

from dpcov.ledger.accounts import Account, Entry
from dpcov.ledger.book import Ledger
from dpcov.ledger.budget import budget_for

__all__ = ["Account", "Entry", "Ledger", "budget_for"]
