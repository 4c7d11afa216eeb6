from __future__ import annotations

import pickle

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.maps import identity_map, integer_map
from dpcov.core.exact_blas import add_gram, check_blas
from dpcov.core.lattice import Lattice, MappedRows
from dpcov.core.queries.gram import Clipping, GramTask, GroupGramTask, Rule, Shrinking, ShrinkingMemory
from dpcov.sources import ArraySource


def table(seed: int = 0, n_rows: int = 3000, d: int = 7) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(2, size=(n_rows, d)) @ rng.normal(size=(d, d))
    rows[5] = np.nan
    rows[77, 3] = np.inf
    rows[100] = 1e308
    return rows


def clippings(d: int) -> list[Clipping]:
    rng = np.random.default_rng(d)
    first, second = (integer_map(rng.normal(size=(d, d))) for _ in range(2))
    return [
        Clipping(first, 5.0),
        Clipping(first, 5.0, Rule.DROP),
        Clipping(first, 1.0, Rule.DIRECTION),
        Clipping(first, 5.0, Rule.TAIL),
        Clipping(second, 4.0, earlier=(Shrinking(first, 3.0), Shrinking(identity_map(d), 2.0))),
    ]


def scan(rows: NDArray[np.float64], task: GramTask | GroupGramTask, threads: int = 1) -> NDArray[np.int64]:
    return ArraySource(rows, threads=threads).scan(task)


def scan_in_blocks(rows: NDArray[np.float64], task: GramTask, length: int) -> NDArray[np.int64]:
    worker = task.worker()
    for first in range(0, len(rows), length):
        worker.add(rows[first : first + length].T, first)
    return worker.total()


@pytest.mark.parametrize("clipping", clippings(4), ids=["clip", "drop", "direction", "tail", "chain"])
def test_the_gram_is_what_python_integers_give(clipping: Clipping) -> None:
    rows = table(n_rows=300, d=4)
    lattice = Lattice.for_table(len(rows), 4)
    exact = reference.gram(rows, clipping, lattice)
    assert scan(rows, GramTask(clipping, lattice, constant=False)).tolist() == exact


@pytest.mark.parametrize("clipping", clippings(7), ids=["clip", "drop", "direction", "tail", "chain"])
def test_the_gram_keeps_its_bits_whatever_the_order_blocks_threads_and_layout(clipping: Clipping) -> None:
    rows = table()
    task = GramTask(clipping, Lattice.for_table(len(rows), 7), constant=False)
    expected = scan(rows, task)
    permuted = rows[np.random.default_rng(1).permutation(len(rows))]
    assert (scan(permuted, task) == expected).all()
    assert (scan(np.asfortranarray(rows), task) == expected).all()
    assert (scan(rows, task, threads=2) == expected).all()
    for length in (1, 2, 3, 17, 256, 512):
        assert (scan_in_blocks(rows, task, length) == expected).all()
    assert (scan(rows[:, ::-1][:, ::-1], pickle.loads(pickle.dumps(task))) == expected).all()  # noqa: S301


def test_a_constant_column_is_a_column_of_ones() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3))
    clipping = Clipping(integer_map(np.eye(4)), 3.0)
    lattice = Lattice.for_table(500, 4)
    with_ones = np.column_stack([rows, np.ones(500)])
    joined = scan(rows, GramTask(clipping, lattice, constant=True))
    assert (joined == scan(with_ones, GramTask(clipping, lattice, constant=False))).all()


def test_beyond_2_to_the_53_the_sum_is_no_longer_exact() -> None:
    # The block length that Lattice chooses is needed: the same data in longer blocks go wrong.
    rng = np.random.default_rng(0)
    block = np.rint(rng.uniform(-1, 1, size=(3, 4096)) * 2**26)
    exact = [[sum(int(a) * int(b) for a, b in zip(r, s, strict=True)) for s in block] for r in block]
    total = np.zeros((3, 3))
    add_gram(total, block)
    assert exact[0][0] > 2**53
    assert [int(v) for v in total[np.triu_indices(3)]] != [
        exact[i][j] for i, j in zip(*np.triu_indices(3), strict=True)
    ]
    within = block[:, :2].copy()
    total = np.zeros((3, 3))
    add_gram(total, within)
    assert int(total[0, 1]) == sum(int(a) * int(b) for a, b in zip(within[0], within[1], strict=True))


