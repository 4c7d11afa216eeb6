"""Queries asked together: one scan, the answers of each alone, all charged or none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.curators import CountingSource, curator, gaussian_rows, identity
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    BudgetError,
    Clipping,
    Curator,
    Gram,
    LogNormGrid,
    NormHistogram,
    PrivacyCost,
    Query,
    Report,
    RowsBeyond,
    RowTask,
    Rule,
    SeededBits,
)
from dpcov.core.lattice import Lattice, MappedRows
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.histogram import LogNormTask
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries import Agreement, LeastEigenvalueBuckets
from dpcov.paper.queries.group_grams import GroupGramTask
from dpcov.sources import ArraySource

GRID = LogNormGrid(lowest=-10, highest=10, halves=1)
N_ROWS = 20_011
ROWS = gaussian_rows(N_ROWS, 3)


def tasks() -> list[RowTask]:
    rng = np.random.default_rng(0)
    clipping, lattice = identity(4, 3.0), Lattice.for_table(N_ROWS, 4)
    gram = GramTask(clipping, lattice, constant=True)
    norms = LogNormTask(identity_map(4), GRID, constant=True)
    groups = GroupGramTask(clipping, lattice, True, rng.integers(-1, 7, N_ROWS), 7)
    sampled = [SampledTask(task, np.flatnonzero(rng.random(N_ROWS) < 0.3)) for task in (norms, gram)]
    return [sampled[0], gram, groups, norms, sampled[1]]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_joint_scan_gives_the_total_of_every_task(threads: int) -> None:
    source, joint = ArraySource(ROWS, threads=threads), JointTask(tuple(tasks()))
    parts = joint.split(source.scan(joint))
    for task, part in zip(joint.tasks, parts, strict=True):
        alone = source.scan(task)
        assert part.shape == alone.shape == task.shape
        assert (part == alone).all()


def test_tasks_of_one_map_share_its_rows_and_keep_their_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    lattice, frame = Lattice.for_table(N_ROWS, 4), integer_map(np.tri(4))
    # The same integers in another unit, and other integers.
    longer, other = replace(frame, scale=3 * frame.scale), integer_map(np.eye(4))
    clippings = Clipping(frame, 3.0), Clipping(longer, 2.0, Rule.DROP), Clipping(other, 2.0)
    grams = [GramTask(clipping, lattice, constant=True) for clipping in clippings]
    norms = [LogNormTask(one, GRID, constant=True) for one in (frame, longer, other)]
    joint = JointTask((grams[0], *norms, *grams[1:]))
    source = ArraySource(ROWS, threads=1)
    alone = [source.scan(task) for task in joint.tasks]
    loads: list[MappedRows] = []
    load = MappedRows.load

    def counted(self: MappedRows, block: Any, *, constant: bool) -> None:
        loads.append(self)
        load(self, block, constant=constant)

    monkeypatch.setattr(MappedRows, "load", counted)
    found = joint.split(source.scan(joint))
    assert all((one == two).all() for one, two in zip(found, alone, strict=True))
    # One for the two norms and two Gram matrices of the same integers, one for the other map.
    assert len({id(rows) for rows in loads}) == 2


def test_equal_tasks_have_one_total(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[RowTask] = []
    scan = ArraySource.scan

    def noted(self: ArraySource, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        scanned.append(task)
        return scan(self, task, report)

    monkeypatch.setattr(ArraySource, "scan", noted)
    near, far = (RowsBeyond(identity_map(3), GRID, first, 10, "") for first in (5, 40))
    map_ = near.lattice_map
    far = replace(far, lattice_map=map_)
    norms = curator(ROWS, rho=100)[0].ask(NormHistogram(map_, GRID, 50, ""), near, far)
    assert isinstance(scanned[0], LogNormTask)
    exact = ArraySource(ROWS).scan(LogNormTask(map_, GRID, constant=False))
    for count, first in zip(norms[1:], (5, 40), strict=True):
        assert abs(count.count - exact[first:].sum()) < 5


def test_the_parts_of_a_joint_task_make_the_whole() -> None:
    joint = JointTask(tuple(tasks()))
    whole = ArraySource(ROWS).scan(joint)
    common = joint.with_notes(np.empty(0, dtype=np.int64))
    assert common.shape == joint.shape
    total = np.zeros_like(whole)
    for first, last in ((0, 0), (0, 1), (1, 8000), (8000, N_ROWS)):
        part = common.with_notes(joint.notes(first, last - first))
        rows = ROWS[first:last]
        total += ArraySource(rows).scan(part) if len(rows) else part.worker().total()
    assert (total == whole).all()


def ask_all(every: int = 1) -> list[Query[Any]]:
    return [
        Gram(identity(3, 4.0), Fraction(1, 4), "gram", every),
        NormHistogram(identity_map(3), GRID, Fraction(1, 4), "norms", every),
        RowsBeyond(identity_map(3), GRID, 20, Fraction(1, 4), "beyond"),
    ]


def test_together_they_share_one_scan_and_are_charged_apart() -> None:
    subject, source = curator(ROWS, rho=1)
    gram, norms, beyond = subject.ask(*ask_all())
    assert source.scans == 1
    assert subject.receipt().spent.rho == Fraction(3, 4)
    assert [charge.purpose for charge in subject.receipt().charges] == ["gram", "norms", "beyond"]
    # Noise of the stated sd: seven of them is beyond 1e-11.
    exact = ROWS.T @ ROWS / N_ROWS
    assert np.abs(gram.mean() - exact).max() < 7 * gram.sigma + 1e-3
    counts = np.histogram(np.linalg.norm(ROWS, axis=1), [0, *GRID.edges(), np.inf])[0]
    assert np.abs(norms.counts - counts).max() < 7 * 2
    assert abs(beyond.count - counts[20:].sum()) < 7 * np.sqrt(2)


@pytest.mark.parametrize("every", [1, 3])
def test_the_first_of_several_is_answered_as_if_it_were_alone_but_for_its_bits(every: int) -> None:
    # The draws come in a public order: all samples, one scan, all noise. So each sample is that of its query.
    bits = SeededBits(np.random.default_rng(4))
    subject = Curator(ArraySource(ROWS), Budget(PrivacyCost(Fraction(10**9))), bits)
    queries = [NormHistogram(identity_map(3), GRID, 10**8, "", every) for _ in range(2)]
    first, second = subject.ask(*queries)
    # Noise of variance 1e-8 is zero but once in 10^20,000,000.
    assert first.counts.sum() == second.counts.sum() == -(-N_ROWS // every)
    assert (first.counts == second.counts).all() == (every == 1)


def test_groups_and_whole_tables_go_together() -> None:
    subject, source = curator(ROWS, rho=10, delta=1e-4)
    clipping = identity(3, 20.0)
    answers = subject.ask(
        Agreement(clipping, 200, 1.0, epsilon=1, delta=1e-5, purpose="agreement"),
        LeastEigenvalueBuckets(clipping, 400, 0.5, epsilon=1, delta=1e-5, purpose="eigenvalue"),
        Gram(clipping, 1, "gram"),
    )
    assert source.scans == 1
    assert answers[0].n_groups == 100
    assert min(bucket.lower for bucket in answers[1]) <= 1.0 <= max(bucket.upper for bucket in answers[1])
    assert np.abs(answers[2].mean() - np.eye(3)).max() < 0.1
    assert subject.receipt().spent == PrivacyCost(Fraction(2), 2 * Fraction(1e-5))


@pytest.mark.parametrize("bad", [Gram(identity(4), 1, ""), Gram(identity(3, -1.0), 1, ""), "too dear"])
def test_one_that_cannot_be_asked_leaves_all_of_them_unasked(bad: Any) -> None:
    subject, source = curator(ROWS, rho=1)
    query = Gram(Clipping(identity_map(3), 1.0), Fraction(1, 2), "the last") if bad == "too dear" else bad
    with pytest.raises((ArgumentError, BudgetError)):
        subject.ask(*ask_all(), query)
    assert subject.remaining.rho == 1
    assert subject.receipt().charges == ()
    assert source.scans == 0


def test_a_budget_that_does_not_cover_all_says_what_they_cost() -> None:
    subject, _ = curator(ROWS, rho=Fraction(1, 2))
    message = r"gram and norms and beyond would cost rho=0.75, but only rho=0.5 is left"
    with pytest.raises(BudgetError, match=message):
        subject.ask(*ask_all())


def test_nothing_to_ask_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        curator(ROWS)[0].ask()


def test_progress_names_all_purposes_once() -> None:
    told: list[str] = []

    class Telling:
        def __call__(self, purpose: str, n_rows: int | None) -> Telling:
            told.append(f"{purpose}: {n_rows}")
            return self

        def __enter__(self) -> Report | None:
            return None

        def __exit__(self, *_: object) -> None:
            return None

    source, budget = CountingSource(ROWS), Budget(PrivacyCost(Fraction(10)))
    subject = Curator(source, budget, SeededBits(np.random.default_rng(0)), progress=Telling())
    subject.ask(*ask_all(), Gram(identity(3), 1, "gram"))
    assert told == [f"gram and norms and beyond: {N_ROWS}"]


def test_a_scan_that_fails_keeps_the_charge_of_all() -> None:
    class Failing(ArraySource):
        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            del task, report
            raise OSError("unplugged")

    subject = Curator(Failing(ROWS), Budget(PrivacyCost(Fraction(1))), SeededBits(np.random.default_rng(0)))
    with pytest.raises(OSError, match="unplugged"):
        subject.ask(*ask_all())
    assert subject.remaining.rho == Fraction(1, 4)
