"""What the processes of the ledger's crash and race tests do, and what must hold of them.

A process leaves evidence of every query that it was allowed to answer, in a file, after the budget
let it pass and before its noise is drawn. Evidence survives SIGKILL, as the ledger must.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from fractions import Fraction
from functools import partial
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import dpcov
from dpcov.core import (
    Budget,
    BudgetError,
    Charge,
    Clipping,
    Curator,
    Gram,
    LedgerError,
    OSEntropy,
    PrivacyCost,
)
from dpcov.ledger import Ledger, budget, budget_for, file
from dpcov.ledger.accounts import OpenCharge
from dpcov.ledger.budget import LedgerBudget
from dpcov.maps import identity_map
from dpcov.sources import open_source

DATASET = "people"
COST = Fraction(1, 1000)
PATIENCE = 600.0  # seconds until a process that waits for others takes them for lost
ROWS = np.random.default_rng(0).normal(size=(50, 2))


def leave_evidence(folder: Path) -> None:
    """Record every query of this process once its budget let it pass."""
    charge = LedgerBudget.charge

    def recorded(self: LedgerBudget, *charges: Charge) -> None:
        charge(self, *charges)
        _write(folder, charges)

    LedgerBudget.charge = recorded  # type: ignore[method-assign]


def leave_evidence_too_early(folder: Path) -> None:
    """Broken: as if the noise was drawn first and the charge came after it."""
    charge = LedgerBudget.charge

    def recorded(self: LedgerBudget, *charges: Charge) -> None:
        _write(folder, charges)
        charge(self, *charges)

    LedgerBudget.charge = recorded  # type: ignore[method-assign]


def look_before_the_transaction(others: Barrier) -> None:
    """Broken: what is left is looked up in one transaction and charged in another."""

    def charge(self: Ledger, dataset: str, cost: PrivacyCost, *, method: str, **_: object) -> OpenCharge:
        account = self.check(dataset, cost)
        # Every racer has looked before the first one charges, however slow it is.
        others.wait(PATIENCE)
        with self._file.writing() as rows:
            number = self._append(rows, account.name, "charge", cost, method=method)
        return OpenCharge(number, partial(self._settle, number))

    Ledger.charge = charge  # type: ignore[method-assign]


def die_at_line(folder: Path, prepare: Callable[[Path], None], number: int) -> None:
    """Release in half, and be killed on the way from the charge to the settlement.

    Lines of the ledger's budget and of its file, where transactions begin and end, are counted from 0 as
    they run: the process dies before line `number`, or ends well if there are fewer.
    """
    prepare(folder)
    paid = _half_paid(folder)
    watched = {budget.__file__, file.__file__}
    lines = count()

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line" and next(lines) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return watch

    sys.settrace(watch)
    _answer_half(paid)


def release_for_ever(folder: Path, prepare: Callable[[Path], None], start: Barrier) -> None:
    """Release again and again, in whole and in half, until killed."""
    prepare(folder)
    start.wait(PATIENCE)
    while True:
        _release(folder)
        _answer_half(_half_paid(folder))


def release_until_refused(folder: Path, others: Barrier | None, start: Barrier) -> None:
    """Release until the ledger refuses: it is spent, or overspent and said to be damaged.

    Racers that share `others` are broken: they look before the transaction.
    """
    leave_evidence(folder)
    if others is not None:
        look_before_the_transaction(others)
    start.wait(PATIENCE)
    try:
        while True:
            _release(folder)
    except (BudgetError, LedgerError):
        (folder / f"refused-{os.getpid()}").touch()


def evidence(folder: Path) -> Fraction:
    """The sum of all queries that were allowed."""
    lines = [line for path in folder.glob("evidence-*") for line in path.read_text().splitlines()]
    return sum(map(Fraction, lines), Fraction(0))


def check_ledger(folder: Path) -> str:
    """Return what is wrong with the ledger, or nothing. Processes may be running."""
    answered = evidence(folder)
    account = Ledger.open(folder / "budget.db").account(DATASET)
    with closing(sqlite3.connect(folder / "budget.db", timeout=60)) as raw:
        integrity = raw.execute("PRAGMA integrity_check").fetchone()[0]
    if integrity != "ok":
        return str(integrity)
    if account.spent.rho < answered:
        return f"answered {answered}, but the ledger shows {account.spent.rho}"
    if account.spent.rho > account.total.rho:
        return f"spent {account.spent.rho} of {account.total.rho}"
    return ""


def _write(folder: Path, charges: Iterable[Charge]) -> None:
    descriptor = os.open(folder / f"evidence-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, "".join(f"{charge.cost.rho}\n" for charge in charges).encode())
    os.close(descriptor)


def _release(folder: Path) -> None:
    dpcov.release(
        ROWS,
        rho=COST,
        method="gaussian",
        radius=3.0,
        ledger=folder / "budget.db",
        dataset=DATASET,
        force=True,
    )


def _half_paid(folder: Path) -> AbstractContextManager[Budget]:
    return budget_for(
        PrivacyCost(COST),
        ledger=folder / "budget.db",
        dataset=DATASET,
        method="half",
        purpose="",
        private=True,
        allow_seeded=False,
    )


def _answer_half(paid: AbstractContextManager[Budget]) -> None:
    with paid as opened:
        curator = Curator(open_source(ROWS), opened, OSEntropy())
        curator.ask(Gram(Clipping(identity_map(2), 3.0), COST / 2, purpose="half"))
