"""Figures about the default on tables that it was not tuned for: real ones, and where its error goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from figure_tables import results, table

_EPSILONS = (0.3, 1.0, 3.0)
_EQUAL = 0.01
# An oracle's error below which claims about the ratio to it are made.
_WORTHWHILE = 0.2
_KINDS = {
    "means": "means",
    "variances": "variances",
    "coefficients": "coefficients",
    "r_squared": "R squared",
}
_WHERE = {
    "released": "a release",
    "its_region": "median over noise in its region",
    "shorter": "with every radius a tenth shorter",
    "longer": "with every radius a tenth longer",
    "best_radius": "with the radius that is best in hindsight",
    "whole_budget": "and with all of the budget, as if the search were free",
    "told_the_frame": "told the oracle's frame: only the region is looked for",
    "oracle": "a release by the oracle itself",
}


_NEAR = ("median", "at most 1.25", "at most 2")
_ERRORS = (0.0, 0.01, 0.03, 0.06, 0.1, 0.2)


def _by_epsilon(title: str, cell: Callable[[float], str]) -> list[str]:
    return [title, *map(cell, _EPSILONS)]


def real_peers() -> str:
    """Return in how many regressions of real tables the default beats peers, equals them or falls behind."""
    found = results("real-regressions")
    methods = list(dict.fromkeys(found["method"]))
    ours = [method for method in methods if method.startswith("dpcov")]
    lines = []
    for own in ours:
        for peer in methods:
            if peer in ours:
                continue

            def cell(epsilon: float, own: str = own, peer: str = peer) -> str:
                part = found[found["epsilon"] == epsilon]
                cells = ["table", "target", "predictors"]
                medians = part.pivot_table("r_squared", cells, "method", aggfunc="median")
                gain = medians[own] - medians[peer]
                better, worse = int((gain > _EQUAL).sum()), int((gain < -_EQUAL).sum())
                return f"{better} / {len(gain) - better - worse} / {worse}"

            lines.append(_by_epsilon(f"{own} beside {peer}", cell))
    return table(["better / equal / worse", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)], lines)


def real_refusals() -> str:
    """Return what is refused of regressions of real tables, and how well the others predict."""
    found = results("real-regressions")
    lines = []
    for method in dict.fromkeys(found["method"]):
        mine = found[found["method"] == method]

        def cell(epsilon: float, mine: Any = mine) -> str:
            part = mine[mine["epsilon"] == epsilon]
            due = part[part["due"]]
            silent = part[(part["r_squared"] < 0) & ~part["flagged"] & ~part["refused"]]
            lost = (part["raw_r_squared"] - part["r_squared"]).median()
            slope = part.loc[~part["refused"], "largest_error"].median()
            return f"{due['refused'].sum()} of {len(due)}; {len(silent)}; {lost:.2g}; {slope:.2g}"

        lines.append(_by_epsilon(method, cell))
    head = ["refused of those due; below 0 without a note; R squared lost; error of a slope"]
    return table([*head, *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)], lines)


def shelf_table() -> str:
    """Return what releases of the shelf's tables for judging are worth."""
    return _worth(results("shelf"), results("shelf-regressions"))


def library_table() -> str:
    """Return what releases of the library's tables are worth."""
    return _worth(results("library"), results("library-regressions"))


def library_size() -> str:
    """Return how many tables the library has."""
    return str(results("library")["table"].nunique())


_LOOKED_AT = ("survey", "hospital", "shop", "building")
_SKEWED = 1.0


def ordinary_table() -> str:
    """Return how often intervals about single columns of ordinary tables hold, skewed ones and others."""
    found = results("ordinary")
    found = found[found["answers"] > 0]
    seen, skewed = found["table"].isin(_LOOKED_AT), found["skewness"].abs() >= _SKEWED
    lines = []
    for title, part in (
        ("looked at, not skewed", found[seen & ~skewed]),
        ("looked at, skewed", found[seen & skewed]),
        ("not looked at, not skewed", found[~seen & ~skewed]),
        ("not looked at, skewed", found[~seen & skewed]),
    ):
        held = (part[name].mean() for name in ("mean_held", "unnoted_held", "mean_noted", "deviation_held"))
        worst = int((part["unnoted_held"] < 0.8).sum())
        lines.append([title, f"{len(part)}", *(f"{share:.0%}" for share in held), f"{worst}"])
    head = ["columns", "cells", "means", "without a note", "with a note", "deviations", "below 80%\\*"]
    return table(head, lines)


