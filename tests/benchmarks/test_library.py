from __future__ import annotations

import numpy as np
import pandas as pd
from library_tables import MOST_LEVELS, describe, encode


def test_words_become_flags_and_gaps_stay_gaps() -> None:
    frame = pd.DataFrame(
        {
            "age": [31, 45, None],
            "member": [True, False, True],
            "region": pd.Categorical(["south", None, "north"]),
            "name": ["Ada", "Grace", "Emmy"],
        }
    )
    made = encode(frame)
    # The first level, in the order of the alphabet, has no column.
    assert list(made.columns) == ["age", "member", "region_south", "name_Emmy", "name_Grace"]
    assert (made.dtypes == np.float64).all()
    np.testing.assert_array_equal(made["region_south"], [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(made["age"], [31.0, 45.0, np.nan])
    np.testing.assert_array_equal(made["member"], [1.0, 0.0, 1.0])


def test_words_with_too_many_levels_are_left_out() -> None:
    words = [f"w{number}" for number in range(MOST_LEVELS + 1)]
    assert encode(pd.DataFrame({"many": words})).empty
    assert encode(pd.DataFrame({"few": words[:-1]})).shape == (MOST_LEVELS, MOST_LEVELS - 1)


def test_copies_are_known_by_their_columns_whatever_these_are_called() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"]).assign(word="x", same=1.0)
    copy = frame.sample(frac=1, random_state=0).rename(columns={"a": "u", "b": "v"})
    assert describe(frame) == describe(copy)
    assert len(describe(frame)) == 3, "neither words nor what never varies"
    other = pd.DataFrame(rng.normal(size=(50, 3)))
    assert describe(frame).isdisjoint(describe(other))
    assert describe(frame).isdisjoint(describe(frame.iloc[:-1]))
