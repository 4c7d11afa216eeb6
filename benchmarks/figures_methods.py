"""Figures about methods beside each other, about real flights and about what single things cost."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import figure_tables
from figure_tables import results, short, table

_METHODS = {
    "oracle": "oracle",
    "whitening": "**whitening (default)**",
    "coinpress": "coinpress",
    "preconditioning": "preconditioning (2019)",
    "unbounded": "unbounded (2022)",
    "recursive": "recursive (the paper)",
    "leverage": "leverage (2023, unvetted)",
    "gaussian": "gaussian (Analyze Gauss)",
    "separate": "separate (2022)",
    "adaptive": "adaptive (2022)",
    "exponential": "exponential (2019, unvetted)",
    "aggregate": "aggregate (Algorithm 3)",
}
_CELLS = {
    ("condition", 1.0): "condition 1",
    ("condition", 1e4): "1e4",
    ("condition", 1e8): "1e8",
    ("condition", 1e12): "1e12",
    ("rows", 1e3): "n = 1,000 (1e4)",
    ("rows", 3e5): "n = 300,000 (1e4)",
    ("outliers", 0.01): "1% outliers (1e2)",
    ("outliers", 0.05): "5%",
    ("columns", 100.0): "d = 100 (1e4)",
}


def arena_table() -> str:
    """Return errors of every method on Gaussian tables, in the median."""
    found = results("arena").set_index(["method", "sweep", "value"]).sort_index()
    lines = []
    for method, title in _METHODS.items():
        cells = [_arena_cell(found.loc[(method, *place)]) for place in _CELLS]
        if method == "whitening":
            cells = [f"**{cell}**" for cell in cells]
        lines.append([title, *cells])
    return table(["", *_CELLS.values()], lines)


def _arena_cell(line: Any) -> str:
    if line["answered"]:
        return short(line["error"])
    # A method that refuses says how many rows it needs; one that failed a private test has spent its budget.
    return "refused" if "Nothing was spent" in str(line["note"]) else "no answer"


def arena_best() -> str:
    """Return in how many cells of the arena the default is the most accurate private method."""
    found = results("arena")
    errors = found[found["method"] != "oracle"].pivot_table("error", ["sweep", "value"], "method")
    best = int((errors.idxmin(axis=1) == "whitening").sum())
    return f"all {best}" if best == len(errors) else f"{best} of {len(errors)}"


def arena_worst() -> str:
    """Return how far the default's worst run lies above the median of its cell."""
    found = results("arena").query("method == 'whitening'")
    worst = (found["highest"] / found["error"]).max()
    return (
        f"In the arena's {found['runs'].sum()} runs of the default, the worst error is {worst:.1f} times the "
        "median of its cell."
    )


def flights_all_columns() -> str:
    """Return the angles of components of all columns of the flights."""
    found = results("flights").query("task == 'components of 13 columns'")
    return ", ".join(short(angle) for angle in found["error"]) + " degrees"


def flights_intervals() -> str:
    """Return how often intervals of a release of the flights hold, in the median over releases."""
    found = results("flights").query("task == 'intervals'")
    shares = [f"{line['median']:.0%} for {line['quantity']}" for _, line in found.iterrows()]
    return (
        f"Of the 95% intervals of a release, {', '.join(shares[:-1])} and {shares[-1]} held the exact answer "
        f"(medians of {found['runs'].iloc[0]} releases)."
    )


def coverage_error() -> str:
    """Return the largest standard error of a share of intervals that held."""
    return short(results("coverage")["error"].max(), 1)


def world_refusals() -> str:
    """Return how many regressions of random tables are refused, and how many answers carry a note."""
    found = results("world")
    noted = found["r_squared_flagged"].sum()
    plain = found["r_squared_asked"].sum()
    return (
        f"On the random tables of `benchmarks/world.py` (seeds {found['seed'].min()} to "
        f"{found['seed'].max()}, one release each), {found['due_refused'].sum()} of {found['due'].sum()} "
        f"regressions with `n sqrt(rho) / (p + 2)^1.5 > 30` were refused, and {noted} of {noted + plain} "
        "answers of R squared carry a note."
    )


def scale_slope() -> str:
    """Return the processor time of a scan per million rows."""
    found = results("scale")
    seconds = 1e6 * found["scan cpu"] / found["rows"]
    rows = found["rows"] / 1e6
    return (
        f"{seconds.min():.2f} to {seconds.max():.2f} processor seconds per million rows, "
        f"from {rows.min():.0f} to {rows.max():.0f} million"
    )


def scan_table() -> str:
    """Return what scans of tables in memory cost, as multiples of a plain product."""
    found = results("core").set_index("what")
    lines = []
    for columns in (10, 50, 200, 1000):
        scans = [
            found.loc[f"scan d={columns}: {name}", "one thread"]
            for name in ("gram, numpy alone", "gram", "gram, coarse", "norms")
        ]
        faster = found.loc[f"scan d={columns}: gram", "speed-up"]
        lines.append([f"{columns:,}", *[f"{scan:.1f}" for scan in scans], f"{faster:.1f} times"])
    head = ["columns", "Gram matrix, numpy alone", "Gram matrix", "with short integers", "histogram of norms",
            "Gram matrix, faster with two threads"]  # fmt: skip
    return table(head, lines)


