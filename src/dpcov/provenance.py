"""Where a release comes from, as far as its custodian said: no word of it depends on rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction


@dataclass(frozen=True)
class Provenance:
    """When a release was made, of what, what for, and with which delta in mind.

    Attributes
    ----------
    date : str
        The day in UTC, such as ``"2026-03-01"``; empty if it is not known.
    dataset : str
        The name that a ledger keeps the table's budget under, if there was one.
    purpose : str
        What the release is for, if that was said.
    delta : Fraction, optional
        The delta that the budget was given with.

    Examples
    --------
    >>> from dpcov.provenance import Provenance
    >>> Provenance(dataset="flights", purpose="delays").title
    'flights: delays'
    """

    date: str = ""
    dataset: str = ""
    purpose: str = ""
    delta: Fraction | None = None

    @property
    def title(self) -> str:
        """Dataset and purpose, as far as they are known."""
        return ": ".join(filter(None, [self.dataset, self.purpose]))


def today() -> str:
    """Return the day in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"
