from __future__ import annotations

import numpy as np
import pytest
from helpers.runs import start_run

from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.settle import settle
from dpcov.methods.whitening.whiten import White


@pytest.mark.parametrize(("d", "part"), [(3, 1.0), (c.MANY_DIRECTIONS, 1.0), (30, 0.4)])
def test_looks_cost_less_in_tables_of_many_columns(d: int, part: float) -> None:
    run = start_run(np.random.default_rng(0).normal(size=(20_000, d)))
    assert run.quick_look == pytest.approx(part * c.LOOK)
    assert run.careful_look == pytest.approx(part * c.CAREFUL_LOOK)
    settle(run, White(np.eye(d), np.sqrt(d), 2 * np.sqrt(d), d))
    charges = run.curator.receipt().charges
    assert float(charges[0].cost.rho) / run.rho == pytest.approx(part * c.CAREFUL_LOOK)
    assert [charge.purpose for charge in charges[1:]] == ["directions of the tail"]


@pytest.mark.parametrize(
    ("n_rows", "short", "few"), [(2_500, False, False), (2_200, True, False), (600, True, True)]
)
def test_a_table_is_short_by_public_numbers_alone(n_rows: int, *, short: bool, few: bool) -> None:
    # The norm of the noise is sqrt(2 d) / (n sqrt(rho)); 12 times that is 186 / n here.
    run = start_run(np.random.default_rng(1).normal(size=(n_rows, 12)), 0.1)
    assert (run.is_short, run.has_few_rows) == (short, few)
