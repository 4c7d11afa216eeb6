"""Pictures of answers, drawn with matplotlib (the extra ``plot``) from plain numbers.

Every function draws on the axes that it is given, or on new ones, and returns them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpcov._extras import require
from dpcov.arrays import Array, Bools

POSITIVE, NEGATIVE, HIDDEN, INK = "#c43c28", "#2860c4", "#9a9a9a", "#1f4e9e"
"""Red and blue that stay apart for colour-blind eyes, grey for what noise hides, a colour for the rest."""

_MOST_NAMES = 40
_MOST_NUMBERS = 15
_CELL = 0.42
_LONGEST_FLAT = 4  # letters of a name that fit beside others under a cell
_BEHIND_TEXT = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6}


def new_axes(axes: Any, width: float = 6.4, height: float = 4.0) -> Any:
    """Return the axes that were given, or those of a new figure of so many inches."""
    if axes is not None:
        return axes
    return require("matplotlib.pyplot", "plot").subplots(figsize=(width, height), layout="constrained")[1]


def draw_intervals(
    names: Sequence[str], values: Array, bounds: tuple[Array, Array], told: Bools, *, label: str, axes: Any
) -> Any:
    """Draw numbers with their intervals, one a line; grey and hollow where zero is not ruled out."""
    axes = new_axes(axes, height=1.1 + 0.3 * len(names))
    places = np.arange(len(names))[::-1]
    for kind, face, colour in ((told, INK, INK), (~told, "white", HIDDEN)):
        lower, upper = (np.where(np.isfinite(bound), bound, np.nan)[kind] for bound in bounds)
        axes.hlines(places[kind], lower, upper, color=colour, linewidth=2)
        axes.plot(values[kind], places[kind], "o", color=colour, markerfacecolor=face, markersize=6)
    low, high = axes.get_xlim()
    if low <= 0 <= high:
        axes.axvline(0, color=HIDDEN, linewidth=1, linestyle=":")
    axes.set_yticks(places, names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel(label)
    return _plain(axes)


def draw_heat_map(
    names: tuple[Sequence[str], Sequence[str]], values: Array, told: Bools, label: str, axes: Any
) -> Any:
    """Draw a matrix: red is positive, blue negative, grey not told from zero."""
    height, width = values.shape
    axes = new_axes(axes, 2.4 + min(_CELL * width, 9), 1.6 + min(_CELL * height, 9))
    kinds = require("matplotlib.colors", "plot")
    shades = kinds.LinearSegmentedColormap.from_list("dpcov", [NEGATIVE, "white", POSITIVE])
    colours = shades.with_extremes(bad="#d4d4d4")
    size = float(np.nanmax(np.abs(np.where(told, values, np.nan)), initial=0.0)) or 1.0
    shown = np.ma.masked_where(~told | np.isnan(values), values)
    picture = axes.imshow(shown, cmap=colours, vmin=-size, vmax=size, aspect="equal")
    for axis, labels in ((axes.xaxis, names[1]), (axes.yaxis, names[0])):
        step = -(-len(labels) // _MOST_NAMES)
        axis.set_ticks(range(0, len(labels), step), list(labels)[::step])
    axes.tick_params(length=0)
    upright = width > 4 or max(map(len, names[1])) > _LONGEST_FLAT
    for text in axes.get_xticklabels():
        text.set(rotation=90 if upright else 0)
    if max(height, width) <= _MOST_NUMBERS:
        for i, j in np.ndindex(height, width):
            strong = told[i, j] and abs(values[i, j]) > 0.6 * size
            colour = "white" if strong else "black" if told[i, j] else "#6b6b6b"
            axes.text(j, i, _short(float(values[i, j])), ha="center", va="center", fontsize=8, color=colour)
    axes.set_title(f"{label} (grey: below the noise)" if not told.all() else label, fontsize=10, loc="left")
    axes.figure.colorbar(picture, ax=axes, shrink=0.7)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def draw_spectrum(values: Array, bounds: tuple[Array, Array], floor: Array, axes: Any) -> Any:
    """Draw eigenvalues with their intervals over the floor of the noise, on a log scale."""
    axes = new_axes(axes)
    places = np.arange(1, len(values) + 1)
    positive = np.concatenate([values, floor[np.isfinite(floor)]])
    least = float(positive[positive > 0].min(initial=1.0)) / 3
    axes.set_yscale("log")
    edges = np.repeat(np.arange(len(values) + 1) + 0.5, 2)[1:-1]
    if np.isfinite(floor).all():
        axes.fill_between(edges, least, np.repeat(floor, 2), color=HIDDEN, alpha=0.3, linewidth=0)
        axes.plot(edges, np.repeat(floor, 2), color=HIDDEN, linestyle="--", label="noise floor")
    told = ~(values <= floor)
    lower, upper = np.maximum(bounds[0], least), np.maximum(bounds[1], least)
    axes.vlines(places, lower, upper, color=INK, linewidth=2)
    axes.plot(places[told], values[told], "o", color=INK, label="above the noise")
    if not told.all():
        below = np.maximum(values[~told], least)
        axes.plot(places[~told], below, "o", color=HIDDEN, markerfacecolor="white", label="below the noise")
    axes.set_xlabel("component")
    axes.set_ylabel("variance")
    axes.set_xlim(0.5, len(values) + 0.5)
    axes.set_ylim(bottom=least)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    return _plain(axes)


def draw_biplot(
    names: Sequence[str], loadings: Array, told: Bools, labels: tuple[str, str], axes: Any, *, circle: bool
) -> Any:
    """Draw columns as arrows along two components; grey where noise leaves no direction."""
    axes = new_axes(axes, 5.6, 5.6)
    reach = 1.0 if circle else float(np.hypot(*loadings).max()) or 1.0
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(reach * np.cos(turn), reach * np.sin(turn), color="#dddddd", linewidth=1)
    axes.axhline(0, color="#dddddd", linewidth=1)
    axes.axvline(0, color="#dddddd", linewidth=1)
    for (x, y), seen in zip(loadings.T, told, strict=True):
        arrow = {"arrowstyle": "->", "color": INK if seen else HIDDEN, "linewidth": 1.5}
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
    for side, right in ((np.flatnonzero(loadings[0] >= 0), True), (np.flatnonzero(loadings[0] < 0), False)):
        for place, height in zip(side, _apart(loadings[1, side], 0.075 * reach), strict=True):
            axes.annotate(
                names[int(place)], (loadings[0, place], height), xytext=(5 if right else -5, 0),
                textcoords="offset points", color=INK if told[place] else HIDDEN,
                ha="left" if right else "right", va="center", fontsize=9, bbox=_BEHIND_TEXT,
            )  # fmt: skip
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.set_xlim(-1.35 * reach, 1.35 * reach)
    axes.set_ylim(-1.35 * reach, 1.35 * reach)
    axes.set_aspect("equal")
    return _plain(axes)


def draw_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    mark: float | None,
    x: str,
    y: str,
    axes: Any,
) -> Any:
    """Draw curves over positive numbers, both axes on a log scale; `mark` is where one stands."""
    axes = new_axes(axes)
    for name, (places, values) in curves.items():
        finite = np.isfinite(values)
        axes.loglog(np.asarray(places)[finite], np.asarray(values)[finite], label=name, linewidth=2)
    if mark is not None:
        axes.axvline(mark, color=HIDDEN, linestyle=":", linewidth=1)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, color="#eeeeee")
    axes.legend(frameon=False)
    return _plain(axes)


def _plain(axes: Any) -> Any:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _short(value: float) -> str:
    if np.isnan(value):
        return "?"
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"
    return text.replace("0.", ".", 1).replace("-.00", ".00") if abs(value) < 1 else text


def _apart(heights: Array, least: float) -> Array:
    """Return heights of texts, moved so far that they can be read beside each other."""
    moved, last = np.zeros_like(heights), -np.inf
    for place in np.argsort(heights):
        moved[place] = last = max(heights[place], last + least)
    # Up and down alike.
    return np.asarray(moved - np.mean(moved - heights)) if len(heights) else moved
