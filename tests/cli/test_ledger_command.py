from __future__ import annotations

import json
import os
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from helpers.command_line import Finished, Shell, run

import dpcov
from dpcov.cli.ledger import describe, spent_epsilon
from dpcov.cli.output import print_table
from dpcov.core import PrivacyCost
from dpcov.ledger import Ledger


@pytest.mark.parametrize("part", range(1, 30))
def test_epsilon_is_never_printed_below_what_it_is(tmp_path: Path, part: int) -> None:
    cost = PrivacyCost(Fraction(part, 997), gaussian=True)
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("flights", epsilon=3, delta=1e-6)
    ledger.charge("flights", cost, method="m")
    account = ledger.account("flights")
    exact = cost.epsilon(Fraction(1e-6))
    for text in (describe(cost, account), spent_epsilon(account)):
        found = re.search(r"epsilon[= ]([\d.]+)", text)
        assert found
        assert exact * (1 - 1e-12) <= float(found[1]) <= exact * 1.001


def test_an_account_from_its_opening_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("dpcov ledger create budget.db --dataset flights --epsilon 3 --delta 1e-6")
    assert (made.exit_code, made.stderr) == (0, "")
    assert "picks the right candidate at most 62.7% of the time" in made.stdout
    assert "'flights' may spend rho=0.209775 (epsilon=3 at delta=1e-06) in total" in made.stdout

    ledger = Ledger.open(tmp_path / "budget.db")

    def share(part: int) -> PrivacyCost:
        return PrivacyCost(ledger.remaining("flights").rho / part, gaussian=True)

    charged = ledger.charge("flights", share(4), method="gaussian")
    charged.settle(PrivacyCost(ledger.account("flights").spent.rho / 2, gaussian=True))
    ledger.charge(
        "flights",
        share(8),
        method="m",
        purpose="[b]why[/b]",
        private=False,
    )

    history = run("dpcov ledger history budget.db --dataset Flights")
    lines = history.stdout.splitlines()
    assert history.exit_code == 0
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3"]
    assert "settles line 1" in lines[3]
    assert "-0.0262219" in lines[3]
    assert "NOT PRIVATE" in lines[4]
    assert "[b]why[/b]" in lines[4]

    closed = run("dpcov ledger close budget.db --dataset flights --yes")
    assert closed.exit_code == 0
    shown = json.loads(run("dpcov ledger show budget.db --json").stdout)
    (account,) = shown["datasets"]
    assert account["closed"]
    assert not account["private"]
    assert account["asked"] == {"epsilon": 3.0, "delta": 1e-6}
    assert account["spent"]["exact"]["rho"] == str(ledger.account("flights").spent.rho)


