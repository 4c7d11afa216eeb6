"""Pictures of what each round of the default method does to a public table of two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle
from numpy.typing import NDArray

import dpcov
from dpcov.core import Curator, Gram, Rule

Array = NDArray[np.float64]
_SHOWN = 1_500
_COLUMNS = 2


@dataclass(frozen=True, eq=False)
class Frame:
    """What one query did: the map, the radius, the rule, and its share of the budget."""

    purpose: str
    matrix: Array
    radius: float
    rule: Rule
    share: float

    def apply(self, rows: Array) -> Array:
        """Return the rows as the query saw them, before they were kept within the radius."""
        return rows @ self.matrix.T

    def kept(self, rows: Array) -> Array:
        """Return the rows as they were added up."""
        mapped = self.apply(rows)
        lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
        if self.rule is Rule.DIRECTION:
            return np.asarray(mapped * (self.radius / lengths), dtype=np.float64)
        return np.asarray(mapped * np.minimum(1, self.radius / lengths), dtype=np.float64)


def make_rows(n: int = 100_000) -> Array:
    """Return public rows: a cloud, fifteen times longer than wide, with a heavy tail along it."""
    rng = np.random.default_rng(5)
    along = rng.standard_t(4, size=n) * 10
    across = rng.normal(size=n)
    turn = np.deg2rad(35)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return np.asarray(np.column_stack([along, across]) @ rotation, dtype=np.float64)


def watch_release(rows: Array, rho: float) -> tuple[dpcov.Release, list[Frame]]:
    """Release rows, and return every Gram matrix that was asked for on the way."""
    frames: list[Frame] = []
    asked = Curator.ask

    def recorded(curator: Curator, *queries: Any) -> Any:
        for query in queries:
            if isinstance(query, Gram):
                used = query.clipping.lattice_map
                matrix = used.coefficients / used.scale * np.exp2(used.column_exponents)
                radius, rule = query.clipping.radius, query.clipping.rule
                frames.append(Frame(query.purpose, matrix, radius, rule, float(query.cost.rho) / rho))
        return asked(curator, *queries)

    with patch.object(Curator, "ask", recorded):
        released = dpcov.release(rows, rho=rho, columns=["x", "y"], intercept=False)
    return released, frames


def draw_rows(rows: Array) -> Any:
    """Draw the table as it is."""
    figure, axes = plt.subplots(figsize=(5, 4))
    axes.plot(*rows[:_SHOWN].T, ".", markersize=2)
    axes.set(xlabel="x", ylabel="y", aspect="equal", title="The table")
    return figure


def draw_frames(rows: Array, frames: list[Frame]) -> Any:
    """Draw the rows as each query saw them, and where it kept them."""
    lines = -(-len(frames) // _COLUMNS)
    figure, grid = plt.subplots(
        lines, _COLUMNS, figsize=(6.4, 3.5 * lines), layout="constrained", squeeze=False
    )
    for axes in grid.flat[len(frames) :]:
        axes.axis("off")
    for number, (axes, frame) in enumerate(zip(grid.flat, frames, strict=False), start=1):
        seen, kept = frame.apply(rows[:_SHOWN]), frame.kept(rows[:_SHOWN])
        reach = 1.6 * frame.radius
        axes.plot(*seen.T, ".", markersize=2, color="0.7", label="as mapped")
        axes.plot(*kept.T, ".", markersize=2, color="C0", label="as counted")
        axes.add_patch(Circle((0, 0), frame.radius, fill=False, color="C3"))
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
        axes.set_title(f"{number}. {frame.purpose}\n{frame.share:.1%} of the budget", fontsize=9)
    grid.flat[0].legend(loc="upper left", fontsize=7, markerscale=4)
    return figure


def draw_regions(rows: Array, frames: list[Frame]) -> Any:
    """Draw the region of each query in the coordinates of the table; the last one is that of the release."""
    angles = np.linspace(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    figure, axes = plt.subplots(figsize=(6, 4.5))
    axes.plot(*rows[:_SHOWN].T, ".", markersize=2, color="0.7")
    whole = [frame for frame in frames if frame.rule is not Rule.DIRECTION]
    for place, frame in enumerate(whole):
        ellipse = frame.radius * circle @ np.linalg.inv(frame.matrix).T
        last = place == len(whole) - 1
        axes.plot(
            *ellipse.T,
            color="C3" if last else f"C{place}",
            linewidth=2 if last else 1,
            label=f"{frames.index(frame) + 1}. {frame.purpose}",
        )
    axes.set(xlabel="x", ylabel="y", title="Regions in the coordinates of the table")
    axes.legend(fontsize=7)
    return figure
