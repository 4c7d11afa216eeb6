from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from helpers.curators import curator
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Gram, LogNormGrid, NormHistogram, Rule
from dpcov.maps import identity_map
from dpcov.methods.whitening.queries.columns import PerColumn

Matrix = NDArray[np.float64]

PRECISE = Fraction(10**8)
GRID = LogNormGrid(-8, 8, 2)


def make_rows() -> Matrix:
    rows = np.random.default_rng(0).normal(size=(3000, 3)) * [1.0, 100.0, 1e-2]
    # A gap in one column is no gap in the others.
    rows[:50, 0] = np.nan
    return rows


def norms(rho: Fraction = PRECISE) -> NormHistogram:
    return NormHistogram(identity_map(1), GRID, rho, "norms")


def test_each_column_is_asked_as_if_it_were_a_table() -> None:
    rows = make_rows()
    asked = curator(rows, 10**9)[0]
    found = asked.ask(PerColumn((2, 0), (norms(), norms()), "both", alone=True))
    for column, answer in zip((2, 0), found, strict=True):
        alone = curator(rows[:, [column]], 10**9)[0].ask(norms())
        np.testing.assert_array_equal(answer.counts, alone.counts)
    assert not np.array_equal(found[0].counts, found[1].counts)


def test_the_constant_stands_beside_the_column() -> None:
    rows = make_rows()
    query = Gram(Clipping(identity_map(2), 1.0, Rule.DIRECTION), PRECISE, "directions")
    (found,) = curator(rows, 10**9, constant=True)[0].ask(PerColumn((1,), (query,), "directions"))
    alone = curator(rows[:, [1]], 10**9, constant=True)[0].ask(query)
    np.testing.assert_allclose(found.mean(), alone.mean(), atol=1e-5)
    # 100 times as long as the constant.
    assert found.mean()[0, 0] > 0.9


def test_a_sample_is_the_same_for_all_columns() -> None:
    rows = np.repeat(np.random.default_rng(1).normal(size=(4000, 1)), 2, axis=1)
    query = PerColumn((0, 1), (norms(), norms()), "both", every=8, alone=True)
    first, second = curator(rows, 10**9)[0].ask(query)
    np.testing.assert_array_equal(first.counts, second.counts)
    assert first.n_rows == first.counts.sum() == 500


def test_it_costs_what_its_queries_cost() -> None:
    query = PerColumn((0, 1), (norms(Fraction(1, 3)), norms(Fraction(1, 6))), "both", alone=True)
    (charge,) = query.charges
    assert charge.cost.rho == Fraction(1, 2)
    assert charge.cost.gaussian
    asked, _ = curator(make_rows(), 1)
    asked.ask(query)
    assert asked.receipt().spent.rho == Fraction(1, 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (PerColumn((0,), (norms(), norms()), "x", alone=True), "as many"),
        (PerColumn((), (), "x", alone=True), "at least one"),
        (PerColumn((3,), (norms(),), "x", alone=True), "from 0 to 2"),
        (PerColumn((0,), (norms(),), "x"), "takes 1 columns, not 2"),
        (PerColumn((0,), (norms(),), "x", 0, alone=True), "every"),
        (
            PerColumn((0,), (NormHistogram(identity_map(1), GRID, 1, "x", 2),), "x", alone=True),
            "no sample of its own",
        ),
    ],
)
def test_what_cannot_be_asked_costs_nothing(query: PerColumn[object], message: str) -> None:
    asked, _ = curator(make_rows(), 10**9, constant=True)
    with pytest.raises(ArgumentError, match=message):
        asked.ask(query)
    assert asked.receipt().spent.rho == 0
