"""The ledger's file: one SQLite database that only ever grows.

What the rest of the ledger needs from it: a write either happened entirely, and is on the disk when
the call returns, or did not happen; at most one writer at a time; rows never change. Why that holds,
for a killed process and for a power cut, is in ``docs/ledger.md``.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcov.core import LedgerError

_APPLICATION = 0x6470636F  # "dpco"
_VERSION = 3
_PATIENCE_SECONDS = 60.0

_SCHEMA = """
CREATE TABLE dataset (
    key TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    rho TEXT NOT NULL,
    delta TEXT NOT NULL,
    asked_epsilon TEXT,
    asked_delta TEXT,
    user TEXT NOT NULL,
    time TEXT NOT NULL,
    gaussian INTEGER NOT NULL DEFAULT 0 CHECK (gaussian IN (0, 1)),
    unit TEXT NOT NULL DEFAULT 'row'
);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL REFERENCES dataset (key),
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'settlement', 'close')),
    settles INTEGER UNIQUE REFERENCES entry (number),
    rho TEXT NOT NULL,
    delta TEXT NOT NULL,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    method TEXT NOT NULL,
    purpose TEXT NOT NULL,
    user TEXT NOT NULL,
    time TEXT NOT NULL,
    gaussian INTEGER NOT NULL DEFAULT 0 CHECK (gaussian IN (0, 1)),
    CHECK ((kind = 'settlement') = (settles IS NOT NULL))
);
CREATE TRIGGER closed_takes_no_charge BEFORE INSERT ON entry
WHEN NEW.kind <> 'settlement'
    AND EXISTS (SELECT 1 FROM entry WHERE dataset = NEW.dataset AND kind = 'close')
BEGIN SELECT RAISE(ABORT, 'the dataset is closed'); END;
"""

# The first format did not tell which charges are Gaussian: none is, as noise was the discrete Gaussian.
_SECOND_FORMAT = (
    "ALTER TABLE dataset ADD COLUMN gaussian INTEGER NOT NULL DEFAULT 0 CHECK (gaussian IN (0, 1))",
    "ALTER TABLE entry ADD COLUMN gaussian INTEGER NOT NULL DEFAULT 0 CHECK (gaussian IN (0, 1))",
)
# Up to the second every dataset protected its rows.
_THIRD_FORMAT = ("ALTER TABLE dataset ADD COLUMN unit TEXT NOT NULL DEFAULT 'row'",)
_LATER_FORMATS = {2: _SECOND_FORMAT, 3: _THIRD_FORMAT}

# INSERT OR REPLACE deletes without firing a DELETE trigger, hence the last one of each.
_APPEND_ONLY = """
CREATE TRIGGER {table}_never_changes BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER {table}_never_goes BEFORE DELETE ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER {table}_never_gives_way BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {unique})
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

# A child process must not inherit an open connection: its copy of SQLite would believe in locks
# that the child does not hold. So no fork happens while a connection is open.
_open_connection = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_open_connection.acquire,
        after_in_parent=_open_connection.release,
        after_in_child=_open_connection.release,
    )


class LedgerFile:
    """A ledger's SQLite file. Every use opens and closes its own connection.

    Parameters
    ----------
    path : Path
        Where the SQLite file is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the file with empty tables; it must not exist."""
        try:
            self.path.touch(exist_ok=False)
        except FileExistsError:
            raise LedgerError(f"{self.path} exists already; nothing was changed.") from None
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be created: {error.strerror}.") from None
        try:
            with self._connection(check=False) as connection:
                connection.execute("PRAGMA encoding = 'UTF-8'")
                connection.execute("BEGIN EXCLUSIVE")
                tables = _SCHEMA + _APPEND_ONLY.format(table="dataset", unique="key = NEW.key")
                unique = "number = NEW.number OR settles = NEW.settles"
                for statement in _statements(tables + _APPEND_ONLY.format(table="entry", unique=unique)):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.execute("COMMIT")
            _sync_folder(self.path.parent)
        except BaseException:
            self.path.unlink()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the file, checked, for questions that see one state."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file, checked, as its only writer; on leaving, all is on the disk or nothing is."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = _pragma(connection, "user_version")
            for later, statements in _LATER_FORMATS.items():
                for statement in statements if version < later else ():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self, *, check: bool = True) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(self.path):  # noqa: PTH113  (Path.is_file raises in a forbidden folder)
            raise LedgerError(
                f"there is no ledger at {self.path}. Create one: "
                f"dpcov ledger create {shlex.quote(str(self.path))} --dataset NAME --rho TOTAL"
            )
        connection = None
        with _open_connection:
            try:
                connection = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?mode=rw",
                    uri=True,
                    timeout=_PATIENCE_SECONDS,
                    isolation_level=None,
                )
                if check:
                    self._check(connection)
                _make_durable(connection)
                yield connection
            except sqlite3.Error as error:
                raise LedgerError(self._explain(error)) from None
            except UnicodeDecodeError:
                # Text that is no UTF-8, in a cell or in SQLite's own words about what is wrong.
                raise LedgerError(self._damaged()) from None
            finally:
                if connection is not None:
                    # Whatever was not committed is rolled back here.
                    connection.close()

    def _check(self, connection: sqlite3.Connection) -> None:
        if _pragma(connection, "application_id") != _APPLICATION:
            raise LedgerError(f"{self.path} is not a dpcov ledger.")
        version = _pragma(connection, "user_version")
        if not 1 <= version <= _VERSION:
            raise LedgerError(
                f"{self.path} has version {version} of the ledger's format; this dpcov reads up to "
                f"{_VERSION}. Install the dpcov that made it."
            )
        if _pragma(connection, "quick_check") != "ok":
            raise LedgerError(self._damaged())

    def _damaged(self) -> str:
        return f"{self.path} is damaged. Restore it from a copy that has every charge."

    def _explain(self, error: sqlite3.Error) -> str:
        busy = f"{self.path} is in use by another process; nothing was changed. Try again."
        explanations = {
            sqlite3.SQLITE_BUSY: busy,
            sqlite3.SQLITE_LOCKED: busy,
            sqlite3.SQLITE_READONLY: f"{self.path} or its folder is read-only: nothing can be charged.",
            sqlite3.SQLITE_FULL: f"the disk is full: {self.path} was not changed.",
            sqlite3.SQLITE_CANTOPEN: f"{self.path} cannot be opened; "
            "the file and its folder must be readable and writable.",
            sqlite3.SQLITE_NOTADB: f"{self.path} is not a dpcov ledger.",
            sqlite3.SQLITE_CORRUPT: self._damaged(),
        }
        # Extended codes keep the kind in the lowest byte.
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        other = f"{self.path}: {error}. Look at its history before you try again."
        return explanations.get(kind, other)


def _make_durable(connection: sqlite3.Connection) -> None:
    # A rollback journal, not a write-ahead log: all charges are in the one file people copy.
    if _pragma(connection, "journal_mode = DELETE") != "delete":
        raise sqlite3.OperationalError("its journal mode cannot be set")
    # EXTRA also syncs the folder after the journal is removed; with FULL a power cut
    # could bring the journal back, which would undo a charge that was reported as made.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA trusted_schema = OFF")


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _statements(script: str) -> Iterator[str]:
    # executescript() would commit first; one transaction should make all tables.
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
