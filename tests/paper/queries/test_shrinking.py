"""A chain of shrinkings: exact, the same with and without memory, and never the memory of another scan."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from helpers.curators import CountingSource, gaussian_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    Budget,
    Clipping,
    Curator,
    OSEntropy,
    PrivacyCost,
    Report,
    RowTask,
    Rule,
    SeededBits,
)
from dpcov.core.lattice import Lattice, MappedRows, times_power
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries import Shrinking, ShrunkGram
from dpcov.paper.queries.shrinking import ShrinkingMemory, ShrunkGramTask
from dpcov.sources import ArraySource

Rows = NDArray[np.float64]


def hostile(rows: Rows) -> Rows:
    rows = rows * np.exp(gaussian_rows(len(rows), 1))
    rows[7], rows[8], rows[9] = np.nan, 1e300, 0.0
    return rows


def chain(d: int, steps: int) -> tuple[Shrinking, ...]:
    rng = np.random.default_rng(steps)
    return tuple(Shrinking(integer_map(rng.normal(size=(d, d))), 2.0 + k / 10) for k in range(steps))


def shrunk(steps: Sequence[Shrinking], rho: int = 1) -> ShrunkGram:
    """The round that ends a chain."""
    return ShrunkGram(Clipping(steps[-1].lattice_map, steps[-1].radius), tuple(steps[:-1]), rho, "")


def task_of(query: ShrunkGram, n_rows: int, memory: ShrinkingMemory | None = None) -> ShrunkGramTask:
    lattice = Lattice.for_table(n_rows, query.clipping.lattice_map.n_columns)
    return ShrunkGramTask(query.clipping, query.earlier, lattice, constant=False, memory=memory)


def test_a_chain_is_what_python_integers_give() -> None:
    rows, query = hostile(gaussian_rows(300, 4)), shrunk(chain(4, 3))
    exact = reference.gram(rows, query.clipping, Lattice.for_table(300, 4), query.earlier)
    assert ArraySource(rows).scan(task_of(query, 300)).reshape(4, 4).tolist() == exact


@given(
    hnp.arrays(np.float64, (9, 3), elements=st.floats(width=64)),
    hnp.arrays(np.float64, 3, elements=st.floats(width=64)),
    st.integers(0, 8),
)
@settings(max_examples=100)
def test_replacing_a_row_moves_the_gram_by_at_most_sqrt_2_b_squared(
    rows: Rows, other: Rows, place: int
) -> None:
    task = task_of(shrunk(chain(3, 3)), 9)
    neighbour = rows.copy()
    neighbour[place] = other
    change = (ArraySource(rows).scan(task) - ArraySource(neighbour).scan(task)).astype(object)
    assert (change * change).sum() <= 2 * task.lattice.bound**4


@pytest.mark.parametrize("known", range(3))
def test_a_memory_changes_no_bit_and_learns_the_last_step(known: int) -> None:
    rows, steps = hostile(gaussian_rows(5000, 3)), chain(3, 3)
    source = ArraySource(rows, threads=2)
    expected = source.scan(task_of(shrunk(steps), len(rows)))
    factors = np.ones(len(rows))
    if known:
        # Scalars of the first steps come from a scan of the chain that ends with them.
        before = task_of(shrunk(steps[:known]), len(rows), ShrinkingMemory((), factors))
        factors = source.scan(before)[9:].view(np.float64)
    memory = ShrinkingMemory(steps[:known], factors)
    assert memory.covers(steps[:-1])
    total = source.scan(task_of(shrunk(steps), len(rows), memory))
    assert (total[:9] == expected).all()
    with np.errstate(all="ignore"):
        ratios = [ratio(rows, step) for step in steps]
    assert (total[9:].view(np.float64) == np.minimum(1.0, np.min(ratios, axis=0))).all()


def ratio(rows: Rows, step: Shrinking) -> Rows:
    mapped = MappedRows(step.lattice_map, len(rows))
    mapped.load(rows.T, constant=False)
    unit = times_power(1.0 / step.lattice_map.scale, mapped.shift)
    return np.asarray(step.radius / (np.sqrt(np.maximum(mapped.squares, 1)) * unit))


def test_a_memory_covers_only_chains_that_begin_with_its_steps() -> None:
    first, second = Shrinking(identity_map(2), 1.0), Shrinking(identity_map(2), 1.0)
    memory = ShrinkingMemory((first,), np.ones(3))
    assert memory.covers((first, second))
    assert memory.covers((Shrinking(first.lattice_map, 1.0),))
    assert not memory.covers(())
    assert not memory.covers((second, first))
    assert not memory.covers((Shrinking(first.lattice_map, 2.0),))


class Streaming(CountingSource):
    """The same rows, from a source that does not promise their places: no memory is kept."""

    @property
    def in_memory(self) -> bool:
        return False


def asked(source: ArraySource, queries: Sequence[ShrunkGram]) -> list[NDArray[np.int64]]:
    subject = Curator(source, Budget(PrivacyCost(Fraction(100))), SeededBits(np.random.default_rng(9)))
    return [subject.ask(query).integers for query in queries]


def test_rounds_give_the_same_bits_with_and_without_memory_in_any_order() -> None:
    rows, steps = hostile(gaussian_rows(9000, 3)), chain(3, 4)
    growing = [shrunk(steps[: k + 1]) for k in range(4)]
    other = ShrunkGram(Clipping(steps[0].lattice_map, 0.5, Rule.DROP), (steps[2],), 1, "")
    orders = [
        growing,
        growing[::-1],
        [growing[1], other, growing[2], growing[0], growing[3], growing[3], other],
    ]
    for order in orders:
        expected, found = asked(Streaming(rows), order), asked(CountingSource(rows, threads=2), order)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_rounds_asked_together_give_what_they_give_apart() -> None:
    rows, steps = hostile(gaussian_rows(9000, 3)), chain(3, 3)
    queries = [shrunk(steps[: k + 1], rho=10**8) for k in range(3)]
    source = CountingSource(rows, threads=2)
    subject = Curator(source, Budget(PrivacyCost(Fraction(10**9))), SeededBits(np.random.default_rng(9)))
    answers = subject.ask(*queries)
    assert source.scans == 1
    for query, answer in zip(queries, answers, strict=True):
        exact = source.scan(task_of(query, len(rows))).reshape(3, 3)
        assert np.abs(answer.integers - exact).max() < 7 * np.sqrt(float(answer.variance))


def test_a_failed_scan_leaves_the_memory_as_it_was() -> None:
    rows, steps = gaussian_rows(9000, 3), chain(3, 3)
    growing = [shrunk(steps[: k + 1]) for k in range(3)]

    class FailsHalfway(ArraySource):
        fail = False

        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            if self.fail:
                worker = task.worker()
                worker.add(rows[:100].T, 0)
                raise OSError("unplugged")
            return super().scan(task, report)

    source = FailsHalfway(rows)
    subject = Curator(source, Budget(PrivacyCost(Fraction(100))), SeededBits(np.random.default_rng(9)))
    found = [subject.ask(query).integers for query in growing[:2]]
    source.fail = True
    # The map of another chain, so that what it half wrote would show.
    with pytest.raises(OSError, match="unplugged"):
        subject.ask(ShrunkGram(Clipping(identity_map(3), 1e-3), steps[:2], 1, ""))
    source.fail = False
    found.append(subject.ask(growing[2]).integers)
    expected = asked(Streaming(rows), growing)
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_threads_that_share_a_curator_do_not_disturb_each_others_memory() -> None:
    rows, steps = gaussian_rows(30_000, 3), chain(3, 3)
    before, after = shrunk(steps[:2], rho=10**8), shrunk(steps, rho=10**8)
    narrow = ShrunkGram(Clipping(identity_map(3), 0.01), steps[:2], 10**8, "")
    barrier = threading.Barrier(2)

    class Meeting(ArraySource):
        """Both threads have their task, and so their memory, before either scans."""

        meet = False

        def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
            if self.meet:
                barrier.wait(600)
            return super().scan(task, report)

    source = Meeting(rows, threads=1)
    subject = Curator(source, Budget(PrivacyCost(Fraction(10**9))), OSEntropy())
    exact = [source.scan(task_of(query, len(rows))).reshape(3, 3) for query in (after, narrow)]
    for _ in range(3):
        subject.ask(before)
        source.meet = True
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(subject.ask, (after, narrow)))
        source.meet = False
        for answer, expected in zip(answers, exact, strict=True):
            # Seven sd of the noise; rows that the other query shrank would be off by a thousand times more.
            noise = 7 * np.sqrt(float(answer.variance))
            assert np.abs(answer.integers - expected).max() < noise
            assert np.abs(expected).max() > 1000 * noise


@pytest.mark.parametrize("step", [Shrinking(identity_map(4), 1.0), Shrinking(identity_map(3), -1.0)])
def test_a_step_that_does_not_fit_costs_nothing(step: Shrinking) -> None:
    subject = Curator(ArraySource(gaussian_rows(100, 3)), Budget(PrivacyCost(Fraction(1))), OSEntropy())
    with pytest.raises(ArgumentError, match=r"map|radius"):
        subject.ask(ShrunkGram(Clipping(identity_map(3), 1.0), (step,), 1, ""))
    assert subject.remaining.rho == 1
