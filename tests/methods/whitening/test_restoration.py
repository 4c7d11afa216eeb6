from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from methods.whitening.test_tail import make_histogram
from numpy.typing import NDArray

from dpcov.losses import FAR
from dpcov.methods.whitening.heavy import Agreement, HeavyDirection
from dpcov.methods.whitening.restoration import (
    Counted,
    raise_beside_constant,
    restore_dropped,
    restore_shrunk,
)
from dpcov.methods.whitening.tail import largest_loss
from dpcov.methods.whitening.wrap import Region, Tail

Matrix = NDArray[np.float64]

N = 20_000
ALONG = np.array([1.0, 0.0, 0.0, 0.0])


def make_rows(seed: int) -> Matrix:
    """White rows, the first coordinate with long tails, the last the constant."""
    rng = np.random.default_rng(seed)
    heavy = rng.standard_t(4, N)
    return np.column_stack([heavy / heavy.std(), rng.standard_normal((N, 2)), np.ones(N)])


def make_region(rows: Matrix) -> Region:
    rest = make_histogram(np.linalg.norm(rows[:, 1:], axis=1), 2.0, 0)
    along = make_histogram(np.abs(rows[:, 0]), 2.0, 1)
    tails = (Tail(rest, 3.9, 3), Tail(along, 4.5, 1, HeavyDirection(ALONG, 0.05, 1.0)))
    return Region(4.0, tails, (1.2,))


def count(norms: NDArray[np.float64], spread: float) -> Counted:
    """Count rows beyond a ball of radius 1, without noise."""
    near, far = ((norms > 1) & (norms <= FAR)).sum(), (norms > FAR).sum()
    return Counted(float(near), float(far), spread, spread)


def counted_beyond(rows: Matrix, region: Region) -> Counted:
    norms = np.linalg.norm(np.linalg.solve(region.shape(4), rows.T), axis=0) / region.radius
    return count(norms, 4.0)


def test_each_direction_may_have_lost_what_its_histogram_tells() -> None:
    ratios, covered = [], []
    for seed in range(30):
        rows = make_rows(seed)
        region = make_region(rows)
        clipped = np.where(np.abs(rows[:, :1]) > 4.5, np.sign(rows[:, :1]) * 4.5, rows[:, :1])
        white = np.diag([np.square(clipped).mean(), 1.0, 1.0, 1.0])
        restored = restore_shrunk(region, N, white, counted_beyond(rows, region), has_constant=True)
        lost = np.square(rows[:, 0]).mean() / white[0, 0] - 1
        ratios.append((restored.factors[1] - 1) / lost)
        covered.append(lost <= restored.at_most[1] - 1)
        # Gaussian directions lose next to nothing beyond 3.9.
        assert restored.factor - 1 < 5e-3
        np.testing.assert_allclose(
            restored.beyond_most(4),
            (math.sqrt(restored.factors[1]) - math.sqrt(restored.factor)) * np.outer(ALONG, ALONG),
        )
    # Nothing is given back along a direction with a histogram of its own, but intervals allow for the loss.
    assert set(ratios) == {0.0}
    assert np.mean(covered) > 0.8


def test_laws_say_where_in_the_table_they_lie() -> None:
    rows = make_rows(0)
    region = make_region(rows)
    white = np.diag([4.0, 1.0, 1.0, 1.0])
    restored = restore_shrunk(region, N, white, counted_beyond(rows, region), has_constant=True)
    back = np.diag([10.0, 20.0, 30.0, 1.0])
    even, along = restored.located_laws(back, 3)
    assert even.along is None
    assert along.along is not None
    # Twice as long as a unit vector, as its second moment is 4, and not stretched.
    np.testing.assert_allclose(along.along, [10.0 * 2 / 1.2, 0.0, 0.0])
    assert along.tilt == 0.05
    assert along.directions == 1
    assert along.radius == pytest.approx(4.5 / 2)


def test_nothing_is_restored_where_nothing_is_known() -> None:
    restored = restore_shrunk(Region(3.0), N, np.eye(4), Counted(0.0, 0.0, 4.0, 4.0), has_constant=True)
    assert (restored.factor, restored.constant, restored.laws) == (1.0, 1.0, ())
    assert not restored.beyond_most(4).any()
    assert restored.located_laws(np.eye(4), 3) == ()
    rows = make_rows(0)
    region = make_region(rows)
    counted = counted_beyond(rows, region)
    drowned = restore_shrunk(region, N, np.zeros((4, 4)), counted, has_constant=True)
    assert drowned.laws == (None, None)


def test_dropping_takes_the_same_from_the_constant() -> None:
    histogram = make_histogram(np.linalg.norm(make_rows(0), axis=1), 2.0, 0)
    restored = restore_dropped(Region(4.0, (Tail(histogram, 4.0, 4),)), 20.0)
    assert restored.factor == restored.constant > 1
    assert restored.located_laws(np.eye(4), 3) == ()


