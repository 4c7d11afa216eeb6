from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import dask.array as da
import numpy as np
import pytest
from helpers.curators import CountingSource, curator, gaussian_rows
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    BudgetError,
    Clipping,
    Curator,
    Gram,
    HeldRows,
    LatticeMap,
    LogNormGrid,
    NormHistogram,
    OSEntropy,
    PrivacyCost,
    Report,
    RowsBeyond,
    RowTask,
    SeededBits,
    SourceError,
    sampled_rows,
)
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries import Agreement
from dpcov.sources import ArraySource, Grouping, open_source

GRID = LogNormGrid(lowest=-10, highest=10, halves=1)


def test_a_gram_is_the_exact_one_plus_noise_of_the_stated_law() -> None:
    rows = gaussian_rows(2000, 30)
    clipping = Clipping(identity_map(30), 12.0)
    answers = [
        curator(rows, seed=seed)[0].ask(Gram(clipping, Fraction(1, 2), purpose="")) for seed in range(40)
    ]
    exact = answers[0].lattice_map.matrix() @ (rows.T @ rows / 2000) @ answers[0].lattice_map.matrix().T
    noise = np.array([answer.mean() - exact for answer in answers]) / answers[0].sigma
    diagonal = noise[:, np.arange(30), np.arange(30)]
    above = noise[:, *np.triu_indices(30, 1)] * np.sqrt(2)
    # 1,200 and 17,400 samples of variance 1: five sd of the sample variance; fails for a sd 10% off.
    assert abs(diagonal.var() - 1) < 5 * np.sqrt(2 / diagonal.size) < 0.21
    assert abs(above.var() - 1) < 5 * np.sqrt(2 / above.size)
    assert (noise == noise.transpose(0, 2, 1)).all()


def test_the_noise_scale_follows_from_the_budget_and_the_bound() -> None:
    subject, _ = curator(gaussian_rows())
    answer = subject.ask(Gram(Clipping(identity_map(4), 5.0), Fraction(1, 3), purpose=""))
    bound, clip = subject._table.lattice.bound, subject._table.lattice.clip
    assert answer.variance % 2 == 0
    assert 0 <= answer.variance - 3 * bound**4 < 2
    assert answer.sigma == pytest.approx((5.0 / clip) ** 2 * bound**2 * np.sqrt(3) / 20_000)


def test_released_entries_are_integers_on_a_public_grid() -> None:
    rows, other = gaussian_rows(), gaussian_rows() * 3
    clipping = Clipping(identity_map(4), 5.0)
    first = curator(rows)[0].ask(Gram(clipping, 1, purpose=""))
    second = curator(other)[0].ask(Gram(clipping, 1, purpose=""))
    assert first.integers.dtype == second.integers.dtype == np.int64
    assert first.unit == second.unit


def test_counts_add_up_to_the_rows_up_to_noise() -> None:
    answer = curator(gaussian_rows())[0].ask(NormHistogram(identity_map(4), GRID, 1, purpose=""))
    assert answer.variance == 1 + Fraction(1, 12)
    assert abs(answer.counts.sum() - 20_000) < 6 * np.sqrt(GRID.n_bins)


def test_a_query_is_charged_even_if_the_scan_fails() -> None:
    class Failing(ArraySource):
        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            del task, report
            raise OSError("unplugged")

    subject = Curator(Failing(gaussian_rows()), Budget(PrivacyCost(Fraction(1))), OSEntropy())
    with pytest.raises(OSError, match="unplugged"):
        subject.ask(Gram(Clipping(identity_map(4), 1.0), Fraction(1, 4), purpose="lost"))
    assert subject.remaining.rho == Fraction(3, 4)