def ordinary_summary() -> str:
    """Return that in a sentence, of the columns that nobody looked at."""
    found = results("ordinary")
    unseen = found[(found["answers"] > 0) & ~found["table"].isin(_LOOKED_AT)]
    skewed = unseen[unseen["skewness"].abs() >= _SKEWED]
    return (
        "Column by column, on the tables of a bank, a school, a web server and an insurer that nobody looked "
        "at before (`benchmarks/ordinary.py`), 95% intervals without a note hold "
        f"{unseen['unnoted_held'].mean():.0%} of the time for means: {skewed['unnoted_held'].mean():.0%} for "
        "those of skewed columns, such as balances and claims, of whose answers "
        f"{skewed['mean_noted'].mean():.0%} carry a note."
    )


def library_summary() -> str:
    """Return how the default does at epsilon 1 on the library's tables, in a few lines."""
    releases, regressions = (
        found[found["epsilon"] == 1] for found in (results("library"), results("library-regressions"))
    )
    due, told = regressions[regressions["due"]], releases[~releases["noted"]]
    worthwhile = releases[releases["oracle"] < _WORTHWHILE]

    def held(kind: str) -> str:
        return f"{releases[f'{kind}_held'].sum() / releases[f'{kind}_asked'].sum():.0%}"

    return (
        f"On {releases['table'].nunique()} real tables of R packages (`benchmarks/shelf.py --part library`; "
        "one rule and one constant were chosen on a part of them), told nothing, at epsilon 1: of the "
        "regressions that tables "
        f"of such sizes should answer, {due['refused'].mean():.0%} are refused. With a refusal counted as 0, "
        f"they explain {due['r_squared'].clip(-1).mean():.2f} of the variance, and least squares on the raw "
        f"rows explains {due['raw_r_squared'].mean():.2f}. 95% intervals without a warning hold "
        f"{held('means')} of the time for means, {held('variances')} for variances, {held('coefficients')} "
        f"for coefficients and {held('r_squared')} for R squared. The predicted error is exceeded in "
        f"{told['exceeded'].mean():.1%} of the releases that carry no note. But real columns are skewed: "
        f"{_noted(releases)} of the answers carry the note that clipped rows could move them. Where an "
        f"oracle is off by less than {_WORTHWHILE:g}, {_noted(worthwhile)} do."
    )


def _noted(releases: pd.DataFrame) -> str:
    """Return the share of answers with a note."""
    noted = sum(int(releases[f"{kind}_flagged"].sum()) for kind in _KINDS)
    asked = noted + sum(int(releases[f"{kind}_asked"].sum()) for kind in _KINDS)
    return f"{noted / asked:.0%}" if asked else "-"


def _worth(releases: pd.DataFrame, regressions: pd.DataFrame) -> str:

    def near(epsilon: float) -> str:
        part = releases[(releases["epsilon"] == epsilon) & (releases["oracle"] < _WORTHWHILE)]
        ratios = part["ratio"]
        return (
            f"{len(part)}; {ratios.median():.2f}; {(ratios <= 1.25).mean():.0%}; {(ratios <= 2).mean():.0%}"
        )

    def refused(epsilon: float) -> str:
        due = regressions[(regressions["epsilon"] == epsilon) & regressions["due"]]
        return f"{due['refused'].sum()} of {len(due)}"

    def explained(epsilon: float) -> str:
        due = regressions[(regressions["epsilon"] == epsilon) & regressions["due"]]
        return f"{due['r_squared'].clip(-1).mean():.3f} of {due['raw_r_squared'].mean():.3f}"

    def silent(epsilon: float) -> str:
        part = regressions[(regressions["epsilon"] == epsilon) & ~regressions["refused"]]
        return str(((part["r_squared"] < 0) & ~part["flagged"]).sum())

    def zeros(epsilon: float) -> str:
        part = releases[releases["epsilon"] == epsilon]
        lost, noted = (
            sum(len(str(names).split()) for names in part[name].fillna(""))
            for name in ("false_zeros", "noted_zeros")
        )
        return f"{lost - noted}; {lost} of {part['n_columns'].sum()}"

    lines = [
        _by_epsilon(title, cell)
        for title, cell in {
            "releases where an oracle is off by less than 0.2; median ratio; at most 1.25; at most 2": near,
            "regressions refused of those due": refused,
            "mean R squared of those due, a refusal counted as 0": explained,
            "R squared below 0 without a note": silent,
            "columns that are falsely zero: without a note; in all": zeros,
        }.items()
    ]
    lines += _claim_lines(releases)
    return table(["", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)], lines)


def real_claims() -> str:
    """Return how often the claims of releases of real tables hold, without a note and with one."""
    head = ["", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)]
    return table(head, _claim_lines(results("real")))


