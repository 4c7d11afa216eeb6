"""Figures about releases: accuracy, intervals, real flights, persons, scale, outliers."""

from __future__ import annotations

from typing import Any

from figure_tables import results, short, table

from dpcov import theory

_ANSWERABLE, _MANY_ROWS = 0.2, 2_000
_ZEROS = ("false_zeros", "noted_zeros")


ACCURACY_CASES = {
    "gaussian-d10-n100000-cond1": "Gaussian, d = 10, n = 100,000, condition 1",
    "gaussian-d10-n100000-cond1e6": "the same, condition 1e6",
    "gaussian-d10-n100000-cond1e12": "the same, condition 1e12",
    "gaussian-d50-n20000-cond1e4": "Gaussian, d = 50, n = 20,000, condition 1e4",
    "pareto-times-direction": "heavy tails (truncated Pareto), d = 20, n = 200,000",
    "sparse-binary": "rare 0/1 columns, d = 20, n = 100,000",
    "duplicate-column": "a column twice, d = 10, n = 100,000",
    "outliers-least-5%": "5% outliers along the least direction (`contamination=0.075`)",
    "flights": "real flights, 14 columns, n = 336,776",
}


def accuracy_table() -> str:
    """Return errors of single tables, beside noise on the Gram matrix, the paper and the oracle."""
    found = results("accuracy").query("rho == 0.5").set_index("case")
    lines = []
    for case, title in ACCURACY_CASES.items():
        measured = found.loc[case]
        ours = short(measured["error"])
        best = measured["error"] < 0.99 * min(measured["analyze_gauss"], measured["paper"])
        others = [short(measured[name]) for name in ("analyze_gauss", "paper")]
        lines.append([title, *others, f"**{ours}**" if best else ours, short(measured["oracle"])])
    return table(["table", "noise on the Gram matrix", "the paper's method", "dpcov", "oracle\\*"], lines)


def accuracy_runs() -> str:
    """Return how many releases the medians of that table are of."""
    found = results("accuracy").query("rho == 0.5").set_index("case")
    return _one_or_range(found.loc[list(ACCURACY_CASES), "runs"])


def _one_or_range(counts: Any) -> str:
    least, most = counts.min(), counts.max()
    return f"{least}" if least == most else f"{least} to {most}"


def accuracy_summary() -> str:
    """Return how far the default is from the oracle over all tables of that benchmark."""
    found = results("accuracy").query("oracle < @_ANSWERABLE")["ratio"]
    return (
        f"Over the {len(found)} tables and budgets of that benchmark for which the oracle's error is below "
        f"{_ANSWERABLE:g}, the median ratio to the oracle is {found.median():.2f}, and "
        f"{(found <= 1.25).sum()} are at most 1.25."
    )


