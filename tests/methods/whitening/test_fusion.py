from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.runs import start_run
from numpy.typing import NDArray

from dpcov.core import NoisyGram, Rule
from dpcov.methods.whitening import fusion
from dpcov.methods.whitening.fusion import Knowledge
from dpcov.methods.whitening.run import Run

Matrix = NDArray[np.float64]

D = 3
ROWS = np.random.default_rng(0).normal(size=(4000, D)) * [1.0, 3.0, 0.1]
RADIUS = 20.0


def some_forms(seed: int) -> Matrix:
    rng = np.random.default_rng([seed, 7])
    return np.asarray(rng.normal(size=(D, D)) * 10.0 ** rng.uniform(-1, 1, size=D), dtype=np.float64)


def ask(run: Run, forms: Matrix, share: float, radius: float = RADIUS) -> NoisyGram:
    return run.gram(forms, radius, share, "test", rule=Rule.SHRINK)


def least_squares(answers: list[NoisyGram], rows: Matrix) -> Matrix:
    """Solve for vec(S) by brute force: A S A^T = G is kron(A, A) vec(S) = vec(G)."""
    inverse = np.linalg.inv(rows)
    systems, values = [], []
    for answer in answers:
        map_ = answer.lattice_map.matrix() @ inverse
        systems.append(np.kron(map_, map_) / answer.sigma)
        values.append(answer.mean().ravel() / answer.sigma)
    solution = np.linalg.lstsq(np.vstack(systems), np.concatenate(values), rcond=None)[0]
    return np.asarray(solution.reshape(D, D), dtype=np.float64)


@pytest.mark.parametrize("n_answers", [1, 2, 5])
def test_answers_are_fused_by_least_squares(n_answers: int) -> None:
    run = start_run(ROWS, 1.0)
    answers = [ask(run, some_forms(seed), 0.02 * (seed + 1)) for seed in range(n_answers)]
    rows = some_forms(99)
    fused = Knowledge(answers).in_coordinates(rows)
    # Back from coordinates of even noise to those that were asked about.
    found = fused.back @ fused.moment @ fused.back
    expected = least_squares(answers, rows)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(fused.moment, fused.moment.T)
    np.testing.assert_allclose(fused.back, fused.back.T, atol=1e-12 * np.abs(fused.back).max())


def test_precisions_add_up() -> None:
    run = start_run(ROWS, 1.0)
    forms = some_forms(0)
    answers = [ask(run, forms, 0.1) for _ in range(4)]
    one, four = (Knowledge(answers[:count]).in_coordinates(forms) for count in (1, 4))
    # Four answers alike have half the standard deviation of one: its coordinates are sqrt 2 as long in `one`.
    np.testing.assert_allclose(one.back, math.sqrt(2) * four.back, atol=1e-12 * np.abs(one.back).max())
    np.testing.assert_allclose(
        four.back @ four.moment @ four.back,
        np.mean([one_answer_in(answer, forms) for answer in answers], axis=0),
        rtol=1e-6,
    )


def one_answer_in(answer: NoisyGram, forms: Matrix) -> Matrix:
    map_ = forms @ np.linalg.inv(answer.lattice_map.matrix())
    return np.asarray(map_ @ answer.mean() @ map_.T, dtype=np.float64)


def test_the_noise_of_what_is_fused_has_about_unit_variance_in_every_direction() -> None:
    # Each answer in coordinates that stretch what the one before did not show, as rounds do.
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(D, D))).Q
    maps = [turn, np.diag([1.0, 1.0, 30.0]) @ turn, np.diag([1.0, 20.0, 600.0]) @ turn]
    errors = []
    for seed in range(300):
        # Rows of zeros: all that is told is noise.
        run = start_run(np.zeros((50, D)), 1.0, seed)
        answers = [ask(run, forms, 0.05 * 2**k) for k, forms in enumerate(maps)]
        errors.append(Knowledge(answers).in_coordinates(np.eye(D)).moment)
    deviations = np.sqrt(np.mean(np.square(errors), axis=0))
    # On the diagonal 1, off it 1 / sqrt 2, each known to 4% here (1 sd); a cross moment is told a little less
    # well than its two variances, as these come from different answers.
    expected = np.full((D, D), math.sqrt(0.5)) + (1 - math.sqrt(0.5)) * np.eye(D)
    assert (deviations > 0.8 * expected).all()
    assert (deviations < 1.8 * expected).all()


def test_the_better_answer_decides() -> None:
    run = start_run(ROWS, 1000.0)
    forms = np.eye(D)
    vague, sharp = ask(run, forms, 1e-7), ask(run, forms, 0.9)
    fused = Knowledge([vague, sharp]).in_coordinates(forms)
    found = fused.back @ fused.moment @ fused.back
    exact = ROWS.T @ ROWS / len(ROWS)
    assert np.abs(found - exact).max() < 10 * sharp.sigma
    assert np.abs(one_answer_in(vague, forms) - exact).max() > 100 * sharp.sigma


def test_an_answer_that_tells_nothing_spoils_nothing() -> None:
    # A histogram that shows far rows where there are none leads to such an answer, and to such coordinates.
    run = start_run(ROWS, 1000.0)
    good, drowned = ask(run, np.eye(D), 0.5), ask(run, np.diag([1.0, 1.0, 1e6]), 0.01, radius=1e11)
    exact = ROWS.T @ ROWS / len(ROWS)
    for scales in ([1.0, 1.0, 1.0], [1.0, 1.0, 1e9]):
        coordinates = np.diag(scales)
        fused = Knowledge([good, drowned]).in_coordinates(coordinates)
        assert np.isfinite(fused.moment).all()
        found = fused.back @ fused.moment @ fused.back / np.outer(scales, scales)
        np.testing.assert_allclose(found, exact, atol=10 * good.sigma)


def test_rounding_below_zero_is_no_precision() -> None:
    # Of a sum of squares, which has no eigenvalue below zero but by rounding.
    root = fusion._power(np.diag([1.0, -1e-17]), -0.5)
    assert root[0, 0] == pytest.approx(1.0)
    assert 1 < root[1, 1] < 1e9


def test_rows_of_any_length_are_fused() -> None:
    # Noise of about 1e190: its square is beyond the range of floats, and that of the next answer is not.
    rows = np.random.default_rng(0).normal(size=(4000, D))
    far, near = start_run(1e95 * rows, 1.0), start_run(rows, 1.0)
    both = [ask(far, np.eye(D), 0.1, 1e96), ask(near, np.eye(D), 0.1, 10.0)]
    alone = Knowledge(both[:1]).in_coordinates(np.eye(D))
    np.testing.assert_allclose(alone.back @ alone.moment @ alone.back / 1e190, np.eye(D), atol=0.2)
    together = Knowledge(both).in_coordinates(np.eye(D))
    np.testing.assert_allclose(together.back @ together.moment @ together.back, np.eye(D), atol=0.2)
