"""One small table, as every source may hold it, and the tasks that a source must get right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import (
    Clipping,
    RowTask,
)
from dpcov.core.lattice import Lattice
from dpcov.core.queries.gram import GramTask
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask
from dpcov.maps import identity_map
from dpcov.paper.queries.group_grams import GroupGramTask

N_ROWS = 5000


@pytest.fixture(scope="session")
def table() -> NDArray[np.float64]:
    """Three columns of different scale, with a missing and an infinite value."""
    rows = np.random.default_rng(0).normal(size=(N_ROWS, 3)) * [1, 10, 1000]
    rows[17, 1] = np.nan
    rows[18, 2] = np.inf
    rows.setflags(write=False)
    return rows


@pytest.fixture(scope="session")
def tasks() -> dict[str, RowTask]:
    """All rows, rows in groups, a sample of the rows, and all of these in one scan."""
    gram = GramTask(Clipping(identity_map(4), 50.0), Lattice.for_table(N_ROWS, 4), constant=True)
    groups = np.random.default_rng(1).integers(-1, 5, N_ROWS)
    positions = np.flatnonzero(np.random.default_rng(2).integers(0, 7, N_ROWS) == 0)
    grouped = GroupGramTask(gram.clipping, gram.lattice, constant=True, groups=groups, n_groups=5)
    sample = SampledTask(gram, positions)
    return {"all": gram, "groups": grouped, "sample": sample, "joint": JointTask((sample, gram, grouped))}
