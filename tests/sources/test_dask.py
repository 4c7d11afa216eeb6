from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from helpers.held_rows import check_held
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError, RowTask, SourceChangedError, SourceError
from dpcov.sources import _remote, open_source
from dpcov.sources._held import HeldPart
from dpcov.sources.dask import DaskSource

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    # On a busy machine processes may take their time to start and to answer.
    patience = {"comm.timeouts.connect": "600s", "comm.timeouts.tcp": "600s", "scheduler.worker-ttl": None}
    with (
        dask.config.set({f"distributed.{name}": value for name, value in patience.items()}),
        # Any free port: that of Dask's own choice may be taken by another cluster.
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as active,
    ):
        yield active


def frame(table: NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame({"text": "x", **{name: table[:, i] for i, name in enumerate(NAMES)}})


def pieces(table: NDArray[np.float64]) -> Any:
    """Partitions of odd lengths, an empty one among them."""
    bounds = [0, 1, 1, 700, 2048, 4999, 5000]
    parts = [dask.delayed(frame(table)[i:j]) for i, j in pairwise(bounds)]
    return dd.from_delayed(parts, meta=frame(table)[:0])


COLLECTIONS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "frame-1": lambda table: dd.from_pandas(frame(table), npartitions=1, sort=False),
    "frame-7": lambda table: dd.from_pandas(frame(table), npartitions=7, sort=False),
    "frame-odd": pieces,
    "array-1": lambda table: da.from_array(table, chunks=(5000, 3)),
    "array-7": lambda table: da.from_array(table, chunks=(800, 2)),
    "array-20": lambda table: da.from_array(table, chunks=(250, 3)),
}


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS)
def test_partitions_give_the_same_bits_as_the_array(
    table: NDArray[np.float64], tasks: dict[str, RowTask], make: Callable[[NDArray[np.float64]], Any]
) -> None:
    source = open_source(make(table), NAMES)
    expected = open_source(table)
    assert (source.n_rows, source.columns) == (5000, ("a", "b", "c"))
    for task in tasks.values():
        assert (source.scan(task) == expected.scan(task)).all()
    check_held(source, table, tasks["all"])


def test_a_cluster_of_processes_gives_the_same_bits(
    table: NDArray[np.float64], tasks: dict[str, RowTask], client: Client
) -> None:
    assert len(client.scheduler_info()["workers"]) == 2
    # The default method scans a table many times: for one of them that is enough.
    for name, options in (("frame-7", {"method": "gaussian", "radius": 50.0}), ("array-7", {})):
        arguments: dict[str, Any] = {"rho": 1, "columns": NAMES, **options}
        expected = dpcov.release(table, rng=np.random.default_rng(5), **arguments)
        found = dpcov.release(COLLECTIONS[name](table), rng=np.random.default_rng(5), **arguments)
        assert (found.second_moment().values == expected.second_moment().values).all()
        assert str(found.receipt) == str(expected.receipt)
    source = open_source(pieces(table), NAMES)
    for task in tasks.values():
        assert (source.scan(task) == open_source(table).scan(task)).all()
    check_held(source, table, tasks["all"])


def test_rows_that_a_worker_lost_are_not_read_in_another_order(
    table: NDArray[np.float64], tasks: dict[str, RowTask], client: Client
) -> None:
    source = open_source(COLLECTIONS["array-7"](table), NAMES)
    held = source.hold(np.arange(0, 5000, 7))
    before = held.scan(tasks["all"], 700)
    assert (held.scan(tasks["all"], 700) == before).all()
    # Dask computes the part of a worker that dies again, perhaps from rows that now come in another order.
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    with pytest.raises(SourceChangedError, match="lost rows that it kept"):
        held.scan(tasks["all"], 700)


def test_rows_that_are_held_stay_on_the_workers() -> None:
    held = _remote.Held("word", HeldPart(np.zeros((1, 1)), np.zeros(1, dtype=np.int64)))
    assert _remote.without_rows(held) == _remote.Held("word")


