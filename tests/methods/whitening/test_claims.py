from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.runs import relative_error, second_moment
from methods.whitening.test_restoration import count
from methods.whitening.test_tail import make_histogram, pareto
from methods.whitening.test_whiten import noise_matrices
from numpy.typing import NDArray

import dpcov
from dpcov.laws import NoiseLaw, least_resolved
from dpcov.methods.whitening.claims import Beyond, predicted_error
from dpcov.methods.whitening.exposed import Exposed
from dpcov.methods.whitening.heavy import Agreement
from dpcov.methods.whitening.restoration import Counted, restore_shrunk
from dpcov.methods.whitening.wrap import Region, Tail

Matrix = NDArray[np.float64]

N = 20_000
NOTHING_RESTORED = restore_shrunk(Region(3.0), N, np.eye(4), Counted(0.0, 0.0, 4.0, 4.0), has_constant=False)


def table_with_a_rare_column(k: int, seed: int, value: float = 1.0) -> Matrix:
    rare = np.zeros(N)
    rare[:k] = value
    return np.column_stack([np.random.default_rng(seed).normal(size=(N, 3)), rare])


def test_rows_beyond_are_counted_and_bounded() -> None:
    beyond = Beyond.of(Counted(100.0, 12.0, 4.0, 3.0), Agreement(), 9 / 1000)
    # The noise of a sum of two counts is that of both.
    assert (beyond.rows, beyond.far, beyond.spread, beyond.far_spread) == (112.0, 12.0, 5.0, 3.0)
    # 19 of 20 normal variables stay below 1.645 standard deviations.
    assert beyond.at_most == pytest.approx(112 + 1.645 * 5)
    assert beyond.far_at_most == pytest.approx(12 + 1.645 * 3)
    # Rows that are not far beyond have kept half of their squares. Others may have kept nothing, and where
    # nothing is known of their directions, they may agree.
    assert beyond.hidden == pytest.approx(beyond.far_at_most * 9 / 1000)
    # A count of noise alone is no number of rows.
    noise = Beyond.of(Counted(2.0, -9.0, 4.0, 4.0), Agreement(), 9 / 1000)
    assert (noise.rows, noise.far) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("far", "expected", "explained"),
    [(7.9, 0.0, True), (8.1, 0.0, False), (18.9, 9.0, True), (19.1, 9.0, False)],
)
def test_more_far_rows_than_a_law_expects_are_not_explained(
    far: float,
    expected: float,
    explained: bool,  # noqa: FBT001
) -> None:
    # Two standard deviations: 4 of noise, and 5 of noise and a Poisson count of 9.
    beyond = Beyond.of(Counted(100.0 - far, far, 4.0, 4.0), Agreement(), 9 / 1000)
    restored = replace(NOTHING_RESTORED, far_expected=expected)
    assert beyond.describe(restored)["explained"] is explained


@pytest.mark.parametrize(("worst", "explained"), [(0.99, True), (1.01, False)])
def test_rows_that_may_outweigh_what_was_left_are_not_explained(worst: float, explained: bool) -> None:  # noqa: FBT001
    beyond = Beyond.of(Counted(100.0, 0.0, 4.0, 4.0), Agreement(), 9 / 1000)
    assert beyond.describe(replace(NOTHING_RESTORED, worst=worst))["explained"] is explained


