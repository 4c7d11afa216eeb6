"""What commands print: a table for people or one JSON document for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpcov.core import PrivacyCost
from dpcov.guessing import greatest_guess, mu_of

# Wide enough that nothing is cut when the output is no terminal.
_WIDTH_OF_A_FILE = 240
_GAP = 2


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
    console = _console()
    columns = list(zip(header, *rows, strict=True))
    widths = _widths(columns, console.width)
    if widths is None:
        _print_records(console, title, header, rows)
        return
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for (name, *cells), width in zip(columns, widths, strict=True):
        numeric = bool(rows) and all(map(_is_numeric, cells))
        table.add_column(name, justify="right" if numeric else "left", width=width)
    for row in rows:
        # Text, since a name may hold what rich would take for markup.
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def page_width() -> int:
    """Return how many characters fit on a line."""
    return _console().width


def cost_fields(cost: PrivacyCost) -> dict[str, Any]:
    """Return a cost for JSON: numbers to read and exact fractions to count with."""
    return {
        "rho": float(cost.rho),
        "delta": float(cost.delta),
        "mu": mu_of(cost),
        "guess": greatest_guess(cost),
        "exact": {"rho": str(cost.rho), "delta": str(cost.delta)},
    }


def amount(value: Fraction) -> str:
    """Return a budget in six digits."""
    return f"{float(value):.6g}"


def _is_numeric(cell: str) -> bool:
    return not cell or cell == "-" or cell.lstrip("-+<~").replace(",", "")[:1].isdigit()


def _widths(columns: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return a width for each column such that no word is broken, or None if there is no room."""
    full = [max(map(cell_len, cells)) for cells in columns]
    widths = [
        max((cell_len(word) for cell in cells for word in cell.split()), default=0) for cells in columns
    ]
    spare = available - sum(widths) - _GAP * (len(columns) - 1)
    if spare < 0:
        return None
    # Columns that want least get it; the others share what is left.
    order = sorted(range(len(columns)), key=lambda i: full[i] - widths[i])
    for place, i in enumerate(order):
        more = min(full[i] - widths[i], spare // (len(order) - place))
        widths[i] += more
        spare -= more
    return widths


def _print_records(
    console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print one line a cell, for a terminal too narrow for the table."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    width = max(map(cell_len, header))
    for row in rows:
        console.print()
        for name, cell in zip(header, row, strict=True):
            console.print(Text(f"{name:<{width}}  {cell}".rstrip()), soft_wrap=True)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, highlight=False)
