from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.linear_tables import Array, make_release, make_rows

from dpcov import ArgumentError, UnresolvedError
from dpcov.losses import LossLaw


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
    with pytest.raises(UnresolvedError, match="Every column is below the noise"):
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


def exact_components(rows: Array) -> dict[str, Array]:
    """Those of the correlation matrix, by definition."""
    values, vectors = np.linalg.eigh(np.corrcoef(rows.T))
    values, vectors = values[::-1], vectors[:, ::-1].T
    vectors *= np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])[:, None]
    return {
        "variances": values,
        "explained": values / values.sum(),
        "directions": vectors,
        "loadings": vectors * np.sqrt(values)[:, None],
    }


def test_components_of_the_correlation_do_not_depend_on_units() -> None:
    rows = make_rows()
    exact = exact_components(rows)
    units = np.array([1.0, 1e3, 1e-3, 1.0])
    found = make_release(rows * units).pca()
    for name, values in exact.items():
        np.testing.assert_allclose(getattr(found, name).values, values, rtol=1e-4, atol=1e-6)
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(found.scores(rows * units), standard @ exact["directions"].T, atol=1e-3)
    np.testing.assert_allclose(
        found.loadings.values, np.corrcoef(rows.T, found.scores(rows * units).T)[4:, :4], atol=1e-4
    )
    assert found.n_above_noise == 4
    # In raw units one column is the first component.
    raw = make_release(rows * units).pca(standardize=False)
    assert abs(raw.directions["PC1", "x1"]) > 0.999
    assert raw.explained["PC1"] > 0.999


def test_scores_find_columns_by_name() -> None:
    rows = make_rows()
    found = make_release(rows).pca(2)
    frame = pd.DataFrame(rows[:3], columns=list(found.columns))
    np.testing.assert_array_equal(found.scores(frame[["x3", "x1", "x0", "x2"]]), found.scores(rows[:3]))


def test_columns_and_components_below_the_noise() -> None:
    rows = make_rows(d=5)
    rows[:, 3] = rows[:, 0]
    rows[:, 4] = 2.0
    release = make_release(rows, noise=1e-4)
    found = release.pca()
    assert found.columns == ("x0", "x1", "x2", "x3")
    assert "below the noise by itself: x4" in found.variances.notes[0]
    assert found.n_above_noise == 3
    assert "3 of 4 components stand above the noise" in repr(found)
    assert len(release.pca(5).variances) == 4
    with pytest.raises(UnresolvedError, match="Every column is below the noise"):
        release.pca(columns=["x4"])
    with pytest.raises(ArgumentError, match="standardize"):
        release.pca(standardize="no")  # type: ignore[arg-type]


def test_intervals_of_components_hold_as_often_as_they_say() -> None:
    """Of 200 releases, 95% intervals hold in 83% at least: fewer, less than once in 10^9 (binomial)."""
    rows = make_rows(2000, seed=2)
    exact = exact_components(rows)
    held: dict[str, list[Array]] = {name: [] for name in exact}
    narrow: dict[str, list[Array]] = {name: [] for name in exact}
    for seed in range(200):
        found = make_release(rows, noise=3e-3, rng=np.random.default_rng(seed)).pca()
        for name, values in exact.items():
            answer = getattr(found, name)
            for level, kept in ((0.95, held), (0.6, narrow)):
                lower, upper = answer.interval(level)
                kept[name].append((lower <= values) & (values <= upper))
    for name in exact:
        assert np.mean(held[name], axis=0).min() >= 0.83, name
        assert np.mean(narrow[name], axis=0).max() < 0.83, name
