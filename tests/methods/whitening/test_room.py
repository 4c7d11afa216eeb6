from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.runs import start_run
from numpy.typing import NDArray

from dpcov.methods.whitening.constants import CONSTANT_REACH
from dpcov.methods.whitening.release import release
from dpcov.methods.whitening.room import make_room
from dpcov.methods.whitening.whiten import whiten
from dpcov.methods.whitening.wrap import Region

Matrix = NDArray[np.float64]

RNG = np.random.default_rng(0)
N = 20_000
OWN = RNG.standard_normal((N, 5)) @ RNG.standard_normal((5, 5)) + [10.0, -3.0, 0.0, 5.0, 1.0]
ROWS = np.column_stack([OWN, np.ones(N)])


def white_forms() -> Matrix:
    moment = ROWS.T @ ROWS / N
    return np.asarray(np.linalg.inv(np.linalg.cholesky(moment)))


def test_the_constant_is_stretched_and_nothing_else_is() -> None:
    forms, radius = white_forms(), 8.0
    room = make_room(forms, radius, constant=True)
    before, after = ROWS @ forms.T, ROWS @ (room.stretch @ forms).T
    # White rows have a constant of length 1, and reach so far beside it.
    beside = math.sqrt(radius**2 - 1)
    constant = after.mean(axis=0)
    assert np.linalg.norm(constant) == pytest.approx(CONSTANT_REACH * beside)
    np.testing.assert_allclose(after - constant, before - before.mean(axis=0), atol=1e-9)
    # The same rows are inside.
    np.testing.assert_array_equal(
        np.linalg.norm(after, axis=1) <= room.radius, np.linalg.norm(before, axis=1) <= radius
    )


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_a_constant_that_has_room_is_left_alone(radius: float) -> None:
    room = make_room(white_forms(), radius, constant=True)
    np.testing.assert_allclose(room.stretch, np.eye(6), atol=1e-12)
    assert room.radius == pytest.approx(radius)


def test_without_a_constant_there_is_nothing_to_do() -> None:
    room = make_room(white_forms(), 8.0, constant=False)
    np.testing.assert_array_equal(room.stretch, np.eye(6))
    assert room.radius == 8.0


def test_means_have_the_noise_that_was_promised() -> None:
    errors, reach = [], 12.0
    for seed in range(40):
        run = start_run(OWN, 0.1, seed, constant=True)
        white = whiten(run, white_forms())
        assert white is not None
        left = run.left * run.rho
        made = release(run, white, Region(reach * white.unit))
        moment = made.second_moment
        means = moment[:-1, -1] / moment[-1, -1]
        spread = np.linalg.cholesky(np.cov(OWN.T))
        errors.append(np.linalg.solve(spread, means - OWN.mean(axis=0)) * N * math.sqrt(2 * left))
    # r (1 + h) / sqrt(h), in units of a standard deviation: 4.25 times the reach. Left at 1, the constant
    # would give 1 + reach^2 = 145. 200 errors tell a deviation to 5% (1 sd).
    promised = reach * (1 + CONSTANT_REACH**2) / CONSTANT_REACH
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(promised, rel=0.3)
