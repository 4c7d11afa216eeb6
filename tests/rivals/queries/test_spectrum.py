from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    Clipping,
    Curator,
    ExactnessError,
    LogNormGrid,
    OSEntropy,
    PrivacyCost,
    SeededBits,
)
from dpcov.maps import identity_map
from dpcov.rivals.queries import Eigenvalues, FirstAbove, Trace
from dpcov.rivals.queries.spectrum import certified_eigenvalues, eigenvalue_error
from dpcov.sources import ArraySource


def curator(rows: NDArray[np.float64], rho: float = 1.0, seed: int | None = 0) -> Curator:
    bits = OSEntropy() if seed is None else SeededBits(np.random.default_rng(seed))
    return Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(rho))), bits)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(2, 40), st.sampled_from([1.0, 1e-3, 1e-9]))
@settings(max_examples=60)
def test_eigenvalues_of_neighbours_differ_by_no_more_than_claimed(
    seed: int, d: int, n: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    bound = 1 << 20
    scales = np.logspace(0, math.log10(spread), d)
    rows = rng.normal(size=(n + 1, d)) * scales
    rows = np.rint(rows * (bound - d) / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.int64)
    grams = [rows[index].T @ rows[index] for index in (np.arange(n), np.arange(1, n + 1))]
    error = eigenvalue_error(n, d, bound)
    first, second = (certified_eigenvalues(gram, error) for gram in grams)
    allowed = math.isqrt(2 * bound**4) + 1 + 2 * d * (error + 1)
    assert float(np.linalg.norm((first - second).astype(np.float64))) <= allowed
    assert (np.diff(first) <= 0).all()


def test_the_bound_on_neighbours_is_reached_by_two_orthogonal_rows() -> None:
    bound = 1 << 20
    first = certified_eigenvalues(np.diag([bound**2, 0]), 1)
    second = certified_eigenvalues(np.diag([bound**2, bound**2]), 1)
    third = certified_eigenvalues(np.diag([2 * bound**2, 0]), 1)
    assert np.abs(first - second).max() == bound**2
    assert math.isclose(float(np.linalg.norm((second - third).astype(float))), math.sqrt(2) * bound**2)


def test_a_decomposition_that_is_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gram = np.diag([10**9, 10**8, 10**6])
    assert certified_eigenvalues(gram, 1000).tolist() == [10**9, 10**8, 10**6]
    true = np.linalg.eigh

    def broken(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, vectors = true(matrix)
        return values * (1 + 1e-5), vectors

    monkeypatch.setattr(np.linalg, "eigh", broken)
    with pytest.raises(ExactnessError, match="certified"):
        certified_eigenvalues(gram, 1000)


def test_eigenvalues_and_trace_have_noise_of_the_stated_size() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 4)) * [1.0, 0.5, 0.1, 0.01]
    clipping = Clipping(identity_map(4), 6.0)
    exact = np.linalg.eigvalsh(rows.T @ rows / 2000)[::-1]
    found = [curator(rows, seed=seed).ask(Eigenvalues(clipping, 1, purpose="")) for seed in range(150)]
    z = np.array([(answer.eigenvalues - exact) / answer.sigma for answer in found]).ravel()
    # 600 normal numbers: the mean is beyond 0.2 and the sd beyond 1 +- 0.14 with probability 1e-6 each.
    assert abs(z.mean()) < 0.2
    assert abs(z.std() - 1) < 0.14
    assert math.isclose(found[0].sigma, 36 / 2000, rel_tol=1e-3)
    traces = [curator(rows, seed=seed).ask(Trace(clipping, 1, purpose="")) for seed in range(150)]
    z = np.array([(answer.value - exact.sum()) / answer.sigma for answer in traces])
    # 150 normal numbers: 0.4 and 0.28 are 4.9 sd.
    assert abs(z.mean()) < 0.4
    assert abs(z.std() - 1) < 0.28
    assert math.isclose(traces[0].sigma, 36 / 2000 / math.sqrt(2), rel_tol=1e-3)


GRID = LogNormGrid(lowest=-4, highest=4, halves=1)


def _ask(
    rows: NDArray[np.float64], thresholds: list[int], epsilon: float, seed: int | None = 0
) -> int | None:
    # Rows in the k-th bin or a later one.
    weights = [[int(place >= k) for place in range(GRID.n_bins)] for k in range(len(thresholds))]
    return curator(rows, rho=100.0, seed=seed).ask(
        FirstAbove(identity_map(1), GRID, weights, thresholds, epsilon=epsilon, purpose="search")
    )


def test_the_first_sum_above_its_threshold_is_found() -> None:
    rows = np.full((1000, 1), 1.1)
    # Noise of scale 4/10 and 2/10 exceeds 20 together with probability below 1e-15.
    assert _ask(rows, [1100, 950, 0], 10) == 1
    assert _ask(rows, [1100, 1100], 10) is None


@pytest.mark.audit
def test_the_search_is_as_private_as_it_says() -> None:
    # Neighbours: one row more or less above every threshold. The worst event is "the second one".
    neighbours = [np.array([[1.1]] * 3 + [[length]]) for length in (0.01, 1.1)]
    epsilon, runs = 1.0, 3000
    counts = np.zeros((2, 4))
    for table, rows in enumerate(neighbours):
        for _ in range(runs):
            found = _ask(rows, [4, 4, 4], epsilon, seed=None)
            counts[table, 3 if found is None else found] += 1
    ratio = np.log((counts[1] + 1) / (counts[0] + 1))
    # Each count is at least a few hundred: the log ratio has an sd below 0.09. Wrong once in 10^5.
    assert (np.abs(ratio) < epsilon + 0.4).all()
    # And it does tell the two apart, so the check is not vacuous.
    assert np.abs(ratio).max() > 0.1


def test_bad_questions_cost_nothing() -> None:
    asked = curator(np.ones((10, 1)))
    with pytest.raises(ArgumentError, match="weights"):
        asked.ask(FirstAbove(identity_map(1), GRID, [[1, 2]], [0], epsilon=1, purpose=""))
    with pytest.raises(ArgumentError, match="epsilon"):
        asked.ask(FirstAbove(identity_map(1), GRID, [[0] * GRID.n_bins], [0], epsilon=0, purpose=""))
    with pytest.raises(ArgumentError, match="rho"):
        asked.ask(Trace(Clipping(identity_map(1), 1.0), 0, purpose=""))
    with pytest.raises(ArgumentError, match="too small"):
        asked.ask(Eigenvalues(Clipping(identity_map(1), 1.0), 1e-30, purpose=""))
    assert not asked.receipt().charges
