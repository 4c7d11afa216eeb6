"""Outliers (Section 4.2 of the paper): what methods make of those that keep its condition, and of others.

    python benchmarks/outliers.py [--runs N]

A share eta of the rows lies along the least direction of Gaussian inliers, with random signs. *Kept*: as far
out as the condition ``S_out <= (1 / (7 eta) + 1) S_D`` allows. *Broken*: a hundred times as much. The
released matrix is compared with the second moment of the inliers alone: its least and largest eigenvalue
there, of which the paper's result bounds the least only. Methods are told what they need: the recursion the
radius of all rows, the inliers' least eigenvalue and the least m that keeps every inlier out of the tail; the
default nothing, or the share. Writes ``benchmarks/results/outliers.csv`` and ``outliers.png``.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import dpcov
from dpcov.arrays import Matrix
from dpcov.paper.theory import WithOutliers, leverage_scores, log_spaced_gaussian, outliers_harmless

mpl.use("Agg")

RESULTS = Path(__file__).parent / "results"
SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1)
N_ROWS, N_COLUMNS, CONDITION = 1_250_000, 2, 100.0
ASKED: dict[str, Any] = {"epsilon": 4, "delta": 1e-7, "intercept": False}
M, ALPHA = 40, 0.4
KINDS = {"kept": 0.95, "broken": 100.0}
"""The second moment of the outliers over the most that the condition allows."""

INLIERS = log_spaced_gaussian(N_COLUMNS, CONDITION)


def with_outliers(share: float, part: float) -> WithOutliers:
    """Return inliers and outliers along the least direction, at so much of what the condition allows."""
    allowed = (1 / (7 * share) + 1) * INLIERS.least_eigenvalue
    law = WithOutliers(INLIERS, share, math.sqrt(part * allowed), "least")
    harmless = outliers_harmless(INLIERS.second_moment(), law.outlier_second_moment(), share)
    assert harmless == (part < 1)
    return law


def recursive(rows: Matrix, inliers: Matrix, _share: float) -> dict[str, Any]:
    """Return what the recursion is told."""
    m = float(leverage_scores(rows)[: len(inliers)].max()) / 1.5
    least = float(np.linalg.eigvalsh(inliers.T @ inliers / len(inliers))[0])
    radius = float(np.linalg.norm(rows, axis=1).max())
    return {"method": "recursive", "m": m, "alpha": 0.5, "radius": radius, "least_eigenvalue": least}


def aggregate(rows: Matrix, _inliers: Matrix, _share: float) -> dict[str, Any]:
    """Return what the baseline is told."""
    radius = float(np.linalg.norm(rows, axis=1).max())
    return {"method": "aggregate", "m": M, "alpha": ALPHA, "radius": radius}


def leverage(_rows: Matrix, inliers: Matrix, _share: float) -> dict[str, Any]:
    """Return what Brown et al. are told: the inliers' leverage."""
    return {"method": "leverage", "leverage": float(leverage_scores(inliers).max()), "allow_unvetted": True}


METHODS: dict[str, Callable[[Matrix, Matrix, float], dict[str, Any]]] = {
    "recursive": recursive,
    "aggregate": aggregate,
    "leverage": leverage,
    "whitening": lambda _rows, _inliers, _share: {},
    "whitening, told the share": lambda _rows, _inliers, share: {"contamination": min(1.5 * share, 0.4)},
}


def ends(released: Matrix, inliers: Matrix) -> tuple[float, float]:
    """Return the least and largest eigenvalue of a matrix in the metric of the inliers' second moment."""
    root = np.linalg.inv(np.linalg.cholesky(inliers.T @ inliers / len(inliers)))
    values = np.linalg.eigvalsh(root @ released @ root.T)
    return float(values[0]), float(values[-1])


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Yield one line for every method, kind and share."""
    for kind, part in KINDS.items():
        for share in SHARES:
            law = with_outliers(share, part)
            for method, told in METHODS.items():
                found = []
                for run in range(runs):
                    drawn, good = law.sample_labelled(N_ROWS, np.random.default_rng(run))
                    rows = np.vstack([drawn[good], drawn[~good]])
                    inliers = rows[: int(good.sum())]
                    try:
                        made = dpcov.release(rows, **ASKED, **told(rows, inliers, share))
                    except dpcov.NoAnswerError:
                        continue
                    found.append(ends(made.second_moment().values, inliers))
                low, high = zip(*found, strict=True) if found else ((math.nan,), (math.nan,))
                yield {
                    "outliers": kind, "share": share, "method": method, "runs": runs, "answered": len(found),
                    "least": f"{statistics.median(low):.4g}", "largest": f"{statistics.median(high):.4g}",
                    "least_of_all": f"{min(low):.4g}", "largest_of_all": f"{max(high):.4g}",
                }  # fmt: skip


def draw(lines: list[dict[str, Any]]) -> None:
    """Draw both eigenvalues over the share, one panel for each kind."""
    figure, panels = plt.subplots(1, len(KINDS), figsize=(9.5, 4), layout="constrained")
    titles = {"kept": "outliers that keep the condition", "broken": "outliers 100 times beyond it"}
    for panel, kind in zip(panels, KINDS, strict=True):
        panel.axhline(8 / 7, color="0.6", linestyle=":", linewidth=1, label="8/7")
        panel.axhline(1, color="0.6", linewidth=1)
        for number, method in enumerate(METHODS):
            chosen = [line for line in lines if (line["outliers"], line["method"]) == (kind, method)]
            shares = [float(line["share"]) for line in chosen]
            for name, style in (("largest", "o-"), ("least", "o--")):
                values = [float(line[name]) for line in chosen]
                label = method if name == "largest" else None
                panel.plot(shares, values, style, color=f"C{number}", markersize=4, linewidth=1, label=label)
        panel.set(xscale="log", yscale="log", xlabel="share of outliers", title=titles[kind])
    panels[0].set_ylabel("largest (solid) and least (dashed) eigenvalue,\nin the metric of the inliers")
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=6)
    figure.savefig(RESULTS / "outliers.png", dpi=120, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Measure, write and draw."""
    parser = argparse.ArgumentParser(description="Outliers, method by method.")
    parser.add_argument("--runs", type=int, default=3)
    lines = []
    for line in measure(parser.parse_args().runs):
        print(line, flush=True)
        lines.append(line)
    with (RESULTS / "outliers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    draw(lines)


if __name__ == "__main__":
    main()
