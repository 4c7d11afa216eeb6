"""Figures of the arena: one for each thing that is varied."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import dpcov

_TITLES = {
    "rows": ("rows", "10 columns, condition number 1e4"),
    "condition": ("condition number of the second moment", "100,000 rows, 10 columns"),
    "outliers": (
        "share of outliers, a thousand times as long",
        "100,000 rows, 10 columns, condition number 1e2",
    ),
    "columns": ("columns", "100,000 rows, condition number 1e4"),
}
_LABELS = {
    "whitening": "dpcov (default)",
    "oracle": "oracle: knows the matrix",
    "recursive": "Mahpud, Sheffet 2025",
    "aggregate": "Ashtiani, Liaw 2022 (Algorithm 3)",
    "gaussian": "Analyze Gauss 2014",
    "coinpress": "CoinPress 2020",
    "preconditioning": "Kamath et al. 2019",
    "unbounded": "Kamath et al. 2022",
    "separate": "Dong et al. 2022, separate",
    "adaptive": "Dong et al. 2022, adaptive",
    "exponential": "Amin et al. 2019 (unvetted)",
    "leverage": "Brown et al. 2023 (unvetted)",
}
_COLOURS = {
    "recursive": "#8c564b",
    "gaussian": "#7f7f7f",
    "coinpress": "#1f77b4",
    "preconditioning": "#2ca02c",
    "unbounded": "#17becf",
    "separate": "#bcbd22",
    "adaptive": "#e377c2",
    "exponential": "#9467bd",
    "leverage": "#ff7f0e",
}
_TOP = 1e3


def draw(sweep: str, curves: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Draw the error of every method against what is varied.

    Parameters
    ----------
    sweep : str
        What is varied.
    curves : mapping
        By method, pairs of value and error; NaN where there is no answer.
    path : Path
        Where to write the image.
    """
    axis, subtitle = _TITLES[sweep]
    figure = Figure(figsize=(9.5, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.axhspan(1, _TOP, color="#f3e6e6", zorder=0)
    axes.annotate(
        "worse than answering zero", (0.01, 0.98), xycoords="axes fraction", va="top", color="#a05050"
    )
    # Zero outliers have a place of their own on a logarithmic axis.
    least = min(value for points in curves.values() for value, _ in points if value > 0)
    silent = []
    for name, points in curves.items():
        known = [(value or least / 5, error) for value, error in points if not math.isnan(error)]
        if not known:
            silent.append(_LABELS[name])
            continue
        values, errors = zip(*known, strict=True)
        axes.plot(values, errors, label=_LABELS[name], **_style(name))
    axes.set_xscale("log")
    axes.set_yscale("log")
    lowest = min(error for points in curves.values() for _, error in points if not math.isnan(error))
    axes.set_ylim(lowest / 2, _TOP)
    axes.set_xlabel(axis)
    axes.set_ylabel("relative spectral error")
    if sweep == "outliers":
        ticks = [least / 5, 1e-4, 1e-3, 1e-2]
        axes.set_xticks(ticks, ["none", "0.01%", "0.1%", "1%"])
    if sweep == "columns":
        places = [value for value, _ in curves["oracle"]]
        axes.set_xticks(places, [f"{place:g}" for place in places], minor=False)
        axes.minorticks_off()
    axes.set_title(f"{subtitle}; Gaussian rows, rho = 0.5", fontsize=11)
    axes.grid(alpha=0.3)
    legend = f"no answer: {', '.join(silent)}" if silent else None
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, title=legend, title_fontsize=8)
    figure.savefig(path, dpi=150)


def _style(name: str) -> dict[str, Any]:
    if name == "whitening":
        return {"color": "#d62728", "linewidth": 3.2, "marker": "o", "markersize": 7, "zorder": 5}
    if name == "oracle":
        return {"color": "black", "linewidth": 1.5, "linestyle": "--", "zorder": 4}
    vetted = next(method.vetted for method in dpcov.methods() if method.name == name)
    line = "-" if vetted else ":"
    return {"color": _COLOURS.get(name), "linewidth": 1.4, "marker": ".", "linestyle": line, "zorder": 3}