def world_summary() -> str:
    """Return what holds on random tables that nothing was tuned for."""
    found = results("world")
    answerable = found.query("oracle < @_ANSWERABLE")
    claims = found.dropna(subset=["resolved_error", "predicted_error"])
    large = found.query("n_rows >= @_MANY_ROWS")
    zeros, noted_zeros = (found[kind].dropna().astype(str).str.split().str.len().sum() for kind in _ZEROS)
    kinds = ("means", "variances", "r_squared", "coefficients")
    held = {}
    for kind in kinds:
        tables = large.groupby("seed")[[f"{kind}_held", f"{kind}_asked"]].sum()
        tables = tables[tables[f"{kind}_asked"] > 0]
        held[kind] = (tables[f"{kind}_held"] / tables[f"{kind}_asked"]).mean()
    noted = sum(answerable[f"{kind}_flagged"].sum() for kind in kinds)
    plain = sum(answerable[f"{kind}_asked"].sum() for kind in kinds)
    asked = (found["regressions"] - found["singular"]).sum()
    lost = f"{zeros:.0f} of {found['n_columns'].sum():,} columns" if zeros else "no column"
    whose = "" if zeros == 1 else "all " if zeros == noted_zeros else f"{noted_zeros:.0f} "
    remark = f" ({whose}with a note)" if noted_zeros else ""
    exceeded = f"{claims['exceeded'].mean():.1%}" if claims["exceeded"].any() else "none"
    return (
        f"On tables that nothing was tuned for (`make world`: {found['seed'].nunique()} random tables of "
        f"{_families()} families, {found['n_rows'].min():,} to {found['n_rows'].max():,} rows, "
        f"{found['n_columns'].min()} to {found['n_columns'].max()} columns), the error of a single release "
        f"is {answerable['ratio'].median():.1f} times the oracle's in the median, where the oracle's error "
        f"is below {_ANSWERABLE:g}. It is at most 1.25 times the oracle's in "
        f"{(answerable['ratio'] <= 1.25).mean():.0%} of these releases, and at most twice in "
        f"{(answerable['ratio'] <= 2).mean():.0%}. The predicted error was exceeded in "
        f"{exceeded} of {len(claims)} releases, {lost} came out as a false zero{remark}, and 95% intervals "
        f"without a warning held {held['means']:.0%} of the time for means, {held['variances']:.0%} for "
        f"variances, {held['r_squared']:.0%} for R squared and {held['coefficients']:.0%} for coefficients. "
        f"The price: {found['refused'].sum() / asked:.0%} of the regressions asked of these tables were "
        f"refused, and {noted / (noted + plain):.0%} of the answers carry a note that rows beyond the "
        "clipping region could move them."
    )


def _families() -> int:
    from world_tables import FAMILIES  # noqa: PLC0415  (the drawing of tables is needed for this number only)

    return len(FAMILIES)


def example_table() -> str:
    """Return the regression of the README, private beside exact."""
    lines = []
    for line in results("example").itertuples():
        places = 4 if abs(line.exact) < 10 else 2
        numbers = [line.private, line.standard_error, line.exact]
        held = f"{line.held:.0%}"
        lines.append([line.quantity, *(f"{value:.{places}f}" for value in numbers), held])
    head = ["", f"private, median of {example_releases()}", "standard error", "exact", "95% interval held"]
    return table(head, lines)


def example_releases() -> str:
    """Return how many releases the example's medians are of."""
    return str(results("example")["releases"].iloc[0])


def flights_regression() -> str:
    """Return errors of a regression of real flights beside other libraries and methods."""
    return _flights("regression", 100, "%")


def flights_runs() -> str:
    """Return how many runs these medians are of."""
    return _one_or_range(results("flights").query("task == 'regression'")["runs"])


def flights_components() -> str:
    """Return angles of principal components of real flights, in degrees, beside other libraries."""
    return _flights("components of 6 columns", 1, "")


def _flights(task: str, unit: float, sign: str) -> str:
    found = results("flights")
    found = found[found["task"] == task]
    names = list(dict.fromkeys(found["method"]))
    lines = []
    for quantity, group in found.groupby("quantity", sort=False):
        measured = (group.set_index("method")[["error", "worst"]] * unit).loc[names].to_numpy()
        cells = [f"{short(error)}{sign} (worst {short(worst)}{sign})" for error, worst in measured]
        lines.append([str(quantity), *cells])
    return table(["", *names], lines)


_LIBRARY_TITLES = {
    "dpcov": "dpcov", "diffprivlib": "diffprivlib", "opendp": "OpenDP", "smartnoise": "SmartNoise SQL",
    "pipelinedp": "PipelineDP", "tumult": "Tumult Analytics", "mst": "MST (SmartNoise Synth)",
}  # fmt: skip


