"""``dpcov plan --distribution``: the paper's comparison of methods on a distribution of rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpcov.checks import share
from dpcov.cli.output import print_table, print_text
from dpcov.core import ArgumentError, Number, PrivacyCost, resolve_budget
from dpcov.methods import find_method
from dpcov.paper.theory.comparison import Compared, compare
from dpcov.paper.theory.named import HEAVY, named_distribution
from dpcov.paper.theory.pareto import PARETO_BOUND, PARETO_SHAPE

_FAILURE = 0.05
_EXPLANATION = (
    "Theorems promise the error except in 5 of 100 cases. The number of the default is a typical one. A rate "
    "shows how rows grow, with all hidden constants taken as 1: compare it with other rates only."
)


@dataclass(frozen=True)
class Asked:
    """A distribution as it was typed, and the error wanted."""

    distribution: str
    n_columns: int
    error: float
    condition: float
    shape: float | None
    bound: float | None


@dataclass(frozen=True)
class Comparison:
    """What was asked, the budget in both kinds, and every method's answer."""

    asked: Asked
    rho: float
    epsilon: float
    delta: float
    entries: tuple[Compared, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; infinite and missing numbers become None."""
        entries = [
            {**asdict(one), "rows": one.rows if math.isfinite(one.rows) else None} for one in self.entries
        ]
        budget = {"rho": self.rho, "epsilon": self.epsilon, "delta": self.delta}
        return {**asdict(self.asked), "failure": _FAILURE, **budget, "entries": entries}


def compare_distribution(
    asked: Asked, *, rho: Number | None, mu: Number | None, epsilon: Number | None, delta: Number | None
) -> Comparison:
    """Compare all methods at one budget, of which those that are not zCDP need the epsilon and delta."""
    share(asked.error, "error")
    law = named_distribution(
        asked.distribution,
        asked.n_columns,
        condition=asked.condition,
        shape=asked.shape,
        bound=asked.bound,
    )
    if delta is None or not 0 < delta < 1:
        raise ArgumentError(
            "some methods that are compared need a delta between 0 and 1, such as --delta 1e-6: give it "
            "with --epsilon, --rho or --mu."
        )
    budget = resolve_budget(rho=rho, mu=mu, epsilon=epsilon, delta=delta, gaussian=True).rho
    whole = float(epsilon) if epsilon is not None else PrivacyCost(budget).epsilon(delta)
    entries = compare(law, asked.error, _FAILURE, float(budget), whole, float(delta))
    return Comparison(asked, float(budget), whole, float(delta), entries)


def show_comparison(found: Comparison) -> None:
    """Print it as a table."""
    asked = found.asked
    law = asked.distribution
    if law in HEAVY:
        tail = PARETO_SHAPE if asked.shape is None else asked.shape
        law += f", shape {tail:g}, bound {PARETO_BOUND if asked.bound is None else asked.bound:g}"
    title = (
        f"{law}: rows for error {asked.error:g}, {asked.n_columns} columns, condition {asked.condition:g}, "
        f"rho = {found.rho:.4g} (epsilon = {found.epsilon:.4g}, delta = {found.delta:g})"
    )
    lines = [
        (one.method, _rows(one.rows), one.basis, one.place, f"yes, {find_method(one.method).status}")
        for one in found.entries
    ]
    print_table(title, ("method", "rows needed", "known from", "stated in", "dpcov runs it"), lines)
    print_text(_EXPLANATION)


def _rows(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "no promise" if math.isinf(value) else f"{value:,.0f}" if value < 1e9 else f"{value:.2e}"
