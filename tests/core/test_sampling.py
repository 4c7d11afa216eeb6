from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from helpers.scripted_bits import Script
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Clipping
from dpcov.core.entropy import SeededBits
from dpcov.core.lattice import Lattice
from dpcov.core.queries import sample
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.sample import SampledTask, random_order, random_positions, sampled_rows
from dpcov.maps import identity_map
from dpcov.sources import ArraySource


class Counted(SeededBits):
    """Notes how many words are asked for at a time."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))
        self.drawn: list[int] = []

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn.append(count)
        return super().words(count)


@pytest.mark.parametrize("sparse", [64, 1], ids=["marked", "sorted"])
@pytest.mark.parametrize("few", [1 << 25, 1], ids=["halves of words", "words"])
def test_every_set_of_positions_is_equally_likely(
    sparse: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "_SPARSE", sparse)
    monkeypatch.setattr(sample, "_FEW_ROWS", few)
    bits = SeededBits(np.random.default_rng(0))
    counts = Counter(tuple(random_positions(bits, 6, 3).tolist()) for _ in range(10_000))
    assert set(counts) == set(combinations(range(6), 3))
    expected = 500.0
    squares = sum((count - expected) ** 2 / expected for count in counts.values())
    # Chi-square with 19 degrees of freedom exceeds 60 once in 250,000 seeds; the seed is fixed.
    assert squares < 60
    # The same test rejects sets that start with a sorted draw's least ones.
    draws = np.random.default_rng(0).integers(0, 6, (10_000, 9))
    skewed = Counter(tuple(sorted(set(draw))[:3]) for draw in draws.tolist())
    assert sum((skewed.get(key, 0) - expected) ** 2 / expected for key in counts) > 60


@pytest.mark.parametrize("many", [8, 1], ids=["marked", "sorted"])
def test_every_order_of_positions_is_equally_likely(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_MANY_TIMES", many)
    bits = SeededBits(np.random.default_rng(0))
    counts = Counter(tuple(random_order(bits, 5, 3).tolist()) for _ in range(12_000))
    assert set(counts) == set(permutations(range(5), 3))
    expected = 200.0

    def squares(found: Counter[tuple[int, ...]]) -> float:
        return sum((found.get(key, 0) - expected) ** 2 / expected for key in counts)

    # Chi-square with 59 degrees of freedom exceeds 125 once in 500,000 seeds; the seed is fixed.
    assert squares(counts) < 125
    # The same test rejects a random set whose order is not quite random: first and last are exchanged if that
    # brings the smaller one to the front, once in eight times.
    rng = np.random.default_rng(1)
    skewed: Counter[tuple[int, ...]] = Counter()
    for key in counts.elements():
        turned = key[::-1] if key[0] > key[-1] and rng.random() < 1 / 8 else key
        skewed[turned] += 1
    assert squares(skewed) > 125


def test_an_order_of_all_rows_takes_few_draws() -> None:
    bits = Counted()
    order = random_order(bits, 20_000, 20_000)
    assert sorted(order.tolist()) == list(range(20_000))
    # n (log n + 6) uniform positions have all of them but one time in 400; the seed is fixed.
    assert len(bits.drawn) < 25


@given(st.integers(1, 3000), st.integers(1, 60))
def test_an_order_has_distinct_positions_and_as_many_as_asked(n_rows: int, every: int) -> None:
    order = random_order(SeededBits(np.random.default_rng(1)), n_rows, sampled_rows(n_rows, every))
    assert len(order) == len(set(order.tolist())) == -(-n_rows // every)
    assert 0 <= order.min() <= order.max() < n_rows


@given(st.integers(1, 5000), st.integers(1, 200))
def test_positions_are_distinct_ascending_and_as_many_as_asked(n_rows: int, every: int) -> None:
    positions = random_positions(SeededBits(np.random.default_rng(1)), n_rows, sampled_rows(n_rows, every))
    assert len(positions) == -(-n_rows // every)
    assert (np.diff(positions) > 0).all()
    assert 0 <= positions[0] <= positions[-1] < n_rows


@pytest.mark.parametrize(("n_rows", "count"), [(100_000, 40_001), (17_000, 17_000), (20_001, 16_384), (9, 9)])
@pytest.mark.parametrize("few", [1 << 25, 1], ids=["halves of words", "words"])
def test_positions_drawn_in_pieces_are_those_drawn_at_once(
    n_rows: int, count: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "_FEW_ROWS", few)
    in_pieces = random_positions(SeededBits(np.random.default_rng(3)), n_rows, count)
    monkeypatch.setattr(sample, "_DRAWN_TOGETHER", 1 << 20)
    at_once = random_positions(SeededBits(np.random.default_rng(3)), n_rows, count)
    np.testing.assert_array_equal(in_pieces, at_once)


def test_words_that_would_favour_small_positions_are_rejected() -> None:
    # 2^32 - 1 is a multiple of 3: it is one too many as a half of a word. The lower half comes first.
    assert random_positions(Script([(1 << 32) + (1 << 32) - 1], [2]), 3, 2).tolist() == [1, 2]
    # 2^64 is 2^26 more than a multiple of 3 2^25, so the last words are too many.
    assert random_positions(Script([(1 << 64) - 1, 1], [2]), 3 << 25, 2).tolist() == [1, 2]


def test_short_tables_take_half_the_bits() -> None:
    bits = Counted()
    for n_rows, first in ((1 << 25, 50), ((1 << 25) + 1, 99)):
        random_positions(bits, n_rows, 99)
        assert bits.drawn[0] == first
        bits.drawn.clear()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sampled_task_is_the_task_on_the_sampled_rows(order: str, dtype: type, threads: int) -> None:
    rows: NDArray[Any] = np.random.default_rng(0).normal(size=(150_000, 3)).astype(dtype)
    positions = random_positions(SeededBits(np.random.default_rng(2)), len(rows), 60_001)
    task = GramTask(Clipping(identity_map(4), 3.0), Lattice.for_table(len(rows), 4), constant=True)
    expected = ArraySource(rows[positions]).scan(task)
    table = np.array(rows, order="C" if order == "C" else "F")
    assert (ArraySource(table, threads=threads).scan(SampledTask(task, positions)) == expected).all()


def test_the_parts_of_a_sample_make_the_whole() -> None:
    task = SampledTask(None, np.array([0, 3, 4, 9]))  # type: ignore[arg-type]
    assert task.notes(0, 4).tolist() == [0, 3]
    assert task.notes(4, 5).tolist() == [0]
    assert task.notes(9, 1).tolist() == [0]
    assert task.with_notes(task.notes(5, 2)).positions.tolist() == []