def others_means() -> str:
    """Return errors of four means by several libraries, in thousandths of a standard deviation."""
    found = results("others")
    columns = list(dict.fromkeys(found["column"]))
    lines = []
    for library, group in found.groupby("library", sort=False):
        measured = group.set_index("column")
        cells = [f"{1000 * measured.loc[column, 'error']:.2g}" for column in columns]
        facts = [
            str(group["version"].iloc[0]),
            *cells,
            short(group["seconds"].iloc[0]),
            f"{group['runs'].iloc[0]}",
        ]
        lines.append([_LIBRARY_TITLES[library], *facts])
    return table(["library", "version", *columns, "seconds", "runs"], lines)


def coverage_table() -> str:
    """Return how often intervals hold, by kind of table and question."""
    found = results("coverage")
    questions = list(dict.fromkeys(found["question"]))
    lines = []
    for case, group in found.groupby("case", sort=False):
        measured = group.set_index("question")
        shares = [f"{measured.loc[name, 'coverage']:.3f}" for name in questions]
        entries = f"{group['least'].min():.2f} to {group['most'].max():.2f}"
        lines.append([str(case), *shares, entries, f"{group['refused'].max()}"])
    return table(["table", *questions, "single entries", "refused"], lines)


_REAL_TITLES = {
    "gpa2": "grades, 12 columns, n = 4,137 (gpa2)",
    "randhie": "visits to doctors, 10 columns, n = 20,190 (randhie)",
    "HI": "health insurance, 20 columns, n = 22,272 (HI)",
}


def same_epsilon_table() -> str:
    """Return errors at the same epsilon, with its budget found by way of zCDP and by Gaussian DP."""
    titles = ACCURACY_CASES | _REAL_TITLES
    lines = []
    for _, line in results("same_epsilon").iterrows():
        errors = [
            short(line[f"{way} {error}"]) for error in ("error", "column error") for way in ("zcdp", "gdp")
        ]
        title = titles[line["table"]].replace("the same,", "Gaussian, d = 10, n = 100,000,")
        lines.append([title, f"{line['epsilon']:g}", f"{line['delta']:g}", f"{line['noise']:.3f}", *errors])
    head = ["table", "epsilon", "delta", "noise, times smaller", "error before", "now",
            "error of a column before", "now"]  # fmt: skip
    return table(head, lines)


def same_epsilon_summary() -> str:
    """Return by how much errors fell at the same epsilon."""
    found = results("same_epsilon")
    known = found[found["zcdp error"] < _ANSWERABLE]
    both = [(known[f"zcdp {error}"] / known[f"gdp {error}"]).median() for error in ("error", "column error")]
    return (
        f"Where the error was below {_ANSWERABLE:g} before, it is {both[0]:.2f} times smaller now in the "
        f"median over these lines, and that of a single column {both[1]:.2f} times. Single lines are medians "
        f"of {found['runs'].iloc[0]} releases and as uncertain as that: some got worse by chance."
    )


def panels_table() -> str:
    """Return errors on tables of persons with several rows: together, by group privacy, with capped rows."""
    lines = []
    for name, group in results("panels").groupby("panel", sort=False):
        first = group.iloc[0]
        errors = [_seen(error) for error in group["median error"]]
        sizes = [f"{first[size]:,}" for size in ("persons", "rows", "most rows")]
        lines.append([str(name), *sizes, f"{first['epsilon']:g}", *errors])
    head = ["table", "persons", "rows", "most rows", "epsilon", "`privacy_unit`", "group privacy",
            "rows capped at the mean", "at half of it"]  # fmt: skip
    return table(head, lines)


def panels_coverage() -> str:
    """Return how often intervals hold on these tables."""
    found = results("panels").query("way == 'unit'")
    told = [
        f"{line['coverage']:.0%} on {line['panel']} ({line['without a note']:.0%} of the "
        f"{1 - line['noted']:.0%} without a note)"
        for _, line in found.iterrows()
    ]
    return f"With `privacy_unit`, 95% intervals for means and covariances held in {', '.join(told)}."


