from __future__ import annotations

import itertools
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tqdm import tqdm

import dpcov
from dpcov.methods import find_method
from dpcov.progress import ScanBars
from dpcov.sources.files import ParquetSource


def rows() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.random.default_rng(0).normal(size=(150_000, 3))


def test_nothing_is_shown_when_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    dpcov.release(rows(), rho=1)
    dpcov.release(rows(), rho=1, progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_bar_names_the_scan_its_purpose_and_the_rows(capfd: pytest.CaptureFixture[str]) -> None:
    result = dpcov.release(rows(), rho=1, progress=True)
    shown = capfd.readouterr().err
    *single, norms, tail, released = [charge.purpose for charge in result.receipt.charges]
    # Rows are read for a sample first. The two before the last are asked together: one scan.
    purposes = ["a sample of the rows", *single, f"{norms} and {tail}", released]
    for number, purpose in enumerate(purposes, start=1):
        expected = find_method("whitening").scans or 0
        total = f" of about {expected}" if number <= expected else ""
        assert f"scan {number}{total}: {purpose}:" in shown
    assert "0.00/150k" in shown


def test_a_bar_shows_nothing_that_depends_on_the_rows(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A bar moves when enough time has passed: by this clock a second does whenever it is looked at.
    # One thread reads, since two would move the bar in the order in which they get there.
    monkeypatch.setattr("dpcov.sources._table.available_threads", lambda: 1)
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)
    shown = []
    for table in (rows(), np.full((150_000, 3), np.nan)):
        monkeypatch.setattr("tqdm.std.time", itertools.count().__next__)
        dpcov.release(table, rho=1, progress=True, method="gaussian", radius=1.0)
        shown.append(capfd.readouterr().err)
    assert shown[0] == shown[1]
    # The bar was seen while it moved, with the time that passed.
    assert re.search(r"[1-9]\d*%.*\[00:0[1-9]<", shown[0])


def test_a_scan_of_files_shows_its_purpose_and_the_time_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpcov.progress._TICK_SECONDS", 0.001)
    ticked = threading.Event()
    scan = ParquetSource.scan

    def watched(self: ParquetSource, *arguments: Any) -> Any:
        # The time moves on while rows are read, however long that takes.
        assert ticked.wait(600)
        return scan(self, *arguments)

    refresh = tqdm.refresh

    def shown(self: tqdm[Any], *arguments: Any, **more: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            ticked.set()
        return refresh(self, *arguments, **more)

    monkeypatch.setattr(ParquetSource, "scan", watched)
    monkeypatch.setattr(tqdm, "refresh", shown)
    pq.write_table(pa.table({"a": rows()[:, 0]}), tmp_path / "t.parquet", row_group_size=50_000)
    dpcov.release(tmp_path / "t.parquet", rho=1, method="gaussian", radius=1.0, progress=True)
    seen = {line.strip() for line in re.split(r"[\r\n]", capfd.readouterr().err) if line.strip()}
    assert seen
    assert all(re.fullmatch(r"scan 1 of 1: [A-Za-z ]+: \d\d:\d\d", line) for line in seen)


def test_progress_must_be_a_choice() -> None:
    with pytest.raises(dpcov.ArgumentError, match="progress must be True or False"):
        dpcov.release(rows(), rho=1, progress="yes")  # type: ignore[arg-type]


def test_a_method_that_scans_once_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    dpcov.release(rows(), rho=1, method="gaussian", radius=1.0, progress=True)
    assert "scan 1 of 1: " in capfd.readouterr().err


def test_scans_beyond_those_expected_are_not_counted_wrongly(capfd: pytest.CaptureFixture[str]) -> None:
    bars = ScanBars(show=True, expected=2)
    for _ in range(3):
        with bars("look", 10):
            pass
    shown = capfd.readouterr().err
    assert "scan 2 of about 2: look" in shown
    assert "scan 3: look" in shown
