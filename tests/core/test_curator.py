from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
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
    SeededBits,
    Shrinking,
    sampled_rows,
)
from dpcov.core.budget import Number
from dpcov.sources import ArraySource

GRID = LogNormGrid(lowest=-10, highest=10, halves=1)


class CountingSource(ArraySource):
    """A real source that counts its scans."""

    scans = 0

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        self.scans += 1
        return super().scan(task, report)


def curator(
    rows: NDArray[np.float64], rho: Number = 1, delta: Number = 0, seed: int | None = 0
) -> tuple[Curator, CountingSource]:
    source = CountingSource(rows)
    bits = OSEntropy() if seed is None else SeededBits(np.random.default_rng(seed))
    return Curator(source, Budget(PrivacyCost(Fraction(rho), Fraction(delta))), bits), source


def gaussian_rows(n_rows: int = 20_000, d: int = 4) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(n_rows, d))


def test_a_gram_is_the_exact_one_plus_noise_of_the_stated_law() -> None:
    rows = gaussian_rows(2000, 30)
    clipping = Clipping(LatticeMap.identity(30), 12.0)
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
    answer = subject.gram(Clipping(LatticeMap.identity(4), 5.0), Fraction(1, 3), purpose="")
    bound = subject._lattice.bound
    assert answer.variance % 2 == 0
    assert 0 <= answer.variance - 3 * bound**4 < 2
    assert answer.sigma == pytest.approx((5.0 / subject._lattice.clip) ** 2 * bound**2 * np.sqrt(3) / 20_000)


def test_released_entries_are_integers_on_a_public_grid() -> None:
    rows, other = gaussian_rows(), gaussian_rows() * 3
    clipping = Clipping(LatticeMap.identity(4), 5.0)
    first = curator(rows)[0].gram(clipping, 1, purpose="")
    second = curator(other)[0].gram(clipping, 1, purpose="")
    assert first.integers.dtype == second.integers.dtype == np.int64
    assert first.unit == second.unit


def test_counts_add_up_to_the_rows_up_to_noise() -> None:
    answer = curator(gaussian_rows())[0].log_norms(LatticeMap.identity(4), GRID, 1, purpose="")
    assert answer.variance == 1
    assert abs(answer.counts.sum() - 20_000) < 6 * np.sqrt(GRID.n_bins)


def test_a_query_is_charged_even_if_the_scan_fails() -> None:
    class Failing(ArraySource):
        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            del task, report
            raise OSError("unplugged")

    subject = Curator(Failing(gaussian_rows()), Budget(PrivacyCost(Fraction(1))), OSEntropy())
    with pytest.raises(OSError, match="unplugged"):
        subject.gram(Clipping(LatticeMap.identity(4), 1.0), Fraction(1, 4), purpose="lost")
    assert subject.remaining.rho == Fraction(3, 4)


def test_what_the_budget_cannot_pay_is_refused_before_any_scan() -> None:
    subject, source = curator(gaussian_rows(), rho=Fraction(1, 2))
    subject.log_norms(LatticeMap.identity(4), GRID, Fraction(1, 4), purpose="norms")
    with pytest.raises(BudgetError, match=r"the matrix would cost rho=0.5, but only rho=0.25 is left"):
        subject.gram(Clipping(LatticeMap.identity(4), 1.0), Fraction(1, 2), purpose="the matrix")
    with pytest.raises(BudgetError, match=r"delta=1e-06"):
        subject.agreement(
            Clipping(LatticeMap.identity(4), 1.0), 100, 1.0, epsilon=0.1, delta=1e-6, purpose="agreement"
        )
    assert source.scans == 1
    assert [charge.purpose for charge in subject.receipt().charges] == ["norms"]


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf")])
def test_a_bad_rho_costs_nothing(rho: float) -> None:
    subject, source = curator(gaussian_rows())
    with pytest.raises(ArgumentError, match="rho"):
        subject.gram(Clipping(LatticeMap.identity(4), 1.0), rho, purpose="")
    assert subject.remaining.rho == 1
    assert source.scans == 0


