from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from real_judge import WHOLE, RegressionOutcome
from shelf import summarise_refusals
from shelf_tables import JUDGING, MOST_COLUMNS, TUNING, choose, part


def frame(n_rows: int = 1_200, n_columns: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(n_rows, 1))
    made = pd.DataFrame(common + rng.normal(size=(n_rows, n_columns)))
    made.columns = [f"c{place}" for place in range(n_columns)]
    return made.assign(name="word", same=1.0, gaps=np.where(rng.random(n_rows) < 0.2, np.nan, 1.0))


def test_columns_and_regressions_are_drawn_from_the_name() -> None:
    table, again, other = (choose(name, frame()) for name in ("a/b", "a/b", "a/c"))
    assert table is not None
    assert again is not None
    assert other is not None
    assert (table.columns, table.regressions) == (again.columns, again.regressions)
    assert table.regressions != other.regressions
    assert len(table.columns) == MOST_COLUMNS
    # Neither words, nor what never varies, nor what is often missing.
    assert {"name", "same", "gaps"}.isdisjoint(table.columns)
    assert len(set(table.regressions)) == 5
    for target, on in table.regressions:
        assert target not in on
        assert 1 <= len(on) <= 5


def test_a_table_that_is_too_short_or_too_narrow_stays_on_the_shelf() -> None:
    assert choose("a", frame(n_rows=999)) is None
    assert choose("a", frame(n_columns=2)) is None
    gappy = frame(n_rows=1_050)
    gappy.loc[:60, "c0"] = np.nan
    assert choose("a", gappy) is None, "990 rows are complete"


def test_names_decide_what_a_table_is_for() -> None:
    parts = [part(f"collection/{number}") for number in range(1_000)]
    assert set(parts) == {TUNING, JUDGING}
    # A fair coin falls outside of 400 to 600 once in 10^9.
    assert 400 < parts.count(TUNING) < 600


def test_a_refusal_counts_as_nothing_explained() -> None:
    fit = RegressionOutcome("t", "y", 1, 1.0, 0, WHOLE, True, False, False, 0.4, 0.5, 0.1)
    refused = replace(fit, table="u", refused=True, r_squared=0.0, largest_error=float("nan"))
    wild = replace(fit, r_squared=-1e6)
    not_due = replace(refused, due=False)
    text = summarise_refusals([fit, refused, wild, not_due])
    assert text == "epsilon 1: refused 1 of 3 that are due (33.3%); R squared -0.200 of 0.500; most of u 1"
