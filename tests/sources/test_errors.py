"""What a reader, a task or an engine says about a failure may quote a value: none of it is kept."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from helpers.cut_tables import NAMES, ROWS, TABLES
from helpers.replay import chain
from numpy.typing import NDArray

from dpcov.core import Block, DpcovError, RowTask, RowWorker, SourceError
from dpcov.core.queries.sample import SampledTask
from dpcov.core.units import Units
from dpcov.paper.queries.shrinking import ShrinkingMemory
from dpcov.rivals.queries.unvetted.stable_moment import CollectTask
from dpcov.sources import _held, _remote, arrays, arrow, csv_files, open_source
from dpcov.sources._held import Chosen, CopyRows, HeldPart
from dpcov.sources._remote import Held, Partial
from dpcov.sources._scan import Piece
from dpcov.sources.arrays import ArraySource
from dpcov.sources.csv_records import Records
from dpcov.sources.dask import DaskSource

SECRET = "Ada earns 91234"  # noqa: S105


def quote_a_value(*_: Any, **__: Any) -> Any:
    """Fail as a reader does, with an error that came from another one."""
    raise ValueError(f"cannot convert: {SECRET}") from KeyError(SECRET)


class _Failing:
    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        del block, first_row, units
        quote_a_value()

    def total(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class FailingTask(RowTask):
    block_rows: int = 1000
    shape: tuple[int, ...] = (1,)

    def worker(self) -> RowWorker:
        return _Failing()


def check(data: Any, task: RowTask | None, caught: type[DpcovError] = SourceError) -> None:
    with dask.config.set(scheduler="synchronous"):
        source = open_source(data, NAMES)
        with pytest.raises(caught, match=r"\(ValueError\)|: ValueError") as raised:
            source.hold(np.arange(100)) if task is None else source.scan(task)
    everything = [repr((one.args, getattr(one, "__notes__", []))) for one in chain(raised.value)]
    everything += traceback.format_exception(raised.value)
    assert not [text for text in everything if "91234" in text]
    assert all(isinstance(one, DpcovError) for one in chain(raised.value))


@pytest.mark.parametrize("kind", TABLES)
def test_no_error_of_a_task_is_kept(kind: type, tmp_path: Path) -> None:
    check(TABLES[kind](ROWS, tmp_path), FailingTask())


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind is not ArraySource])
def test_no_error_of_a_reader_is_kept(kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "series_cells", quote_a_value)
    monkeypatch.setattr(arrow, "series_cells", quote_a_value)
    monkeypatch.setattr(arrow, "arrow_cells", quote_a_value)
    monkeypatch.setattr(csv_files.CsvSource, "_read", quote_a_value)
    check(TABLES[kind](ROWS, tmp_path), FailingTask())


def test_no_error_of_an_engine_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remote, "run", quote_a_value)
    check(TABLES[DaskSource](ROWS, tmp_path), FailingTask())


@pytest.mark.parametrize("kind", TABLES)
def test_no_error_of_holding_rows_is_kept(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_held, "copy_rows", quote_a_value)
    check(TABLES[kind](ROWS, tmp_path), None)


def test_no_error_of_an_engine_that_holds_rows_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hold", "join", "without_rows"):
        with monkeypatch.context() as patch:
            patch.setattr(_remote, name, quote_a_value)
            check(TABLES[DaskSource](ROWS, tmp_path), None)


def test_what_is_held_and_cannot_be_put_together_raises_nothing_that_an_engine_could_log() -> None:
    parts = [HeldPart(np.full((1, width), 91234.0), np.zeros(1, dtype=np.int64)) for width in (1, 2)]
    held = _remote.join([Held("", part) for part in parts])
    assert (held.part, held.problem) == (None, "ValueError.")
    found = _remote.run_held(Held("", parts[0]), "", 1, b"91234")
    assert (found.total, found.problem) == (None, "UnpicklingError.")


def test_no_error_of_opening_is_kept(tmp_path: Path) -> None:
    with pytest.raises(DpcovError) as raised:
        arrow.opening("data", quote_a_value)
    assert list(chain(raised.value)) == [raised.value]
    (tmp_path / "t.csv").write_bytes(b"\xff91234\n1\n")
    with pytest.raises(DpcovError) as raised:
        open_source(tmp_path / "t.csv", ["a"])
    assert list(chain(raised.value)) == [raised.value]


def test_partial_sums_that_cannot_be_added_raise_nothing_that_an_engine_could_log() -> None:
    sums = [Partial(1, np.full(3, 91234)), Partial(1, np.full(4, 91234))]
    found = _remote.add(sums)
    assert (found.total, found.problem) == (None, "ValueError.")


@pytest.mark.parametrize(
    "holder",
    [
        Partial(1, np.array([91234])),
        Piece(0, 1, lambda: [np.array([91234.0])]),
        Piece(0, 1, partial(lambda text: [np.array([float(text)])], b"91234")),
        Records(b"91234\n", np.array([5]), np.zeros(1, dtype=np.bool_)),
        ShrinkingMemory((), np.array([91234.0])),
        SampledTask(FailingTask(), np.array([91234])),
        CollectTask(1, 1, constant=False),
        CollectTask(1, 1, constant=False).worker(),
        ArraySource(np.full((1, 1), 91234.0)),
        ArraySource(np.full((1, 1), 91234.0)).hold(np.zeros(1, dtype=np.int64)),
        Chosen(np.array([91234]), np.array([91234])),
        HeldPart(np.full((1, 1), 91234.0), np.array([91234])),
        Held("", HeldPart(np.full((1, 1), 91234.0), np.array([91234]))),
        CopyRows(np.array([0]), 1, 1),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_what_holds_rows_or_sums_of_them_does_not_show_them(holder: object) -> None:
    assert "91234" not in repr(holder)


def test_a_table_that_is_put_together_warns_of_no_value() -> None:
    # Warnings are errors here.
    worker = CollectTask(2, 1, constant=False).worker()
    worker.add([np.array([np.longdouble("1e400"), np.longdouble(2)])], 0)
    assert worker.total().view(np.float64).tolist() == [[0.0], [2.0]]
