"""A sample that several queries share: what is read of the table, and when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import dask.array as da
import numpy as np
import pytest
from helpers.curators import CountingSource, curator, gaussian_rows
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    Clipping,
    Curator,
    Gram,
    HeldRows,
    LogNormGrid,
    NormHistogram,
    PrivacyCost,
    Report,
    RowTask,
    SeededBits,
    SourceError,
)
from dpcov.maps import identity_map
from dpcov.paper.queries import Agreement
from dpcov.sources import ArraySource, Grouping, open_source


def exact(subject: Curator, every: int, radius: float = 50.0) -> NDArray[np.float64]:
    """The mean of a sample's squares of one column, with next to no noise."""
    clipping = Clipping(identity_map(1), radius)
    return subject.ask(Gram(clipping, 10**7, purpose="", every=every)).mean()


def test_queries_that_look_at_no_more_rows_share_the_sample_that_is_held() -> None:
    rows = np.arange(1.0, 1001)[:, None] / 20
    subject, source = curator(rows, rho=10**9)
    subject.hold(200)
    first = exact(subject, 5)
    assert source.scans == 1
    # The same rows again, asked in other words, and half of them: the table is not scanned for either.
    assert exact(subject, 5, 51.0) == pytest.approx(first, rel=1e-4)
    half = exact(subject, 10)
    assert source.scans == 1
    assert half != pytest.approx(first, rel=1e-4)
    # A sum over half of the sample is one over rows of it: the other half has squares, too.
    assert 0 < 100 * half[0, 0] < 200 * first[0, 0]
    # More rows than are held need a sample of their own, and a new one each time.
    larger = [exact(subject, 4)[0, 0] for _ in range(2)]
    assert source.scans == 3
    assert larger[0] != pytest.approx(larger[1], rel=1e-4)
    assert exact(subject, 1)[0, 0] == pytest.approx((rows**2).mean(), rel=1e-4)


def test_samples_of_several_lengths_and_all_rows_may_be_asked_for_together() -> None:
    rows = np.arange(1.0, 1001)[:, None] / 20
    subject, source = curator(rows, rho=10**9)
    subject.hold(200)
    queries = [Gram(Clipping(identity_map(1), 50.0), 10**7, purpose="", every=k) for k in (5, 1, 10, 5, 3)]
    answers = [float(answer.mean()[0, 0]) for answer in subject.ask(*queries)]
    assert [answer.n_rows for answer in subject.ask(*queries)] == [200, 1000, 100, 200, 334]
    # One scan to hold the sample, and one each time for all rows and those of a sample of its own.
    assert source.scans == 3
    assert answers[0] == pytest.approx(answers[3], rel=1e-4)
    assert answers[0] == pytest.approx(exact(subject, 5)[0, 0], rel=1e-4)
    assert answers[1] == pytest.approx((rows**2).mean(), rel=1e-4)
    assert answers[2] == pytest.approx(exact(subject, 10)[0, 0], rel=1e-4)


