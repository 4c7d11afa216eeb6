"""Whether a method is vetted stands wherever a command names one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import run

import dpcov


def told(line: str, *more: str) -> str:
    shown = run(f"dpcov {line}", *more)
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout


def test_every_method_is_listed_with_its_status() -> None:
    shown = told("methods").splitlines()
    for method in dpcov.methods():
        (line,) = [line for line in shown if line.startswith(f"{method.name} ")]
        assert method.status in line
    assert {method.status for method in dpcov.methods()} == {"vetted", "UNVETTED", "cannot be run"}


def test_json_lists_the_registry() -> None:
    listed = json.loads(told("methods --json"))
    assert [(one["name"], one["vetted"], one["citation"]) for one in listed] == [
        (method.name, method.vetted, method.citation) for method in dpcov.methods()
    ]


def test_a_plan_says_what_is_vetted() -> None:
    shown = told("plan --rows 1e5 --columns 5 --rho 0.5")
    (line,) = [line for line in shown.splitlines() if line.startswith("whitening ")]
    assert "yes, vetted" in line


@pytest.mark.parametrize("dry", [False, True])
def test_a_release_says_that_its_method_is_unvetted(dry: bool, tmp_path: Path) -> None:  # noqa: FBT001
    table = tmp_path / "table.csv"
    np.savetxt(
        table, np.random.default_rng(0).normal(size=(200, 2)), delimiter=",", header="a,b", comments=""
    )
    line = "release --columns a,b --rho 1 --method exponential --option radius=3 --allow-unvetted --overwrite"
    line += " --dry-run" if dry else ""
    files = (str(table), "-o", str(tmp_path / "made.dpcov"))
    assert "exponential, UNVETTED" in told(line, *files)
    assert json.loads(told(line, *files, "--json"))["vetted"] is False
    if not dry:
        made = dpcov.load(tmp_path / "made.dpcov")
        assert "method 'exponential' (UNVETTED)" in repr(made)
        assert "Method: exponential, not vetted" in (tmp_path / "made.html").read_text()
