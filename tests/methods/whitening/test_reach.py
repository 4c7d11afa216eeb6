from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.runs import Matrix, start_run

import dpcov
from dpcov.methods.whitening.frames import centres_and_scales
from dpcov.methods.whitening.reach import find_hidden, keep_within, never_seen
from dpcov.methods.whitening.run import Run


def make_run(n_columns: int = 3) -> Run:
    run = start_run(np.zeros((100, n_columns)), constant=True)
    run.never_seen = {1}
    return run


def stretched(gain: float) -> Matrix:
    """Coordinates of three columns and the constant; the second one, of centre 0, is stretched."""
    rows = np.array([[1.0, 0, 0, -50], [0, 1, 0, 0], [0.5, 0, 2, 0], [0, 0, 0, 1]])
    rows[:, 1] *= gain
    return rows


def test_a_column_is_compressed_until_a_one_may_lie_within() -> None:
    run, rows = make_run(), stretched(1e6)
    kept, count = keep_within(run, rows, SimpleNamespace(far=10.0, typical=6.0), never_seen(run))
    assert count == 1
    centres, scales = centres_and_scales(kept, constant=True)
    # With all that it holds elsewhere, such a row is then 10 long.
    assert abs(1 - centres[1]) / scales[1] == pytest.approx(8)
    # The column depends on no other, so nothing else has changed.
    np.testing.assert_allclose(np.delete(kept, 1, axis=1), np.delete(rows, 1, axis=1))


def test_nothing_gets_longer_whatever_columns_depend_on() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        rows = np.random.default_rng(seed).normal(size=(4, 4))
        rows[-1] = [0, 0, 0, 1]
        # The second column less the first is nothing, up to rounding, and amplified.
        rows[1] = [-1e9, 1e9, 0, 0]
        table = np.column_stack([rng.normal(size=(50, 3)), np.ones(50)])
        table[:, 1] = table[:, 0]
        kept, _ = keep_within(
            make_run(), rows, SimpleNamespace(far=0.1, typical=0.0), np.array([True, True, True, False])
        )
        before, after = (np.linalg.norm(table @ forms.T, axis=1) for forms in (rows, kept))
        assert (after <= before * (1 + 1e-6)).all()


def test_a_column_within_reach_stays_as_it_is() -> None:
    run, rows = make_run(), stretched(1.0)
    for columns, far in ((never_seen(run), 1e3), (np.zeros(4, dtype=np.bool_), 1e-3)):
        kept, count = keep_within(run, rows, SimpleNamespace(far=far, typical=0.0), columns)
        assert count == 0
        np.testing.assert_array_equal(kept, rows)


def test_only_columns_that_nobody_saw_are_hidden() -> None:
    run, back = make_run(), np.eye(4)
    first, second = np.eye(4)[:, :1], np.eye(4)[:, 1:2]
    rows = np.diag([1.0, 1e6, 1.0, 1.0])
    # The second column was never seen, and is what is invisible.
    np.testing.assert_array_equal(find_hidden(run, rows, back, second), [False, True, False, False])
    # The first one is invisible, too, but step 1 has seen it.
    np.testing.assert_array_equal(find_hidden(run, rows, back, np.hstack([first, second])), never_seen(run))
    # The second one is visible.
    assert not find_hidden(run, rows, back, first).any()
    # Less than half of it is invisible.
    tilted = np.array([[0.8], [0.6], [0.0], [0.0]])
    assert not find_hidden(run, rows, back, tilted).any()


def test_flags_of_few_ones_are_not_stretched_out_of_the_region() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    rows = np.column_stack([rng.normal(50, 15, n), np.exp(rng.normal(10, 0.7, n)), rng.random(n) < 0.01])
    truth = rows[:, 2].mean()
    found, held = [], []
    for seed in range(8):
        made = dpcov.release(rows, epsilon=1, delta=1e-6, rng=np.random.default_rng(seed), progress=False)
        lower, upper = made.mean().interval()
        held.append(lower[2] <= truth <= upper[2])
        found.append(made.mean().values[2] / truth)
    # One of eight may be missed by chance. When such columns were stretched without end, two of these came
    # out as zero, and three intervals did not hold.
    assert sum(held) >= 7
    assert np.median(np.abs(np.array(found) - 1)) < 0.3