def test_what_is_held_is_the_first_rows_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    order = np.random.default_rng(4).permutation(1000)[:200]
    monkeypatch.setattr("dpcov.core.curator.random_order", lambda *arguments: order[: arguments[-1]])
    rows = np.arange(1.0, 1001)[:, None] / 20
    subject, _ = curator(rows, rho=10**9)
    subject.hold(200)
    for every in (5, 10, 40):
        expected = (rows[order[: 1000 // every]] ** 2).mean()
        assert exact(subject, every)[0, 0] == pytest.approx(expected, rel=1e-4)


class Elsewhere(CountingSource):
    """Rows that do not lie in memory."""

    in_memory = False


@pytest.mark.parametrize("kind", [CountingSource, Elsewhere])
def test_a_table_that_is_held_as_a_whole_is_read_once_and_gives_the_same_bits(
    kind: type[CountingSource],
) -> None:
    rows = gaussian_rows(1000, 2)
    queries = [Gram(Clipping(identity_map(2), 3.0), 1, purpose="", every=k) for k in (1, 5, 10, 1, 5)]
    answers, sources = [], [CountingSource(rows), kind(rows)]
    for source, whole in zip(sources, (False, True), strict=True):
        subject = Curator(source, Budget(PrivacyCost(Fraction(9))), SeededBits(np.random.default_rng(0)))
        subject.hold(200, whole=whole)
        answers.append([subject.ask(query).integers for query in queries])
    assert (np.array(answers[0]) == np.array(answers[1])).all()
    # To hold the sample, and for each of the two that read all rows.
    assert [source.scans for source in sources] == [3, 1 if kind is Elsewhere else 3]


def test_rows_that_are_lost_are_replaced_by_another_sample_once() -> None:
    class Lost:
        def scan(self, task: RowTask, n_rows: int, report: Report | None = None) -> NDArray[np.int64]:
            del task, n_rows, report
            raise SourceError("a worker is gone.")

    class Losing(CountingSource):
        losses = 0

        def hold(self, positions: NDArray[np.int64], report: Report | None = None) -> HeldRows:
            held.append(positions)
            found = super().hold(positions, report)
            self.losses -= 1
            return Lost() if self.losses >= 0 else found

    rows, held = np.arange(1.0, 1001)[:, None] / 20, list[NDArray[np.int64]]()
    source = Losing(rows)
    bits = SeededBits(np.random.default_rng(0))
    subject = Curator(source, Budget(PrivacyCost(Fraction(10**9))), bits)
    subject.hold(200)
    source.losses = 1
    assert exact(subject, 5)[0, 0] == pytest.approx((rows[held[1]] ** 2).mean(), rel=1e-4)
    assert len(held) == 2
    assert set(held[0].tolist()) != set(held[1].tolist())
    # What it cost is what one answer costs.
    assert subject.remaining.rho == 10**9 - 10**7
    source.losses, subject._sample = 2, None
    with pytest.raises(SourceError, match="a worker is gone"):
        exact(subject, 10)


def test_what_looks_at_positions_reads_the_table_itself() -> None:
    rows = gaussian_rows(2000, 2)
    scores = []
    for source in (CountingSource(rows), open_source(da.from_array(rows, chunks=(300, 2)))):
        bits = SeededBits(np.random.default_rng(0))
        subject = Curator(source, Budget(PrivacyCost(Fraction(9), Fraction(1, 10))), bits)
        subject.hold(0, whole=True)
        groups = Agreement(Clipping(identity_map(2), 9.0), 50, 4.0, epsilon=1.0, delta=1e-3, purpose="")
        scores.append(subject.ask(groups))
    assert scores[0] == scores[1]


def test_a_sample_stays_the_one_that_is_held_and_totals_are_not_mixed_up() -> None:
    rows = np.arange(1.0, 1001)[:, None] / 20
    subject, source = curator(rows, rho=10**9)
    subject.hold(200)
    # The same map in all: a total may be used again for the same rows only.
    clipping = Clipping(identity_map(1), 50.0)

    def mean(every: int) -> float:
        answer = subject.ask(Gram(clipping, 10**7, purpose="", every=every))
        return float(answer.mean()[0, 0])

    first = {every: mean(every) for every in (5, 10, 1)}
    assert len({round(value) for value in first.values()}) == 3
    assert [mean(5), mean(5)] == pytest.approx([first[5]] * 2, rel=1e-4)
    assert source.scans == 2
    subject.hold(300)
    assert mean(10) == pytest.approx(first[10], rel=1e-4)
    # More rows are held by no sample: each time it is another one.
    assert mean(4) != pytest.approx(mean(4), rel=1e-4)
    assert source.scans == 4


def test_counts_are_used_again_for_the_same_rows_alone() -> None:
    rows = np.random.default_rng(3).normal(size=(1000, 1))
    subject, source = curator(rows, rho=10**9)
    subject.hold(200)
    lattice_map, grid = identity_map(1), LogNormGrid(lowest=-6, highest=3, halves=4)

    def counts(every: int) -> list[int]:
        # Noise of sd 0.0003, rounded.
        asked = NormHistogram(lattice_map, grid, 10**7, purpose="", every=every)
        return [int(count) for count in subject.ask(asked).counts]

    first = counts(5)
    assert (sum(first), counts(5), source.scans) == (200, first, 1)
    assert (sum(counts(10)), sum(counts(1)), sum(counts(5))) == (100, 1000, 200)
    # A sample of its own is drawn anew each time.
    assert counts(4) != counts(4)
    assert source.scans == 4


def test_progress_is_told_the_rows_of_the_table_and_then_those_that_are_held() -> None:
    told: list[tuple[str, int | None]] = []
    read: list[int] = []

    @contextmanager
    def progress(purpose: str, n_rows: int | None) -> Iterator[Report]:
        told.append((purpose, n_rows))
        yield read.append

    source = ArraySource(gaussian_rows(1000, 1), threads=1)
    bits = SeededBits(np.random.default_rng(0))
    subject = Curator(source, Budget(PrivacyCost(Fraction(1))), bits, progress=progress)
    subject.hold(200)
    subject.ask(Gram(Clipping(identity_map(1), 3.0), 1, purpose="second moment", every=10))
    assert told == [("a sample of the rows", 1000), ("second moment", 100)]
    assert sum(read) == 1100


def test_nothing_is_read_or_charged_before_a_sample_is_asked_for() -> None:
    subject, source = curator(gaussian_rows(1000, 1), rho=1)
    subject.hold(10**9)
    subject.hold(500)
    assert source.scans == 0
    assert subject.remaining.rho == 1
    with pytest.raises(ArgumentError, match="n_rows"):
        subject.hold(-1)


def test_units_are_not_held() -> None:
    grouped = open_source(np.arange(12.0)[:, None], None, Grouping(np.repeat(np.arange(6), 2)))
    subject = Curator(grouped, Budget(PrivacyCost(Fraction(10**9))), SeededBits(np.random.default_rng(0)))
    subject.hold(3)
    assert len(subject._sample_order) == 0
    assert subject.ask(Gram(Clipping(identity_map(1), 20.0), 10**7, purpose="", every=2)).n_rows == 3
