"""Processes killed on their way, and processes that race, on one real ledger."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from helpers.ledger_processes import (
    COST,
    DATASET,
    PATIENCE,
    check_ledger,
    die_at_line,
    evidence,
    leave_evidence,
    leave_evidence_too_early,
    release_for_ever,
    release_until_refused,
)

from dpcov.core import LedgerError
from dpcov.ledger import Ledger

RACERS = 8
KILLS = 200
PROCESSES = multiprocessing.get_context("forkserver")
# What a process would import on its own, once for all: dpcov imports little until it is asked.
PROCESSES.set_forkserver_preload(["dpcov.release", "dpcov.sources"])


def start(processes: int, work: Callable[..., None], *arguments: Any) -> list[BaseProcess]:
    """Start processes that wait for each other; return once all are about to begin."""
    barrier = PROCESSES.Barrier(processes + 1)
    started: list[BaseProcess] = [
        PROCESSES.Process(target=work, args=(*arguments, barrier), daemon=True) for _ in range(processes)
    ]
    for process in started:
        process.start()
    barrier.wait(PATIENCE)
    return started


def kill_at_every_line(folder: Path, prepare: Callable[[Path], None]) -> Iterator[int]:
    """Kill releases at every line of a charge and its settlement; yield how many were killed so far."""
    for number in count():
        victim = PROCESSES.Process(target=die_at_line, args=(folder, prepare, number), daemon=True)
        victim.start()
        victim.join(PATIENCE)
        if victim.exitcode == 0:
            return
        assert victim.exitcode == -signal.SIGKILL
        yield number + 1


def new_ledger(folder: Path, total: Fraction) -> Ledger:
    ledger = Ledger.create(folder / "budget.db")
    ledger.add_dataset(DATASET, rho=total)
    return ledger


def test_no_kill_loses_a_charge(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, Fraction(1000))
    kills, within_a_transaction = 0, 0
    for kills in kill_at_every_line(tmp_path, leave_evidence):  # noqa: B007
        within_a_transaction += (tmp_path / "budget.db-journal").exists()
        assert not check_ledger(tmp_path)
    assert within_a_transaction
    spent, answered = ledger.account(DATASET).spent.rho, evidence(tmp_path)
    # Some were killed before their answer and some after it; none cost more than was charged for it.
    assert 0 < answered < spent <= answered + kills * COST


def test_noise_before_the_charge_would_be_noticed(tmp_path: Path) -> None:
    new_ledger(tmp_path, Fraction(1000))
    assert any(check_ledger(tmp_path) for _ in kill_at_every_line(tmp_path, leave_evidence_too_early))


@pytest.mark.audit
def test_no_kill_at_any_moment_loses_a_charge(tmp_path: Path) -> None:
    # Moments at random, in SQLite as well, of two processes that share the ledger.
    ledger = new_ledger(tmp_path, Fraction(1000))
    for _ in range(KILLS // 2):
        victims = start(2, release_for_ever, tmp_path, leave_evidence)
        try:
            for victim in victims:
                time.sleep(random.uniform(0, 0.06))  # noqa: S311
                victim.kill()
                victim.join()
                assert victim.exitcode == -signal.SIGKILL
                assert not check_ledger(tmp_path)
        finally:
            for victim in victims:
                victim.kill()
    assert ledger.account(DATASET).spent.rho <= evidence(tmp_path) + KILLS * COST


def test_racers_never_overspend(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, 40 * COST + COST / 2)
    for racer in start(RACERS, release_until_refused, tmp_path, None):
        racer.join(PATIENCE)
    assert len(list(tmp_path.glob("refused-*"))) == RACERS
    assert len([line for line in ledger.history(DATASET) if line.kind == "charge"]) == 40
    assert evidence(tmp_path) == ledger.account(DATASET).spent.rho == 40 * COST


def test_looking_before_the_transaction_would_be_noticed(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, COST)
    for racer in start(RACERS, release_until_refused, tmp_path, PROCESSES.Barrier(RACERS)):
        racer.join(PATIENCE)
    with pytest.raises(LedgerError, match="do not add up"):
        ledger.account(DATASET)
