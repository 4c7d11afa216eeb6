from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    LatticeMap,
    LogNormGrid,
    OSEntropy,
    PrivacyCost,
    Report,
    RowTask,
    Rule,
    SeededBits,
    Shrinking,
    identity_map,
    integer_map,
    sampled_rows,
)
from dpcov.core.queries.gram import GramTask
from dpcov.sources import ArraySource

GRID = LogNormGrid(lowest=-10, highest=10, halves=1)


def test_a_gram_is_the_exact_one_plus_noise_of_the_stated_law() -> None:
    rows = gaussian_rows(2000, 30)
    clipping = Clipping(identity_map(30), 12.0)
    answers = [curator(rows, seed=seed)[0].gram(clipping, Fraction(1, 2), purpose="") for seed in range(40)]
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
    answer = subject.gram(Clipping(identity_map(4), 5.0), Fraction(1, 3), purpose="")
    bound = subject._lattice.bound
    assert answer.variance % 2 == 0
    assert 0 <= answer.variance - 3 * bound**4 < 2
    assert answer.sigma == pytest.approx((5.0 / subject._lattice.clip) ** 2 * bound**2 * np.sqrt(3) / 20_000)


def test_released_entries_are_integers_on_a_public_grid() -> None:
    rows, other = gaussian_rows(), gaussian_rows() * 3
    clipping = Clipping(identity_map(4), 5.0)
    first = curator(rows)[0].gram(clipping, 1, purpose="")
    second = curator(other)[0].gram(clipping, 1, purpose="")
    assert first.integers.dtype == second.integers.dtype == np.int64
    assert first.unit == second.unit


def test_counts_add_up_to_the_rows_up_to_noise() -> None:
    answer = curator(gaussian_rows())[0].log_norms(identity_map(4), GRID, 1, purpose="")
    assert answer.variance == 1
    assert abs(answer.counts.sum() - 20_000) < 6 * np.sqrt(GRID.n_bins)


def test_a_query_is_charged_even_if_the_scan_fails() -> None:
    class Failing(ArraySource):
        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            del task, report
            raise OSError("unplugged")

    subject = Curator(Failing(gaussian_rows()), Budget(PrivacyCost(Fraction(1))), OSEntropy())
    with pytest.raises(OSError, match="unplugged"):
        subject.gram(Clipping(identity_map(4), 1.0), Fraction(1, 4), purpose="lost")
    assert subject.remaining.rho == Fraction(3, 4)


def test_what_the_budget_cannot_pay_is_refused_before_any_scan() -> None:
    subject, source = curator(gaussian_rows(), rho=Fraction(1, 2))
    subject.log_norms(identity_map(4), GRID, Fraction(1, 4), purpose="norms")
    with pytest.raises(BudgetError, match=r"the matrix would cost rho=0.5, but only rho=0.25 is left"):
        subject.gram(Clipping(identity_map(4), 1.0), Fraction(1, 2), purpose="the matrix")
    with pytest.raises(BudgetError, match=r"delta=1e-06"):
        subject.agreement(
            Clipping(identity_map(4), 1.0), 100, 1.0, epsilon=0.1, delta=1e-6, purpose="agreement"
        )
    assert source.scans == 1
    assert [charge.purpose for charge in subject.receipt().charges] == ["norms"]


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf")])
def test_a_bad_rho_costs_nothing(rho: float) -> None:
    subject, source = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match="rho"):
        subject.gram(Clipping(identity_map(4), 1.0), rho, purpose="")
    assert subject.remaining.rho == 1
    assert source.scans == 0


@pytest.mark.parametrize(
    "clipping",
    [
        Clipping(identity_map(3), 1.0),
        Clipping(identity_map(4), 0.0),
        Clipping(identity_map(4), float("nan")),
        Clipping(identity_map(4), 1.0, earlier=(Shrinking(identity_map(4), -1.0),)),
    ],
)
def test_bad_clipping_costs_nothing(clipping: Clipping) -> None:
    subject, source = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match=r"map|radius"):
        subject.gram(clipping, 1, purpose="")
    assert subject.remaining.rho == 1
    assert source.scans == 0


def test_a_tiny_rho_is_refused_rather_than_overflowed() -> None:
    subject, _ = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match="too small"):
        subject.gram(Clipping(identity_map(4), 1.0), 1e-30, purpose="")


