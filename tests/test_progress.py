from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import dpcov


def rows() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.random.default_rng(0).normal(size=(150_000, 3))


def test_nothing_is_shown_when_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    dpcov.release(rows(), rho=1)
    dpcov.release(rows(), rho=1, progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_bar_names_the_scan_its_purpose_and_the_rows(capfd: pytest.CaptureFixture[str]) -> None:
    result = dpcov.release(rows(), rho=1, progress=True)
    shown = capfd.readouterr().err
    for number, charge in enumerate(result.receipt.charges, start=1):
        assert f"scan {number}: {charge.purpose}:" in shown
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


def test_progress_must_be_a_choice() -> None:
    with pytest.raises(dpcov.ArgumentError, match="progress must be True or False"):
        dpcov.release(rows(), rho=1, progress="yes")  # type: ignore[arg-type]
