from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.curators import curator, gaussian_rows
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    BudgetError,
    Clipping,
    Curator,
    Gram,
    LatticeMap,
    LogNormGrid,
    NormHistogram,
    OSEntropy,
    PrivacyCost,
    Report,
    RowsBeyond,
    RowTask,
    sampled_rows,
)
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries import Agreement
from dpcov.sources import ArraySource

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
