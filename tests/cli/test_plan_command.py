from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from helpers.command_line import run

import dpcov
import dpcov.core
from dpcov import theory
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


def test_a_distribution_is_compared_method_by_method() -> None:
    line = "--distribution pareto --shape 4 --error 0.1 --columns 3 --condition 100 --rho 0.5 --delta 1e-6"
    shown = plan(line)
    law = theory.named_distribution("pareto", 3, condition=100.0, shape=4.0)
    epsilon = dpcov.core.PrivacyCost(Fraction(1, 2)).epsilon(1e-6)
    expected = theory.compare(law, 0.1, 0.05, 0.5, epsilon, 1e-6)
    assert shown.startswith(
        "pareto, shape 4, bound 10: rows for error 0.1, 3 columns, condition 100, rho = 0.5"
    )
    found = json.loads(plan(f"{line} --json"))
    for entry, told in zip(expected, found.pop("entries"), strict=True):
        lines = [line for line in shown.splitlines() if line.startswith(f"{entry.method} ")]
        assert any(entry.basis in line and entry.place in line for line in lines)
        assert (told["method"], told["basis"]) == (entry.method, entry.basis)
        assert told["rows"] == (None if math.isnan(entry.rows) else entry.rows)
    assert found == {
        "distribution": "pareto", "n_columns": 3, "error": 0.1, "condition": 100.0, "shape": 4.0,
        "bound": None, "failure": 0.05, "rho": 0.5, "epsilon": epsilon, "delta": 1e-6,
    }  # fmt: skip


@pytest.mark.parametrize("name", theory.DISTRIBUTIONS)
def test_every_distribution_of_the_paper_has_a_table(name: str) -> None:
    shown = plan(f"--distribution {name} --error 0.5 --columns 2 --condition 10 --epsilon 1 --delta 1e-6")
    assert all(method.name in shown for method in dpcov.methods() if method.available)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--distribution parto --error 0.1 --rho 1 --delta 1e-6", "Did you mean 'pareto'"),
        ("--distribution pareto --rows 100 --rho 1 --delta 1e-6", "give --error, not --rows"),
        ("--distribution pareto --units 9 --error 0.1 --rho 1 --delta 1e-6", "give --error, not --rows"),
        ("--distribution pareto --error 0.1 --rho 1", "need a delta"),
        ("--distribution pareto --error 0.1 --delta 1e-6", "rho"),
        ("--distribution pareto --error 2 --rho 1 --delta 1e-6", "error must lie strictly between 0 and 1"),
        ("--distribution pareto --error 0.1 --shape 0 --rho 1 --delta 1e-6", "shape must be greater than 0"),
        ("--distribution gaussian --error 0.1 --shape 4 --rho 1 --delta 1e-6", "gaussian has none"),
        ("--shape 4 --error 0.1 --rho 1", "--shape goes with --distribution"),
        ("--bound 4 --error 0.1 --rho 1", "--bound goes with --distribution"),
    ],
)
def test_a_distribution_that_does_not_fit_is_refused(line: str, message: str) -> None:
    failed = run(f"dpcov plan --columns 3 {line}")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert message in " ".join(failed.stderr.split())


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
