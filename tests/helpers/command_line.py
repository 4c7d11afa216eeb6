"""The command ``dpcov`` as a shell runs it, in this process."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from dpcov.cli import main

# A line in a real shell: see cli/conftest.py.
Shell = Callable[[str], subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Finished:
    """What a shell sees of a command that ended."""

    exit_code: int
    stdout: str
    stderr: str


def run(line: str, *more: str) -> Finished:
    """Run a line such as ``dpcov plan --rows 10``, and further words that need no quotes, here and now."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.setattr(sys, "argv", [*shlex.split(line), *more])
        patch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as ended:
            main()
    # A program that calls sys.exit without a number ends well.
    return Finished(int(ended.value.code or 0), stdout.getvalue(), stderr.getvalue())
