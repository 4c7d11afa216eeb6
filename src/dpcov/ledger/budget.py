"""A release's budget that a ledger pays for."""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import AbstractContextManager, closing, suppress
from fractions import Fraction
from types import TracebackType
from typing import Self

from dpcov.core import ArgumentError, Budget, BudgetError, Charge, LedgerError, NoAnswerError, PrivacyCost
from dpcov.ledger.accounts import OpenCharge
from dpcov.ledger.book import Ledger
from dpcov.ledger.names import one_line
from dpcov.privacy_unit import ROW


class LedgerBudget(Budget):
    """A release's budget that a ledger pays for: a context that closes it and settles on leaving.

    The first query charges the whole limit in the ledger, and gets its answer only after that is on
    the disk. A release that fails before its first query costs nothing; one that fails later keeps
    the whole charge, unless it ended by answering that there is no answer.
    """

    def __init__(
        self,
        limit: PrivacyCost,
        ledger: Ledger,
        dataset: str,
        *,
        method: str,
        purpose: str,
        private: bool,
        unit: str = ROW,
    ) -> None:
        limit = _without_a_hair(limit, ledger.remaining(dataset))
        super().__init__(limit)
        self._ledger = ledger
        self._dataset = ledger.check(dataset, limit, unit=unit).name
        self._method = method
        self._unit = unit
        self._purpose = one_line(purpose, "purpose")
        self._private = private
        self._paying = threading.Lock()
        self._charged: OpenCharge | None = None
        self._asked = False

    def charge(self, *charges: Charge) -> None:
        """Debit all of `charges`, or raise; before the first debit returns, the ledger has the limit."""
        super().charge(*charges)
        with self._paying:
            if self._charged is None:
                self._asked = True
                self._charged = self._ledger.charge(
                    self._dataset,
                    self.limit,
                    method=self._method,
                    purpose=self._purpose,
                    private=self._private,
                    unit=self._unit,
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closed first: no query may pass between the sum that is settled and the settlement.
        spent = self.close()
        if error is None:
            self._settle(spent)
            return
        self._say_what_was_charged(error)
        if isinstance(error, NoAnswerError):
            # The method ended, with a private answer: there is none.
            self._settle(spent)
        elif self._charged is not None:
            # Nothing is given back, and that is final. If it cannot be written, the charge stays as well.
            with suppress(LedgerError):
                self._charged.settle(self.limit)

    def _settle(self, spent: PrivacyCost) -> None:
        if self._charged is None:
            return
        try:
            self._charged.settle(spent)
        except LedgerError as refused:
            warnings.warn(f"The ledger keeps the whole charge of {self.limit}: {refused}", stacklevel=4)
        except BaseException as interrupt:
            self._say_what_was_charged(interrupt)
            raise

    def _say_what_was_charged(self, error: BaseException) -> None:
        account = f"dataset '{self._dataset}' of {self._ledger.path}"
        if isinstance(error, NoAnswerError):
            error.add_note(f"Charged to {account}: {self.limit - self.remaining}.")
        elif self._charged is not None:
            error.add_note(f"Charged to {account}: {self.limit}. A failed release keeps its charge.")
        elif self._asked and not isinstance(error, BudgetError | LedgerError):
            error.add_note(f"{self.limit} may have been charged to {account}; its history tells.")


def budget_for(
    limit: PrivacyCost,
    *,
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    method: str,
    purpose: str,
    private: bool,
    allow_seeded: bool,
    unit: str = ROW,
) -> AbstractContextManager[Budget]:
    """Return a release's budget, closed on leaving, paid for by `ledger` if there is one.

    The release protects each `unit`, and so must the dataset of the ledger.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import Charge, PrivacyCost
    >>> from dpcov.ledger import Ledger, budget_for
    >>> ledger = Ledger.create("budget.db")
    >>> account = ledger.add_dataset("people", rho=1)
    >>> paying = budget_for(
    ...     PrivacyCost(Fraction(1, 2)), ledger=ledger, dataset="people",
    ...     method="own", purpose="", private=True, allow_seeded=False,
    ... )
    >>> with paying as budget:
    ...     budget.charge(Charge("a query", PrivacyCost(Fraction(1, 4))))
    >>> print(ledger.account("people").spent)
    rho=0.25
    """
    if ledger is None:
        if dataset is not None or purpose:
            raise ArgumentError("dataset and purpose need a ledger to be recorded in; give ledger as well.")
        return closing(Budget(limit))
    if dataset is None:
        raise ArgumentError("ledger needs dataset as well: the name that the budget is kept under.")
    if not private and not allow_seeded:
        raise ArgumentError(
            "rng makes a release that is not private, which a ledger refuses. Leave rng out, "
            "or give allow_seeded=True to have it charged and marked as not private."
        )
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    return LedgerBudget(limit, book, dataset, method=method, purpose=purpose, private=private, unit=unit)


def _without_a_hair(limit: PrivacyCost, left: PrivacyCost) -> PrivacyCost:
    # Ten times the float 0.1 is a hair more than 1: a limit that misses by so little gives way.
    hair = 1 + Fraction(1, 1 << 40)
    if limit.fits_within(PrivacyCost(left.rho * hair, left.delta * hair, left.gaussian)):
        return PrivacyCost(min(limit.rho, left.rho), min(limit.delta, left.delta), limit.gaussian)
    return limit