def release_costs() -> str:
    """Return what whole releases of tables in memory cost, as multiples of a plain product."""
    found = results("core").set_index("what")
    lines = []
    for what, line in found[found.index.str.startswith("release")].iterrows():
        rows, columns, *steering = re.findall(r"\d+", what)
        read = f"{int(steering[0]):,}" if steering else "as many as they need"
        scan = found.loc[f"scan d={columns}: gram", "one thread"]
        scans = [f"{line['scans']:.0f}", f"{line['of a sample']:.0f}"]
        measured = [f"{line['ratio']:.0f}", *scans, f"{scan:.1f}", f"{line['error']:.2g}"]
        lines.append([f"{int(rows):,}", columns, read, *measured])
    head = ["rows", "columns", "rows that rounds read", "release\\*", "scans",
            "scans of the sample", "scan\\*", "error\\*\\*"]  # fmt: skip
    return table(head, lines)


def clusters_table() -> str:
    """Return what a release asks of a cluster."""
    lines = [
        [
            str(line["where"]), f"{line['partitions']}", f"{line['scans']}", f"{line['held']}",
            f"{line['jobs'] or 'none'}", f"{line['seconds']:.3g}", f"{line['plain_seconds']:.2g}",
            f"{line['seconds'] / line['plain_seconds']:.2g}",
        ]
        for _, line in results("clusters").iterrows()
    ]  # fmt: skip
    head = ["table", "partitions", "scans of all partitions", "scans of rows that are kept", "jobs",
            "release, seconds", "`X.T @ X`, seconds", "ratio"]  # fmt: skip
    return table(head, lines)


def laplace_timing() -> str:
    """Return how strongly the time of a Laplace draw goes with its size."""
    timing = json.loads((figure_tables.RESULTS / "assurance.json").read_text())["timing"]
    return f"{timing['discrete Laplace']['rank_correlation_with_magnitude']:.2g}"


def tails_table() -> str:
    """Return how far off releases with one long-tailed column are, and how often they do not say so."""
    lines = [
        [
            line["law"],
            f"{line['error']:.1%}",
            f"{line['worst']:.0%}",
            f"{line['exceeded']} of {line['releases']}",
            f"{line['exceeded without a note']}",
        ]
        for _, line in results("tails").iterrows()
    ]
    return table(["law", "error, median", "worst", "prediction exceeded", "of these without a note"], lines)


def tails_setting() -> str:
    """Return what those releases are of."""
    first = results("tails").iloc[0]
    return f"{first['columns'] - 1} normal columns, {first['rows']:,} rows, rho = {first['rho']:g}"


def rare_table() -> str:
    """Return how often a rare column is found, how far off it is, and what it costs the others."""
    lines = [
        [
            f"{line['ones']:,}",
            f"{line['found']} of {line['releases']}",
            "" if math.isnan(line["own error"]) else f"{line['own error']:.1%}",
            f"{line['others']:.2%}",
            f"{line['others, worst']:.2%}",
            f"{line['exceeded']}",
        ]
        for _, line in results("rare").iterrows()
    ]
    titles = ["ones", "found", "its variance, median error", "the others, median error", "worst"]
    return table([*titles, "releases off by more than predicted"], lines)


def rare_setting() -> str:
    """Return what those releases are of."""
    first = results("rare").iloc[0]
    return f"{first['columns'] - 1} normal columns, {first['rows']:,} rows, rho = {first['rho']:g}"


def arena_needs() -> str:
    """Return how many rows methods ask for that refused a cell of the arena."""
    found = results("arena").query("sweep == 'columns' and answered == 0")
    told = []
    for method, columns in (("aggregate", 5), ("leverage", 20), ("unbounded", 20)):
        note = found[(found["method"] == method) & (found["value"] == columns)]["note"].iloc[0]
        rows = re.search(r"needs (?:at least|about) (\d+) rows", note)
        if rows is None:
            raise ValueError(note)
        told.append(f"{method}: about {round(int(rows[1]), -3):,} rows at d = {columns}")
    return "; ".join(told)


def aggregate_runs() -> str:
    """Return what releases by the paper's Algorithm 3 took and gave."""
    found = results("aggregate")
    one, other = found.iloc[0], found.iloc[1]
    return (
        f"With {one['columns']:.0f} columns, epsilon = {one['epsilon']:g} and delta = {one['delta']:g}, it "
        f"takes {one['groups']:,.0f} groups that agree within alpha = {one['alpha']:g}. A release of "
        f"{one['rows']:,.0f} Gaussian rows in groups of m = {one['m']:.0f} was off by {one['error']:.0%}, "
        f"and one of {other['rows']:,.0f} rows by {other['error']:.0%} (`benchmarks/aggregate.py`). The "
        f"guaranteed errors were {one['guaranteed_error']:.0%} and {other['guaranteed_error']:.0%}; "
        f"{one['agreement']:.0%} of the pairs of groups agreed."
    )


def rain_held() -> str:
    """Return how often the interval of the mean rain of a pairwise release of the weather holds."""
    found = results("gaps").query("question == 'mean' and bounds == 'none'").set_index(["missing", "column"])
    return f"{found.loc[('pairwise', 'precip'), 'held']:.0%}"


def gaps_gain() -> str:
    """Return what a pairwise release of the weather gains over complete rows, and what it does not hold."""
    found = results("gaps").query("question == 'mean' and bounds == 'none'").set_index(["missing", "column"])
    widths = [found.loc[(missing, "temp"), "width"] for missing in ("complete", "pairwise")]
    precip = found.loc[("pairwise", "precip")]
    return (
        "In a pairwise release at epsilon = 1, the interval of the mean temperature is "
        f"{widths[0] / widths[1]:.1f} times narrower than with complete rows. Not every interval holds: rain "
        "is zero in most hours and has a long tail, and the interval of its mean held in "
        f"{precip['held']:.0%} of {precip['answers']} releases (`benchmarks/gaps.py`)."
    )
