"""``dpcov release`` on real files."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.command_line import Shell, run

import dpcov
from dpcov.ledger import Ledger
from dpcov.report import render_page, report_data


def write_table(path: Path, n_rows: int = 2000, n_columns: int = 3, first: float = 0.0) -> None:
    rows = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    rows[0, 0] = first
    frame = pl.DataFrame({f"c{k}": rows[:, k] for k in range(n_columns)})
    frame.with_columns(pl.lit("x").alias("name")).write_parquet(path)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.parquet")
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.add_dataset("people", rho=1)
    return ledger


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"table.parquet", "budget.db"}


LINE = "dpcov release table.parquet --columns c0,c1,c2 --rho 0.25 --ledger budget.db --dataset people"


def test_a_release_with_what_was_spent_and_what_is_left(ledger: Ledger, tmp_path: Path) -> None:
    made = run(f"{LINE} --purpose 'spring report' -o out.dpcov")
    assert made.exit_code == 0, made.stderr
    assert "out.dpcov" in made.stdout
    assert "Report:  out.html" in made.stdout
    assert "Method:  whitening, vetted" in made.stdout
    assert "spring report" in (tmp_path / "out.html").read_text()
    assert "rho=0.25" in made.stdout
    assert "rho=0.75 of rho=1 for 'people'" in made.stdout
    assert "out.dpcov" in files(tmp_path)
    assert ledger.history()[0].purpose == "spring report"
    again = run(f"{LINE} -o out.dpcov --json")
    assert again.exit_code == 5
    assert "--overwrite" in json.loads(again.stderr)["message"]
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_noise_that_is_not_gaussian_is_named_as_the_reason_for_a_weaker_promise(ledger: Ledger) -> None:
    reason = "accounted in zCDP, which promises less, because some noise is not Gaussian:"
    assert reason not in run(f"{LINE} -o plain.dpcov").stdout
    made = run(f"{LINE} --method adaptive --option radius=5 -o other.dpcov")
    assert made.exit_code == 0, made.stderr
    assert reason in " ".join(made.stdout.split())
    assert not ledger.account("people").spent.gaussian


def test_a_table_too_small_goes_on_by_force(ledger: Ledger, tmp_path: Path) -> None:
    made = run(f"{LINE.replace('0.25', '1e-9')} --force -o out.dpcov")
    assert (made.exit_code, "nothing in this release" in made.stderr) == (6, True)
    assert "out.dpcov" in files(tmp_path)
    assert 0 < ledger.account("people").spent.rho <= Fraction(1, 10**9)


def test_json(ledger: Ledger, tmp_path: Path) -> None:
    made = json.loads(run(f"{LINE} -o out.dpcov --json").stdout)
    assert (made["release"], made["units"], made["columns"]) == ("out.dpcov", 2000, ["c0", "c1", "c2"])
    assert made["account"]["left"]["exact"]["rho"] == str(ledger.remaining("people").rho) == "3/4"
    assert made["private"]
    loaded = dpcov.load(tmp_path / "out.dpcov")
    assert loaded.columns == ("c0", "c1", "c2")


def test_a_dry_run_reads_no_row_and_spends_nothing(ledger: Ledger, tmp_path: Path) -> None:
    content = (tmp_path / "budget.db").read_bytes()
    shown = run(f"{LINE} --dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "It would cost rho=0.25" in shown.stdout
    assert "rho=0.75 after it" in shown.stdout
    assert "whitening" in shown.stdout
    assert not files(tmp_path)
    assert (tmp_path / "budget.db").read_bytes() == content
    assert not ledger.history()
    refused = run(f"{LINE.replace('0.25', '1.5')} --dry-run")
    assert refused.exit_code == 3


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (LINE, 2, "say where to write"),
        (LINE.replace("table", "nothing") + " -o out.dpcov", 2, "does not exist"),
        (LINE.replace("c0,c1,c2", "name") + " -o out.dpcov", 2, "not numeric: name"),
        (LINE.replace("c0,c1,c2", "c0,c9") + " -o out.dpcov", 2, "c9"),
        (LINE.replace("0.25", "1.25") + " -o out.dpcov", 3, "rho=1 left of rho=1; this needs rho=1.25"),
        (LINE.replace("people", "nobody") + " -o out.dpcov", 4, "has no dataset 'nobody'"),
        (LINE.replace("budget", "bugdet") + " -o out.dpcov", 4, "there is no ledger"),
        (LINE.replace("--rho 0.25", "--epsilon 1") + " -o out.dpcov", 2, "epsilon needs delta"),
        (LINE.replace("0.25", "1e-9") + " -o out.dpcov", 2, "2000 rows are too few for 4 columns"),
        (LINE + " --method gausian -o out.dpcov", 2, "Did you mean 'gaussian'"),
        (LINE + " --option radius -o out.dpcov", 2, "NAME=VALUE"),
        (LINE + " --option width=3 -o out.dpcov", 2, "takes no width"),
        (LINE + " --seed 1 -o out.dpcov", 2, "--not-private"),
        (LINE + " -o nowhere/out.dpcov", 5, "cannot be written: No such file or directory"),
        (LINE + " -o .", 5, "is a folder"),
    ],
)
def test_failures_cost_nothing_and_leave_nothing(
    line: str, code: int, message: str, ledger: Ledger, tmp_path: Path
) -> None:
    failed = run(line)
    assert (failed.exit_code, failed.stdout) == (code, "")
    assert message in failed.stderr
    assert failed.stderr.startswith("Error: ")
    assert failed.stderr.count("\n") == 1
    assert not files(tmp_path)
    assert not ledger.history()


def test_a_seeded_release_is_stamped(ledger: Ledger) -> None:
    made = run(f"{LINE} --seed 1 --not-private -o out.dpcov")
    assert made.exit_code == 0, made.stderr
    assert "NOT PRIVATE" in made.stdout
    assert not ledger.history()[0].private


def test_a_read_only_folder_is_noticed_before_anything_is_spent(
    shell: Shell, ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "locked").mkdir()
    line = f"mount -t tmpfs -o size=1m,ro tmpfs locked && {LINE} -o locked/out.dpcov"
    failed = shell(f"unshare --user --map-root-user --mount bash -c '{line}'")
    if "unshare" in failed.stderr or "mount:" in failed.stderr:
        pytest.skip("this machine does not let users mount")
    assert failed.returncode == 5
    assert "cannot be written: Read-only file system" in failed.stderr
    assert not ledger.history()


def test_a_full_disk_is_noticed_before_anything_is_spent(
    shell: Shell, ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    line = f"mount -t tmpfs -o size=16k tmpfs small && {LINE} -o small/out.dpcov; echo $? $(ls -A small)"
    failed = shell(f"unshare --user --map-root-user --mount bash -c '{line}'")
    if "unshare" in failed.stderr or "mount:" in failed.stderr:
        pytest.skip("this machine does not let users mount")
    assert failed.stdout.split() == ["5"]
    assert "cannot be written: No space left on device" in failed.stderr
    assert not ledger.history()


def test_a_disk_that_fills_up_meanwhile_leaves_nothing_and_the_cost_is_said(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: dpcov.Release, path: Path) -> None:
        Path(path).write_text("half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(dpcov.Release, "save", full)
    failed = run(f"{LINE} -o out.dpcov")
    assert failed.exit_code == 5
    assert "out.dpcov cannot be written: No space left on device" in failed.stderr
    assert "The release is lost, and what it cost is spent: rho=0.25." in failed.stderr
    assert not files(tmp_path)
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_a_report_that_cannot_be_written_leaves_the_release(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dpcov.cli.report.write_report", full)
    failed = run(f"{LINE} -o out.dpcov")
    assert failed.exit_code == 5
    assert "out.html cannot be written: No space left on device" in failed.stderr
    assert "only its report is missing: dpcov report out.dpcov" in failed.stderr
    assert files(tmp_path) == {"out.dpcov"}
    assert ledger.remaining("people").rho == Fraction(3, 4)


def test_an_existing_report_is_not_replaced(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "out.html").write_text("precious")
    failed = run(f"{LINE} -o out.dpcov")
    assert failed.exit_code == 5
    assert "out.html exists already" in failed.stderr
    assert files(tmp_path) == {"out.html"}
    assert not ledger.history()


# The command in a process whose scan says when it reads, and goes on once an interrupt arrived.
INTERRUPTIBLE = """
import signal, threading
from dpcov.cli import main
from dpcov.sources.files import ParquetSource