def test_raising_keeps_the_mean_and_raises_the_covariance() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((100, 3)) + 5, np.ones(100)])
    moment = rows.T @ rows / 100
    mean = moment[:-1, -1]
    centred = moment[:-1, :-1] - np.outer(mean, mean)
    own = np.eye(4)
    own[:3, :3] = rng.standard_normal((3, 3))
    raising = raise_beside_constant(moment, own, 1.1)
    raised = raising @ moment @ raising.T
    np.testing.assert_allclose(raised[:-1, -1] / raised[-1, -1], mean)
    assert raised[-1, -1] == pytest.approx(1.1)
    schur = raised[:-1, :-1] - np.outer(raised[:-1, -1], raised[:-1, -1]) / raised[-1, -1]
    np.testing.assert_allclose(schur, own[:3, :3] @ centred @ own[:3, :3].T, atol=1e-12)
    assert math.isfinite(raise_beside_constant(np.zeros((2, 2)), np.eye(2), 1.0).sum())


def ball_around(norms: NDArray[np.float64], agreement: Agreement) -> Region:
    radius = float(np.quantile(norms, 0.99))
    return Region(radius, (Tail(make_histogram(norms, 3.0, 0), radius, 4),), agreement=agreement)


def test_counts_of_another_kind_of_tail_take_the_place_of_a_law() -> None:
    norms = np.linalg.norm(np.random.default_rng(0).standard_normal((N, 4)), axis=1)
    region = ball_around(norms, Agreement())
    counted = count(norms / region.radius, 5.0)
    fits = restore_shrunk(region, N, np.eye(4), counted, has_constant=False)
    assert fits.factor > 1.0
    # As many beyond, but a third of them far beyond: no tail of normal rows.
    beyond = counted.rows
    of_another = Counted(2 / 3 * beyond, beyond / 3, 5.0, 5.0)
    lumps = restore_shrunk(region, N, np.eye(4), of_another, has_constant=False)
    (law,) = lumps.laws
    assert law is not None
    assert np.median(law.rows) == pytest.approx(beyond, rel=0.05)
    assert np.median(law.rows * law.beyond(FAR)) == pytest.approx(beyond / 3, rel=0.1)
    # A guess is not given back, but may be missing.
    assert lumps.factor == 1.0
    assert lumps.at_most[0] > fits.at_most[0]


def test_the_less_is_known_of_agreement_the_less_even_is_the_loss() -> None:
    norms = np.linalg.norm(np.random.default_rng(0).standard_normal((N, 4)), axis=1)

    def evenness(agreement: Agreement) -> float:
        region = ball_around(norms, agreement)
        counted = Counted(float((norms > region.radius).sum()), 0.0, 5.0, 5.0)
        (law,) = restore_shrunk(region, N, np.eye(4), counted, has_constant=False).laws
        assert law is not None
        return law.evenness

    assert evenness(Agreement(0.25, 0.3, 400.0)) == 8.0
    # Half of the rows along one of four directions: if two had all, shares would have a variance of 1.
    assert evenness(Agreement(0.5, 0.6, 400.0)) == pytest.approx(2.0)
    # All along one, and so beside heavy directions, of three others.
    assert evenness(Agreement()) == pytest.approx(2 / 3)
    rows = make_rows(0)
    beside = restore_shrunk(
        make_region(rows), N, np.eye(4), counted_beyond(rows, make_region(rows)), has_constant=True
    ).laws[0]
    assert beside is not None
    assert beside.evenness == pytest.approx(2 / (make_region(rows).tails[0].rank - 1))


def test_counts_do_not_tell_in_which_of_two_tails_the_rows_lie() -> None:
    rows = make_rows(0)
    region = make_region(rows)
    counted = counted_beyond(rows, region)
    laws = restore_shrunk(region, N, np.eye(4), counted, has_constant=True).laws
    first, second = (law.rows for law in laws if law is not None)
    # Together they are as many as were counted: where one law has more, that of the other tail has less.
    assert np.median(first + second) == pytest.approx(counted.rows, rel=0.2)
    assert np.corrcoef(first, second)[0, 1] < -0.3


def test_a_guess_puts_all_rows_in_one_place_as_often_as_far_rows_are_there() -> None:
    rest, along = make_region(make_rows(0)).tails
    region = Region(4.0, (rest, replace(along, direction=HeavyDirection(ALONG, 0.05, 0.4))), (1.2,))
    # Far more rows far beyond than any law of these histograms has.
    laws = restore_shrunk(region, N, np.eye(4), Counted(100.0, 300.0, 5.0, 5.0), has_constant=True).laws
    first, second = (law.rows for law in laws if law is not None)
    assert not (first * second).any()
    assert np.median(first + second) == pytest.approx(400, rel=0.05)
    assert np.mean(second > 0) == pytest.approx(0.4, abs=0.02)


def test_the_worst_is_that_of_the_longest_tail() -> None:
    assert (
        restore_shrunk(Region(3.0), N, np.eye(4), Counted(0.0, 0.0, 4.0, 4.0), has_constant=True).worst == 0
    )
    long = np.random.default_rng(0).pareto(2.2, N) + 1
    light = np.linalg.norm(np.random.default_rng(0).standard_normal((N, 4)), axis=1)
    found = {}
    for name, norms in (("long", long), ("light", light)):
        region = ball_around(norms, Agreement(0.5, 0.6, 400.0))
        counted = count(norms / region.radius, 5.0)
        restored = restore_shrunk(region, N, np.eye(4), counted, has_constant=False)
        (law,) = restored.laws
        assert law is not None
        # Half of the rows lie along one direction.
        found[name] = restored.worst / (0.5 * largest_loss(law, N, 0.5)), restored.worst
    assert found["long"][0] > 2.5
    assert found["light"][0] == pytest.approx(2.0)
    assert found["long"][1] > 1 > found["light"][1]
