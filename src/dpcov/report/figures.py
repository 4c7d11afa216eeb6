"""Figures as SVG text, drawn from the report's data. Colours come from the page's style."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.report.content import CorrelationData, SpectrumData
from dpcov.report.words import number

_HEIGHT = 320
_LEAST_WIDTH, _MOST_WIDTH, _WIDTH_A_POINT = 330, 760, 44
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 40
_MOST_DECADES = 12
_MOST_BARS = 60
_MOST_LABELLED = 24
_LONGEST_LABEL = 18

# Red for positive, blue for negative; they stay apart for colour-blind eyes.
_POSITIVE, _NEGATIVE, _HIDDEN = (196, 60, 40), (40, 96, 196), (128, 128, 128)
_LEAST_ALPHA, _HIDDEN_ALPHA = 40, 56


@dataclass(frozen=True)
class _LogScale:
    low: float
    high: float

    def place(self, value: float | None) -> float:
        clipped = min(max(value or 0.0, self.low), self.high)
        share = math.log(clipped / self.low) / math.log(self.high / self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    def decades(self) -> list[float]:
        exponents = range(
            math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1
        )
        step = max(1, len(exponents) // 6)
        return [10.0**e for e in exponents if (e - exponents[0]) % step == 0]


def spectrum_figure(spectrum: SpectrumData) -> Markup:
    """Return eigenvalues with their intervals over the noise floor, on a log scale."""
    count = len(spectrum.eigenvalues)
    scale = _scale(spectrum)
    width = min(_MOST_WIDTH, max(_LEAST_WIDTH, _LEFT + _RIGHT + _WIDTH_A_POINT * count))
    step = (width - _LEFT - _RIGHT) / count
    places = [_LEFT + step * (i + 0.5) for i in range(count)]
    base = _HEIGHT - _BOTTOM
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{scale.place(v):.1f}" '
        f'y2="{scale.place(v):.1f}"/><text class="tick" x="{_LEFT - 8}" y="{scale.place(v) + 4:.1f}" '
        f'text-anchor="end">{v:g}</text>'
        for v in scale.decades()
    ]
    floors = [(x, scale.place(f)) for x, f in zip(places, spectrum.floor, strict=True) if f is not None]
    if floors:
        edge = " ".join(f"{x - step / 2:.1f},{y:.1f} {x + step / 2:.1f},{y:.1f}" for x, y in floors)
        first, last = floors[0][0] - step / 2, floors[-1][0] + step / 2
        parts.append(f'<polygon class="floor" points="{first:.1f},{base} {edge} {last:.1f},{base}"/>')
        parts.append(f'<polyline class="floor-edge" points="{edge}"/>')
    radius = min(4.5, max(1.5, step / 3))
    for i, (x, value) in enumerate(zip(places, spectrum.eigenvalues, strict=True)):
        floor = spectrum.floor[i]
        kind = "point" if floor is None or (value.estimate or 0.0) > floor else "point lost"
        if count <= _MOST_BARS and value.lower is not None and value.upper is not None:
            ends = f'y1="{scale.place(value.lower):.1f}" y2="{scale.place(value.upper):.1f}"'
            parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
        told = "unknown" if value.estimate is None else number(value.estimate)
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{scale.place(value.estimate):.1f}" r="{radius:.1f}">'
            f"<title>{i + 1}: {told}</title></circle>"
        )
    ticks = sorted({0, count - 1, *range(0, count, max(1, math.ceil(count / 12)))})
    parts += [
        f'<text class="tick" x="{places[i]:.1f}" y="{base + 18}" text-anchor="middle">{i + 1}</text>'
        for i in ticks
        if i == count - 1 or count - 1 - i >= max(1, count // 24)
    ]
    label = f"{count} eigenvalues of the correlation matrix and the noise below them, on a log scale."
    return _svg("spectrum", width, _HEIGHT, label, parts, kind="figure lettered")


def trade_off_figure(curve: Sequence[tuple[float, float]]) -> Markup:
    """Return how often a guess misses at least, over how often it is a false alarm, beside a coin's."""
    side, left, top = 220, 56, 12
    base = top + side

    def places(points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{left + side * x:.1f},{base - side * y:.1f}" for x, y in points)

    parts = [
        f'<polyline class="floor-edge" points="{places([(0, 1), (1, 0)])}"/>',
        f'<polygon class="floor" points="{places([(0, 0), *curve, (1, 0)])}"/>',
        f'<polyline class="promise" points="{places(curve)}"/>',
    ]
    parts += [
        f'<text class="tick" x="{left + side * share:.1f}" y="{base + 16}" text-anchor="middle">{share:.0%}'
        f'</text><text class="tick" x="{left - 6}" y="{base - side * share + 4:.1f}" text-anchor="end">'
        f"{share:.0%}</text>"
        for share in (0.0, 0.5, 1.0)
    ]
    parts.append(
        f'<text class="name" x="{left + side / 2}" y="{base + 34}" text-anchor="middle">false alarms</text>'
        f'<text class="name" transform="translate(12 {top + side / 2}) rotate(-90)" '
        'text-anchor="middle">misses</text>'
    )
    label = "The least share of misses for every share of false alarms, and the straight line of a coin."
    return _svg("trade-off", left + side + 24, base + 42, label, parts, kind="figure")


def heatmap_figure(correlation: CorrelationData, names: Sequence[str]) -> Markup:
    """Return the correlation matrix as a picture; few columns also get names and numbers."""
    order = np.array(correlation.order)
    values, told = (array[np.ix_(order, order)] for array in correlation.arrays())
    names = [names[i] for i in order]
    size = correlation.size
    labelled = size <= _MOST_LABELLED
    cell = 44 if labelled else 720 / size
    margin = 10 + 7 * min(_LONGEST_LABEL, max(map(len, names))) if labelled else 0
    side = cell * size
    picture = (
        f'<image id="heatmap-cells" x="{margin}" y="{margin}" width="{side:g}" height="{side:g}" '
        f'preserveAspectRatio="none" href="{_png_uri(_colours(values, told))}"/>'
    )
    parts = [picture]
    if labelled:
        for i, name in enumerate(names):
            label, centre = escape(_shortened(name)), margin + cell * (i + 0.5)
            turned = f"translate({centre + 4:g} {margin - 6}) rotate(-90)"
            parts.append(
                f'<text class="name" x="{margin - 6}" y="{centre + 4:g}" text-anchor="end">{label}</text>'
                f'<text class="name" transform="{turned}">{label}</text>'
            )
        for i, j in np.ndindex(size, size):
            kind, text = _cell(float(values[i, j]), told=bool(told[i, j]))
            place = f'x="{margin + cell * (j + 0.5):g}" y="{margin + cell * (i + 0.5) + 4:g}"'
            parts.append(f'<text class="{kind}" {place} text-anchor="middle">{text}</text>')
    hidden = int((~told[~np.eye(size, dtype=bool)]).sum()) // 2
    pairs = size * (size - 1) // 2
    summary = f"Correlations of {size} columns; {hidden} of {pairs} pairs may be zero."
    # On a phone letters would be too small in a figure as wide as the window.
    kind = "figure lettered" if labelled else "figure"
    return _svg("heatmap", margin + side, margin + side, summary, parts, kind=kind)


def _scale(spectrum: SpectrumData) -> _LogScale:
    shown = [v for value in spectrum.eigenvalues for v in (value.estimate, value.lower, value.upper)]
    numbers = [v for v in (*shown, *spectrum.floor) if v is not None and v > 0] or [1.0]
    high = 10 ** math.ceil(math.log10(max(numbers)) + 0.05)
    low = 10 ** math.floor(math.log10(min(numbers)) - 0.05)
    return _LogScale(max(low, high / 10.0**_MOST_DECADES), high)


def _cell(value: float, *, told: bool) -> tuple[str, str]:
    if math.isnan(value):
        return "cell hidden", "?"
    text = f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00") if abs(value) < 1 else f"{value:.0f}"
    return ("cell strong" if told and abs(value) > 0.55 else "cell" if told else "cell hidden"), text


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def _colours(values: Array, told: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return RGBA: the stronger a correlation the more opaque, grey where it is hidden by noise."""
    size = np.abs(np.nan_to_num(values))
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((values > 0)[..., None], _POSITIVE, _NEGATIVE)
    pixels[..., 3] = np.rint(_LEAST_ALPHA + (255 - _LEAST_ALPHA) * size)
    pixels[~told] = (*_HIDDEN, _HIDDEN_ALPHA)
    return pixels


def _png_uri(pixels: NDArray[np.uint8]) -> str:
    height, width = pixels.shape[:2]
    lines = np.zeros((height, 1 + 4 * width), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _svg(name: str, width: float, height: float, label: str, parts: Sequence[str], *, kind: str) -> Markup:
    # Every text in `parts` is a number or was escaped.
    return Markup(  # noqa: S704
        f'<svg id="{name}" class="{kind}" role="img" aria-label="{escape(label)}" '
        f'width="{width:g}" viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