def test_this_machines_blas_is_exact() -> None:
    check_blas()


@given(
    hnp.arrays(np.float64, (9, 3), elements=st.floats(width=64)),
    hnp.arrays(np.float64, 3, elements=st.floats(width=64)),
    st.integers(0, 8),
    st.floats(1e-3, 1e3),
    st.sampled_from(range(5)),
)
@settings(max_examples=200)
def test_replacing_a_row_moves_the_gram_by_at_most_sqrt_2_b_squared(
    rows: NDArray[np.float64], other: NDArray[np.float64], place: int, radius: float, kind: int
) -> None:
    chosen = clippings(3)[kind]
    clipping = Clipping(chosen.lattice_map, radius, chosen.rule, chosen.earlier)
    lattice = Lattice.for_table(9, 3)
    task = GramTask(clipping, lattice, constant=False)
    neighbour = rows.copy()
    neighbour[place] = other
    change = (scan(rows, task) - scan(neighbour, task)).astype(object)
    assert (change * change).sum() <= 2 * lattice.bound**4


def test_group_grams_add_up_to_the_gram_and_depend_on_their_own_rows_alone() -> None:
    rows = table(n_rows=1000, d=5)
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.repeat(np.arange(8), 125))
    lattice = Lattice.for_table(1000, 5)
    clipping = clippings(5)[0]
    grouped = scan(
        rows, GroupGramTask(clipping, lattice, constant=False, groups=groups, n_groups=8), threads=2
    )
    assert (grouped.sum(axis=0) == scan(rows, GramTask(clipping, lattice, constant=False))).all()
    changed = rows.copy()
    changed[10] = 1.0
    after = scan(changed, GroupGramTask(clipping, lattice, constant=False, groups=groups, n_groups=8))
    assert set(np.flatnonzero((after != grouped).any(axis=(1, 2)))) == {int(groups[10])}


def test_positions_in_no_group_are_left_out() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    groups = np.full(20, -1)
    groups[:4] = [0, 0, 1, 1]
    lattice = Lattice.for_table(20, 2)
    clipping = Clipping(identity_map(2), 4.0)
    task = GroupGramTask(clipping, lattice, constant=False, groups=groups, n_groups=2)
    assert (scan(rows, task)[0] == scan(rows[:2], GramTask(clipping, lattice, constant=False))).all()


def test_a_memory_of_the_chain_changes_no_bit_and_learns_the_last_step() -> None:
    rows = table(n_rows=5000)
    lattice = Lattice.for_table(len(rows), 7)
    chain = clippings(7)[-1]
    expected = scan(rows, GramTask(chain, lattice, constant=False))
    for known in range(3):
        # Scalars of the first steps come from a scan of the chain that ends with them.
        factors = np.ones(len(rows))
        if known:
            last = chain.earlier[known - 1]
            shorter = Clipping(last.lattice_map, last.radius, earlier=chain.earlier[: known - 1])
            scan(rows, GramTask(shorter, lattice, constant=False, memory=ShrinkingMemory((), factors)), 2)
        memory = ShrinkingMemory(chain.earlier[:known], factors)
        assert memory.covers(chain.earlier)
        task = GramTask(chain, lattice, constant=False, memory=memory)
        assert (scan(rows, task, threads=2) == expected).all()
        whole = (*chain.earlier, Shrinking(chain.lattice_map, chain.radius))
        lengths = [MappedRows(step.lattice_map, len(rows)) for step in whole]
        with np.errstate(all="ignore"):
            for mapped in lengths:
                mapped.load(rows.T, constant=False)
            ratios = [
                step.radius / (np.sqrt(np.maximum(mapped.squares, 1)) * mapped.scaled(1.0))
                for step, mapped in zip(whole, lengths, strict=True)
            ]
        assert (factors == np.minimum(1.0, np.min(ratios, axis=0))).all()


def test_a_memory_covers_only_chains_that_begin_with_its_steps() -> None:
    first, second = Shrinking(identity_map(2), 1.0), Shrinking(identity_map(2), 1.0)
    memory = ShrinkingMemory((first,), np.ones(3))
    assert memory.covers((first, second))
    assert memory.covers((Shrinking(first.lattice_map, 1.0),))
    assert not memory.covers(())
    assert not memory.covers((second, first))
    assert not memory.covers((Shrinking(first.lattice_map, 2.0),))
