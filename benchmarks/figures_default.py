"""Figures about the default on tables that it was not tuned for: real ones, and where its error goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figure_tables import results, table

_EPSILONS = (0.3, 1.0, 3.0)
_EQUAL = 0.01
_KINDS = {
    "means": "means",
    "variances": "variances",
    "coefficients": "coefficients",
    "r_squared": "R squared",
}
_WHERE = {
    "released": "a release",
    "its_region": "median over noise in its region",
    "best_radius": "with the radius that is best in hindsight",
    "whole_budget": "and with all of the budget, as if the search were free",
    "oracle": "a release by the oracle itself",
}


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


def real_claims() -> str:
    """Return how often the claims of releases of real tables hold, without a note and with one."""
    found = results("real")

    def share(held: float, asked: float) -> str:
        return f"{held / asked:.0%} of {asked}" if asked else "-"

    def exceeded(epsilon: float) -> str:
        part = found[found["epsilon"] == epsilon]
        plain = part[~part["noted"]]
        return f"{plain['exceeded'].sum()} of {len(plain)}; {part['exceeded'].sum()} of {len(part)}"

    lines = [_by_epsilon("predicted error exceeded: without a note; in all", exceeded)]
    for kind, title in _KINDS.items():

        def cell(epsilon: float, kind: str = kind) -> str:
            part = found[found["epsilon"] == epsilon]
            plain = share(part[f"{kind}_held"].sum(), part[f"{kind}_asked"].sum())
            noted = share(part[f"{kind}_flagged_held"].sum(), part[f"{kind}_flagged"].sum())
            return f"{plain}; {noted}"

        lines.append(_by_epsilon(f"intervals of {title}: without a note; with one", cell))
    return table(["", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)], lines)


def where_table() -> str:
    """Return where the error of the default goes, on random tables that nothing was tuned for."""
    found = results("where")
    lines = [
        [
            title,
            f"{found[name].median():.2f}",
            f"{(found[name] <= 1.25).mean():.0%}",
            f"{(found[name] <= 2).mean():.0%}",
        ]
        for name, title in _WHERE.items()
    ]
    return table(["times the oracle's median error", "median", "at most 1.25", "at most 2"], lines)


def where_left() -> str:
    """Return which part of the budget is left for the released matrix, in the median."""
    found = results("where")
    return f"{found['left'].median():.0%}"