def test_what_the_budget_cannot_pay_is_refused_before_any_scan() -> None:
    subject, source = curator(gaussian_rows(), rho=Fraction(1, 2))
    subject.ask(NormHistogram(identity_map(4), GRID, Fraction(1, 4), purpose="norms"))
    with pytest.raises(BudgetError, match=r"the matrix would cost rho=0.5, but only rho=0.25 is left"):
        subject.ask(Gram(Clipping(identity_map(4), 1.0), Fraction(1, 2), purpose="the matrix"))
    with pytest.raises(BudgetError, match=r"delta=1e-06"):
        subject.ask(
            Agreement(Clipping(identity_map(4), 1.0), 100, 1.0, epsilon=0.1, delta=1e-6, purpose="agreement")
        )
    assert source.scans == 1
    assert [charge.purpose for charge in subject.receipt().charges] == ["norms"]


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf")])
def test_a_bad_rho_costs_nothing(rho: float) -> None:
    subject, source = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match="rho"):
        subject.ask(Gram(Clipping(identity_map(4), 1.0), rho, purpose=""))
    assert subject.remaining.rho == 1
    assert source.scans == 0


@pytest.mark.parametrize(
    "clipping",
    [
        Clipping(identity_map(3), 1.0),
        Clipping(identity_map(4), 0.0),
        Clipping(identity_map(4), float("nan")),
        Clipping(identity_map(4), -1.0),
    ],
)
def test_bad_clipping_costs_nothing(clipping: Clipping) -> None:
    subject, source = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match=r"map|radius"):
        subject.ask(Gram(clipping, 1, purpose=""))
    assert subject.remaining.rho == 1
    assert source.scans == 0


def test_a_tiny_rho_is_refused_rather_than_overflowed() -> None:
    subject, _ = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match="too small"):
        subject.ask(Gram(Clipping(identity_map(4), 1.0), 1e-30, purpose=""))


def test_seeded_answers_are_marked_and_repeat_and_others_do_not() -> None:
    clipping = Clipping(identity_map(4), 1.0)
    seeded = [curator(gaussian_rows(), seed=5)[0] for _ in range(2)]
    first, second = (subject.ask(Gram(clipping, 1, purpose="")).integers for subject in seeded)
    assert (first == second).all()
    assert not seeded[0].receipt().private
    fresh = [curator(gaussian_rows(), seed=None)[0] for _ in range(2)]
    third, fourth = (subject.ask(Gram(clipping, 1, purpose="")).integers for subject in fresh)
    assert (third != fourth).any()
    assert fresh[0].receipt().private


