from __future__ import annotations

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


def test_a_bar_shows_nothing_that_depends_on_the_rows(capfd: pytest.CaptureFixture[str]) -> None:
    shown = []
    for table in (rows(), np.full((150_000, 3), np.nan)):
        dpcov.release(table, rho=1, progress=True, method="gaussian", radius=1.0)
        text = capfd.readouterr().err
        # What is left after times and intermediate states: the first and the last state.
        states = [re.sub(r"\[.*", "", state).strip() for state in text.split("\r") if state.strip()]
        shown.append((states[0], states[-1]))
    assert shown[0] == shown[1]


def test_progress_must_be_a_choice() -> None:
    with pytest.raises(dpcov.ArgumentError, match="progress must be True or False"):
        dpcov.release(rows(), rho=1, progress="yes")  # type: ignore[arg-type]
