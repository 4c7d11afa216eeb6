"""The errors that dpcov raises.

No message may carry a function of the rows: only arguments, public facts
(column names, dtypes, the number of rows) and budgets.
"""

from __future__ import annotations


class DpcovError(Exception):
    """Base of every error that dpcov raises on purpose."""


class ArgumentError(DpcovError, ValueError):
    """An argument cannot be used; nothing was spent."""


class BudgetError(DpcovError):
    """The budget does not cover what was asked; nothing was spent."""


class ExactnessError(DpcovError):
    """The machine's arithmetic is not the exact one that privacy rests on."""


class MissingExtraError(DpcovError, ImportError):
    """An optional dependency is not installed."""


class UnresolvedError(DpcovError):
    """The answer would be noise: a combination of columns could not be told from it."""


class ArtefactError(DpcovError):
    """A file is no release that can be read, or is damaged."""
