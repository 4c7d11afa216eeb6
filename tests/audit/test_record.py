"""Figures survive when several parts of an audit write at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from audit import record as module


def test_no_record_is_lost_among_many_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every record opens the file anew, and the lock belongs to what was opened: threads meet as processes do.
    monkeypatch.setattr(module, "RESULTS", tmp_path / "figures.json")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: module.record(f"section {k % 3}", f"check {k}", runs=k), range(120)))
    found = json.loads((tmp_path / "figures.json").read_text())
    assert sorted(figures["runs"] for section in found.values() for figures in section.values()) == [
        *range(120)
    ]
