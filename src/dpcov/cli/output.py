"""What commands print: a table for people or one JSON document for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpcov.core import PrivacyCost

# Wide enough that nothing is cut when the output is no terminal.
_WIDTH_OF_A_FILE = 240


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print comma-separated values on standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def print_text(text: str) -> None:
    """Print text as it is on standard output."""
    _console().print(Text(text), soft_wrap=True)


def print_heading(text: str) -> None:
    """Print a heading, bold on a terminal."""
    _console().print(Text(f"\n{text}", style="bold"), soft_wrap=True)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; columns that hold numbers are aligned to the right."""
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(header):
        numeric = bool(rows) and all(_is_numeric(row[index]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Text, since a name may hold what rich would take for markup.
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)


def cost_fields(cost: PrivacyCost) -> dict[str, Any]:
    """Return a cost for JSON: numbers to read and exact fractions to count with."""
    return {
        "rho": float(cost.rho),
        "delta": float(cost.delta),
        "exact": {"rho": str(cost.rho), "delta": str(cost.delta)},
    }


def amount(value: Fraction) -> str:
    """Return a budget in six digits."""
    return f"{float(value):.6g}"


def _is_numeric(cell: str) -> bool:
    return not cell or cell == "-" or cell.lstrip("-+<~").replace(",", "")[:1].isdigit()


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, highlight=False)
