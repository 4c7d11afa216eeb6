"""How a command fails: one plain line on standard error, and a stable exit code.

Nothing that is printed may depend on the rows. The messages of dpcov's own errors never do; those of
other packages might quote a value, so of an unexpected error only the kind and the place are shown.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import typer

from dpcov.core import (
    ArgumentError,
    ArtefactError,
    BudgetError,
    DpcovError,
    LedgerError,
    MissingExtraError,
    NoAnswerError,
    SourceError,
    UnresolvedError,
)


class ExitCode(IntEnum):
    """What the shell sees. These numbers never change."""

    BUG = 1
    ARGUMENT = 2
    BUDGET = 3
    LEDGER = 4
    FILE = 5
    NO_ANSWER = 6
    MISSING_EXTRA = 7
    INTERRUPTED = 130
    CUT_OFF = 141


class FileError(DpcovError):
    """A file cannot be read or written."""


_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
    (MissingExtraError, ExitCode.MISSING_EXTRA),
    (ArgumentError, ExitCode.ARGUMENT),
    (BudgetError, ExitCode.BUDGET),
    (LedgerError, ExitCode.LEDGER),
    (NoAnswerError, ExitCode.NO_ANSWER),
    (UnresolvedError, ExitCode.NO_ANSWER),
    (ArtefactError, ExitCode.FILE),
    (FileError, ExitCode.FILE),
    (SourceError, ExitCode.FILE),
    (OSError, ExitCode.FILE),
)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command report its failures; its option ``as_json`` decides how."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the output, such as head, has enough. Python would complain on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.CUT_OFF) from None
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, typer.Exit | typer.Abort):
                raise
            code = report(error, as_json=bool(options.get("as_json")))
            raise typer.Exit(code) from None

    return run


def run_for_a_program(app: typer.Typer) -> int:
    """Run the command line where ``--json`` was given: wrong usage is reported in JSON as well."""
    try:
        return app(prog_name="dpcov", standalone_mode=False) or 0
    except _WrongUsage as error:
        sys.stderr.write(_as_json(ExitCode.ARGUMENT, error.format_message(), []))
        return ExitCode.ARGUMENT
    except typer.Abort:
        return ExitCode.INTERRUPTED


# Whichever click Typer brings along: old ones take click itself, new ones have their own.
_WrongUsage: Any = typer.BadParameter.__bases__[0]


def report(error: BaseException, *, as_json: bool) -> ExitCode:
    """Print what went wrong and what it cost; return the exit code."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.BUG)
    notes = list(getattr(error, "__notes__", []))
    message = _message(error, code)
    text = "\n".join([f"Error: {message}", *notes, ""])
    sys.stderr.write(_as_json(code, message, notes) if as_json else text)
    return code


def _as_json(code: ExitCode, message: str, notes: list[str]) -> str:
    failure = {"error": code.name.lower(), "exit_code": int(code), "message": message, "notes": notes}
    return json.dumps(failure) + "\n"


def _message(error: BaseException, code: ExitCode) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted."
    if isinstance(error, DpcovError):
        return str(error)
    if code is ExitCode.FILE and isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or type(error).__name__}."
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}. "
        "This is a bug in dpcov; please report it. Its message is not shown, since it could quote a row."
    )
