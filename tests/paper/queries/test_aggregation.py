from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.curators import curator, gaussian_rows, identity
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    BudgetError,
    Clipping,
    PrivacyCost,
    SeededBits,
)
from dpcov.core.budget import Number
from dpcov.maps import identity_map
from dpcov.paper.queries import Aggregate, Agreement, LeastEigenvalueBuckets, NoisyAggregate
from dpcov.paper.queries.group_grams import GroupGramTask
from dpcov.paper.queries.groups import agreeing_groups, random_groups
from dpcov.sources import ArraySource


def test_least_eigenvalue_buckets_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60_000, 3)) * np.array([1.0, 3.0, 10.0])
    subject, _ = curator(rows, rho=1, delta=1e-5)
    buckets = subject.ask(
        LeastEigenvalueBuckets(
            Clipping(identity_map(3), 60.0), 300, 0.75, epsilon=1, delta=1e-6, purpose="eigenvalue"
        )
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
        assert not subject.ask(
            LeastEigenvalueBuckets(
                Clipping(identity_map(2), 10.0), 200, 0.9, epsilon=1, delta=1e-6, purpose=""
            )
        )


def test_agreement_tells_alike_groups_from_unlike_ones() -> None:
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(30_000, 3))
    # Rows so heavy that a single one decides its group's second moment.
    unlike = alike * np.exp(3 * rng.normal(size=(30_000, 1)))
    clipping = Clipping(identity_map(3), 1e6)
    scores = [
        curator(rows, rho=1, delta=1e-5)[0].ask(
            Agreement(clipping, 300, 1.0, epsilon=1, delta=1e-6, purpose="agreement")
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
        subject.ask(Agreement(Clipping(identity_map(4), 1.0), size, 1.0, epsilon=1, delta=1e-6, purpose=""))


@pytest.mark.parametrize("big", [0.0, 1e307, np.inf, 1e-300])
def test_no_row_makes_group_statistics_fail_or_warn(big: float) -> None:
    rows = np.zeros((400, 3))
    rows[7] = big
    rows[11, 0] = -big
    for radius in (1e-140, 1.0, 1e140):
        subject, _ = curator(rows, rho=100, delta=0.5)
        clipping = Clipping(identity_map(3), radius)
        for size in (1, 100):
            subject.ask(LeastEigenvalueBuckets(clipping, size, 0.5, epsilon=1, delta=0.01, purpose=""))
            subject.ask(Agreement(clipping, size, 1e6, epsilon=1, delta=0.01, purpose=""))


GROUPS: dict[str, Any] = {"epsilon": 20, "delta": 1e-6, "purpose": "aggregate"}


def aggregate(rows: NDArray[np.float64]) -> NoisyAggregate | None:
    subject, _ = curator(rows, rho=400, delta=1e-6)
    return subject.ask(Aggregate(identity(rows.shape[1]), 200, 0.5, **GROUPS))


def test_an_aggregate_is_near_the_second_moment_and_costs_what_it_says() -> None:
    rows = gaussian_rows(130_000, 2) @ np.array([[1.0, 0.0], [0.7, 0.1]])
    subject, source = curator(rows, rho=500, delta=1e-5)
    answer = subject.ask(Aggregate(identity(2), 200, 0.5, **GROUPS))
    assert answer is not None
    assert subject.receipt().spent == PrivacyCost(Fraction(400), Fraction(1e-6))
    assert source.scans == 1
    truth = rows.T @ rows / len(rows)
    root = np.linalg.inv(np.linalg.cholesky(truth))
    # |N| exceeds 2 sqrt(2) + 4 with probability exp(-8); rows of a normal table are not clipped at 10.
    worst = (1 + answer.noise_scale * (2 * np.sqrt(2) + 4)) ** 2 - 1
    assert np.linalg.norm(root @ answer.second_moment @ root.T - np.eye(2), 2) <= worst + 0.05
    assert worst > 0.1
    assert answer.agreement.n_groups == 650
    assert Fraction(4, 5) <= answer.agreement.at_least <= 1


def test_groups_that_disagree_get_no_answer() -> None:
    heavy = 1e-6 * gaussian_rows(100_000, 1) * np.exp(4 * np.random.default_rng(1).normal(size=(100_000, 1)))
    assert aggregate(heavy) is None


@pytest.mark.parametrize(("share", "passes"), [(0.87, False), (0.9, True)])
def test_the_pass_mark_is_four_fifths(share: float, passes: bool) -> None:  # noqa: FBT001
    # Groups of one row in two heaps: 0.774 and 0.82 of all pairs agree, with noise below 0.01.
    rows = np.where(np.arange(3000) < share * 3000, 1.0, 3.0)[:, None]
    subject, _ = curator(rows, rho=400, delta=1e-6)
    assert (subject.ask(Aggregate(identity(1), 1, 0.5, **GROUPS)) is not None) == passes


@pytest.mark.parametrize("kind", ["zero", "hostile", "half", "one row", "tiny", "huge", "constant"])
def test_no_table_makes_an_aggregate_fail_or_warn(kind: str) -> None:
    rows = gaussian_rows(100_000, 1)
    if kind == "zero":
        rows[:] = 0.0
    elif kind == "hostile":
        rows[:] = np.nan
    elif kind == "half":
        rows[::2] = np.inf
    elif kind == "one row":
        rows[3] = 1e308
    elif kind == "tiny":
        rows *= 1e-300
    elif kind == "huge":
        rows *= 1e300
    else:
        rows[:] = 1.0
    answer = aggregate(rows)
    assert answer is None or np.isfinite(answer.second_moment).all()
    assert (answer is None) == (kind in {"zero", "hostile", "tiny"})


def test_a_column_without_variation_disagrees_without_an_error() -> None:
    rows = gaussian_rows(130_000, 2)
    rows[:, 1] = rows[:, 0]
    assert aggregate(rows) is None


BAD_AGGREGATES: dict[str, dict[str, Any]] = {
    "few rows": {"group_size": 2000},
    "more than there are": {"group_size": 10**9},
    "no size": {"group_size": 0},
    "distance": {"distance": float("nan")},
    "epsilon": {"epsilon": 0},
    "large epsilon": {"epsilon": 10**6},
    "delta": {"delta": 1},
    "small delta": {"delta": 1e-25},
    "radius": {"clipping": identity(1, 0.0)},
    "map": {"clipping": identity(2)},
}


@pytest.mark.parametrize("change", BAD_AGGREGATES.values(), ids=BAD_AGGREGATES)
def test_bad_aggregates_are_refused_before_anything_is_spent(change: dict[str, Any]) -> None:
    subject, source = curator(gaussian_rows(100_000, 1), rho=10**8, delta=0.5)
    with pytest.raises(ArgumentError):
        subject.ask(
            Aggregate(**{"clipping": identity(1), "group_size": 200, "distance": 0.5, **GROUPS, **change})
        )
    assert subject.receipt().charges == ()
    assert source.scans == 0


@pytest.mark.parametrize(("rho", "delta"), [(200, 1e-6), (399, 1e-6), (400, 5e-7)])
def test_a_budget_for_half_an_aggregate_is_left_untouched(rho: Number, delta: float) -> None:
    subject, source = curator(gaussian_rows(100_000, 1), rho=rho, delta=Fraction(delta))
    with pytest.raises(BudgetError, match="Nothing was spent"):
        subject.ask(Aggregate(identity(1), 200, 0.5, **GROUPS))
    assert subject.receipt().charges == ()
    assert source.scans == 0


def test_a_sure_lower_bound_is_exact_and_sure() -> None:
    rows = gaussian_rows(1200, 1)
    for seed in range(30):
        subject, _ = curator(rows, rho=1, delta=1e-2, seed=seed)
        answer = subject.ask(Agreement(identity(1), 20, 0.5, epsilon=1, delta=1e-2, purpose=""))
        groups, n_groups = random_groups(SeededBits(np.random.default_rng(seed)), 1200, 20)
        task = GroupGramTask(
            identity(1), subject._table.lattice, constant=False, groups=groups, n_groups=n_groups
        )
        true = Fraction(int(agreeing_groups(ArraySource(rows).scan(task), 0.5, 60).sum()), 60**2)
        assert true - 2 * Fraction(answer.largest_noise) - Fraction(1, 10**9) <= answer.at_least <= true
