"""Charts in plain characters, both axes on a log scale."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise

Point = tuple[float, float]

_MARKS = "o*x+#@%"


def log_chart(
    series: Mapping[str, Sequence[Point]], *, x: str, y: str, width: int = 60, height: int = 14
) -> str:
    """Return a chart of curves over positive numbers, with a legend; infinite points are left out.

    Examples
    --------
    >>> from dpcov.cli.chart import log_chart
    >>> curve = [(10.0, 0.1), (100.0, 0.01), (1000.0, 0.001)]
    >>> print(log_chart({"noise": curve}, x="rows", y="error", width=20, height=3))
    error
          0.1 |oooooo
         0.01 |      ooooooooo
        0.001 |               ooooo
              +--------------------
               10    1e+02    1e+03  rows
               o noise
    """
    curves = {name: [point for point in points if _drawable(point)] for name, points in series.items()}
    curves = {name: points for name, points in curves.items() if points}
    if not curves:
        return ""
    columns = _Axis.over([point[0] for points in curves.values() for point in points], width)
    rows = _Axis.over([point[1] for points in curves.values() for point in points], height)
    canvas = [[" "] * width for _ in range(height)]
    # The first curve is drawn last, so that it stays visible.
    for mark, points in reversed(list(zip(_MARKS, curves.values(), strict=False))):
        for column, row in _joined([(columns.cell(point[0]), rows.cell(point[1])) for point in points]):
            canvas[height - 1 - row][column] = mark
    edge = {0: rows.high, height - 1: rows.low, (height - 1) // 2: rows.middle}
    lines = [f"{y}"]
    lines += [f"{_short(edge[i]) if i in edge else '':>9} |{''.join(line)}" for i, line in enumerate(canvas)]
    ends = _short(columns.low), _short(columns.middle), _short(columns.high)
    gap = width - sum(map(len, ends))
    lines.append(" " * 10 + "+" + "-" * width)
    lines.append(
        " " * 11 + ends[0] + " " * (gap // 2) + ends[1] + " " * (gap - gap // 2) + ends[2] + f"  {x}"
    )
    legend = [f"{mark}\N{NO-BREAK SPACE}{name}" for mark, name in zip(_MARKS, curves, strict=False)]
    indent = " " * 11
    wrapped = textwrap.fill(
        "   ".join(legend),
        width + 11,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    lines += wrapped.replace("\N{NO-BREAK SPACE}", " ").split("\n")
    return "\n".join(line.rstrip() for line in lines)


class _Axis:
    """A log axis of so many cells."""

    def __init__(self, low: float, high: float, cells: int) -> None:
        self.low, self.high, self.cells = low, high, cells

    @classmethod
    def over(cls, values: Sequence[float], cells: int) -> _Axis:
        low, high = min(values), max(values)
        return cls(low, high, cells) if low < high else cls(low / 10, high * 10, cells)

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high)

    def cell(self, value: float) -> int:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(share * (self.cells - 1))


def _joined(cells: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the cells and those on the straight lines between neighbours."""
    drawn = set(cells)
    for (x0, y0), (x1, y1) in pairwise(cells):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        drawn |= {
            (round(x0 + (x1 - x0) * k / steps), round(y0 + (y1 - y0) * k / steps)) for k in range(steps + 1)
        }
    return drawn


def _drawable(point: Point) -> bool:
    return all(math.isfinite(value) and value > 0 for value in point)


def _short(value: float) -> str:
    return f"{value:.2g}"
