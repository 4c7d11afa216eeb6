"""The ledger itself: accounts, charges, settlements, each in one transaction."""

from __future__ import annotations

import getpass
import os
import shlex
import sqlite3
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError, BudgetError, LedgerError, Number, PrivacyCost
from dpcov.core.budget import as_fraction
from dpcov.ledger.accounts import NOTHING, Account, Entry, OpenCharge, opening_total, rounded
from dpcov.ledger.file import LedgerFile
from dpcov.ledger.names import dataset_key, one_line, unit_name
from dpcov.ledger.shown import accounts_table
from dpcov.privacy_unit import ROW

# The last columns of a dataset in formats that did not have them: not Gaussian, and for rows.
_BEFORE: tuple[Any, ...] = (0, ROW)
_FIRST_COLUMNS = 8


class Ledger:
    """A file of budgets and charges. Make it with `create`, use it with `open`.

    Notes
    -----
    *Formal guarantee.* At any time, for every dataset, the costs of all queries answered by releases that
    named this ledger and dataset add up to at most what the ledger shows as spent, and that is at most the
    total. So everything released is delta-approximate rho-zCDP for the total, for tables that differ in one
    row, or in all rows of one unit if the dataset was opened with a `privacy_unit` (``docs/ledger.md``).

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> ledger = dpcov.Ledger.create("budget.db")
    >>> account = ledger.add_dataset("people", rho=1)
    >>> rows = np.random.default_rng(0).normal(size=(1_000, 2))
    >>> made = dpcov.release(rows, rho=0.75, ledger=ledger, dataset="people")
    >>> print(ledger.remaining("people"))
    rho=0.25
    >>> dpcov.release(rows, rho=0.5, ledger=ledger, dataset="people")
    Traceback (most recent call last):
        ...
    dpcov.core.errors.BudgetError: dataset 'people' has rho=0.25 left of rho=1; this needs rho=0.5. ...
    """

    def __init__(self, file: LedgerFile) -> None:
        if not isinstance(file, LedgerFile):
            raise ArgumentError(
                f"use Ledger.open({str(file)!r}) for a ledger that exists, Ledger.create for a new one."
            )
        self._file = file

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Ledger:
        """Make an empty ledger; the file must not exist."""
        file = LedgerFile(Path(path))
        file.create()
        return cls(file)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Return the ledger at `path`, checked for damage."""
        file = LedgerFile(Path(path))
        with file.reading():
            return cls(file)

    def __repr__(self) -> str:
        return f"<dpcov ledger: {self.path}>"

    def _repr_html_(self) -> str:
        return accounts_table(str(self.path), self.accounts())

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._file.path

    def add_dataset(
        self,
        name: str,
        *,
        rho: Number | None = None,
        mu: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        delta_share: Number = 0,
        privacy_unit: str | None = None,
    ) -> Account:
        """Open an account: `epsilon` with `delta`, or `mu`, or `rho` (and `delta` for methods that need one).

        With `epsilon` or `mu` it is for methods whose noise is all Gaussian, as the default's is: they get
        the most from an epsilon. With `rho`, or with a `delta_share`, it is for all methods. `delta_share` is
        the share of `delta` kept for methods that need one of their own, such as "unbounded"; the rest turns
        `epsilon` into rho. With a `privacy_unit`, such as "patient", the total is for all rows of each
        together: releases must then name the same unit, and those that protect single rows are refused.

        The total can never be changed: raising it later would break the promise made to the people
        in the dataset.
        """
        total = opening_total(rho=rho, mu=mu, epsilon=epsilon, delta=delta, delta_share=delta_share)
        asked: tuple[str | None, str | None] = (None, None)
        if epsilon is not None and delta is not None:
            asked = (str(as_fraction(epsilon, "epsilon")), str(as_fraction(delta, "delta")))
        key, name = dataset_key(name), one_line(name, "dataset")
        values = (
            key, name, str(total.rho), str(total.delta), *asked, _user(), _now(), int(total.gaussian),
            unit_name(privacy_unit),
        )  # fmt: skip
        with self._file.writing() as rows:
            if rows.execute("SELECT 1 FROM dataset WHERE key = ?", (key,)).fetchone():
                raise LedgerError(f"{self.path} already has a dataset '{name}'; its total cannot be changed.")
            rows.execute("INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        return self.account(name)

    def accounts(self) -> tuple[Account, ...]:
        """Return the budget of every dataset, in the order of their names."""
        with self._file.reading() as rows:
            keys = [key for (key,) in rows.execute("SELECT key FROM dataset ORDER BY key")]
            return tuple(self._account(rows, key) for key in keys)

    def account(self, dataset: str) -> Account:
        """Return the budget of one dataset and what was spent of it."""
        with self._file.reading() as rows:
            return self._account(rows, dataset)

    def remaining(self, dataset: str) -> PrivacyCost:
        """Return what may still be spent on a dataset."""
        return self.account(dataset).remaining

    def history(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """Return every line in the order of writing, of one dataset or of all."""
        with self._file.reading() as rows:
            if dataset is not None:
                return self._entries(rows, self._account(rows, dataset).name)
            names = [name for (name,) in rows.execute("SELECT name FROM dataset")]
            entries = [entry for name in names for entry in self._entries(rows, name)]
            return tuple(sorted(entries, key=lambda entry: entry.number))

    def close_dataset(self, dataset: str) -> Account:
        """Take no more charges for a dataset. This cannot be undone."""
        with self._file.writing() as rows:
            account = self._account(rows, dataset)
            if not account.closed:
                self._append(rows, account.name, "close", NOTHING)
        return self.account(dataset)

    def check(self, dataset: str, cost: PrivacyCost, *, unit: str = ROW) -> Account:
        """Raise what `charge` would raise, and charge nothing."""
        with self._file.reading() as rows:
            return self._affordable(rows, dataset, cost, unit)

    def charge(
        self,
        dataset: str,
        cost: PrivacyCost,
        *,
        method: str,
        purpose: str = "",
        private: bool = True,
        unit: str = ROW,
    ) -> OpenCharge:
        """Charge `cost` for a release that protects each `unit`, or raise and charge nothing.

        Returns
        -------
        OpenCharge
            Once the line is on the disk. Who holds it, and nobody else, can settle the charge.
        """
        with self._file.writing() as rows:
            account = self._affordable(rows, dataset, cost, unit)
            number = self._append(
                rows, account.name, "charge", cost, method=method, purpose=purpose, private=private
            )
        return OpenCharge(number, partial(self._settle, number))

    def _settle(self, number: int, spent: PrivacyCost) -> None:
        """Write the settlement of a charge. The file takes one for each charge."""
        with self._file.writing() as rows:
            *line, rho, delta, gaussian = rows.execute(
                "SELECT dataset, private, method, purpose, time, rho, delta, gaussian FROM entry "
                "WHERE number = ?",
                (number,),
            ).fetchone()
            if rows.execute("SELECT 1 FROM entry WHERE settles = ?", (number,)).fetchone():
                raise LedgerError(f"charge number {number} was settled already.")
            charged = PrivacyCost(Fraction(rho), Fraction(delta), bool(gaussian))
            if not (NOTHING.fits_within(spent) and spent.fits_within(charged)):
                raise ArgumentError(f"spent must be between nothing and {charged}, got {spent}.")
            dataset, private, method, purpose, time = line
            self._append(
                rows, dataset, "settlement", spent - charged,
                private=bool(private), method=method, purpose=purpose, time=time, settles=number,
            )  # fmt: skip

    def _account(self, rows: sqlite3.Connection, dataset: str) -> Account:
        found: tuple[Any, ...] | None
        found = rows.execute("SELECT * FROM dataset WHERE key = ?", (dataset_key(dataset),)).fetchone()
        if found is None:
            raise LedgerError(self._no_such(rows, dataset))
        # A ledger of an earlier format that is only read lacks the last columns.
        line: list[Any] = [*found, *_BEFORE[len(found) - _FIRST_COLUMNS :]]
        _, name, rho, delta, asked_epsilon, asked_delta, user, time, gaussian, unit = line
        try:
            entries = self._entries(rows, name)
            total = PrivacyCost(Fraction(rho), Fraction(delta), bool(gaussian))
            asked = None if asked_epsilon is None else (Fraction(asked_epsilon), Fraction(asked_delta))
            added = datetime.fromisoformat(time)
        except ValueError:
            raise LedgerError(f"{self.path} is damaged: an amount or a time cannot be read.") from None
        spent = sum((entry.cost for entry in entries), NOTHING)
        if not (NOTHING.fits_within(spent) and spent.fits_within(total)):
            raise LedgerError(f"{self.path} is damaged: the charges of '{name}' do not add up.")
        return Account(
            name=name,
            total=total,
            spent=spent,
            asked=asked,
            closed=any(entry.kind == "close" for entry in entries),
            private=all(entry.private for entry in entries),
            user=user,
            time=added,
            unit=unit,
        )

    def _entries(self, rows: sqlite3.Connection, name: str) -> tuple[Entry, ...]:
        found = rows.execute("SELECT * FROM entry WHERE dataset = ? ORDER BY number", (dataset_key(name),))
        return tuple(
            Entry(
                number=number,
                dataset=name,
                kind=kind,
                cost=PrivacyCost(Fraction(rho), Fraction(delta), gaussian == [1]),
                settles=settles,
                private=bool(private),
                method=method,
                purpose=purpose,
                user=user,
                time=datetime.fromisoformat(time),
            )
            for number, _, kind, settles, rho, delta, private, method, purpose, user, time, *gaussian in found
        )

    def _affordable(self, rows: sqlite3.Connection, dataset: str, cost: PrivacyCost, unit: str) -> Account:
        if not NOTHING.fits_within(cost):
            raise ArgumentError(f"a charge cannot be negative, got {cost}.")
        account = self._account(rows, dataset)
        if account.closed:
            raise BudgetError(
                f"dataset '{account.name}' is closed: nothing more can be released. Nothing was spent. "
                f"See its history: {self._command('history', account.name)}"
            )
        account.check_unit(unit)
        if account.total.gaussian and not (cost.gaussian or cost.delta):
            raise BudgetError(
                f"dataset '{account.name}' was opened for methods whose noise is all Gaussian, such as "
                "whitening, which get the most from an epsilon. Nothing was spent; use one of them. Only "
                "when a dataset is opened can it be for all methods: with rho, or delta_share beside epsilon."
            )
        if not cost.fits_within(account.remaining):
            raise BudgetError(
                f"dataset '{account.name}' has {rounded(account.remaining, ROUND_FLOOR)} left of "
                f"{account.total}{_in_epsilon(account)}; this needs {rounded(cost, ROUND_CEILING)}. "
                f"{_about_delta(account, cost)}"
                f"Nothing was spent. See what was: {self._command('history', account.name)}"
            )
        return account

    def _append(
        self,
        rows: sqlite3.Connection,
        dataset: str,
        kind: str,
        cost: PrivacyCost,
        *,
        method: str = "",
        purpose: str = "",
        private: bool = True,
        time: str | None = None,
        settles: int | None = None,
    ) -> int:
        values = (
            dataset_key(dataset), kind, settles, str(cost.rho), str(cost.delta), int(private),
            one_line(method, "method"), one_line(purpose, "purpose"), _user(), time or _now(),
            int(cost.gaussian),
        )  # fmt: skip
        line = rows.execute(
            "INSERT INTO entry "
            "(dataset, kind, settles, rho, delta, private, method, purpose, user, time, gaussian) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        ).lastrowid
        if line is None:
            raise LedgerError(f"{self.path} did not take the entry.")
        return line

    def _no_such(self, rows: sqlite3.Connection, dataset: str) -> str:
        names = [name for (name,) in rows.execute("SELECT name FROM dataset ORDER BY key")]
        near = did_you_mean([dataset], names)
        hint = f"{near} Or add it:" if near else "Add it:"
        return (
            f"{self.path} has no dataset '{dataset}'. {hint} {self._command('create', dataset)} --rho TOTAL"
        )

    def _command(self, action: str, dataset: str) -> str:
        return f"dpcov ledger {action} {shlex.quote(str(self.path))} --dataset {shlex.quote(dataset)}"


def _in_epsilon(account: Account) -> str:
    """Say which epsilon a release may still ask for, if the account was opened in epsilon."""
    if account.asked is None or account.remaining.rho <= 0:
        return ""
    delta = account.asked[1]
    # The epsilon of Gaussian noise; a method of other noise gets by with less rho for it.
    most = PrivacyCost(account.remaining.rho, gaussian=True).epsilon(delta)
    digits = Context(prec=3, rounding=ROUND_FLOOR).create_decimal_from_float(most * (1 - 1e-9))
    return f" (enough for epsilon={float(digits):g} at delta={float(delta):g})"


def _about_delta(account: Account, cost: PrivacyCost) -> str:
    if cost.delta <= account.remaining.delta:
        return ""
    if account.total.delta:
        return "Its delta is what is short: give a smaller delta, or use a method without one of its own. "
    return (
        "The dataset was opened without a delta for methods that need one of their own: use another method, "
        "such as whitening. Only when a dataset is opened can it be given one: delta_share beside epsilon, "
        "or delta beside rho. "
    )


def _user() -> str:
    # The owner of the process, not $USER, which anyone can set.
    try:
        import pwd  # noqa: PLC0415  (not on Windows)

        return pwd.getpwuid(os.getuid()).pw_name
    except ImportError:
        return getpass.getuser()
    except KeyError:
        return f"uid {os.getuid()}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
