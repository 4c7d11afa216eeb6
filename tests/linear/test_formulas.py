"""Formulas over the columns of a release."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.linear_tables import Array, make_release

import dpcov
from dpcov.core import ArgumentError

NAMES = ("wage", "educ", "age", "age^2", "age:educ", "years, at work", "region[n]", "region[s]", "region[w]")


def table() -> Array:
    rng = np.random.default_rng(0)
    educ, age, work = rng.standard_normal((3, 3000)) + np.array([[12], [3], [0]])
    region = rng.integers(0, 3, 3000)
    levels = (region[:, None] == np.arange(3)).astype(np.float64)
    wage = educ - 0.5 * age + 0.1 * age**2 + levels @ [0.0, 1.0, 2.0] + rng.standard_normal(3000)
    return np.column_stack([wage, educ, age, age**2, age * educ, work, levels])


@pytest.fixture(scope="module")
def release() -> dpcov.Release:
    return make_release(table(), names=NAMES, noise=1e-6)


@pytest.mark.parametrize(
    ("formula", "on", "intercept"),
    [
        ("wage ~ educ + age", ["educ", "age"], True),
        ("wage ~ educ + age - 1", ["educ", "age"], False),
        ("wage ~ 0 + educ", ["educ"], False),
        ("wage ~ age + I(age**2)", ["age", "age^2"], True),
        ("wage ~ age + I(age^2)", ["age", "age^2"], True),
        ("wage ~ age + age^2", ["age", "age^2"], True),
        ("wage ~ educ + `age` ** 2", ["educ", "age^2"], True),
        ("wage ~ (educ + age)^2", ["educ", "age", "age:educ"], True),
        ("wage ~ educ:age + `years, at work`", ["age:educ", "years, at work"], True),
        ("wage ~ educ * age", ["educ", "age", "age:educ"], True),
        ("wage ~ C(region)", ["region[s]", "region[w]"], True),
    ],
)
def test_a_formula_names_columns(
    release: dpcov.Release, formula: str, on: list[str], *, intercept: bool
) -> None:
    found = release.regress(formula)
    assert set(found.on) == set(on)
    by_name = release.regress("wage", on=found.on, intercept=intercept)
    np.testing.assert_array_equal(found.coefficients.values, by_name.coefficients.values)
    assert len(found.coefficients) == len(on) + intercept


def test_a_dot_is_every_other_column() -> None:
    found = make_release(table()[:, :3], names=NAMES[:3]).regress("wage ~ .")
    assert found.on == ("educ", "age")


def test_a_category_is_compared_with_its_first_level(release: dpcov.Release) -> None:
    rows = table()
    found = release.regress("wage ~ educ + C(region)")
    design = np.column_stack([rows[:, [1, 7, 8]], np.ones(len(rows))])
    exact = np.linalg.lstsq(design, rows[:, 0])[0]
    np.testing.assert_allclose(found.coefficients.values, exact, rtol=1e-4)
    assert "C(region): each level is compared with region[n]." in found.coefficients.notes
    assert found.wald("C(region)") == found.wald(["region[s]", "region[w]"])
    # Levels of which a row may have none are all there.
    some = make_release(rows[:, :8], names=NAMES[:8]).regress("wage ~ C(region)")
    assert some.on == ("region[n]", "region[s]")


def test_through_the_origin_is_least_squares_without_a_constant() -> None:
    rows = table()[:, :3]
    found = make_release(rows, names=NAMES[:3]).regress("wage", on=["educ", "age"], intercept=False)
    exact = np.linalg.lstsq(rows[:, 1:], rows[:, 0])[0]
    np.testing.assert_allclose(found.coefficients.values, exact, rtol=1e-6)
    left = rows[:, 0] - rows[:, 1:] @ exact
    assert float(found.residual_variance) == pytest.approx(np.square(left).mean(), rel=1e-6)
    share = 1 - np.square(left).mean() / np.square(rows[:, 0]).mean()
    assert float(found.r_squared) == pytest.approx(share, rel=1e-6)
    assert found.intercept == 0
    np.testing.assert_allclose(found.predict(rows[:3, 1:]), rows[:3, 1:] @ exact, rtol=1e-6)
    assert found.prediction(rows[:3, 1:]).mean.values == pytest.approx(found.predict(rows[:3, 1:]))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("wage ~ edu", "no column 'edu'. Did you mean 'educ'"),
        ("wages ~ educ", "no column 'wages'. Did you mean 'wage'"),
        ("wage ~ log(educ)", r"log\(educ\) is not a column of this release"),
        ("wage ~ educ + educ^2", r"educ\^2 is not a column"),
        ("wage ~ age^3", r"age\^3 is not a column"),
        ("log(wage) ~ educ", r"log\(wage\) is not a column"),
        ("wage ~ educ:`years, at work`", "Add it to the table as a column before you release"),
        (
            "wage ~ C(sector)",
            r"C\(sector\) needs one column of zeros and ones for each level, called sector\[...\]",
        ),
        ("wage ~ 1", "names no column that explains wage"),
        ("~ educ", "must have one target"),
        ("wage + age ~ educ", "must have one target"),
        ("wage ~ educ +", "cannot be read"),
        ("wage ~ wage", "on contains the target"),
        ("wage", "give a formula"),
    ],
)
def test_formulas_that_cannot_be_answered(release: dpcov.Release, formula: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        release.regress(formula)


def test_a_formula_and_columns_are_too_much(release: dpcov.Release) -> None:
    with pytest.raises(ArgumentError, match="leave out on"):
        release.regress("wage ~ educ", on=["age"])
    with pytest.raises(ArgumentError, match="intercept must be True or False"):
        release.regress("wage ~ educ", intercept="no")  # type: ignore[arg-type]