@pytest.mark.parametrize(
    "clipping",
    [
        Clipping(LatticeMap.identity(3), 1.0),
        Clipping(LatticeMap.identity(4), 0.0),
        Clipping(LatticeMap.identity(4), float("nan")),
        Clipping(LatticeMap.identity(4), 1.0, earlier=(Shrinking(LatticeMap.identity(4), -1.0),)),
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
        subject.gram(Clipping(LatticeMap.identity(4), 1.0), 1e-30, purpose="")


def test_seeded_answers_are_marked_and_repeat_and_others_do_not() -> None:
    clipping = Clipping(LatticeMap.identity(4), 1.0)
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
    answer = curator(rows, rho=10**9)[0].log_norms(
        LatticeMap.identity(2), GRID, 10**9, purpose="", every=every
    )
    # Noise of variance 1e-9 is zero but once in 10^200,000,000.
    assert answer.counts.sum() == answer.n_rows == sampled_rows(len(rows), every) == -(-20_500 // every)


def test_least_eigenvalue_buckets_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60_000, 3)) * np.array([1.0, 3.0, 10.0])
    subject, _ = curator(rows, rho=1, delta=1e-5)
    buckets = subject.least_eigenvalue_buckets(
        Clipping(LatticeMap.identity(3), 60.0), 300, 0.75, epsilon=1, delta=1e-6, purpose="eigenvalue"
    )
    assert 1 <= len(buckets) <= 3
    assert min(b.lower for b in buckets) <= 1.0 <= max(b.upper for b in buckets)
    assert subject.remaining == PrivacyCost(Fraction(1, 2), Fraction(1e-5) - Fraction(1e-6))


def test_a_rare_bucket_is_never_released() -> None:
    # One group in a bucket of its own passes the threshold with probability at most delta / 2.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 2))
    rows[0] = 0.0
    for seed in range(30):
        subject, _ = curator(rows[:400], rho=10, delta=1e-5, seed=seed)
        assert not subject.least_eigenvalue_buckets(
            Clipping(LatticeMap.identity(2), 10.0), 200, 0.9, epsilon=1, delta=1e-6, purpose=""
        )


def test_agreement_tells_alike_groups_from_unlike_ones() -> None:
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(30_000, 3))
    # Rows so heavy that a single one decides its group's second moment.
    unlike = alike * np.exp(3 * rng.normal(size=(30_000, 1)))
    clipping = Clipping(LatticeMap.identity(3), 1e6)
    scores = [
        curator(rows, rho=1, delta=1e-5)[0].agreement(
            clipping, 300, 1.0, epsilon=1, delta=1e-6, purpose="agreement"
        )
        for rows in (alike, unlike)
    ]
    assert scores[0].score - scores[0].largest_noise <= 1.0 <= scores[0].score + scores[0].largest_noise
    assert scores[1].score < 0.8
    assert scores[0].n_groups == 100


@pytest.mark.parametrize("size", [0, -5, 15_000])
def test_bad_group_sizes_are_refused(size: int) -> None:
    subject, _ = curator(gaussian_rows(), delta=1e-5)
    with pytest.raises(ArgumentError, match="group_size"):
        subject.agreement(Clipping(LatticeMap.identity(4), 1.0), size, 1.0, epsilon=1, delta=1e-6, purpose="")


@pytest.mark.parametrize("big", [0.0, 1e307, np.inf, 1e-300])
def test_no_row_makes_group_statistics_fail_or_warn(big: float) -> None:
    rows = np.zeros((400, 3))
    rows[7] = big
    rows[11, 0] = -big
    for radius in (1e-140, 1.0, 1e140):
        subject, _ = curator(rows, rho=100, delta=0.5)
        clipping = Clipping(LatticeMap.identity(3), radius)
        for size in (1, 100):
            subject.least_eigenvalue_buckets(clipping, size, 0.5, epsilon=1, delta=0.01, purpose="")
            subject.agreement(clipping, size, 1e6, epsilon=1, delta=0.01, purpose="")


BAD_QUERIES: dict[str, Callable[[Curator], object]] = {
    "tiny rho": lambda c: c.log_norms(LatticeMap.identity(4), GRID, 1e-36, purpose=""),
    "huge radius": lambda c: c.gram(Clipping(LatticeMap.identity(4), 1e170), 1, purpose=""),
    "tiny radius": lambda c: c.gram(Clipping(LatticeMap.identity(4), 1e-170), 1, purpose=""),
    "every": lambda c: c.gram(Clipping(LatticeMap.identity(4), 1.0), 1, purpose="", every=2.0),  # type: ignore[arg-type]
    "group size": lambda c: c.agreement(
        Clipping(LatticeMap.identity(4), 1.0), 10.5, 1.0, epsilon=1, delta=0.1, purpose=""  # type: ignore[arg-type]
    ),
    "distance": lambda c: c.agreement(
        Clipping(LatticeMap.identity(4), 1.0), 10, 1e300, epsilon=1, delta=0.1, purpose=""
    ),
    "earlier map": lambda c: c.agreement(
        Clipping(LatticeMap.identity(4), 1.0, earlier=(Shrinking(LatticeMap.identity(3), 1.0),)),
        10, 1.0, epsilon=1, delta=0.1, purpose="",
    ),
    "rule": lambda c: c.gram(Clipping(LatticeMap.identity(4), 1.0, "shrink"), 1, purpose=""),  # type: ignore[arg-type]
    "grid": lambda c: c.log_norms(LatticeMap.identity(4), LogNormGrid(1.5, 3, 1), 1, purpose=""),  # type: ignore[arg-type]
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
    subject.log_norms(LatticeMap.identity(4), GRID, one, purpose="")
    subject.gram(Clipping(LatticeMap.identity(4), radius), np.float64(0.5), purpose="")
    assert subject.remaining.rho == Fraction(17, 2)
