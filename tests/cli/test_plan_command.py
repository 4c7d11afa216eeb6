from __future__ import annotations

import json

from helpers.command_line import run

import dpcov
from dpcov.cli.chart import log_chart


def plan(line: str) -> str:
    shown = run(f"dpcov plan {line}")
    assert (shown.exit_code, shown.stderr) == (0, "")
    return shown.stdout


def test_the_error_of_so_many_rows_with_a_chart() -> None:
    shown = plan("--rows 1e6 --columns 20 --epsilon 1 --delta 1e-6")
    expected = dpcov.plan(n_rows=10**6, n_columns=21, epsilon=1, delta=1e-6)
    for entry in expected.entries:
        (line,) = [line for line in shown.splitlines() if line.startswith(f"{entry.method} ")]
        assert entry.basis in line
    assert f"{expected['whitening'].error:.3g}" in shown
    assert "o whitening   * gaussian" in shown


def test_the_rows_for_an_error() -> None:
    expected = dpcov.plan(error=0.1, n_columns=21, rho=0.5)
    assert f"{expected['whitening'].rows:,.0f}" in plan("--error 0.1 --columns 20 --rho 0.5")


def test_json_is_the_plan() -> None:
    shown = plan("--rows 1e5 --columns 20 --rho 0.5 --json")
    assert json.loads(shown) == dpcov.plan(n_rows=10**5, n_columns=21, rho=0.5).to_dict()


def test_persons_with_several_rows() -> None:
    shown = plan("--units 1e5 --rows-per-unit 8 --columns 20 --rho 0.5")
    expected = dpcov.plan(n_units=10**5, rows_per_unit=8, n_columns=21, rho=0.5)
    assert shown.startswith("Someone who knows every other person")
    assert "100,000 persons, 21 columns" in shown
    assert f"{expected['whitening'].error:.3g}" in shown
    assert "Persons are taken to have 8 rows each" in shown
    assert "recursive" not in shown
    needed = plan("--error 0.1 --rows-per-unit 8 --columns 20 --rho 0.5 --json")
    assert json.loads(needed) == dpcov.plan(error=0.1, rows_per_unit=8, n_columns=21, rho=0.5).to_dict()


def test_wrong_arguments() -> None:
    for line in (
        "--columns 20 --rho 1",
        "--columns 20 --rho 1 --rows 10 --error 0.1",
        "--columns 20 --rows 10",
        "--columns 20 --rho 1 --rows 10 --units 10",
        "--columns 20 --rho 1 --rows 10 --rows-per-unit 2",
        "--columns 2.5 --rows 10 --rho 1",
        "--rows 10 --rho 1",
        "--columns 20 --error 2 --rho 1",
    ):
        failed = run(f"dpcov plan {line}")
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
