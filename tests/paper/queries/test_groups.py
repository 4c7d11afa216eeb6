from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from helpers.scripted_bits import Script
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import hypergeom

from dpcov.core.entropy import SeededBits
from dpcov.paper.queries import groups as groups_module
from dpcov.paper.queries.groups import (
    SLACK,
    agreeing_groups,
    compared_groups,
    group_eigenvalues,
    random_groups,
    random_order,
)


def naive_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The paper's semimetric, from its definition."""

    def one_way(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
        values, vectors = np.linalg.eigh(p)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        return float(np.linalg.norm(root @ q @ root - np.eye(len(p)), 2))

    return max(one_way(a, b), one_way(b, a))


def count(grams: NDArray[np.int64], distance: float) -> int:
    """Pairs that agree, of all that there are."""
    return (int(agreeing_groups(grams, distance, len(grams)).sum()) - len(grams)) // 2


def agree(first: NDArray[np.int64], second: NDArray[np.int64], distance: float) -> bool:
    return count(np.array([first, second]), distance) == 1


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


def test_agreeing_groups_match_the_definition() -> None:
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


def is_positive(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, by elimination in rationals."""
    left = [row.copy() for row in matrix]
    for j in range(len(left)):
        pivot = left[j][j]
        if pivot < 0 or (pivot == 0 and any(left[i][j] for i in range(j + 1, len(left)))):
            return False
        for i in range(j + 1, len(left)):
            factor = left[i][j] / pivot if pivot else Fraction(0)
            left[i] = [a - factor * b for a, b in zip(left[i], left[j], strict=True)]
    return True


def within(a: NDArray[np.int64], b: NDArray[np.int64], factor: Fraction) -> bool:
    """Whether ``b <= factor a`` and ``a <= factor b``, exactly."""
    pairs = ((a.tolist(), b.tolist()), (b.tolist(), a.tolist()))
    return all(
        is_positive([[factor * x - y for x, y in zip(*rows, strict=True)] for rows in zip(p, q, strict=True)])
        for p, q in pairs
    )


@given(
    st.integers(0, 2**32), st.integers(1, 4), st.floats(0, 9), st.sampled_from([0.01, 0.3, 1.0, 100.0, 1e6])
)
@settings(max_examples=150)
def test_groups_that_agree_are_certainly_close(seed: int, d: int, digits: float, distance: float) -> None:
    # Tables of any condition, at any scale of columns; two groups of the same table and a disturbed one.
    rng = np.random.default_rng(seed)
    shape = np.linalg.qr(rng.normal(size=(d, d))).Q * np.geomspace(1, 10**-digits, d)
    shape /= 2.0 ** rng.integers(0, 10, size=d)[:, None]
    rows = np.rint(rng.normal(size=(2, 3 * d + 2, d)) @ shape.T * 2**20).astype(np.int64)
    grams = np.einsum("tni,tnj->tij", rows, rows)
    grams = np.concatenate([grams, grams[:1] + np.eye(d, dtype=np.int64) * int(rng.integers(1000))])
    sure = Fraction(SLACK) * (1 + Fraction(distance))
    for s, t in ((0, 1), (0, 2), (1, 2)):
        if agree(grams[s], grams[t], distance):
            assert within(grams[s], grams[t], sure)


def test_what_float64_cannot_tell_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    # Tables with rows near a plane, picked among 4,000: float64 alone calls their groups close, in truth
    # they are not.
    fooled = 0
    for seed in (51, 806, 1258):
        rng = np.random.default_rng(seed)
        thinness = np.geomspace(1, 10 ** -rng.uniform(7, 9), 3)
        shape = np.linalg.qr(rng.normal(size=(3, 3))).Q * thinness
        rows = np.rint(rng.normal(size=(2, 8, 3)) @ shape.T * 2**22 * 20).astype(np.int64)
        grams = np.einsum("tni,tnj->tij", rows, rows)
        assert not within(grams[0], grams[1], Fraction(SLACK) * 2)
        assert not agree(grams[0], grams[1], 1.0)
        with monkeypatch.context() as without:
            without.setattr(groups_module, "_CERTIFIED", 1e9)
            fooled += agree(grams[0], grams[1], 1.0)
    # All three where this was written; last bits may differ elsewhere.
    assert fooled > 0


def test_a_root_too_large_for_float64_gives_no_warning() -> None:
    # The inverse of its factor has entries beyond 1e154, whose squares overflow.
    d = 60
    lower = np.tril(-np.ones((d, d)), -1) + np.eye(d) * 1e-5
    rows = np.rint(lower / np.linalg.norm(lower, axis=1, keepdims=True) * 2**20).astype(np.int64)
    grams = np.array([rows @ rows.T] * 2)
    assert np.abs(np.linalg.inv(np.linalg.cholesky(grams[0].astype(np.float64)))).max() > 1e100
    assert not agree(grams[0], grams[1], 1.0)


@pytest.mark.parametrize("distance", [1e-300, 1e-12, 1.0, 1e6])
def test_no_matrix_makes_the_comparison_fail(distance: float) -> None:
    top = (1 << 61) - 1
    matrices = [
        [[0, 0], [0, 0]], [[top, 0], [0, 0]], [[top, top], [top, top]], [[1, 0], [0, top]],
        [[top, top - 1], [top - 1, top]], [[1, 1], [1, 1]], [[1, 0], [0, 1]], [[3, -2], [-2, 5]],
    ]  # fmt: skip
    grams = np.array(matrices, dtype=np.int64)
    for compared in (3, 5, len(grams)):
        counts = agreeing_groups(grams, distance, compared)
        assert counts.shape == (8,)
        assert (counts >= 1).all()
        assert counts[[0, 1, 2, 5]].tolist() == [1, 1, 1, 1]


def test_equal_words_are_drawn_again() -> None:
    bits = Script([5, 5, 1], [3, 2, 1])
    assert random_order(bits, 3).tolist() == [2, 1, 0]


def naive_counts(grams: NDArray[np.int64], distance: float, reach: int) -> list[int]:
    """Each with itself and with `reach` others on either side of a ring, from the definition."""
    n = len(grams)
    return [
        1
        + sum(
            naive_distance(grams[t].astype(float), grams[(t + k) % n].astype(float)) <= distance
            for k in (*range(-reach, 0), *range(1, reach + 1))
        )
        for t in range(n)
    ]


@pytest.mark.parametrize("n_groups", [12, 13])
def test_each_group_is_compared_with_those_beside_it_on_a_ring(n_groups: int) -> None:
    rng = np.random.default_rng(4)
    rows = np.rint(rng.normal(size=(n_groups, 30, 2)) * 1000 * rng.uniform(0.8, 1.25, (n_groups, 1, 1)))
    grams = np.einsum("tni,tnj->tij", rows, rows).astype(np.int64)
    for reach in (1, 2, 5):
        for distance in (0.2, 0.6, 1.2):
            expected = naive_counts(grams, distance, reach)
            assert agreeing_groups(grams, distance, 2 * reach + 1).tolist() == expected
    assert len(set(naive_counts(grams, 0.6, 5))) > 2


def test_replacing_a_group_touches_as_many_others_as_it_is_compared_with() -> None:
    rng = np.random.default_rng(5)
    rows = np.rint(rng.normal(size=(41, 60, 2)) * 1000)
    grams = np.einsum("tni,tnj->tij", rows, rows).astype(np.int64)
    before = agreeing_groups(grams, 1.0, 9)
    assert before.mean() > 8
    for place in (0, 1, 20, 40):
        changed = grams.copy()
        changed[place] = 0
        moved = before - agreeing_groups(changed, 1.0, 9)
        others = np.delete(moved, place)
        assert set(others.tolist()) <= {0, 1}
        assert others.sum() == moved[place] == before[place] - 1 <= 8


@pytest.mark.parametrize("n_groups", [2000, 10**5, 10**6])
def test_so_many_compared_groups_speak_for_all(n_groups: int) -> None:
    delta = Fraction(1, 10**4)
    compared = compared_groups(n_groups, delta)
    others = compared - 1
    assert others % 2 == 0
    assert compared < n_groups
    # More than six tenths of those compared agree, two of them beyond doubt, and at most half of all do.
    half = (n_groups - 1) // 2
    least = (6 * compared) // 10 + 1 - 2
    chance = hypergeom(n_groups - 1, half, others).sf(least - 1)
    assert 0 < (n_groups + 1) * chance <= float(delta) / 100
    # With a quarter of them that would not hold.
    fewer = others // 4
    chance = hypergeom(n_groups - 1, half, fewer).sf((6 * (fewer + 1)) // 10 - 2)
    assert (n_groups + 1) * chance > float(delta) / 100


def test_few_groups_are_all_compared() -> None:
    assert [compared_groups(n, Fraction(1, 10**6)) for n in (2, 100, 1000)] == [2, 100, 1000]
