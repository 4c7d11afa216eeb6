"""``dpcov ask`` and ``dpcov report`` on a real release."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import Finished, run

import dpcov


@pytest.fixture(scope="module")
def made() -> dpcov.Release:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 4))
    rows[:, 1] += 2 * rows[:, 0] + 7
    rows[:, 3] = rows[:, 0] - rows[:, 2]
    return dpcov.release(rows, rho=1, columns=["a", "b", "c", "a, less c"], progress=False)


@pytest.fixture
def release(made: dpcov.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dpcov.Release:
    monkeypatch.chdir(tmp_path)
    made.save("out.dpcov")
    return made


def ask(*words: str) -> Finished:
    return run("dpcov ask out.dpcov", *words)


def test_a_regression_as_table_json_and_csv(release: dpcov.Release) -> None:
    expected = release.regress("b", on=["a", "c"])
    shown = run("dpcov ask out.dpcov regress b --on a,c")
    assert (shown.exit_code, shown.stderr) == (0, "")
    (line,) = [line.split() for line in shown.stdout.splitlines() if line.startswith("a ")]
    lower, upper = expected.coefficients.interval()
    estimate, error = expected.coefficients.values[0], expected.coefficients.standard_error[0]
    numbers = [f"{value:.5g}" for value in (estimate, error, lower[0], upper[0])]
    assert line == ["a", *numbers[:2], f"{estimate / error:.2f}", "<0.001", *numbers[2:]]
    assert "R squared" in shown.stdout

    found = json.loads(ask("regress", "b", "--on", "a,c", "--json", "--level", "0.5").stdout)
    narrow = expected.coefficients.interval(0.5)
    assert [one["name"] for one in found["coefficients"]["values"]] == ["a", "c", "constant"]
    assert [one["lower"] for one in found["coefficients"]["values"]] == narrow.lower.tolist()
    assert found["r_squared"]["values"][0]["estimate"] == float(expected.r_squared)
    assert list(found["p_values"].values()) == expected.coefficients.p_values().tolist()
    assert found["adjusted_r_squared"] == expected.adjusted_r_squared
    by_formula = json.loads(ask("regress", "b ~ a + c", "--json", "--level", "0.5").stdout)
    assert by_formula == found
    through = json.loads(ask("regress", "b", "--on", "a", "--no-intercept", "--json").stdout)
    assert [one["name"] for one in through["coefficients"]["values"]] == ["a"]

    table = list(csv.DictReader(io.StringIO(ask("regress", "b", "--on", "a", "--on", "c", "--csv").stdout)))
    assert [float(one["estimate"]) for one in table][:3] == expected.coefficients.values.tolist()
    assert {one["answer"] for one in table} == {"coefficients", "residual_variance", "r_squared"}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("mean", lambda r: r.mean()),
        ("covariance", lambda r: r.covariance()),
        ("correlation", lambda r: r.correlation()),
        ("partial-correlation --columns a,b,c", lambda r: r.partial_correlation(["a", "b", "c"])),
        ("describe", lambda r: r.describe().mean),
        ("pca", lambda r: r.pca(4).directions),
    ],
)
def test_every_question_says_what_the_release_says(
    question: str, answer: Callable[[dpcov.Release], dpcov.Answer], release: dpcov.Release
) -> None:
    expected = answer(release)
    asked = question.split(maxsplit=1)[0]
    key = {"pca": "directions", "describe": "mean"}.get(asked, asked.replace("-", "_"))
    values = json.loads(ask(*question.split(), "--json").stdout)[key]["values"]
    bounds = expected.interval()
    for one in values:
        place = tuple(
            axis.index(name)
            for axis, name in zip(expected.labels, (one["name"], one.get("of")), strict=False)
        )
        assert one["estimate"] == pytest.approx(expected.values[place], rel=1e-12)
        assert one["lower"] == pytest.approx(bounds.lower[place], rel=1e-12)
    n = len(expected)
    assert len(values) == {"mean": n, "describe": n, "pca": n * n}.get(asked, n * (n + 1) // 2)
    table = csv.reader(io.StringIO(ask(*question.split(), "--csv").stdout))
    assert sum(len(line) == 7 for line in table) > len(values)
    assert ask(*question.split()).exit_code == 0


def test_columns_are_chosen_by_name_even_with_commas(release: dpcov.Release) -> None:
    shown = ask("mean", "--columns", 'b,"a, less c"', "--json")
    values = json.loads(shown.stdout)["mean"]["values"]
    assert [one["name"] for one in values] == ["b", "a, less c"]
    assert values[0]["estimate"] == release.mean().values[1]


def test_a_summary_in_words(release: dpcov.Release) -> None:
    shown = run("dpcov ask out.dpcov summary")
    assert shown.exit_code == 0, shown.stderr
    for text in (
        "5,000",
        "rho=1",
        "is below the noise",
        "Clipped:   About",
        "at most a factor of e^",
        "a, b, c",
    ):
        assert text in shown.stdout
    facts = json.loads(ask("summary", "--json").stdout)
    assert (facts["units"], facts["protected"]) == (5000, "row")
    assert facts["spent"]["exact"]["rho"] == "1"
    assert facts["epsilon"]["1e-06"] == pytest.approx(release.receipt.epsilon(1e-6))
    assert len(facts["unresolved"]) == 1
    assert ask("summary", "--csv").stdout.count("\n") == 5


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("ask nothing.dpcov mean", 5, "nothing.dpcov cannot be read: No such file"),
        ("ask notes.txt mean", 5, "is not a dpcov release"),
        ("ask out.dpcov regress b --on a,z", 2, "no column 'z'"),
        ("ask out.dpcov regress b --on a --ridge -1", 2, "ridge must be"),
        ("ask out.dpcov regress b --on a --ridge some", 2, "must be a number or auto"),
        ("ask out.dpcov mean --level 2", 2, "level must lie"),
        ("ask out.dpcov mean --json --csv", 2, "not both"),
        ("ask out.dpcov pca --components 0", 2, "--components must be at least 1"),
        ("report nothing.dpcov", 5, "cannot be read"),
        ("report out.dpcov -o out.dpcov", 5, "is the release itself"),
        ("report out.dpcov -o no/where.html", 5, "cannot be written"),
        ("report out.dpcov --ledger budget.db", 2, "go together"),
        ("report out.dpcov --ledger budget.db --dataset a", 4, "there is no ledger"),
    ],
)
def test_failures_have_codes_and_one_line(line: str, code: int, message: str, tmp_path: Path) -> None:
    Path("notes.txt").write_text("notes")
    failed = run(f"dpcov {line}")
    assert failed.exit_code == code, failed.stderr
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "out.dpcov"]


@pytest.mark.usefixtures("release")
def test_noise_is_not_an_answer() -> None:
    failed = ask("regress", "b", "--on", 'a,c,"a, less c"', "--ridge", "0")
    assert failed.exit_code == 6
    assert "is below the noise" in failed.stderr


def test_the_report_again(release: dpcov.Release, tmp_path: Path) -> None:
    assert run("dpcov report out.dpcov").stdout == "Report: out.html\n"
    first = (tmp_path / "out.html").read_bytes()
    again = run("dpcov report out.dpcov --json")
    assert json.loads(again.stdout) == {"release": "out.dpcov", "report": "out.html"}
    assert (tmp_path / "out.html").read_bytes() == first

    ledger = dpcov.Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=2)
    ledger.charge("people", release.receipt.spent, method="whitening", purpose="spring <b>report")
    line = "report out.dpcov -o page.html --ledger budget.db --dataset people"
    assert run(f"dpcov {line}").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert "spring &lt;b&gt;report" in page
    assert "So far 50% of it is spent" in page


def test_the_help_of_a_question_needs_no_release() -> None:
    shown = run("dpcov ask regress --help")
    assert shown.exit_code == 0
    assert "Regress one column on others" in shown.stdout
    assert "TARGET" in shown.stdout
    assert "Show the correlation of each pair" not in shown.stdout


def test_a_question_without_a_release_is_explained(release: dpcov.Release) -> None:
    del release
    wrong = run("dpcov ask mean --level 0.9")
    assert wrong.exit_code == 2
    assert "the release comes first" in wrong.stderr
    # A release may well be called like a question.
    Path("out.dpcov").rename("mean")
    assert run("dpcov ask mean mean").exit_code == 0