def test_a_partition_that_cannot_be_held_is_told_by_a_public_word(
    table: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(pieces(table), NAMES)
    assert isinstance(source, DaskSource)
    monkeypatch.setattr(source, "_lengths", [1, 0, 700, 1347, 2951, 1])
    with dask.config.set(scheduler="threads"), pytest.raises(SourceChangedError, match="number of rows"):
        source.hold(np.arange(0, 5000, 7))


def test_a_worker_killed_in_a_scan_changes_no_bit_and_no_charge(
    table: NDArray[np.float64], client: Client, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"

    def deadly(part: pd.DataFrame) -> pd.DataFrame:
        file = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b".")
        number = os.lseek(file, 0, os.SEEK_CUR)  # where this call wrote, whoever else did
        os.close(file)
        # Seven calls count the rows; the tenth is in the middle of the scan.
        if number == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    data = dd.from_pandas(frame(table), npartitions=7, sort=False).map_partitions(
        deadly, meta=frame(table)[:0]
    )
    arguments: dict[str, Any] = {"rho": 1, "columns": NAMES, "method": "gaussian", "radius": 50.0}
    expected = dpcov.release(table, rng=np.random.default_rng(5), **arguments)
    before = set(client.run(os.getpid).values())
    found = dpcov.release(data, rng=np.random.default_rng(5), **arguments)
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != before
    assert (found.second_moment().values == expected.second_moment().values).all()
    assert [c.purpose for c in found.receipt.charges] == [c.purpose for c in expected.receipt.charges]
    assert found.receipt.spent == expected.receipt.spent


@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_no_rows_are_reported(
    table: NDArray[np.float64], tasks: dict[str, RowTask], client: Client, where: str
) -> None:
    # A partition's length may depend on rows.
    seen: list[int] = []
    with dask.config.set(scheduler=client if where == "cluster" else "threads"):
        open_source(pieces(table), NAMES).scan(tasks["all"], seen.append)
    assert seen == []


def test_a_partition_of_another_length_stops_the_scan(
    table: NDArray[np.float64], tasks: dict[str, RowTask], tmp_path: Path
) -> None:
    shorter = tmp_path / "shorter"

    def vanish(part: pd.DataFrame) -> pd.DataFrame:
        return part[1:] if shorter.exists() else part

    whole = dd.from_pandas(frame(table), npartitions=3, sort=False)
    data = whole.map_partitions(vanish, meta=frame(table)[:0])
    with dask.config.set(scheduler="threads"):
        source = open_source(data, NAMES)
        shorter.touch()
        with pytest.raises(SourceChangedError, match="another number of rows or units than when"):
            source.scan(tasks["all"])


def test_errors_come_before_the_budget_and_without_values(
    table: NDArray[np.float64], tasks: dict[str, RowTask], tmp_path: Path
) -> None:
    failing = tmp_path / "failing"

    def spoil(part: pd.DataFrame) -> pd.DataFrame:
        if failing.exists():
            raise ValueError("could not read 'secret'")
        return part

    mixed = [dask.delayed(frame(table)[:9]), dask.delayed(frame(table)[9:].drop(columns="a"))]
    good = dd.from_pandas(frame(table), npartitions=3, sort=False)
    with dask.config.set(scheduler="threads"):
        with pytest.raises(ArgumentError, match=r"^data cannot be read \(KeyError\)"):
            open_source(dd.from_delayed(mixed, meta=frame(table)[:0], verify_meta=False), NAMES)
        with pytest.raises(ArgumentError, match="not numeric: text"):
            open_source(good)
        with pytest.raises(ArgumentError, match="not in data: z"):
            open_source(good, ["z"])
        with pytest.raises(ArgumentError, match="two dimensions"):
            open_source(da.zeros(5))
        with pytest.raises(ArgumentError, match="real numbers"):
            open_source(da.zeros((5, 2), dtype=complex))
        with pytest.raises(ArgumentError, match="no rows"):
            open_source(da.zeros((0, 2)))
        source = open_source(good.map_partitions(spoil, meta=frame(table)[:0]), NAMES)
        failing.touch()
        with pytest.raises(SourceError, match=r"the Dask computation failed \(ValueError\)") as caught:
            source.scan(tasks["all"])
        assert "secret" not in str(caught.value)
        with pytest.raises(ArgumentError, match=r"data cannot be read \(ValueError\)\."):
            open_source(good.map_partitions(spoil, meta=frame(table)[:0]), NAMES)