@pytest.mark.parametrize(
    ("values", "most"),
    [
        (np.full(12, 2.0), 60),
        (np.array([0.5, 1.0, 2.0, 4.0]), 60),
        # Where few directions are all there is of the norm, the claim is broader than it has to be. One as
        # for even directions is exceeded by 9% and 10%: 45 and 50 of 500, and 27 or fewer happen one time in
        # 500.
        (np.array([0.01, *[1.0] * 6]), 28),
        (np.array([0.01] * 5 + [1.0] * 15), 28),
    ],
    ids=["even", "uneven", "one small", "some small"],
)
def test_noise_exceeds_its_part_of_the_prediction_in_one_of_twenty(
    values: NDArray[np.float64], most: int
) -> None:
    sigma = 0.005 * values.min()
    law = NoiseLaw(np.eye(len(values)), sigma)
    claimed = predicted_error(values, law, NOTHING_RESTORED, Exposed())
    exact = np.diag(values)
    errors = [relative_error(exact + noise, exact) for noise in noise_matrices(len(values), sigma)]
    # Of 500, 5% are 25; 60 or more happen once in 10^9.
    assert np.sum(np.array(errors) > claimed) < most
    # And it is no empty claim: the errors that it bounds vary most if they are those of one direction.
    assert claimed < 2.2 * np.median(errors) or claimed < 1.3 * np.quantile(errors, 0.95)


def test_only_what_is_resolved_is_claimed() -> None:
    law = NoiseLaw(np.eye(3), 0.01)
    small = least_resolved(3, 0.01) * 0.99
    both = predicted_error(np.array([small, 1.0, 1.0]), law, NOTHING_RESTORED, Exposed())
    assert both == pytest.approx(
        predicted_error(np.array([-1.0, 1.0, 1.0]), law, NOTHING_RESTORED, Exposed())
    )
    assert predicted_error(np.full(3, small), law, NOTHING_RESTORED, Exposed()) == 1.0
    # Rows beyond the region may be all that a direction has: it is not resolved either.
    hiding = NoiseLaw(np.eye(3), 0.01, hidden=0.99)
    assert predicted_error(np.ones(3), hiding, NOTHING_RESTORED, Exposed()) == 1.0


def test_what_clipping_may_have_taken_is_part_of_the_prediction() -> None:
    law = NoiseLaw(np.eye(4), 1e-6)
    values = np.ones(4)
    lumps = np.concatenate([np.full(20_000, 1.0), np.full(700, 3.0), np.full(600, 5.0), np.full(500, 9.0)])
    lumps += 0.01 * np.random.default_rng(0).random(len(lumps))
    # No law fits lumps: what their numbers beyond and far beyond tell is the guess.
    region = Region(4.0, (Tail(make_histogram(lumps, 3.0, 0), 4.0, 4),))
    guessed = restore_shrunk(region, N, np.eye(4), Counted(600.0, 500.0, 5.0, 5.0), has_constant=False)
    assert guessed.factor == 1.0
    lost = np.maximum(lumps**2 - 16, 0).sum() / (N * 4)
    assert predicted_error(values, law, guessed, Exposed()) > lost / guessed.factor
    # Where one fits, 19 of 20 likely laws have lost less.
    norms = pareto(N, 4.0, 0)
    radius = (N / 60) ** 0.25
    region = Region(radius, (Tail(make_histogram(norms, 8.0, 0), radius, 4),))
    counted = count(norms / radius, 5.0)
    fitted = restore_shrunk(region, N, np.eye(4), counted, has_constant=False)
    (at_most,), (factor,) = fitted.at_most, fitted.factors
    lost = np.maximum(norms**2 - radius**2, 0).sum() / (N * 4)
    assert at_most - 1 > lost
    assert predicted_error(values, law, fitted, Exposed()) >= at_most / factor - 1


def test_rows_beyond_may_all_lie_along_an_exposed_column() -> None:
    norms = pareto(N, 4.0, 0)
    radius = (N / 60) ** 0.25
    # The rows a little beyond the bulk lie evenly in four directions.
    region = Region(
        radius, (Tail(make_histogram(norms, 8.0, 0), radius, 4),), agreement=Agreement(0.25, 0.5, 500.0)
    )
    counted = count(norms / radius, 5.0)
    fitted = restore_shrunk(region, N, np.eye(4), counted, has_constant=False)
    law, values = NoiseLaw(np.eye(4), 1e-6), np.ones(4)
    lost_along_one = np.maximum(norms**2 - radius**2, 0).sum() / N
    assert predicted_error(values, law, fitted, Exposed()) < lost_along_one
    assert predicted_error(values, law, fitted, Exposed(clearly=(2,))) > lost_along_one / fitted.factor


