from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.runs import start_run
from numpy.typing import NDArray

import dpcov
from dpcov.methods.whitening.columns import standardise
from dpcov.methods.whitening.norms import FineNorms, fine_grid
from dpcov.methods.whitening.rare import compress_rare_columns
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White

Matrix = NDArray[np.float64]

N, RHO = 30_000, 0.0015
RARE = (300, 320, 340, 360)


def table() -> Matrix:
    """Six normal columns, and four that are 1 in about a hundredth of the rows."""
    rows = np.random.default_rng(0).standard_normal((N, 10))
    rows[:, 6:] = 0.0
    ends = np.cumsum((0, *RARE))
    for column, (first, last) in enumerate(pairwise(ends), start=6):
        rows[first:last, column] = 1.0
    return rows


def white_run(*, told: tuple[float, ...] = (0.0, 1.0), rho: float = RHO) -> tuple[Run, White, FineNorms]:
    """Exactly white coordinates, and a look at the rows in these."""
    rows = table()
    columns = {f"x{i}": dpcov.number(*(told if i >= 6 else ())) for i in range(10)}
    run = start_run(rows, rho, columns=columns)
    spread = rows.std(axis=0)
    white = White(np.diag(1 / spread), np.sqrt(10.0), np.sqrt(10.0), 10)
    query = run.histogram(white.rows, fine_grid(white.typical, N, 20.0), 0.03, "histogram of the norms")
    return run, white, FineNorms(run.curator.ask(query), N, 20.0)


def test_rare_flags_just_fit_and_others_stay() -> None:
    run, white, histogram = white_run()
    compressed = compress_rare_columns(run, white, histogram)
    assert compressed is not None
    assert not compressed.is_white
    before, after = (np.linalg.norm(one.rows, axis=0) for one in (white, compressed))
    assert after[:6] == pytest.approx(before[:6])
    # Ones of these columns never come together, and their directions are orthogonal here.
    assert after[6:] == pytest.approx(np.full(4, white.typical))
    assert (before[6:] > 2.5 * after[6:]).all()
    assert compressed.far < 0.6 * histogram.radius(50.0)


def test_nothing_is_compressed_where_noise_leaves_white_directions() -> None:
    # A hundred times the budget has a tenth of the noise: a ball around all rows resolves every direction.
    assert compress_rare_columns(*white_run(rho=100 * RHO)) is None


@pytest.mark.parametrize("told", [(), (0.0, 1.5), (-1.0, 1.0)])
def test_only_bounds_of_zero_and_one_tell_where_rows_lie(told: tuple[float, ...]) -> None:
    assert compress_rare_columns(*white_run(told=told)) is None


def test_what_a_look_at_columns_has_shown_tells_it_as_well() -> None:
    run, white, histogram = white_run(told=())
    run.mostly_zero = dict.fromkeys(range(6, 10), 1.0)
    told = compress_rare_columns(*white_run())
    seen = compress_rare_columns(run, white, histogram)
    assert told is not None
    assert seen is not None
    np.testing.assert_allclose(seen.rows, told.rows)
    # Values a tenth as large lie within the rest.
    run.mostly_zero = dict.fromkeys(range(6, 10), 0.1)
    assert compress_rare_columns(run, white, histogram) is None


def test_columns_that_are_mostly_zero_are_noticed() -> None:
    rng = np.random.default_rng(2)
    often, never = rng.random((2, N)) < [[0.2], [0.0001]]
    run = start_run(np.column_stack([7.0 * often, never, rng.standard_normal(N), often < 1]), 0.5)
    standardise(run)
    assert set(run.mostly_zero) == {0, 1}
    assert run.mostly_zero[0] == pytest.approx(7.0, rel=0.5)
    assert run.mostly_zero[1] == 1.0


def test_gaps_are_no_rare_values() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([2013 + rng.standard_normal(N), rng.standard_normal(N), rng.random(N) < 0.1])
    # Two rows of three have a gap, and are zero in every column.
    rows[rng.random(N) < 2 / 3] = 0.0
    run = start_run(rows, 0.5)
    standardise(run)
    assert set(run.mostly_zero) == {2}


def test_other_columns_are_resolved_beside_many_rare_flags() -> None:
    rng = np.random.default_rng(4)
    flags = rng.random((60_000, 15)) < np.geomspace(0.1, 0.003, 15)
    rows = np.column_stack([rng.standard_normal((60_000, 3)), flags])
    names = ["a", "b", "c", *(f"flag{i}" for i in range(15))]
    # Without this step 0 to 3 of 18 combinations are, in six releases.
    resolved = [
        dpcov.release(rows, rho=0.01, columns=names, rng=np.random.default_rng(seed)).resolved
        for seed in range(3)
    ]
    assert min(found for found in resolved if found is not None) >= 7
