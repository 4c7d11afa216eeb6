from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from helpers.typed_tables import gram
from hypothesis import given
from hypothesis import strategies as st

import dpcov
from dpcov.core import ArgumentError
from dpcov.sources import open_source
from dpcov.sources.encoding import declared
from dpcov.sources.encoding.terms import natural_logarithm, read_term

PEOPLE = pd.DataFrame({"age": [20.0, 30.0, math.nan], "sex": ["f", "m", "m"], "income": [1.0, 0.0, 5.0]})
KINDS = {"age": dpcov.number(0, 120), "sex": dpcov.category(["f", "m", "x"], other=False),
         "income": dpcov.number()}  # fmt: skip


def test_terms_join_the_columns_with_names_that_formulas_know() -> None:
    schema = declared(KINDS, terms=["age^3", "age:sex", "log(income)"])
    source = open_source(PEOPLE, schema)
    assert source.columns == (
        "age", "sex[m]", "sex[x]", "income", "age^3", "age:sex[m]", "age:sex[x]", "log(income)",
    )  # fmt: skip
    nan = math.nan
    expected = [
        [20, 0, 0, 1, 8000, 0, 0, 0],
        [30, 1, 0, 0, 27000, 30, 0, nan],
        [nan, 1, 0, 5, nan, nan, nan, float(natural_logarithm(np.array([5.0]))[0])],
    ]
    assert (gram(PEOPLE, schema) == gram(np.array(expected, dtype=np.float64))).all()


def test_bounds_of_terms_follow_from_those_of_columns() -> None:
    kinds = {"a": dpcov.number(-2, 3), "b": dpcov.number(1, 4), "c": dpcov.number(), "d": dpcov.flag()}
    terms = ["a^2", "a^3", "a:b", "b^2", "log(b)", "log(a)", "c^2", "a:d", "c:d", "a^2:b"]
    source = open_source(np.ones((9, 4)), declared(kinds, terms=terms))
    inf, log4 = math.inf, math.log(4)
    np.testing.assert_allclose(
        source.bounds[4:],
        np.array([[0, 9], [-18, 27], [-8, 12], [1, 16], [0, log4], [-inf, math.log(3)], [0, inf], [-2, 3],
         [-inf, inf], [0, 36]]),
    )  # fmt: skip


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_logarithm_is_right_to_the_last_bits(x: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.log(x)
        found = mpmath.mpf(float(natural_logarithm(np.array([x]))[0]))
        assert abs(found - exact) <= 1e-15 * max(abs(exact), mpmath.mpf(2) ** -54)


def test_a_logarithm_does_not_depend_on_its_place() -> None:
    x = np.exp(np.random.default_rng(0).normal(size=1001) * 50)
    whole = natural_logarithm(x)
    assert whole.tobytes() == b"".join(natural_logarithm(x[i : i + 1]).tobytes() for i in range(len(x)))
    assert whole.tobytes() == np.ascontiguousarray(natural_logarithm(np.repeat(x, 3)[::3])).tobytes()
    assert np.isnan(natural_logarithm(np.array([0.0, -1.0, math.inf, math.nan]))).all()


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["age^1"], "power from 2 to 9"),
        (["age^10"], "power from 2 to 9"),
        (["aeg^2"], r"terms: aeg\^2 needs aeg, .*Did you mean 'age'"),
        (["age"], "age is a column already"),
        (["age:"], "needs a column, which is not among columns"),
        (["age^2", "age^2"], r"two columns would be called age\^2"),
        ("age^2", "terms must be a list"),
        ([3], "terms must be texts"),
    ],
)
def test_bad_terms_are_refused_in_words(terms: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dpcov.release(PEOPLE, rho=1, columns=KINDS, terms=terms)


def test_a_column_with_an_odd_name_is_no_term() -> None:
    assert read_term("log(a):b^2", ["log(a)", "b^2"]).names({"log(a)": ["log(a)"], "b^2": ["b^2"]}) == [
        "log(a):b^2"
    ]
