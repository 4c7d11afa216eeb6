from __future__ import annotations

import numpy as np
import pytest
from helpers.linear_tables import make_release, make_rows

from dpcov import UnresolvedError
from dpcov.laws import LossLaw


def test_eigenvalues_are_those_of_the_correlation() -> None:
    rows = make_rows() * [1, 1e3, 1e-3, 1]
    spectrum = make_release(rows).spectrum()
    exact = np.linalg.eigvalsh(np.corrcoef(rows.T))[::-1]
    np.testing.assert_allclose(spectrum.eigenvalues.values, exact, rtol=1e-4)
    assert (spectrum.floor < exact).all()
    assert "eigenvalues" in repr(spectrum)


def test_without_a_constant_it_is_that_of_the_scaled_second_moment() -> None:
    rows = make_rows()
    moment = rows.T @ rows / len(rows)
    scale = np.sqrt(np.diag(moment))
    exact = np.linalg.eigvalsh(moment / np.outer(scale, scale))[::-1]
    found = make_release(rows, intercept=False).spectrum()
    np.testing.assert_allclose(found.eigenvalues.values, exact, rtol=1e-4)


def test_a_repeated_column_is_below_the_floor_and_a_constant_one_left_out() -> None:
    rows = make_rows(d=5)
    rows[:, 3] = rows[:, 0]
    rows[:, 4] = 2.0
    release = make_release(rows, noise=1e-4)
    spectrum = release.spectrum()
    assert spectrum.columns == ("x0", "x1", "x2", "x3")
    assert (spectrum.eigenvalues.values > spectrum.floor).tolist() == [True, True, True, False]
    with pytest.raises(UnresolvedError, match="every column is below the noise"):
        make_release(np.full((100, 2), [1.0, 2.0]), noise=1e-4).spectrum()


def test_intervals_cover_the_exact_eigenvalues() -> None:
    """Of 4 x 60 intervals at 95%, at least 88% cover: by chance fewer would with probability below 1e-5."""
    rows = make_rows(2000)
    exact = np.linalg.eigvalsh(np.corrcoef(rows.T))[::-1]
    covered = wide = 0
    for seed in range(60):
        found = make_release(rows, noise=1e-3, rng=np.random.default_rng(seed)).spectrum().eigenvalues
        lower, upper = found.interval()
        covered += int(((lower <= exact) & (exact <= upper)).sum())
        lower, upper = found.interval(0.3)
        wide += int(((lower <= exact) & (exact <= upper)).sum())
    assert covered >= 0.88 * 240
    # Intervals that are too narrow would be noticed.
    assert wide < 0.88 * 240


def test_variances_are_the_diagonal_of_the_covariance() -> None:
    release = make_release(make_rows())
    variance, covariance = release.variance(), release.covariance()
    np.testing.assert_array_equal(variance.values, np.diag(covariance.values))
    np.testing.assert_allclose(variance.interval().lower, np.diag(covariance.interval().lower))
    np.testing.assert_array_equal(release.variance(["x2"]).values, variance.values[2:3])


@pytest.mark.parametrize("with_losses", [False, True])
def test_what_differs_from_zero_is_what_its_interval_leaves_out(*, with_losses: bool) -> None:
    ones = np.ones(3)
    law = LossLaw(
        20 * ones, 0.2 * ones, 0.3 * ones, radius=4.0, directions=5, restored=0.01, restored_constant=0.0
    )
    rows = np.random.default_rng(1).standard_normal((500, 4))
    release = make_release(rows, noise=0.1, losses=(law,) if with_losses else ())
    answer = release.correlation()
    for level in (0.5, 0.95):
        lower, upper = answer.interval(level)
        outside = (lower > 0) | (upper < 0)
        np.testing.assert_array_equal(answer.differs_from_zero(level), outside)
    assert outside.any()
    assert not outside.all()
    assert (answer.standard_error.diagonal() == 0).all()
