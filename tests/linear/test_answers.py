"""Answers by name, roots, and what each column is at a glance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.linear_tables import NAMES, make_release, make_rows

import dpcov
from dpcov.core import ArgumentError
from dpcov.laws import NoiseLaw

ROWS = make_rows()


@pytest.fixture(scope="module")
def release() -> dpcov.Release:
    return make_release(ROWS, names=NAMES, noise=1e-3)


def test_a_vector_by_name(release: dpcov.Release) -> None:
    mean = release.mean()
    assert mean["gamma"] == mean.values[2]
    assert isinstance(mean["gamma"], float)
    part = mean[["delta", "alpha"]]
    assert part.labels == (("delta", "alpha"),)
    np.testing.assert_array_equal(part.values, mean.values[[3, 0]])
    np.testing.assert_array_equal(part.interval().lower, mean.interval().lower[[3, 0]])


def test_a_matrix_by_name(release: dpcov.Release) -> None:
    covariance = release.cov()
    assert covariance["alpha", "gamma"] == covariance.values[0, 2]
    line = covariance["beta"]
    assert line.labels == (NAMES,)
    np.testing.assert_array_equal(line.standard_error, covariance.standard_error[1])
    block = covariance[["gamma", "alpha"], ["beta", "delta"]]
    np.testing.assert_array_equal(block.values, covariance.values[np.ix_([2, 0], [1, 3])])
    bounds, expected = block.interval(), covariance.interval()
    np.testing.assert_array_equal(bounds.upper, expected.upper[np.ix_([2, 0], [1, 3])])
    across = covariance[["gamma", "alpha"], "beta"]
    np.testing.assert_array_equal(across.values, covariance.values[[2, 0], 1])
    assert release.pca().directions["PC1", "beta"] == release.pca().directions.values[0, 1]


def test_names_that_are_none(release: dpcov.Release) -> None:
    with pytest.raises(ArgumentError, match=r"there is no 'gama'. Did you mean 'gamma'"):
        release.mean()["gama"]
    with pytest.raises(ArgumentError, match=r"1 dimension\(s\), got names for 2"):
        release.mean()["alpha", "beta"]
    for wrong in (0, slice(2), [0, 1]):
        with pytest.raises(ArgumentError, match=r"indexed by names, such as 'alpha'; use \.values"):
            release.mean()[wrong]  # type: ignore[index]
    with pytest.raises(TypeError, match="not iterable"):
        list(release.mean())  # type: ignore[call-overload]


def test_the_names_of_pandas(release: dpcov.Release) -> None:
    np.testing.assert_array_equal(release.corr().values, release.correlation().values)
    np.testing.assert_array_equal(release.var().values, release.variance().values)
    np.testing.assert_allclose(release.std().values, ROWS.std(axis=0))


def test_bounds_of_a_root_are_roots_of_bounds(release: dpcov.Release) -> None:
    spread, square = release.std(), release.variance()
    for level in (0.5, 0.99):
        np.testing.assert_allclose(np.square(spread.interval(level)), square.interval(level))
    # For errors this small a root is linear.
    np.testing.assert_allclose(spread.standard_error, square.standard_error / (2 * spread.values), rtol=0.01)
    assert spread.differs_from_zero().all()
    hidden = replace(make_release(ROWS), noise=NoiseLaw(np.diag([9.0, 0.1, 0.1, 0.1, 0.1]), 0.5)).std()
    lost = ~hidden.differs_from_zero()
    assert lost.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(hidden.interval().lower == 0, lost)


def test_a_description_has_means_spreads_and_complete_rows() -> None:
    r = make_release(ROWS, names=NAMES, noise=1e-4)
    told = r.describe(["beta", "alpha"])
    np.testing.assert_array_equal(told.mean.values, r.mean(["beta", "alpha"]).values)
    np.testing.assert_array_equal(told.std.values, r.std(["beta", "alpha"]).values)
    assert float(told.rows) == pytest.approx(len(ROWS))
    assert told.to_frame().loc["beta", "std_upper"] == told.std.interval().upper[0]
    assert "about 400 complete rows" in repr(told)
    assert "<table" in told._repr_html_()


def test_the_number_of_complete_rows_has_an_honest_interval() -> None:
    # Of 500 intervals of 95%, fewer than 446 hold once in 10^9 (binomial, 6 sd); half the width holds 336.
    held = narrow = 0
    for seed in range(500):
        r = make_release(ROWS, noise=0.01, rng=np.random.default_rng(seed), names=NAMES)
        answer = r.describe().rows
        off = abs(float(answer) - len(ROWS)) / answer.standard_error[0]
        held += off <= 1.96
        narrow += off <= 0.98
    assert held >= 446 > narrow
