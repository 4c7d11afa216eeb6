from __future__ import annotations

import contextlib
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Budget, Curator, NoAnswerError, OSEntropy, PrivacyCost, SeededBits
from dpcov.paper.eigenvalue import find_least_eigenvalue
from dpcov.paper.queries import bucket_threshold
from dpcov.sources import ArraySource

DELTA = Fraction(1, 10**6)


def find(rows: NDArray[np.float64], *, size: int, alpha: float, radius: float = 20.0, seed: int = 0) -> float:
    bits = SeededBits(np.random.default_rng(seed))
    subject = Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(1, 2), DELTA)), bits)
    try:
        return find_least_eigenvalue(
            subject, group_size=size, alpha=alpha, radius=radius, epsilon=Fraction(1), delta=DELTA
        )
    finally:
        # Answered or not, the question costs what it costs.
        assert subject.remaining == PrivacyCost(Fraction(0))


def table(n_rows: int = 60_000) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    mix = np.array([[0.1, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.3, 3.0]])
    rows: NDArray[np.float64] = rng.normal(size=(n_rows, 3)) @ mix
    return rows


@pytest.mark.parametrize(("size", "alpha"), [(600, 0.3), (300, 0.5)])
def test_the_least_eigenvalue_is_found_up_to_what_buckets_allow(size: int, alpha: float) -> None:
    rows = table()
    truth = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[0])
    # A group's least eigenvalue is off by 1 +- 5 sqrt(3 / m) at most, at these sizes less than alpha.
    for seed in range(10):
        found = find(rows, size=size, alpha=alpha, seed=seed)
        assert (1 - alpha) ** 2 * truth <= found <= (1 + alpha) * truth
        power = np.log(found) / np.log(1 - alpha)
        assert power == pytest.approx(round(power))


def test_the_lowest_of_several_buckets_is_taken() -> None:
    # Two kinds of groups would need two kinds of rows side by side; a ratio near 1 does it with one.
    rows = table()
    truth = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[0])
    found = [find(rows, size=200, alpha=0.15, seed=seed) for seed in range(10)]
    assert max(found) < truth


@pytest.mark.parametrize(
    ("n_rows", "size", "advice"), [(3000, 1000, "m=27 rows"), (60, 15, "least 108 rows")]
)
def test_too_few_groups_are_refused_before_anything_is_spent(n_rows: int, size: int, advice: str) -> None:
    limit = PrivacyCost(Fraction(1, 2), DELTA)
    subject = Curator(ArraySource(table(n_rows)), Budget(limit), SeededBits(np.random.default_rng(0)))
    with pytest.raises(ArgumentError, match=f"{n_rows // size} groups .*{advice}"):
        find_least_eigenvalue(
            subject, group_size=size, alpha=0.5, radius=20.0, epsilon=Fraction(1), delta=DELTA
        )
    assert subject.remaining == limit


def test_a_bucket_that_holds_all_groups_may_just_pass() -> None:
    # One group less would be refused: the noise passes about every other time.
    just = bucket_threshold(Fraction(1), DELTA)
    rows, passed = np.ones((just, 1)), 0
    for seed in range(20):
        with contextlib.suppress(NoAnswerError):
            passed += find(rows, size=1, alpha=0.5, seed=seed) == 1.0
    assert 4 <= passed <= 16
    with pytest.raises(ArgumentError, match="too few"):
        find_least_eigenvalue(
            Curator(ArraySource(rows[1:]), Budget(PrivacyCost(Fraction(1, 2), DELTA)), OSEntropy()),
            group_size=1, alpha=0.5, radius=20.0, epsilon=Fraction(1), delta=DELTA,
        )  # fmt: skip


def test_scattered_groups_or_a_singular_table_get_no_answer() -> None:
    scattered = np.exp(np.random.default_rng(1).uniform(-6, 0, size=(40, 1)))
    with pytest.raises(NoAnswerError, match="no bucket"):
        find(scattered, size=1, alpha=0.1)
    singular = table()
    singular[:, 2] = 0.0
    with pytest.raises(NoAnswerError, match="is 0"):
        find(singular, size=300, alpha=0.5)
