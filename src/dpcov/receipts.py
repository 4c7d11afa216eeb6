"""A receipt in words: what a release spent its budget on, by purpose."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcov.core import PrivacyCost, Receipt
from dpcov.tables import html_table

_DIRECTIONS = "finding directions and scales"
_LONG_ROWS = "measuring long rows"
_PHASES = {
    "directions of the tail": _LONG_ROWS,
    "histogram": _LONG_ROWS,
    "rows beyond": _LONG_ROWS,
    "directions": _DIRECTIONS,
    "norms": _DIRECTIONS,
    "scales": _DIRECTIONS,
    "centres": _DIRECTIONS,
    "whitening": _DIRECTIONS,
}
"""What queries of the default method are for, by how their purpose begins; others stand for themselves."""


@dataclass(frozen=True)
class Spending:
    """What was spent on one purpose.

    Attributes
    ----------
    purpose : str
        In plain words.
    queries : int
        How many private queries it took.
    cost : PrivacyCost
        What they cost together.
    share : float
        Of everything that was spent.
    """

    purpose: str
    queries: int
    cost: PrivacyCost
    share: float


def spendings(receipt: Receipt) -> tuple[Spending, ...]:
    """Return what was spent by purpose, the first query of each deciding the order.

    Examples
    --------
    >>> from dpcov.core import Charge, PrivacyCost, Receipt
    >>> from dpcov.receipts import spendings
    >>> charges = [("norms of the rows", 1), ("whitening", 2), ("the released matrix", 7)]
    >>> paid = tuple(Charge(purpose, PrivacyCost(cost)) for purpose, cost in charges)
    >>> for one in spendings(Receipt(PrivacyCost(10), paid, private=True)):
    ...     print(f"{one.purpose}: {one.queries}, {one.share:.0%}")
    finding directions and scales: 2, 30%
    the released matrix: 1, 70%
    """
    groups: dict[str, list[PrivacyCost]] = {}
    for charge in receipt.charges:
        groups.setdefault(_in_words(charge.purpose), []).append(charge.cost)
    spent = receipt.spent.rho or Fraction(1)
    found = []
    for purpose, costs in groups.items():
        cost = sum(costs, PrivacyCost(Fraction(0)))
        found.append(Spending(purpose, len(costs), cost, float(cost.rho / spent)))
    return tuple(found)


def _in_words(purpose: str) -> str:
    return next((words for start, words in _PHASES.items() if purpose.startswith(start)), purpose)


def receipt_table(receipt: Receipt) -> str:
    """Return a receipt as a table for notebooks."""
    lines = [[one.purpose, str(one.queries), f"{one.share:.1%}", str(one.cost)] for one in spendings(receipt)]
    notes = [] if receipt.private else ["NOT PRIVATE: the noise came from a seeded generator"]
    title = f"spent {receipt.spent} of {receipt.limit}"
    return html_table(title, ["purpose", "queries", "share", "cost"], lines, notes)