def owners_summary() -> str:
    """Return how releases of several owners compare with one of all their rows."""
    found = results("owners").set_index("way")
    one, other = found.loc["combined"], found.loc["pooled"]
    return (
        f"{one['owners']:.0f} owners of {one['least rows']:,.0f} rows and more, {one['rows']:,.0f} in all "
        f"(the largest airlines of the flights from New York, {one['columns']:.0f} columns), each at "
        f"epsilon = {one['epsilon']:g}: the worst combination of columns is off by "
        f"{short(one['median error'])} in the combined release and by {short(other['median error'])} in one "
        f"of the pooled rows (medians of {one['runs']:.0f}; `benchmarks/owners.py`), and "
        f"{one['coverage']:.0%} and {other['coverage']:.0%} of 95% intervals for means and covariances held "
        f"({one['noted']:.0%} and {other['noted']:.0%} carried a note)."
    )


def _seen(error: float) -> str:
    return short(error) if error < float("inf") else "nothing seen"


def scale_table() -> str:
    """Return what releases of many rows cost."""
    lines = [
        [
            f"{line['rows']:,.0f}", f"{line['release']:.2g}",
            f"{line['questions']:.0f}", f"{line['scans']:.0f}",
            f"**{line['release ratio']:.2f}** ({line['release ratio cpu']:.2f})", f"{line['scan']:.1f}",
            f"{line['bare ratio']:.2f} ({line['bare ratio cpu']:.2f})",
            f"{line['scan ratio']:.2f} ({line['scan ratio cpu']:.2f})",
            f"{1e6 * line['scan cpu'] / line['rows']:.2f}", f"{line['megabytes']:.0f} MB",
        ]
        for _, line in results("scale").iterrows()
    ]  # fmt: skip
    head = ["rows", "release, seconds", "questions", "scans of the files", "by question\\*",
            "scan of all rows, seconds", "ratio\\*",
            "ratio to a program\\*\\*", "processor seconds per million rows", "peak memory"]  # fmt: skip
    return table(head, lines)


def persons_scale() -> str:
    """Return what memory a release of many persons from an unsorted file takes."""
    line = results("persons_scale").iloc[0]
    return (
        f"{line['rows'] / 1e6:.0f} million rows of {line['persons'] / 1e6:.1f} million persons, "
        f"{line['columns']:.0f} columns, from one unsorted Parquet file, take at most "
        f"{line['megabytes'] / 1000:.2f} GB of memory, sorting included (`benchmarks/persons_scale.py`)."
    )


def outliers_table() -> str:
    """Return what methods make of outliers: the least and largest eigenvalue in the metric of the inliers."""
    found = results("outliers")
    names = list(dict.fromkeys(found["method"]))
    lines = []
    for (kind, share), group in found.groupby(["outliers", "share"], sort=False):
        measured = group.set_index("method").loc[names]
        cells = [_range_of(line) for _, line in measured.iterrows()]
        lines.append([str(kind), f"{share:g}", *cells])
    return table(["condition", "share", *names], lines)


def _range_of(line: Any) -> str:
    if not line["answered"]:
        return "no answer"
    some = "" if line["answered"] == line["runs"] else f" ({line['answered']} of {line['runs']} runs)"
    return f"{line['least']:.3g} to {line['largest']:.3g}{some}"


def outliers_runs() -> str:
    """Return how many releases the medians of that table are of."""
    return str(results("outliers")["runs"].iloc[0])


def outliers_crossing() -> str:
    """Return the errors below which the recursion tolerates more outliers than aggregation, in words."""
    crossings = []
    for columns in (2, 10, 50):
        law = theory.log_spaced_gaussian(columns, 1e6)
        m = law.subsample_size(0.5, 0.01)
        beta = theory.largest_beta(0.5, m, law.radius_of(10**6, 0.05), law.least_eigenvalue)
        crossings.append(f"{theory.tolerates_more_below(law, beta, 0.05):.2g} for {columns}")
    return ", ".join(crossings[:-1]) + f" and {crossings[-1]} Gaussian columns of condition 1e6"