interrupted, read = threading.Event(), ParquetSource._stream

def interrupt(*signal_and_frame):
    interrupted.set()
    signal.default_int_handler(*signal_and_frame)

def stream(source, group):
    print("reading", flush=True)
    interrupted.wait()
    yield from read(source, group)

signal.signal(signal.SIGINT, interrupt)
ParquetSource._stream = stream
main()
"""


def test_ctrl_c_says_what_was_charged_and_leaves_nothing(
    environment: dict[str, str], ledger: Ledger, tmp_path: Path
) -> None:
    running = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", INTERRUPTIBLE, *f"{LINE} -o out.dpcov".split()[1:]],
        cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "reading\n"
    os.killpg(running.pid, signal.SIGINT)
    stdout, stderr = running.communicate()
    assert running.returncode == 130, stderr
    assert stdout == ""
    assert "Error: interrupted." in stderr
    assert "Charged to dataset 'people' of budget.db: rho=0.25. A failed release keeps its charge." in stderr
    assert "Traceback" not in stderr
    assert not files(tmp_path)
    assert ledger.remaining("people").rho == Fraction(3, 4)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 5e-324])
def test_what_is_printed_and_recorded_does_not_depend_on_a_row(
    value: float, ledger: Ledger, tmp_path: Path
) -> None:
    seen = []
    for first in (0.0, value):
        write_table(tmp_path / "table.parquet", first=first)
        made = run(f"{LINE} --seed 1 --not-private --overwrite -o out.dpcov")
        lines = [replace(entry, time=None) for entry in ledger.history()]  # type: ignore[arg-type]
        # The share of complete rows is a private answer, so a row may move it.
        printed = [line for line in made.stdout.splitlines() if not line.startswith("Rows: ")]
        seen.append((made.exit_code, printed, made.stderr, lines))
        ledger.path.unlink()
        Ledger.create(ledger.path).add_dataset("people", rho=1)
    assert seen[0][0] == 0
    assert seen[0] == seen[1]


def answers_of(release: dpcov.Release) -> dict[str, Any]:
    """All in a release that comes from private answers."""
    return {
        "_matrix": release._matrix,
        "noise": release.noise,
        "losses": release.losses,
        "diagnostics": release.diagnostics,
        "receipt": release.receipt,
    }


@pytest.mark.parametrize(("value", "suffix"), [(float("nan"), "csv"), (3.0, "parquet")])
def test_neighbours_differ_in_private_answers_only(
    value: float, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables one row apart, the same noise: every byte that is no private answer is the same."""
    monkeypatch.chdir(tmp_path)
    seen, releases, pages = [], [], []
    for first in (0.0, value):
        write_table(tmp_path / "table.parquet", first=first)
        pl.read_parquet(tmp_path / "table.parquet").write_csv(tmp_path / "table.csv")
        made = run(
            f"dpcov release table.{suffix} --columns c0,c1,c2 --rho 0.25 --seed 1 --not-private -o out.dpcov"
            " --overwrite"
        )
        with zipfile.ZipFile(tmp_path / "out.dpcov") as archive:
            manifest = json.loads(archive.read("manifest.json"))
            for name in ("noise", "tail", "diagnostics", "sha256", "receipt"):
                del manifest[name]
            seen.append((made, files(tmp_path), archive.namelist(), manifest))
        releases.append(dpcov.load(tmp_path / "out.dpcov"))
        pages.append((tmp_path / "out.html").read_text())
        # The share of complete rows is a private answer.
        share = f"Rows:    {releases[-1].share_of_rows}\n"
        assert share in made.stdout
        seen[-1] = (replace(made, stdout=made.stdout.replace(share, "")), *seen[-1][1:])
    assert seen[0][0].exit_code == 0, seen[0][0].stderr
    assert seen[0] == seen[1]
    first_release, second_release = releases
    assert (first_release._matrix != second_release._matrix).any()
    # The page of the second table is that of the first one's release with the second one's answers.
    moved = replace(first_release, **answers_of(second_release))
    assert render_page(report_data(moved, "out.dpcov")) == pages[1] != pages[0]


@pytest.mark.usefixtures("ledger")
def test_the_neighbour_test_would_notice(tmp_path: Path) -> None:
    """A page that says anything about the rows beyond the answers is another page."""
    run(f"{LINE} --seed 1 --not-private -o out.dpcov")
    release = dpcov.load(tmp_path / "out.dpcov")
    leaking = replace(release, versions={**release.versions, "rows": "one is missing"})
    moved = replace(release, **answers_of(leaking))
    assert render_page(report_data(moved, "out.dpcov")) != render_page(report_data(leaking, "out.dpcov"))
