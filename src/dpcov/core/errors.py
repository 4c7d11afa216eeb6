"""The errors that dpcov raises.

No message may carry a function of the rows: only arguments, budgets and public facts (names, dtypes, sizes).
"""

from __future__ import annotations


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