def test_amounts_are_taken_as_typed(tmp_path: Path) -> None:
    path = str(tmp_path / "budget.db")
    shown = run("dpcov ledger create --dataset a --rho 0.1 --json", path)
    assert json.loads(shown.stdout)["total"]["exact"]["rho"] == "1/10"
    assert str(Ledger.open(path).remaining("a").rho) == "1/10"


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("show nowhere.db", 4, "there is no ledger at nowhere.db"),
        ("show notes.txt", 4, "notes.txt is not a dpcov ledger"),
        ("show budget.db --dataset b", 4, "has no dataset 'b'"),
        ("create budget.db --dataset A --rho 2", 4, "already has a dataset"),
        ("create new.db --dataset a --rho -2", 2, "rho must be greater than 0"),
        ("create new.db --dataset a", 2, "A budget is needed"),
        ("create new.db --dataset ' ' --rho 1", 2, "dataset must have a name"),
        ("create no/such/folder.db --dataset a --rho 1", 4, "cannot be created"),
        ("close budget.db --dataset a", 2, "give --yes"),
    ],
)
def test_failures_have_codes_and_one_line(
    line: str, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger.create("budget.db").add_dataset("a", rho=1)
    Path("notes.txt").write_text("notes, long enough to be read as a header of something" * 4)
    failed = run(f"dpcov ledger {line}")
    assert (failed.exit_code, failed.stdout) == (code, "")
    assert failed.stderr.startswith("Error: ")
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db", "notes.txt"]


def test_failures_in_json() -> None:
    failed = run("dpcov ledger show nowhere.db --json")
    failure = json.loads(failed.stderr)
    assert (failed.exit_code, failure["exit_code"], failure["error"]) == (4, 4, "ledger")


def test_wrong_usage_is_code_two() -> None:
    for line in ("create budget.db --dataset a --rho much", "burn budget.db"):
        assert run(f"dpcov ledger {line}").exit_code == 2


def test_help_and_version() -> None:
    assert "Exit codes" in run("dpcov --help").stdout
    assert "dpcov ledger create budget.db --dataset flights" in run("dpcov ledger create --help").stdout
    assert run("dpcov --version").stdout == f"dpcov {dpcov.__version__}\n"


def test_a_real_shell_runs_the_same(shell: Shell) -> None:
    for line in ("dpcov plan --rows 10 --columns 3 --rho 1 --json", "dpcov ledger show no.db"):
        shown = shell(line)
        assert Finished(shown.returncode, shown.stdout, shown.stderr) == run(line)


def test_wrong_usage_in_json() -> None:
    for line in ("ledger create b.db --dataset a --rho much", "ledger burn b.db", "plan --colums 3"):
        failed = run(f"dpcov {line} --json")
        failure = json.loads(failed.stderr)
        assert (failed.exit_code, failure["exit_code"], failure["error"]) == (2, 2, "argument")
        assert not failed.stdout


@pytest.mark.parametrize(
    "command",
    [
        "", "release", "plan", "report", "compare", "demo", "ask", "ask f.dpcov regress", "ask f.dpcov pca",
        "ask f.dpcov correlation", "ask f.dpcov covariance", "ask f.dpcov mean", "ask f.dpcov summary",
        "ledger", "ledger create", "ledger show", "ledger history", "ledger close",
    ],
)  # fmt: skip
def test_examples_stand_on_lines_of_their_own(command: str) -> None:
    shown = run(f"dpcov {command} --help")
    lines = [line.strip() for line in shown.stdout.splitlines() if "dpcov " in line and "Usage" not in line]
    examples = [line for line in lines if line.startswith("dpcov ")]
    assert examples
    assert not any(" dpcov " in line for line in examples)
    assert not any("`" in line for line in lines)


def test_output_that_nobody_reads_is_no_error(environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            ["dpcov", "plan", "--rows", "1e6", "--columns", "3", "--rho", "1", "--json"],  # noqa: S607
            env=environment, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_table_too_wide_for_its_terminal_breaks_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    header, row = ("method", "assumes", "error"), ("recursive-paper", "rows like normal ones", "0.125")
    for width in (60, 40, 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dpcov.cli.output._WIDTH_OF_A_FILE", width)
            print_table("title", header, [row])
        lines = capsys.readouterr().out.splitlines()
        assert all(len(line.rstrip()) <= max(width, 33) for line in lines)
        words = " ".join(lines).split()
        assert all(word in words for cell in (*header, *row) for word in cell.split())


def test_guesses_lead_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("dpcov ledger create budget.db --dataset flights --mu 0.2")
    assert "picks the right candidate at most 54% of the time; a coin gets 50%." in made.stdout
    Ledger.open("budget.db").charge("flights", PrivacyCost(Fraction(1, 100), gaussian=True), method="m")
    shown = run("dpcov ledger show budget.db").stdout.splitlines()
    assert shown[0].startswith(
        "Guesses: how often someone who knows every other row (or person, if that is protected), and two"
    )
    (line,) = [line.split() for line in shown if line.startswith("flights")]
    assert line[1:4] == ["row", "52.9%", "54%"]
    (account,) = json.loads(run("dpcov ledger show budget.db --json").stdout)["datasets"]
    assert account["total"]["mu"] == pytest.approx(0.2)
    assert account["total"]["guess"] == pytest.approx(0.5398, abs=1e-4)
    planned = run("dpcov plan --rows 1e4 --columns 3 --mu 0.2").stdout
    assert planned.startswith(
        "Someone who knows every other row, and two candidates for the last one, picks the right candidate"
    )
