"""Results of benchmarks as frames, and tables of them in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).parent / "results"


@cache
def results(name: str) -> Any:
    """Return the results of a benchmark, a frame."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown: words first, then numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines])


def short(value: float, digits: int = 2) -> str:
    """Return a number with so many digits, and with a plain exponent if it is large."""
    if value >= 10_000:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
