"""Pictures show the numbers of the answers, and what noise hides in grey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from helpers.linear_tables import NAMES, make_release, make_rows
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

import dpcov
from dpcov.core import ArgumentError
from dpcov.pictures import HIDDEN, INK


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def release() -> dpcov.Release:
    rows = make_rows(2000, seed=4)
    rows[:, 3] = np.random.default_rng(0).standard_normal(2000)
    rows[:, 3] -= rows[:, 3].mean()
    return make_release(rows, names=NAMES, noise=1e-2)


def points(axes: Any, colour: str) -> list[list[float]]:
    """Places of the dots of a colour."""
    dots = [line for line in axes.lines if line.get_marker() == "o" and to_hex(line.get_color()) == colour]
    return [point.tolist() for line in dots for point in line.get_xydata()]


def test_a_vector_is_drawn_with_its_intervals(release: dpcov.Release) -> None:
    mean = release.mean()
    axes = mean.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == list(NAMES)
    told = mean.differs_from_zero()
    assert told.tolist() == [True, True, True, False]
    assert points(axes, INK) == [[mean.values[i], 3 - i] for i in range(3)]
    assert points(axes, HIDDEN) == [[mean.values[3], 0]]
    lower, upper = mean.interval()
    drawn = np.concatenate([segments.get_segments() for segments in axes.collections])
    np.testing.assert_allclose(drawn[:, :, 0], np.column_stack([lower, upper]))
    # On axes that are there already.
    given = plt.subplots()[1]
    assert mean.plot(ax=given) is given


def test_a_matrix_is_a_heat_map_with_grey_cells(release: dpcov.Release) -> None:
    correlation = release.correlation()
    axes = correlation.plot()
    (picture,) = axes.images
    shown = picture.get_array()
    told = correlation.differs_from_zero()
    assert not told.all()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~told)
    np.testing.assert_array_equal(shown[told], correlation.values[told])
    assert "below the noise" in axes.get_title(loc="left")


def test_the_spectrum_stands_over_its_floor() -> None:
    rows = make_rows(d=4)
    rows[:, 3] = rows[:, 0]
    spectrum = make_release(rows, noise=1e-4).spectrum()
    axes = spectrum.plot()
    values = spectrum.eigenvalues.values
    assert points(axes, INK) == [[i + 1, values[i]] for i in range(3)]
    assert [point[0] for point in points(axes, HIDDEN)] == [4]
    (edge,) = [line for line in axes.lines if line.get_label() == "noise floor"]
    np.testing.assert_array_equal(edge.get_ydata()[::2], spectrum.floor)


def test_a_biplot_has_an_arrow_for_each_column(release: dpcov.Release) -> None:
    found = release.pca()
    axes = found.plot()
    arrows = [text for text in axes.texts if not text.get_text()]
    ends = [arrow.xy for arrow in arrows]
    np.testing.assert_allclose(ends, found.loadings.values[:2].T)
    assert {text.get_text() for text in axes.texts} == {"", *NAMES}
    assert f"PC1 ({found.explained['PC1']:.1%} of the variance)" == axes.get_xlabel()
    with pytest.raises(ArgumentError, match="two components"):
        release.pca(1).plot()


def test_a_plan_shows_how_the_error_falls_with_epsilon() -> None:
    for asked in ({"n_rows": 100_000}, {"error": 0.05}):
        plan = dpcov.plan(n_columns=5, epsilon=1, delta=1e-6, **asked)
        axes = plan.plot()
        (curve,) = [line for line in axes.lines if line.get_label() == "whitening"]
        epsilons, values = curve.get_data()
        assert epsilons[0] < 1 < epsilons[-1]
        assert (np.diff(values) < 0).all()
        here = plan["whitening"].error if "n_rows" in asked else plan["whitening"].rows
        assert values[np.argmin(np.abs(epsilons - 1))] == pytest.approx(here)
    assert "1e-06" in dpcov.plan(n_columns=5, rho=0.1, n_rows=1000).plot().get_xlabel()


def test_slopes_are_drawn_on_one_scale(release: dpcov.Release) -> None:
    fit = release.regress("alpha ~ beta + gamma + delta")
    axes = fit.plot()
    scale = release.std(["beta", "gamma", "delta"]).values / release.std()["alpha"]
    told = fit.slopes.differs_from_zero()
    expected = [[v, 2 - i] for i, v in enumerate((fit.slopes.values * scale).tolist())]
    seen = points(axes, INK) + points(axes, HIDDEN)
    np.testing.assert_allclose(sorted(seen, key=lambda point: -point[1]), expected)
    assert len(points(axes, HIDDEN)) == (~told).sum()
    assert "sd of alpha" in axes.get_xlabel()