@pytest.mark.parametrize(("k", "value", "releases"), [(8, 1, 2), (15, 1, 12), (25, 1, 12), (25, 50, 12)])
def test_a_column_of_few_rows_is_called_resolved_only_if_it_is(k: int, value: float, releases: int) -> None:
    # Below 25 / sqrt(rho) = 35 rows no look shows them. A column that nobody has seen is taken to hold 0 and
    # 1; where it holds more, its rows are clipped, and what is left of them stands above the noise.
    exceeded, wrong = 0, 0
    for seed in range(releases):
        rows = table_with_a_rare_column(k, seed, value)
        made = dpcov.release(rows, rho=0.5, intercept=False, rng=np.random.default_rng(seed))
        assert all("x3" in {name for name, _ in listed.coefficients} for listed in made.unresolved)
        # Its standard deviation is sqrt(k / N), and no bound below that may be stated of all rows.
        assert all("rows that were clipped" in listed.describe() for listed in made.unresolved)
        released, true = made.second_moment().values, second_moment(rows)
        error = relative_error(released[:3, :3], true[:3, :3])
        exceeded += error > made.diagnostics["predicted_error"]
        wrong += made.resolved == 4 and relative_error(released, true) > made.diagnostics["predicted_error"]
    # 5% of releases: 9 of 12 happen once in 10^9.
    assert exceeded < 9
    # The count of rows far beyond is too low in 5% as well: 3 of 12 happen once in 50 of such tests, and
    # noise is the same each time. In 60 other releases each, 0, 0 and 14 with ones were rightly resolved.
    assert wrong <= 2


def test_rows_beyond_make_a_direction_unresolved() -> None:
    rows = table_with_a_rare_column(15, 0)
    made = dpcov.release(rows, rho=0.5, intercept=False, rng=np.random.default_rng(0))
    assert made.noise is not None
    assert made.noise.hidden > 0
    beyond = made.diagnostics["rows_beyond"]
    # The rare rows and some of the bulk, near ones and far ones counted apart, with what is left of rho.
    spread = math.sqrt(1 / (0.99 * 0.01) + 1 / (0.93 * 0.07)) / math.sqrt(
        2 * 0.5 * made.diagnostics["released_share"]
    )
    assert beyond["at_most"] - beyond["about"] == pytest.approx(1.645 * spread, rel=1e-3)
    # Four standard deviations.
    assert 15 - 4 * spread < beyond["about"] < 200


def test_rows_beyond_may_all_be_the_few_that_agree() -> None:
    # 40 of 400 rows that were looked at agree: of 25 rows beyond the region all may be of those.
    looked_at = Agreement(about=0.1, at_most=0.1, rows=400.0)
    assert looked_at.along_one(25.0) == 25.0
    assert looked_at.along_one(200.0) == 40.0
    assert looked_at.along_one(800.0) == 80.0
    assert Agreement().along_one(800.0) == 800.0


def test_shrinking_does_not_narrow_the_law_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    # It lowers the error on average over entries, but not that of every mean.
    rows = np.random.default_rng(0).normal(size=(N, 3))
    laws = []
    for weight in (0.0, 0.5):
        monkeypatch.setattr(
            sys.modules["dpcov.methods.whitening.release"],
            "shrink_towards",
            lambda _target, matrix, _sigma, weight=weight: (matrix, weight),
        )
        made = dpcov.release(rows, rho=0.5, rng=np.random.default_rng(1))
        assert made.diagnostics["shrinkage"] == weight
        assert made.noise is not None
        laws.append(made.noise.sigma)
    assert laws[0] == laws[1]
