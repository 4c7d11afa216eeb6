"""Plots of the paper's claims."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from paper_checks.accuracy import theorem_errors, theorem_table, theorem_tables, time_rounds
from paper_checks.analysis import TAIL_BETA, run_in_the_clear, tables, tail_tables
from paper_checks.findings import REPAIRED, Scale
from paper_checks.tables import ALPHA, PublicTable

from dpcov.paper.theory import leverage_scores, recursive_error, tail_share

mpl.use("Agg")

_FAILURE = 0.05


def plot_tail(scale: Scale, path: Path) -> None:
    """Plot the share of rows in the tail for every m', beside what Claim 3.7 allows."""
    rng = np.random.default_rng(2)
    with _figure(path) as axes:
        sizes = np.geomspace(10, 1000, 200)
        for name, rows, _ in tail_tables(scale, rng):
            leverage = np.sort(leverage_scores(rows))
            beyond = 1 - np.searchsorted(leverage, sizes * (1 + ALPHA), side="right") / len(leverage)
            axes.plot(sizes, np.where(beyond > 0, beyond, np.nan), label=name)
        axes.plot(sizes, [tail_share(size, TAIL_BETA) for size in sizes], "k--", label="bound, beta = 0.2")
        axes.set(xscale="log", yscale="log", xlabel="m'", ylabel="share of rows in the tail")
        axes.set_title("The tail (Claim 3.7; the bound counts from the table's m on)")


def plot_spectrum(scale: Scale, path: Path) -> None:
    """Plot the largest and the least eigenvalue, round by round."""
    rng = np.random.default_rng(3)
    with _figure(path) as axes:
        for index, table in enumerate(tables(scale)):
            course = run_in_the_clear(table, REPAIRED, rng)
            rounds = range(1, len(course.rounds) + 1)
            spectra = [np.linalg.eigvalsh(made.after) for made in course.rounds]
            axes.plot(
                rounds, [s[-1] / made.kappa for s, made in zip(spectra, course.rounds, strict=True)],
                f"C{index}-", label=table.name,
            )  # fmt: skip
            axes.plot(rounds, [s[0] for s in spectra], f"C{index}:")
        axes.axhline(3 / 7, color="k", ls="-", lw=0.8)
        axes.axhline(1, color="k", ls=":", lw=0.8)
        axes.set(yscale="log", xlabel="round", ylabel="largest / kappa (lines), least (dots)")
        axes.set_title("The spectrum: largest below 3/7 of kappa, least above 1")


def plot_theorem(scale: Scale, path: Path) -> None:
    """Plot measured errors beside the theorem's gamma, against the number of rows."""
    rng = np.random.default_rng(8)
    runs = max(5, scale.runs // 10)
    with _figure(path) as axes:
        for index, name in enumerate(theorem_tables()):
            rows, gammas, medians, worst = [], [], [], []
            for gamma in (0.5, 0.2, 0.1, 0.05):
                table, rho = theorem_table(name, gamma, _FAILURE, rng)
                errors = theorem_errors(table, rho, runs, rng)
                rows.append(len(table.rows))
                gammas.append(_promised(table, rho))
                medians.append(statistics.median(errors))
                worst.append(max(errors))
            axes.plot(rows, gammas, f"C{index}--")
            axes.plot(rows, medians, f"C{index}o-", label=name)
            axes.plot(rows, worst, f"C{index}^", ms=4)
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="relative error in the worst direction")
        axes.set_title(f"Theorem 3.3: gamma (dashed), median and largest of {runs} runs")


def _promised(table: PublicTable, rho: float) -> float:
    n, d = table.rows.shape
    return recursive_error(
        n, d, rho, m=table.m, alpha=ALPHA, radius=table.radius, least_eigenvalue=table.least_eigenvalue,
        failure=_FAILURE,
    )  # fmt: skip


def plot_speed(scale: Scale, path: Path) -> None:
    """Plot seconds of a round beside those of a plain product."""
    with _figure(path) as axes:
        sizes = [scale.timed_rows // 16, scale.timed_rows // 4, scale.timed_rows]
        timed = [time_rounds(size, repeats=3) for size in sizes]
        axes.plot(sizes, [statistics.median(each) for _, _, each in timed], "o-", label="a round")
        axes.plot(sizes, [statistics.median(plain) for _, plain, _ in timed], "o-", label="X.T @ X")
        axes.plot(sizes, [6 * statistics.median(plain) for _, plain, _ in timed], "k--", label="6 times that")
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
        axes.set_title("Speed of the recursive method, d = 50, condition 1e6")


PLOTS: dict[str, Callable[[Scale, Path], None]] = {
    "tail": plot_tail,
    "spectrum": plot_spectrum,
    "theorem": plot_theorem,
    "speed": plot_speed,
}
"""By the name of the check that they belong to."""


@contextmanager
def _figure(path: Path) -> Iterator[Axes]:
    """Yield axes to draw on; save them with a legend."""
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    yield axes
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
