"""The errors that dpcov raises.

No message may carry a function of the rows: only arguments, public facts
(column names, dtypes, the number of rows) and budgets.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class DpcovError(Exception):
    """Base of every error that dpcov raises on purpose."""


class ArgumentError(DpcovError, ValueError):
    """An argument cannot be used; nothing was spent."""


class BudgetError(DpcovError):
    """The budget does not cover what was asked; nothing was spent."""


class LedgerError(DpcovError):
    """A ledger cannot be used: missing, damaged, locked, read-only, or without such a dataset."""


class ExactnessError(DpcovError):
    """The machine's arithmetic is not the exact one that privacy rests on."""


class SourceError(DpcovError):
    """The rows could not be read to the end; nothing was released."""


class SourceChangedError(SourceError):
    """The table is no longer the one that was opened; nothing was released."""


class MissingExtraError(DpcovError, ImportError):
    """An optional dependency is not installed."""


class NoAnswerError(DpcovError):
    """A private test said that the rows do not allow an answer; its cost was spent."""


class UnresolvedError(DpcovError):
    """The answer would be noise: a combination of columns is below it."""


class ArtefactError(DpcovError):
    """A file is no release that can be read, or is damaged."""


def did_you_mean(wrong: Sequence[str], known: Sequence[str]) -> str:
    """Return a question that names what is known and close to a wrong name; nothing if nothing is close."""
    near = dict.fromkeys(name for one in wrong for name in difflib.get_close_matches(one, known, n=2))
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
