from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.methods.whitening import directions
from dpcov.methods.whitening.directions import Frame


def exact_signs(second_moment: NDArray[np.float64], n_rows: int = 400_000) -> NDArray[np.float64]:
    """The mean of u u^T over many Gaussian rows: a slow but independent reference."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, len(second_moment))) @ np.linalg.cholesky(second_moment).T
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean: NDArray[np.float64] = unit.T @ unit / n_rows
    return mean


@given(st.floats(1e-9, 1.0))
def test_in_two_dimensions_the_shape_has_a_closed_form(ratio: float) -> None:
    # Sign eigenvalues of a Gaussian with eigenvalues (1, r) are (1, sqrt r) / (1 + sqrt r).
    signs = np.array([1.0, np.sqrt(ratio)]) / (1 + np.sqrt(ratio))
    shape = directions.shape_from_signs(signs)
    assert shape[1] / shape[0] == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize("shape", [[1.0, 1.0, 1.0, 1e-3], [1.0, 0.1, 0.01, 1e-3], [1.0] * 6])
def test_the_shape_matches_sampling(shape: list[float]) -> None:
    signs = np.diag(exact_signs(np.diag(shape)))
    found = directions.shape_from_signs(signs)
    np.testing.assert_allclose(found / found[0], shape, rtol=0.06)


def test_rounds_without_noise_whiten_a_condition_of_1e10() -> None:
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(6, 6))).Q
    second_moment = rotation @ np.diag(np.geomspace(1, 1e-10, 6)) @ rotation.T
    frame = directions.initial_frame(6)
    for _ in range(12):
        signs = exact_signs(frame.rows @ second_moment @ frame.rows.T, 50_000)
        frame = directions.resolve_more(frame, frame.rows, signs, noise_norm=0.01)
        if frame.resolved.all():
            break
    white = frame.rows @ second_moment @ frame.rows.T
    eigenvalues = np.linalg.eigvalsh(white)
    assert frame.rank == 6
    assert eigenvalues.max() / eigenvalues.min() < 3


def test_a_null_direction_stays_unresolved_and_the_others_are_white() -> None:
    second_moment = np.diag([1.0, 0.5, 0.01, 1e-30])
    frame = directions.initial_frame(4)
    for _ in range(4):
        signs = exact_signs(frame.rows @ second_moment @ frame.rows.T + 1e-20 * np.eye(4), 50_000)
        frame = directions.resolve_more(frame, frame.rows, signs, noise_norm=0.001)
    assert frame.rank == 3
    white = (frame.rows @ second_moment @ frame.rows.T)[np.ix_(frame.resolved, frame.resolved)]
    assert np.linalg.cond(white) < 1.5


def test_gains_are_limited_but_column_scales_are_not() -> None:
    frame = Frame(np.diag([1.0, 1e30, 1e-30]), np.ones(3, dtype=np.bool_))
    assert directions.gain_ratio(frame.rows) == pytest.approx(1.0)
    assert directions.limit_gains(frame) is frame
    # The difference of two like columns, amplified: no scaling of columns undoes that.
    wild = Frame(np.array([[1.0, 1.0], [1e12, -1e12]]), np.array([True, False]))
    assert directions.beyond_reach(wild)
    limited = directions.limit_gains(wild)
    assert directions.gain_ratio(limited.rows) <= 2.0**20 * 1.01


def test_rare_columns_are_noticed_and_scaled_without_inversion() -> None:
    rng = np.random.default_rng(0)
    shares = np.geomspace(0.01, 0.5, 6)
    rows = (rng.random(size=(200_000, 6)) < shares).astype(np.float64)
    rows = rows[rows.any(axis=1)]
    second_moment = rows.T @ rows / len(rows)

    def signs(frame: Frame) -> NDArray[np.float64]:
        mapped = rows @ frame.rows.T
        unit = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
        mean: NDArray[np.float64] = unit.T @ unit / len(unit)
        return mean

    start = directions.initial_frame(6)
    frame = directions.resolve_more(start, start.rows, signs(start), 1e-4)
    assert frame.resolved.all()
    assert not directions.is_elliptical(frame, signs(frame), 1e-4)
    plain = directions.without_inversion(frame, frame.rows)
    white = [f.rows @ second_moment @ f.rows.T for f in (frame, plain)]
    assert np.linalg.cond(white[1]) < 0.7 * np.linalg.cond(white[0])


def test_gaussian_columns_are_elliptical() -> None:
    second_moment = np.diag([1.0, 1e-2, 1e-4])
    start = directions.initial_frame(3)
    frame = directions.resolve_more(start, start.rows, exact_signs(second_moment), 1e-4)
    after = exact_signs(frame.rows @ second_moment @ frame.rows.T)
    assert frame.rank == 3
    assert directions.is_elliptical(frame, after, 1e-4)
