from __future__ import annotations

import numpy as np
import pytest
from world_tables import FAMILIES, FEWEST_COLUMNS, FEWEST_ROWS, MOST_NUMBERS, MOST_ROWS, draw_table


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 24, 60])
def test_families_draw_any_number_of_columns(name: str, d: int) -> None:
    for seed in range(3):
        drawn = FAMILIES[name](np.random.default_rng([seed, d]), 400, d)
        assert drawn.values.shape == (400, d)
        assert drawn.values.dtype == np.float64
        assert np.isfinite(drawn.values).all()
        assert drawn.flags.shape == (d,)
        assert np.isin(drawn.values[:, drawn.flags], [0.0, 1.0]).all()


def test_a_seed_is_a_table() -> None:
    first, again, other = draw_table(5), draw_table(5), draw_table(6)
    assert first.name == again.name
    np.testing.assert_array_equal(first.rows, again.rows)
    assert first.name != other.name


def test_tables_are_of_all_kinds_and_moderate_size() -> None:
    tables = [draw_table(seed) for seed in range(120)]
    for table in tables:
        n, d = table.rows.shape
        assert FEWEST_ROWS <= n <= MOST_ROWS
        assert d >= FEWEST_COLUMNS
        assert n * d <= MOST_NUMBERS
        assert 0.02 <= table.rho <= 2
        assert len(set(table.columns)) == d == len(table.flags)
        assert not np.isinf(table.rows).any()
        assert np.isnan(table.rows).any() <= table.family.endswith("~gaps")
    names = [table.family for table in tables]
    assert any("+" in name for name in names)
    assert any("~mixed" in name for name in names)
    assert any("~gaps" in name for name in names)
    assert len({name.split("~")[0].split("+")[0] for name in names}) >= 20