def test_seeded_answers_are_marked_and_repeat_and_others_do_not() -> None:
    clipping = Clipping(identity_map(4), 1.0)
    seeded = [curator(gaussian_rows(), seed=5)[0] for _ in range(2)]
    first, second = (subject.gram(clipping, 1, purpose="").integers for subject in seeded)
    assert (first == second).all()
    assert not seeded[0].receipt().private
    fresh = [curator(gaussian_rows(), seed=None)[0] for _ in range(2)]
    third, fourth = (subject.gram(clipping, 1, purpose="").integers for subject in fresh)
    assert (third != fourth).any()
    assert fresh[0].receipt().private


@pytest.mark.parametrize("every", [1, 2, 3, 7, 100])
def test_a_sampled_scan_reads_one_row_in_so_many(every: int) -> None:
    rows = gaussian_rows(20_500, 2)
    answer = curator(rows, rho=10**9)[0].log_norms(identity_map(2), GRID, 10**9, purpose="", every=every)
    # Noise of variance 1e-9 is zero but once in 10^200,000,000.
    assert answer.counts.sum() == answer.n_rows == sampled_rows(len(rows), every) == -(-20_500 // every)


BAD_QUERIES: dict[str, Callable[[Curator], object]] = {
    "tiny rho": lambda c: c.log_norms(identity_map(4), GRID, 1e-36, purpose=""),
    "huge radius": lambda c: c.gram(Clipping(identity_map(4), 1e170), 1, purpose=""),
    "tiny radius": lambda c: c.gram(Clipping(identity_map(4), 1e-170), 1, purpose=""),
    "every": lambda c: c.gram(Clipping(identity_map(4), 1.0), 1, purpose="", every=2.0),  # type: ignore[arg-type]
    "group size": lambda c: c.agreement(
        Clipping(identity_map(4), 1.0), 10.5, 1.0, epsilon=1, delta=0.1, purpose=""  # type: ignore[arg-type]
    ),
    "distance": lambda c: c.agreement(
        Clipping(identity_map(4), 1.0), 10, 1e300, epsilon=1, delta=0.1, purpose=""
    ),
    "earlier map": lambda c: c.agreement(
        Clipping(identity_map(4), 1.0, earlier=(Shrinking(identity_map(3), 1.0),)),
        10, 1.0, epsilon=1, delta=0.1, purpose="",
    ),
    "rule": lambda c: c.gram(Clipping(identity_map(4), 1.0, "shrink"), 1, purpose=""),  # type: ignore[arg-type]
    "negative bin": lambda c: c.rows_beyond(identity_map(4), GRID, -1, 1, purpose=""),
    "bin": lambda c: c.rows_beyond(identity_map(4), GRID, GRID.n_bins + 1, 1, purpose=""),
    "half a bin": lambda c: c.rows_beyond(identity_map(4), GRID, 1.5, 1, purpose=""),  # type: ignore[arg-type]
    "count of no rho": lambda c: c.rows_beyond(identity_map(4), GRID, 1, 0, purpose=""),
    "count of tiny rho": lambda c: c.rows_beyond(identity_map(4), GRID, 1, 1e-36, purpose=""),
    "map of a count": lambda c: c.rows_beyond(identity_map(3), GRID, 1, 1, purpose=""),
    "grid": lambda c: c.log_norms(identity_map(4), LogNormGrid(1.5, 3, 1), 1, purpose=""),  # type: ignore[arg-type]
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
    subject.log_norms(identity_map(4), GRID, one, purpose="")
    subject.gram(Clipping(identity_map(4), radius), np.float64(0.5), purpose="")
    assert subject.remaining.rho == Fraction(17, 2)


def test_rows_beyond_counts_with_the_stated_noise_and_scans_once() -> None:
    rows = gaussian_rows(3000, 2)
    subject, source = curator(rows, rho=1000)
    lattice_map = identity_map(2)
    edges, norms = GRID.edges(), np.linalg.norm(rows, axis=1)
    rho = Fraction(1, 8)
    answers = [subject.rows_beyond(lattice_map, GRID, 21, rho, purpose="") for _ in range(2000)]
    assert source.scans == 1
    assert subject.remaining.rho == 1000 - 2000 * rho
    assert {answer.variance for answer in answers} == {Fraction(4)}
    noise = np.array([answer.count for answer in answers]) - (norms >= edges[20]).sum()
    # 2,000 samples of variance 4: five sd of mean and variance; noise a fifth off would fail.
    assert abs(noise.mean()) < 5 * 2 / np.sqrt(2000)
    assert abs(noise.var() / 4 - 1) < 5 * np.sqrt(2 / 2000) < 1.2**2 - 1
    exact = subject.rows_beyond(lattice_map, GRID, 0, 400, purpose="").count
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
        count = subject.rows_beyond(lattice_map, grid, first, 10**5, purpose="").count
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
    expected = subject.rows_beyond(first, GRID, 20, 10**5, purpose="").count
    source.broken = True
    with pytest.raises(OSError, match="unplugged"):
        subject.rows_beyond(second, GRID, 20, 10**5, purpose="")
    assert subject.rows_beyond(first, GRID, 20, 10**5, purpose="").count == expected
    source.broken = False
    assert subject.rows_beyond(second, GRID, 20, 10**5, purpose="").count > expected


def chain(d: int, steps: int) -> tuple[Shrinking, ...]:
    rng = np.random.default_rng(steps)
    return tuple(Shrinking(integer_map(rng.normal(size=(d, d))), 2.0 + k / 10) for k in range(steps))


class Streaming(CountingSource):
    """The same rows, from a source that does not promise their places: no memory is kept."""

    @property
    def in_memory(self) -> bool:
        return False


def grams(source: ArraySource, clippings: list[Clipping]) -> list[NDArray[np.int64]]:
    bits = SeededBits(np.random.default_rng(9))
    subject = Curator(source, Budget(PrivacyCost(Fraction(100))), bits)
    return [subject.gram(clipping, 1, purpose="").integers for clipping in clippings]


def test_a_chain_gives_the_same_bits_with_and_without_memory_in_any_order_of_queries() -> None:
    rows = gaussian_rows(9000, 3) * np.exp(gaussian_rows(9000, 1))
    rows[7], rows[8], rows[9] = np.nan, 1e300, 0.0
    steps = chain(3, 4)
    growing = [Clipping(step.lattice_map, step.radius, earlier=steps[:k]) for k, step in enumerate(steps)]
    other = Clipping(steps[0].lattice_map, 0.5, Rule.DROP, earlier=(steps[2],))
    orders = [
        growing,
        growing[::-1],
        [growing[1], other, growing[2], growing[0], growing[3], growing[3], other],
    ]
    for order in orders:
        expected = grams(Streaming(rows), order)
        found = grams(CountingSource(rows, threads=2), order)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_a_memory_does_not_outlive_a_failed_scan() -> None:
    rows, steps = gaussian_rows(9000, 3), chain(3, 3)
    growing = [Clipping(step.lattice_map, step.radius, earlier=steps[:k]) for k, step in enumerate(steps)]

    class FailsHalfway(ArraySource):
        fail = False

        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            if self.fail:
                worker = task.worker()
                worker.add(rows[:100].T, 0)
                raise OSError("unplugged")
            return super().scan(task, report)

    source = FailsHalfway(rows)
    subject = Curator(source, Budget(PrivacyCost(Fraction(100))), SeededBits(np.random.default_rng(9)))
    found = [
        subject.gram(growing[0], 1, purpose="").integers,
        subject.gram(growing[1], 1, purpose="").integers,
    ]
    source.fail = True
    # The map of another chain, so that what it half wrote would show.
    with pytest.raises(OSError, match="unplugged"):
        subject.gram(Clipping(identity_map(3), 1e-3, earlier=steps[:2]), 1, purpose="")
    source.fail = False
    found.append(subject.gram(growing[2], 1, purpose="").integers)
    expected = grams(Streaming(rows), growing)
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_threads_that_share_a_curator_do_not_share_a_memory() -> None:
    rows, steps = gaussian_rows(30_000, 3), chain(3, 3)
    before, after = (Clipping(steps[k].lattice_map, steps[k].radius, earlier=steps[:k]) for k in (1, 2))
    narrow = identity(3, 0.01, earlier=steps[:2])
    barrier = threading.Barrier(2)

    class Meeting(ArraySource):
        """Both threads look for a memory at the same time."""

        meet = False

        @property
        def in_memory(self) -> bool:
            if self.meet:
                barrier.wait(600)
            return True

    source = Meeting(rows, threads=1)
    subject = Curator(source, Budget(PrivacyCost(Fraction(10**9))), OSEntropy())
    exact = [source.scan(GramTask(asked, subject._lattice, constant=False)) for asked in (after, narrow)]
    for _ in range(3):
        subject.gram(before, 10**8, purpose="")
        source.meet = True
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda asked: subject.gram(asked, 10**8, purpose=""), (after, narrow)))
        source.meet = False
        for answer, expected in zip(answers, exact, strict=True):
            # Seven sd of the noise; rows that the other query shrank would be off by a thousand times more.
            noise = 7 * np.sqrt(float(answer.variance))
            assert np.abs(answer.integers - expected).max() < noise
            assert np.abs(expected).max() > 1000 * noise
