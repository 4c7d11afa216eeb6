from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from typer.testing import CliRunner

import dpcov
from dpcov.cli.app import app
from dpcov.cli.chart import log_chart

Shell = Callable[[str], subprocess.CompletedProcess[str]]


def invoke(line: str) -> str:
    result = CliRunner().invoke(app, ["plan", *line.split()])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_error_of_so_many_rows_with_a_chart(shell: Shell) -> None:
    shown = shell("dpcov plan --rows 1e6 --columns 20 --epsilon 1 --delta 1e-6")
    assert (shown.returncode, shown.stderr) == (0, "")
    expected = dpcov.plan(n_rows=10**6, n_columns=21, epsilon=1, delta=1e-6)
    for entry in expected.entries:
        (line,) = [line for line in shown.stdout.splitlines() if line.startswith(f"{entry.method} ")]
        assert entry.basis in line
    assert f"{expected['whitening'].error:.3g}" in shown.stdout
    assert "o whitening   * gaussian" in shown.stdout


def test_the_rows_for_an_error() -> None:
    expected = dpcov.plan(error=0.1, n_columns=21, rho=0.5)
    assert f"{expected['whitening'].rows:,.0f}" in invoke("--error 0.1 --columns 20 --rho 0.5")


def test_json_is_the_plan() -> None:
    shown = invoke("--rows 1e5 --columns 20 --rho 0.5 --json")
    assert json.loads(shown) == dpcov.plan(n_rows=10**5, n_columns=21, rho=0.5).to_dict()


def test_wrong_arguments() -> None:
    for line in (
        "--columns 20 --rho 1",
        "--columns 20 --rho 1 --rows 10 --error 0.1",
        "--columns 20 --rows 10",
        "--columns 2.5 --rows 10 --rho 1",
        "--rows 10 --rho 1",
        "--columns 20 --error 2 --rho 1",
    ):
        failed = CliRunner().invoke(app, ["plan", *line.split()])
        assert failed.exit_code == 2, line
        assert not failed.stdout


def test_a_chart_puts_curves_where_they_belong() -> None:
    falling = [(1.0, 100.0), (10.0, 10.0), (100.0, 1.0)]
    series = {"down": falling, "flat": [(1.0, 1.0), (100.0, 1.0)], "none": [(1.0, float("inf"))]}
    assert log_chart(series, x="rows", y="error", width=9, height=5).splitlines() == [
        "error",
        "    1e+02 |oo",
        "          |  o",
        "       10 |   ooo",
        "          |      o",
        "        1 |*******oo",
        "          +---------",
        "           110 1e+02  rows",
        "           o down",
        "           * flat",
    ]
    assert log_chart({"none": [(1.0, float("nan"))]}, x="rows", y="error") == ""
