"""Tests of the paper's code notice when a line of it changes.

Each mutant runs its tests in a process of its own, on a copy of the source.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from audit.paper_mutants import PAPER_MUTANTS, Mutant
from audit.record import RESULTS, record

import dpcov

SOURCE = Path(dpcov.__file__).parent
TESTS = Path(__file__).parent.parent
FAILED, PASSED = 1, 0


def run_tests(folder: Path, tests: tuple[str, ...], mutant: Mutant | None = None) -> int:
    """Return the exit code of pytest on a copy of the source in which a mutant takes its place."""
    shutil.copytree(SOURCE, folder / "dpcov", ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        file = folder / "dpcov" / mutant.file
        file.write_text(file.read_text().replace(mutant.text, mutant.instead))
    chosen = [str(TESTS / test) for test in tests]
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
    ).returncode


@pytest.mark.parametrize("name", PAPER_MUTANTS)
def test_a_mutant_changes_one_place(name: str) -> None:
    mutant = PAPER_MUTANTS[name]
    assert (SOURCE / mutant.file).read_text().count(mutant.text) == 1
    assert mutant.instead != mutant.text
    assert all((TESTS / test.partition("::")[0]).is_file() for test in mutant.tests)


def test_the_figures_that_are_shown_are_those_of_all_mutants() -> None:
    # Whoever adds one runs it with -m audit, which records it; `make audit` records all anew.
    found = json.loads(RESULTS.read_text())["paper_mutants"]
    assert set(found) == set(PAPER_MUTANTS)
    assert all(figures["caught"] for figures in found.values())


@pytest.mark.audit
@pytest.mark.parametrize("name", PAPER_MUTANTS)
def test_a_mutant_of_the_papers_code_is_caught(name: str, tmp_path: Path) -> None:
    mutant = PAPER_MUTANTS[name]
    found = run_tests(tmp_path, mutant.tests, mutant)
    record("paper_mutants", name, caught=found == FAILED, file=mutant.file, tests=list(mutant.tests))
    assert found == FAILED


@pytest.mark.audit
@pytest.mark.parametrize("test", sorted({test for mutant in PAPER_MUTANTS.values() for test in mutant.tests}))
def test_the_tests_pass_on_a_copy_without_a_mutant(test: str, tmp_path: Path) -> None:
    assert run_tests(tmp_path, (test,)) == PASSED
