from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import SeededBits
from dpcov.core.groups import agreeing_pairs, group_eigenvalues, random_groups


def naive_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The paper's semimetric, from its definition."""

    def one_way(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
        values, vectors = np.linalg.eigh(p)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        return float(np.linalg.norm(root @ q @ root - np.eye(len(p)), 2))

    return max(one_way(a, b), one_way(b, a))


def count(grams: NDArray[np.int64], distance: float) -> int:
    return int(np.triu(agreeing_pairs(grams, distance), 1).sum())


def test_groups_are_of_equal_size_and_cover_what_they_can() -> None:
    groups, n_groups = random_groups(SeededBits(np.random.default_rng(0)), 103, 10)
    assert n_groups == 10
    assert np.bincount(groups[groups >= 0]).tolist() == [10] * 10
    assert (groups == -1).sum() == 3


def test_every_position_is_equally_likely_in_every_group() -> None:
    bits = SeededBits(np.random.default_rng(1))
    counts = np.zeros((12, 3))
    for _ in range(3000):
        groups, _ = random_groups(bits, 12, 4)
        counts[np.arange(12), groups] += 1
    # 36 cells, sd about 26 each: 130 is 5 sd, passed wrongly once in 50,000 seeds; the seed is fixed.
    assert np.abs(counts - 1000).max() < 130


def test_agreeing_pairs_match_the_definition() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 40, 3)) * 1000
    rows[3] *= 2
    grams = np.einsum("tni,tnj->tij", np.rint(rows), np.rint(rows)).astype(np.int64)
    grams[7] = 0
    for distance in (0.3, 0.8, 1.5, 5.0):
        expected = sum(
            naive_distance(grams[s].astype(float), grams[t].astype(float)) <= distance
            for s in range(12)
            for t in range(s + 1, 12)
            if 7 not in (s, t)
        )
        assert count(grams, distance) == expected


def test_replacing_a_group_changes_at_most_the_pairs_it_is_in() -> None:
    rng = np.random.default_rng(0)
    rows = np.rint(rng.normal(size=(30, 20, 3)) * 1000)
    grams = np.einsum("tni,tnj->tij", rows, rows).astype(np.int64)
    for _ in range(20):
        changed = grams.copy()
        changed[rng.integers(30)] = np.eye(3, dtype=np.int64) * int(rng.integers(0, 10**9))
        assert abs(count(grams, 2.0) - count(changed, 2.0)) <= 29


def test_eigenvalues_are_never_negative() -> None:
    grams = np.array([np.diag([4, 9]), np.zeros((2, 2)), [[1, 1], [1, 1]]], dtype=np.int64)
    values = group_eigenvalues(grams, 0.5)[:, 0]
    assert values[0] == 2.0
    assert (values >= 0).all()
    assert values[1] == 0