def _claim_lines(found: pd.DataFrame) -> list[list[str]]:
    def share(held: float, asked: float) -> str:
        return f"{held / asked:.0%} of {asked}" if asked else "-"

    def exceeded(epsilon: float) -> str:
        part = found[found["epsilon"] == epsilon]
        plain = part[~part["noted"]]
        return f"{plain['exceeded'].sum()} of {len(plain)}; {part['exceeded'].sum()} of {len(part)}"

    def noted(epsilon: float) -> str:
        part = found[found["epsilon"] == epsilon]
        return f"{_noted(part)}; {_noted(part[part['oracle'] < _WORTHWHILE])}"

    lines = [
        _by_epsilon("predicted error exceeded: without a note; in all", exceeded),
        _by_epsilon("answers with a note; where an oracle is off by less than 0.2", noted),
    ]
    for kind, title in _KINDS.items():

        def cell(epsilon: float, kind: str = kind) -> str:
            part = found[found["epsilon"] == epsilon]
            plain = share(part[f"{kind}_held"].sum(), part[f"{kind}_asked"].sum())
            noted = share(part[f"{kind}_flagged_held"].sum(), part[f"{kind}_flagged"].sum())
            return f"{plain}; {noted}"

        lines.append(_by_epsilon(f"intervals of {title}: without a note; with one", cell))
    return lines


def where_table() -> str:
    """Return where the error of the default goes, on random tables that nothing was tuned for."""
    found = results("where")
    lines = [[title, *_near(found[name].dropna())] for name, title in _WHERE.items()]
    return table(["times the oracle's median error", *_NEAR], lines)


def where_by_error() -> str:
    """Return how close releases of random tables come to an oracle, by how much that is off itself."""
    found = results("world")
    bands = found.groupby(pd.cut(found["oracle"], _ERRORS), observed=True)
    lines = [
        [f"{band.left:g} to {band.right:g}", str(part["name"].nunique()), *_near(part["ratio"])]
        for band, part in bands
    ]
    return table(["oracle's error", "tables", *_NEAR], lines)


def _near(ratios: pd.Series[float]) -> list[str]:
    shares = ((ratios <= 1.25).mean(), (ratios <= 2).mean())
    return [f"{ratios.median():.2f}", *(f"{share:.0%}" for share in shares)]


def where_left() -> str:
    """Return which part of the budget is left for the released matrix, in the median."""
    found = results("where")
    return f"{found['left'].median():.0%}"


def constants_table() -> str:
    """Return what halving and doubling each constant of the default did to random tables."""
    found = results("constants").dropna(subset="constant")
    lines = []
    for name, changes in found.groupby("constant", sort=False):
        cells = [
            f"{change.change:+.1%} +- {change.standard_error:.1%}; {change.better} / {change.worse}"
            for change in changes.itertuples()
        ]
        lines.append([f"`{name}` = {changes['usual'].iloc[0]:g}", *cells])
    head = "errors on average, with standard error; tables better / worse by 5%"
    return table([f"constant: {head}", "halved", "doubled"], lines)


def constants_summary() -> str:
    """Return what that table is about, and what stands out of it."""
    found = results("constants")
    usual, others = found.iloc[0], found.dropna(subset="constant")
    clear = others[others["change"].abs() > 2 * others["standard_error"]]
    worse, better = clear[clear["change"] > 0], clear[clear["change"] < 0]
    largest = worse.sort_values("change", ascending=False).head(3)
    named = ", ".join(
        f"`{line.constant}` = {line.value:g} ({line.change:+.0%})" for line in largest.itertuples()
    )
    still = others.groupby("constant", sort=False)["change"].agg(lambda changes: changes.abs().max() == 0)
    idle = ", ".join(f"`{name}`" for name in still.index[still])
    moved = others.loc[others["standard_error"] > 0.001, "standard_error"]
    return (
        f"{usual['releases']} releases each of {usual['counted']} tables of `benchmarks/world.py` (seeds "
        f"{usual['first_seed']} to {usual['last_seed']}, those on which an oracle's error is below 0.2), "
        f"with the same noise for every change. Of {len(others)} changes {len(worse)} made errors larger by "
        f"more than two standard errors, and {len(better)} smaller; chance alone would give about "
        f"{len(others) * 0.023:.0f} each. The largest: {named}. Predictions were exceeded in "
        f"{usual['exceeded']:.1%} of the releases as they are, and in at most {others['exceeded'].max():.1%} "
        f"with any change. What moves errors by less than about {2 * moved.median():.0%} would not show in "
        "most lines. Some constants changed no release at all, as they matter for longer, shorter or harder "
        f"tables: {idle}."
    )
