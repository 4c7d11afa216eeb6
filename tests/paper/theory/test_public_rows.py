from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dpcov import ArgumentError
from dpcov.paper.theory import (
    EllipsoidSurface,
    ParetoTimesDirection,
    bernstein_size,
    empirical_size,
    leverage_scores,
    table_moments,
    tail,
    tail_share,
)
from dpcov.paper.theory.public_rows import _upper_limit


def heavy_table(n: int = 4000) -> NDArray[np.float64]:
    rng = np.random.default_rng(5)
    return rng.standard_t(3, (n, 4)) @ np.diag([1.0, 1e-2, 1e-4, 1e3])


def test_leverage_is_the_largest_ratio_over_directions() -> None:
    rows = heavy_table(200)
    moment = rows.T @ rows / len(rows)
    scores = leverage_scores(rows)
    assert scores == pytest.approx(np.einsum("ni,ij,nj->n", rows, np.linalg.inv(moment), rows), rel=1e-6)
    assert scores.mean() == pytest.approx(4)
    # The direction S^-1 x attains it, and no random direction exceeds it.
    best = np.linalg.solve(moment, rows[0])
    assert (rows[0] @ best) ** 2 / (best @ moment @ best) == pytest.approx(scores[0])
    directions = np.random.default_rng(0).standard_normal((500, 4))
    ratios = (directions @ rows[0]) ** 2 / np.einsum("ni,ij,nj->n", directions, moment, directions)
    assert ratios.max() <= scores[0] * (1 + 1e-9)


def test_leverage_of_a_singular_table_counts_its_rank() -> None:
    rows = heavy_table(300)
    doubled = np.column_stack([rows, rows[:, 0], np.zeros(len(rows))])
    assert leverage_scores(doubled) == pytest.approx(leverage_scores(rows), rel=1e-6)


def test_tail_holds_the_rows_beyond_the_limit() -> None:
    rows = heavy_table()
    found = tail(rows, 30, 0.5)
    assert 0 < found.sum() < 50
    assert (leverage_scores(rows)[found] > 45).all()
    assert (leverage_scores(rows)[~found] <= 45).all()


def test_table_moments_of_a_sample_near_those_of_its_distribution() -> None:
    rows = EllipsoidSurface(np.diag([1.0, 1e-4, 1e-8])).sample(20_000, np.random.default_rng(2))
    m1, m2 = table_moments(rows)
    assert m1**2 == pytest.approx(3, rel=0.05)
    assert m2 == pytest.approx(3, rel=0.05)


def test_an_empirical_size_keeps_its_promises() -> None:
    rng = np.random.default_rng(3)
    rows = ParetoTimesDirection(5).sample(5000, rng)
    found = empirical_size(rows, 0.5, 0.1, rng=rng)
    m1, m2 = table_moments(rows)
    assert found.proved_from == bernstein_size(m1, m2, 5, 0.5, 0.1)
    assert found.m is not None
    assert found.m < found.proved_from
    assert all(trial.failure_at_most <= 0.1 for trial in found.trials if trial.size >= found.m)
    # Were the failure probability above 10%, 16 or fewer of 400 fresh ones would fail in 7 of 10^6 runs.
    white = rows @ np.linalg.inv(np.linalg.cholesky(rows.T @ rows / len(rows))).T
    failures = 0
    for _ in range(400):
        drawn = white[rng.integers(len(white), size=found.m)]
        failures += float(np.abs(np.linalg.eigvalsh(drawn.T @ drawn / found.m - np.eye(5))).max()) > 0.5
    assert failures <= 16
    # And the property does fail much below.
    small = found.m // 8
    drawn = white[rng.integers(len(white), size=(200, small))]
    errors = np.linalg.eigvalsh(np.einsum("tki,tkj->tij", drawn, drawn) / small - np.eye(5))
    assert (np.abs(errors).max(axis=1) > 0.5).mean() > 0.1
    # Claim 3.7.
    assert tail(rows, found.m, 0.5).mean() <= tail_share(found.m, 0.1)


def test_no_size_is_found_where_there_is_none() -> None:
    rows = np.ones((50, 1))
    rows[0] = 1e6
    found = empirical_size(rows, 0.5, 0.1, rng=np.random.default_rng(0))
    assert found.m is None
    assert len(found.trials) == 1
    assert found.trials[0].size == 50


@pytest.mark.parametrize(("failures", "trials"), [(0, 50), (3, 100), (50, 50), (99, 100)])
def test_the_upper_limit_is_clopper_and_pearsons(failures: int, trials: int) -> None:
    limit = _upper_limit(failures, trials, 0.01)
    if failures == trials:
        assert limit == 1
    else:
        assert binom.cdf(failures, trials, limit) == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), np.ones(5), np.array([[1.0, np.nan]])])
def test_bad_tables(rows: NDArray[np.float64]) -> None:
    with pytest.raises(ArgumentError, match="rows"):
        leverage_scores(rows)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="rows"):
        empirical_size(np.zeros((5, 2)), 0.5, 0.1)
    with pytest.raises(ArgumentError, match="confidence"):
        empirical_size(np.ones((5, 2)), 0.5, 0.1, confidence=1.0)
    with pytest.raises(ArgumentError, match="beta"):
        empirical_size(np.ones((5, 2)), 0.5, 0.0)
