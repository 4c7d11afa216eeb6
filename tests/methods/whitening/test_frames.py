from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from helpers.curators import curator
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Clipping, Gram
from dpcov.maps import integer_map, largest_gain_ratio
from dpcov.methods.whitening import frames
from dpcov.methods.whitening.frames import Frame

Matrix = NDArray[np.float64]


def exact_signs(second_moment: Matrix, n_rows: int = 400_000) -> Matrix:
    """The mean of u u^T over many Gaussian rows: a slow but independent reference."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, len(second_moment))) @ np.linalg.cholesky(second_moment).T
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean: Matrix = unit.T @ unit / n_rows
    return mean


def unseen(d: int) -> Frame:
    return Frame(np.eye(d), np.zeros(d, dtype=np.bool_))


@given(st.floats(1e-9, 1.0))
def test_in_two_dimensions_the_shape_has_a_closed_form(ratio: float) -> None:
    # Sign eigenvalues of a Gaussian with eigenvalues (1, r) are (1, sqrt r) / (1 + sqrt r).
    signs = np.array([1.0, np.sqrt(ratio)]) / (1 + np.sqrt(ratio))
    shape = frames.shape_from_signs(signs)
    assert shape[1] / shape[0] == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize("shape", [[1.0, 1.0, 1.0, 1e-3], [1.0, 0.1, 0.01, 1e-3], [1.0] * 6])
def test_the_shape_matches_sampling(shape: list[float]) -> None:
    signs = np.diag(exact_signs(np.diag(shape)))
    found = frames.shape_from_signs(signs)
    np.testing.assert_allclose(found / found[0], shape, rtol=0.06)


def test_a_single_direction_has_a_shape_too() -> None:
    np.testing.assert_array_equal(frames.shape_from_signs(np.array([0.3])), [1.0])


def test_rounds_without_noise_whiten_a_condition_of_1e10() -> None:
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(6, 6))).Q
    second_moment = rotation @ np.diag(np.geomspace(1, 1e-10, 6)) @ rotation.T
    frame = unseen(6)
    for _ in range(12):
        signs = exact_signs(frame.rows @ second_moment @ frame.rows.T, 50_000)
        frame = frames.resolve_more(frame, frame.rows, signs, noise=0.01)
        if frame.seen.all():
            break
    assert frame.rank == 6
    assert np.linalg.cond(frame.rows @ second_moment @ frame.rows.T) < 3


def test_what_was_seen_is_left_alone() -> None:
    second_moment = np.array([[1.0, 0.6, 9e-4], [0.6, 0.8, 5.4e-4], [9e-4, 5.4e-4, 1e-6]])
    first = frames.resolve_more(unseen(3), np.eye(3), exact_signs(second_moment), noise=0.02)
    assert first.seen.tolist().count(True) == 2
    second = first
    for _ in range(3):
        signs = exact_signs(second.rows @ second_moment @ second.rows.T)
        second = frames.resolve_more(second, second.rows, signs, noise=0.02)
    assert second.rank == 3
    np.testing.assert_array_equal(second.rows[first.seen], first.rows[first.seen])
    # And what the new direction shares with them is gone.
    white = second.rows @ second_moment @ second.rows.T
    np.testing.assert_allclose(white, np.eye(3) * white[0, 0], atol=0.1 * white[0, 0])


def test_what_an_unseen_direction_shares_with_the_seen_ones_is_subtracted() -> None:
    second_moment = np.array([[1.0, 0.95], [0.95, 0.95]])
    start = Frame(np.eye(2), np.array([True, False]))
    frame = frames.resolve_more(start, start.rows, exact_signs(second_moment), noise=0.001)
    assert frame.rank == 2
    white = frame.rows @ second_moment @ frame.rows.T
    correlation = white[0, 1] / np.sqrt(white[0, 0] * white[1, 1])
    # From 0.97; unit rows tell the regression of directions, not quite that of lengths.
    assert abs(correlation) < 0.75
    # And what is left has its own scale: 0.05 of a variance of 0.95.
    assert 0.4 < white[1, 1] / white[0, 0] < 2.5


def test_a_null_direction_stays_unseen_and_the_others_are_white() -> None:
    second_moment = np.diag([1.0, 0.5, 0.01, 1e-30])
    frame = unseen(4)
    for _ in range(4):
        signs = exact_signs(frame.rows @ second_moment @ frame.rows.T + 1e-20 * np.eye(4), 50_000)
        frame = frames.resolve_more(frame, frame.rows, signs, noise=0.001)
    assert frame.rank == 3
    white = (frame.rows @ second_moment @ frame.rows.T)[np.ix_(frame.seen, frame.seen)]
    assert np.linalg.cond(white) < 1.5


def test_only_what_is_unseen_is_amplified() -> None:
    frame = Frame(np.diag([1.0, 2.0, 3.0]), np.array([True, False, True])).amplified(10.0)
    np.testing.assert_array_equal(frame.rows, np.diag([1.0, 20.0, 3.0]))
    assert frame.rank == 2


def test_a_drowned_direction_is_noticed() -> None:
    signs = np.array([[0.5, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.4]])
    assert frames.least_known(Frame(np.eye(3), np.array([True, True, False])), signs) == pytest.approx(0.01)
    assert frames.least_known(Frame(np.eye(3), np.array([True, False, True])), signs) == pytest.approx(0.4)
    assert frames.least_known(unseen(3), signs) == np.inf


def test_answers_are_turned_back_into_the_forms_that_were_asked_about() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3)) * [1.0, 5.0, 0.2]
    # Rotated and stretched, so that the triangular map of the answer is far from it.
    forms = np.linalg.qr(rng.normal(size=(3, 3))).Q * [3.0, 0.5, 10.0]
    clipping = Clipping(integer_map(forms), 60.0)
    answer = curator(rows, 10**9)[0].ask(Gram(clipping, Fraction(10**9), "test"))
    found, moment = frames.in_frame(answer, forms)
    np.testing.assert_allclose(found, forms, rtol=1e-6)
    mapped = rows @ forms.T
    np.testing.assert_allclose(moment, mapped.T @ mapped / 2000, atol=1e-5 * np.trace(moment))


def test_gains_are_limited_but_column_scales_are_not() -> None:
    scaled = np.diag([1.0, 1e30, 1e-30])
    assert not frames.beyond_reach(scaled, constant=False)
    assert frames.limit_gains(scaled, constant=False) is scaled
    # The difference of two like columns, amplified: no scaling of columns undoes that.
    wild = np.array([[1.0, 1.0], [1e12, -1e12]])
    assert frames.beyond_reach(wild, constant=False)
    limited = frames.limit_gains(wild, constant=False)
    assert np.linalg.cond(limited * frames.centres_and_scales(wild, constant=False)[1]) == pytest.approx(
        largest_gain_ratio(2), rel=1e-3
    )
    # What is small is left as it is, what is large comes down.
    np.testing.assert_allclose(limited[0], wild[0], rtol=1e-3)


def test_column_scales_are_those_of_the_table_that_becomes_white() -> None:
    rng = np.random.default_rng(0)
    scales = np.array([1e-8, 3.0, 1e9])
    mixing = rng.normal(size=(3, 3)) * scales[:, None]
    forms = np.linalg.inv(mixing)
    centres, found = frames.centres_and_scales(forms, constant=False)
    assert not centres.any()
    np.testing.assert_allclose(found, np.linalg.norm(mixing, axis=1), rtol=1e-6)


def test_centres_are_the_means_and_scales_the_spreads_about_them() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(500, 3)) * [1e-3, 1.0, 1e4] + [2013.0, -5.0, 1e6]
    table = np.column_stack([rows, np.ones(500)])
    values, vectors = np.linalg.eigh(table.T @ table / 500)
    forms = vectors.T / np.sqrt(values)[:, None]
    centres, scales = frames.centres_and_scales(forms, constant=True)
    np.testing.assert_allclose(centres, [*rows.mean(axis=0), 0.0], rtol=1e-3)
    np.testing.assert_allclose(scales[1:3], rows.std(axis=0)[1:], rtol=1e-2)
    # Gains are limited about the centres: a column far from zero loses nothing by that.
    far = np.array([[1.0, -1e7], [0.0, 1.0]])
    assert frames.limit_gains(far, constant=True) is far


def test_a_direction_is_held_against_the_noise_of_those_that_are_not_larger() -> None:
    # 1.5 sqrt(2 k) with k directions; two where there is but one.
    assert frames.are_visible(np.array([3.1, 50.0, 60.0]), 1.0).tolist() == [True, True, True]
    assert frames.are_visible(np.array([2.9, 50.0, 60.0]), 1.0).tolist() == [False, True, True]
    assert frames.are_visible(np.array([3.1, 50.0, 60.0]), 2.0).tolist() == [False, True, True]
    # The largest must stand above the noise of all: below it, no other is looked at.
    assert not frames.are_visible(np.array([3.1, 3.5, 3.6]), 1.0).any()
    assert frames.are_visible(np.array([3.1, 3.2, 3.7]), 1.0).tolist() == [True, True, True]


def test_noise_alone_is_seldom_visible() -> None:
    # One matrix of 130 with two directions, so 15 of 2,000, and fewer otherwise: 30 are 4 sd more. A single
    # direction held against its own norm would be seen in one matrix of 60.
    rng = np.random.default_rng(0)
    for d, large in ((2, 0), (6, 0), (6, 4), (6, 5)):
        seen = 0
        for _ in range(2000):
            noise = rng.standard_normal((d, d))
            values = np.linalg.eigvalsh((noise + noise.T) / 2 + np.diag([1e3] * large + [0.0] * (d - large)))
            seen += frames.are_visible(np.asarray(values, np.float64), 1.0).sum() > large
        assert seen < 30
