"""What a ledger shows: accounts and the lines of their history."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from fractions import Fraction

from dpcov.core import ArgumentError, BudgetError, LedgerError, Number, PrivacyCost, resolve_budget
from dpcov.core.budget import as_fraction
from dpcov.privacy_unit import ROW, UNNAMED

NOTHING = PrivacyCost(Fraction(0))


@dataclass(frozen=True)
class Account:
    """One dataset's budget.

    Attributes
    ----------
    name : str
        The dataset, as it was first spelled.
    total : PrivacyCost
        What may be spent in total, in zCDP.
    spent : PrivacyCost
        What was charged and not settled back.
    asked : tuple of Fraction, optional
        Epsilon and delta, if the total was given so.
    closed : bool
        Whether no more charges are taken.
    private : bool
        False when a seeded release was charged: it guarantees nothing.
    user : str
        Who opened the account: the operating system's name for the process's owner.
    time : datetime
        When, in UTC by the machine's clock.
    unit : str
        What all its releases protect: "row", or whose rows are protected together, such as "patient".

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> ledger = dpcov.Ledger.create("budget.db")
    >>> account = ledger.add_dataset("people", rho=1)
    >>> account.name, str(account.total), str(account.spent)
    ('people', 'rho=1', 'rho=0')
    """

    name: str
    total: PrivacyCost
    spent: PrivacyCost
    asked: tuple[Fraction, Fraction] | None
    closed: bool
    private: bool
    user: str
    time: datetime
    unit: str = ROW

    @property
    def remaining(self) -> PrivacyCost:
        """The part of the total that may still be spent; nothing if the account is closed."""
        return NOTHING if self.closed else self.total - self.spent

    def check_unit(self, unit: str) -> None:
        """Raise a `BudgetError` if a release that protects each `unit` cannot be paid from this account."""
        if unit == self.unit:
            return
        here, asked = (f"each {name}" if name != ROW else "each row by itself" for name in (self.unit, unit))
        if self.unit == ROW:
            mend = "leave out privacy_unit, or open a dataset with it"
        else:
            mend = f'give privacy_unit="{self.unit}" ("{UNNAMED}" is the name of ids beside a table)'
        raise BudgetError(
            f"dataset '{self.name}' protects {here}, this release {asked}: what they spend does not add up. "
            f"Nothing was spent; {mend}."
        )


@dataclass(frozen=True)
class Entry:
    """One line of the history. Lines are only ever added.

    Attributes
    ----------
    number : int
        The number of the line; lines are numbered as they are written.
    dataset : str
        The dataset whose account it is.
    kind : str
        ``"charge"``, ``"settlement"`` (a release ended: what it did not spend) or ``"close"``.
    cost : PrivacyCost
        What it adds to what is spent; a settlement's is negative, or nothing.
    settles : int, optional
        The charge that a settlement belongs to.
    private : bool
        False for a seeded release.
    method, purpose, user : str
        The method of the release, what it is for, and who ran it.
    time : datetime
        When it was charged, in UTC by the machine's clock. A settlement has the time of its charge, so
        that how long a release took is not recorded.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> ledger = dpcov.Ledger.create("budget.db")
    >>> account = ledger.add_dataset("people", rho=1)
    >>> rows = np.random.default_rng(0).normal(size=(1_000, 2))
    >>> made = dpcov.release(rows, rho=0.25, ledger=ledger, dataset="people", purpose="spring report")
    >>> [(entry.number, entry.kind, entry.purpose, str(entry.cost)) for entry in ledger.history()]
    [(1, 'charge', 'spring report', 'rho=0.25'), (2, 'settlement', 'spring report', 'rho=0')]
    """

    number: int
    dataset: str
    kind: str
    cost: PrivacyCost
    settles: int | None
    private: bool
    method: str
    purpose: str
    user: str
    time: datetime


class OpenCharge:
    """A charge that is not settled yet, in the hands of what was charged.

    Parameters
    ----------
    number : int
        Its line in the history.
    settle : callable
        Writes the settlement, given what was spent.
    """

    def __init__(self, number: int, settle: Callable[[PrivacyCost], None]) -> None:
        self.number = number
        self._settle = settle
        self._process = os.getpid()

    def settle(self, spent: PrivacyCost) -> None:
        """Leave `spent` of the charge, and give back the rest; once.

        `spent` must bound all that noise was ever drawn for.
        """
        if os.getpid() != self._process:
            raise LedgerError(
                f"charge number {self.number} belongs to the process that made it, which may still spend it."
            )
        self._settle(spent)


def rounded(cost: PrivacyCost, rounding: str) -> str:
    """Return `cost` in six digits, rounded as the decimal module calls it.

    Examples
    --------
    >>> from decimal import ROUND_CEILING
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.ledger.accounts import rounded
    >>> rounded(PrivacyCost(Fraction(1, 3)), ROUND_CEILING)
    'rho=0.333334'
    """
    rho, delta = (_six_digits(part, rounding) for part in (cost.rho, cost.delta))
    return f"rho={rho}" + (f", delta={delta}" if cost.delta else "")


def _six_digits(amount: Fraction, rounding: str) -> str:
    nearest = f"{float(amount):.6g}"
    # A float such as 0.1 is a hair off the decimal it was written as: that needs no rounding.
    if abs(Fraction(nearest) - amount) <= amount / (1 << 50):
        return nearest
    digits = Context(prec=6, rounding=rounding)
    return f"{float(digits.divide(Decimal(amount.numerator), Decimal(amount.denominator))):.6g}"


def opening_total(
    *,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    delta_share: Number = 0,
) -> PrivacyCost:
    """Return the total of an account opened with these arguments, as `Ledger.add_dataset` takes them."""
    kept = as_fraction(delta_share, "delta_share")
    if not 0 <= kept < 1:
        raise ArgumentError(f"delta_share must be at least 0 and below 1, got {float(kept):g}.")
    if kept and epsilon is None:
        raise ArgumentError("delta_share goes with epsilon; beside rho, all of delta is for methods.")
    gaussian = rho is None and not kept
    return resolve_budget(
        rho=rho, mu=mu, epsilon=epsilon, delta=delta, approximate_share=kept, gaussian=gaussian
    )
