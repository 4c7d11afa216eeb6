"""A real shell in an empty folder, with ``dpcov`` on its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import Shell


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which ``dpcov`` is this very code."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "dpcov"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpcov "$@"\n')
    command.chmod(0o755)
    source = str(Path(__file__).parents[2] / "src")
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": source, "COLUMNS": "100"}


@pytest.fixture
def shell(tmp_path: Path, environment: dict[str, str]) -> Shell:
    """Run a line of bash in the test's own folder."""

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            ["/bin/bash", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run
