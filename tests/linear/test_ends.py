"""Public ends of columns: means lie within them, and standard deviations within half their distance."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpcov
from dpcov.laws import NoiseLaw
from dpcov.linear import Answer, Questions
from dpcov.linear.responses import Response
from dpcov.linear.uncertainty import ErrorLaw

NAMES = ("rare", "age", "free")
ENDS = np.array([[0.0, 1.0], [0.0, 120.0], [-math.inf, math.inf]])
TRUE_MEANS = np.array([0.001, 119.9, 50.0])
# Of the rare column, half are far below 0; of age, half are far above 120.
SIGMA = 0.02
LAW = NoiseLaw(np.diag([1.0, 100.0, 100.0, 1.0]), SIGMA, 0.0)


def _asked(seed: int) -> Questions:
    moment = np.diag([0.05, 0.5, 100.0, 0.0]) + np.outer(np.append(TRUE_MEANS, 1), np.append(TRUE_MEANS, 1))
    rng = np.random.default_rng(seed)
    noise = np.zeros((4, 4))
    noise[:3, 3] = noise[3, :3] = rng.normal(size=3) * SIGMA / math.sqrt(2) * np.diag(LAW.inverse)[:3]
    return Questions(NAMES, 10_000, moment + noise, LAW, (), ends=ENDS)


def test_intervals_at_an_end_hold_and_are_never_a_point() -> None:
    """Each of 400 holds with at least 95%: fewer than 360 in a column with probability below 1e-4."""
    held, shortest = np.zeros(3), np.full(3, math.inf)
    for seed in range(400):
        mean = _asked(seed).mean(None, sampling=False)
        lower, upper = mean.interval()
        assert (mean.values >= ENDS[:, 0]).all()
        assert (mean.values <= ENDS[:, 1]).all()
        assert (lower >= ENDS[:, 0]).all()
        assert (upper <= ENDS[:, 1]).all()
        held += (lower <= TRUE_MEANS) & (upper >= TRUE_MEANS)
        shortest = np.minimum(shortest, upper - lower)
    assert (held >= 360).all(), held
    half = 1.96 * SIGMA / math.sqrt(2) * np.diag(LAW.inverse)[:3]
    assert (shortest >= 0.9 * half).all(), "an estimate at an end keeps the half that lies within"


def test_an_estimate_beyond_an_end_is_brought_to_it() -> None:
    beyond = [seed for seed in range(20) if _asked(seed).moment[0, 3] < -0.005]
    assert beyond
    for seed in beyond:
        mean = _asked(seed).mean(["rare"], sampling=False)
        assert mean["rare"] == mean.interval().lower[0] == 0.0


def test_standard_deviations_are_at_most_half_the_distance() -> None:
    moment = np.diag([0.3, 4000.0, 5e6, 1.0])
    asked = Questions(NAMES, 10_000, moment, LAW, (), ends=ENDS)
    assert asked.variance(None, sampling=False).interval().upper.tolist()[:2] == [0.25, 3600.0]
    spread = dpcov.linear.description.standard_deviation(asked, None, sampling=False)
    assert spread.values.tolist()[:2] == [0.5, 60.0]
    assert spread.interval().upper[:2].tolist() == [0.5, 60.0]
    assert spread.values[2] == math.sqrt(5e6)
    assert spread[["age"]].interval().upper.tolist() == [60.0], "a part of an answer has its own limits"


@pytest.mark.parametrize(("value", "ends"), [(1.5, (0.8, 1.0)), (-0.5, (0.0, 0.2)), (0.95, (0.85, 1.0))])
def test_an_interval_beyond_a_limit_is_moved_there_and_is_no_point(
    value: float, ends: tuple[float, float]
) -> None:
    half = 0.1 / float(norm.ppf(0.975))
    response = Response(*(np.array([part]) for part in (1.0, 0.0, 0.0, 0.0, 0.0)))
    law = ErrorLaw(half, 1000.0, None)
    answer = Answer(
        "share", np.array([value]), (("a",),), False, limits=(0.0, 1.0), _given=response, _law=law
    )
    np.testing.assert_allclose(np.ravel(answer.interval()), ends)
    unknown = replace(answer, _law=ErrorLaw(math.nan, 1000.0, None))
    assert np.ravel(unknown.interval()).tolist() == [0.0, 1.0]


def test_columns_of_zeros_and_ones_need_no_ends() -> None:
    asked = Questions(("a", "b"), 100, np.diag([0.3, 9.0, 1.0]), NoiseLaw(np.eye(3), 0.01), (), shares=(0,))
    assert asked.variance(None, sampling=False).values.tolist() == [0.25, 9.0]


@pytest.mark.parametrize("missing", ["complete", "pairwise"])
def test_a_release_knows_the_ends_of_what_it_was_told(missing: str) -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({
        "age": np.where(rng.random(3000) < 0.1, np.nan, rng.integers(0, 2, 3000) * 100.0),
        "region": rng.choice(["north", "south"], 3000),
        "wage": rng.normal(size=3000),
    })  # fmt: skip
    kinds = {
        "age": dpcov.number(0, 100),
        "region": dpcov.category(["north", "south", "east"], other=False),
        "wage": dpcov.number(),
    }
    made = dpcov.release(people, rho=0.05, columns=kinds, missing=missing, rng=rng)
    upper = made.std(["age", "region[south]", "wage"]).interval(0.9999).upper
    assert upper[:2].tolist() == [50.0, 0.5]
    assert upper[2] > 1
    mean = made.mean(["age", "region[east]"])
    np.testing.assert_array_equal(mean.limits, [[0.0, 0.0], [100.0, 1.0]])
    shares = made.shares("region")
    np.testing.assert_array_equal(shares.limits, [[0.0] * 3, [1.0] * 3])
    assert shares["region[east]"] == pytest.approx(0.0, abs=0.1)


def test_sums_of_columns_have_sums_of_ends() -> None:
    asked = Questions(NAMES, 10_000, np.eye(4), LAW, (), ends=ENDS)
    sums = np.array([[-1.0, 0.0, 0.0, 1.0], [10.0, 1.0, 0.0, 5.0], [1.0, 0.0, 1.0, 0.0]])
    found = asked.recoded(sums, ("not rare", "both", "open"), ())
    assert found.column_ends.tolist() == [[0.0, 1.0], [5.0, 135.0], [-math.inf, math.inf]]


def test_a_part_of_a_pairwise_release_keeps_the_ends_of_its_columns() -> None:
    rows = pd.DataFrame({"free": [1.0, 2.0, np.nan, 4.0] * 500, "age": [30.0, np.nan, 50.0, 60.0] * 500})
    made = dpcov.release(rows, rho=1, bounds={"age": (0, 120)}, missing="pairwise")
    part, _ = made._questions.among([1])
    assert part.column_ends.tolist() == [[0.0, 120.0]]
