from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Budget, Clipping, Curator, PrivacyCost, SeededBits
from dpcov.maps import identity_map
from dpcov.rivals.queries import EigenvalueBuckets, SharedSubspace
from dpcov.sources import ArraySource


def curator(rows: NDArray[np.float64]) -> Curator:
    budget = Budget(PrivacyCost(Fraction(10), Fraction(1, 10)))
    return Curator(ArraySource(rows), budget, SeededBits(np.random.default_rng(0)))


def test_every_eigenvalue_is_found_and_charged() -> None:
    rows = np.random.default_rng(1).normal(size=(40_000, 3)) * [10.0, 1.0, 0.1]
    asked = curator(rows)
    clipping = Clipping(identity_map(3), 60.0)
    answers = asked.ask(EigenvalueBuckets(clipping, 400, 0.25, epsilon=1, delta=1e-3, purpose="eigenvalues"))
    for value, buckets in zip((0.01, 1.0, 100.0), answers, strict=True):
        assert any(bucket.lower <= 1.2 * value and value / 1.2 <= bucket.upper for bucket in buckets)
        assert all(value / 20 < bucket.upper < 20 * value for bucket in buckets)
    assert asked.receipt().spent.rho == Fraction(3, 2)
    assert asked.receipt().spent.delta == 3 * Fraction(1e-3)


def test_a_subspace_is_found_where_there_is_a_gap_and_not_where_there_is_none() -> None:
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    clipping = Clipping(identity_map(3), 10.0)
    apart = rng.normal(size=(40_000, 3)) * [1.0, 1.0, 1e-4] @ axes.T
    answer = curator(apart).ask(SharedSubspace(clipping, 400, 2, 0.01, epsilon=1, delta=1e-3, purpose=""))
    assert answer is not None
    assert np.abs(answer.projection - axes[:, :2] @ axes[:, :2].T).max() < 0.011
    alike = rng.normal(size=(40_000, 3))
    assert (
        curator(alike).ask(SharedSubspace(clipping, 400, 2, 0.01, epsilon=1, delta=1e-3, purpose="")) is None
    )


@pytest.mark.parametrize(("rank", "cell"), [(0, 0.1), (3, 0.1), (1, 0.0), (1, 2.0)])
def test_bad_subspaces_cost_nothing(rank: int, cell: float) -> None:
    asked = curator(np.ones((100, 3)))
    with pytest.raises(ArgumentError, match=r"rank|cell"):
        asked.ask(
            SharedSubspace(Clipping(identity_map(3), 1.0), 10, rank, cell, epsilon=1, delta=1e-3, purpose="")
        )
    assert not asked.receipt().charges
