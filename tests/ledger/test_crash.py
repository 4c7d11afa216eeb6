"""Processes killed at random moments, and processes that race, on one real ledger."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from helpers.ledger_processes import (
    COST,
    DATASET,
    check_ledger,
    evidence,
    leave_evidence,
    leave_evidence_too_early,
    look_before_the_transaction,
    release_for_ever,
    release_until_refused,
)

from dpcov.core import LedgerError
from dpcov.ledger import Ledger

RACERS = 8
KILLS = 200
Work = Callable[[Path, Callable[[Path], None], Barrier], None]


def start(folder: Path, work: Work, prepare: Callable[[Path], None], processes: int) -> list[BaseProcess]:
    """Start processes; return once all are about to begin."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dpcov"])
    barrier = context.Barrier(processes + 1)
    started: list[BaseProcess] = [
        context.Process(target=work, args=(folder, prepare, barrier), daemon=True) for _ in range(processes)
    ]
    for process in started:
        process.start()
    barrier.wait(timeout=120)
    return started


def kill_at_random(folder: Path, prepare: Callable[[Path], None], kills: int) -> Iterator[str]:
    """Kill releases at random moments; yield what is wrong after each kill."""
    for _ in range(kills // 2):
        victims = start(folder, release_for_ever, prepare, processes=2)
        try:
            for victim in victims:
                time.sleep(random.uniform(0, 0.06))  # noqa: S311
                victim.kill()
                victim.join()
                assert victim.exitcode == -signal.SIGKILL
                yield check_ledger(folder)
        finally:
            for victim in victims:
                victim.kill()


def new_ledger(folder: Path, total: Fraction) -> Ledger:
    ledger = Ledger.create(folder / "budget.db")
    ledger.add_dataset(DATASET, rho=total)
    return ledger


def test_no_kill_loses_a_charge(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, Fraction(1000))
    assert not any(kill_at_random(tmp_path, leave_evidence, KILLS))
    spent, answered = ledger.account(DATASET).spent.rho, evidence(tmp_path)
    # Something was released, some were hit, and a kill costs no more than the release that it hit.
    assert 0 < answered < spent <= answered + KILLS * COST


def test_noise_before_the_charge_would_be_noticed(tmp_path: Path) -> None:
    # Most of a release's time is the charge here: one check misses this less than half the time,
    # all 200 less than once in 10^60.
    new_ledger(tmp_path, Fraction(1000))
    assert any(kill_at_random(tmp_path, leave_evidence_too_early, KILLS))


def test_racers_never_overspend(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, 40 * COST + COST / 2)
    for racer in start(tmp_path, release_until_refused, leave_evidence, RACERS):
        racer.join(timeout=120)
    assert len(list(tmp_path.glob("refused-*"))) == RACERS
    assert len(ledger.history(DATASET)) == 40
    assert evidence(tmp_path) == ledger.account(DATASET).spent.rho == 40 * COST


def test_looking_before_the_transaction_would_be_noticed(tmp_path: Path) -> None:
    # Overspends unless the other seven all look 0.2 s after the first, though a barrier starts them.
    ledger = new_ledger(tmp_path, COST)
    for racer in start(tmp_path, release_until_refused, look_before_the_transaction, RACERS):
        racer.join(timeout=120)
    with pytest.raises(LedgerError, match="do not add up"):
        ledger.account(DATASET)