@pytest.mark.parametrize("every", [1, 2, 3, 7, 100])
def test_a_sampled_scan_reads_one_row_in_so_many(every: int) -> None:
    rows = gaussian_rows(20_500, 2)
    answer = curator(rows, rho=10**9)[0].ask(
        NormHistogram(identity_map(2), GRID, 10**7, purpose="", every=every)
    )
    # Noise of variance 1e-9 is zero but once in 10^200,000,000.
    assert answer.counts.sum() == answer.n_rows == sampled_rows(len(rows), every) == -(-20_500 // every)


BAD_QUERIES: dict[str, Callable[[Curator], object]] = {
    "tiny rho": lambda c: c.ask(NormHistogram(identity_map(4), GRID, 1e-36, purpose="")),
    "huge radius": lambda c: c.ask(Gram(Clipping(identity_map(4), 1e170), 1, purpose="")),
    "tiny radius": lambda c: c.ask(Gram(Clipping(identity_map(4), 1e-170), 1, purpose="")),
    "every": lambda c: c.ask(Gram(Clipping(identity_map(4), 1.0), 1, purpose="", every=2.0)),  # type: ignore[arg-type]
    "rule": lambda c: c.ask(Gram(Clipping(identity_map(4), 1.0, "shrink"), 1, purpose="")),  # type: ignore[arg-type]
    "negative bin": lambda c: c.ask(RowsBeyond(identity_map(4), GRID, -1, 1, purpose="")),
    "bin": lambda c: c.ask(RowsBeyond(identity_map(4), GRID, GRID.n_bins + 1, 1, purpose="")),
    "half a bin": lambda c: c.ask(RowsBeyond(identity_map(4), GRID, 1.5, 1, purpose="")),  # type: ignore[arg-type]
    "count of no rho": lambda c: c.ask(RowsBeyond(identity_map(4), GRID, 1, 0, purpose="")),
    "count of tiny rho": lambda c: c.ask(RowsBeyond(identity_map(4), GRID, 1, 1e-36, purpose="")),
    "map of a count": lambda c: c.ask(RowsBeyond(identity_map(3), GRID, 1, 1, purpose="")),
    "grid": lambda c: c.ask(NormHistogram(identity_map(4), LogNormGrid(1.5, 3, 1), 1, purpose="")),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("ask", BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_bad_queries_are_refused_before_anything_is_spent(ask: Callable[[Curator], object]) -> None:
    subject, source = curator(gaussian_rows(), rho=10, delta=0.5)
    with pytest.raises(ArgumentError):
        ask(subject)
    assert subject.remaining.rho == 10
    assert source.scans == 0


def test_numpy_numbers_are_numbers() -> None:
    subject, _ = curator(gaussian_rows(), rho=10)
    one: Any = np.int64(1)
    radius: Any = np.float32(1.0)
    subject.ask(NormHistogram(identity_map(4), GRID, one, purpose=""))
    subject.ask(Gram(Clipping(identity_map(4), radius), np.float64(0.5), purpose=""))
    assert subject.remaining.rho == Fraction(17, 2)


def test_rows_beyond_counts_with_the_stated_noise_and_scans_once() -> None:
    rows = gaussian_rows(3000, 2)
    subject, source = curator(rows, rho=1000)
    lattice_map = identity_map(2)
    edges, norms = GRID.edges(), np.linalg.norm(rows, axis=1)
    rho = Fraction(1, 8)
    answers = [subject.ask(RowsBeyond(lattice_map, GRID, 21, rho, purpose="")) for _ in range(2000)]
    assert source.scans == 1
    assert subject.remaining.rho == 1000 - 2000 * rho
    assert {answer.variance for answer in answers} == {4 + Fraction(1, 12)}
    noise = np.array([answer.count for answer in answers]) - (norms >= edges[20]).sum()
    # 2,000 samples of variance 4 before rounding: five sd of mean and variance; noise a fifth off would fail.
    assert abs(noise.mean()) < 5 * 2 / np.sqrt(2000)
    assert abs(noise.var() / float(4 + Fraction(1, 12)) - 1) < 5 * np.sqrt(2 / 2000) < 1.2**2 - 1
    exact = subject.ask(RowsBeyond(lattice_map, GRID, 0, 400, purpose="")).count
    assert abs(exact - 3000) <= 1


def test_rows_beyond_never_reuses_counts_of_another_map_or_grid() -> None:
    subject, source = curator(gaussian_rows(5000, 2), rho=10**7)
    maps = [identity_map(2), integer_map(np.eye(2) * 8), identity_map(2)]
    grids = [GRID, LogNormGrid(lowest=-10, highest=10, halves=2), LogNormGrid(-10, 10, 1)]
    norms = np.linalg.norm(gaussian_rows(5000, 2), axis=1)
    scans = 0
    last: tuple[LatticeMap, LogNormGrid] | None = None
    order = np.random.default_rng(0).integers(0, 3, size=(40, 2))
    for i, j in order:
        lattice_map, grid = maps[i], grids[j]
        scale = 8.0 if i == 1 else 1.0
        first = int(grid.n_bins * 0.55)
        count = subject.ask(RowsBeyond(lattice_map, grid, first, 10**5, purpose="")).count
        # Noise of sd 0.002: never 1. No norm of this table is within 1e-6 of an edge.
        assert count == (norms * scale >= grid.edges()[first - 1]).sum()
        scans += last is None or last[0] is not lattice_map or last[1] != grid
        last = lattice_map, grid
        assert source.scans == scans


def test_a_failed_scan_leaves_no_counts_behind() -> None:
    class Sometimes(ArraySource):
        broken = False

        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            if self.broken:
                raise OSError("unplugged")
            return super().scan(task, report)

    source = Sometimes(gaussian_rows(1000, 2))
    subject = Curator(source, Budget(PrivacyCost(Fraction(10**7))), OSEntropy())
    first, second = identity_map(2), integer_map(np.eye(2) * 64)
    expected = subject.ask(RowsBeyond(first, GRID, 20, 10**5, purpose="")).count
    source.broken = True
    with pytest.raises(OSError, match="unplugged"):
        subject.ask(RowsBeyond(second, GRID, 20, 10**5, purpose=""))
    assert subject.ask(RowsBeyond(first, GRID, 20, 10**5, purpose="")).count == expected
    source.broken = False
    assert subject.ask(RowsBeyond(second, GRID, 20, 10**5, purpose="")).count > expected


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
