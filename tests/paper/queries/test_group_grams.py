from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcov.core import Clipping, RowTask
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.maps import identity_map, integer_map
from dpcov.paper.queries.group_grams import GroupGramTask
from dpcov.sources import ArraySource


def scan(rows: NDArray[np.float64], task: RowTask, threads: int = 1) -> NDArray[np.int64]:
    return ArraySource(rows, threads=threads).scan(task)


def test_group_grams_add_up_to_the_gram_and_depend_on_their_own_rows_alone() -> None:
    rows = np.random.default_rng(0).standard_t(2, size=(1000, 5))
    rows[5] = np.nan
    rows[100] = 1e308
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.repeat(np.arange(8), 125))
    lattice = Lattice.for_table(1000, 5)
    clipping = Clipping(integer_map(np.random.default_rng(5).normal(size=(5, 5))), 5.0)
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
