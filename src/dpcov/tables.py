"""Tables for people: dataframes, aligned text, HTML for notebooks."""

from __future__ import annotations

import html
import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpcov._extras import require

_MOST_LINES = 24


def make_frame(columns: Mapping[str, Any], labels: Sequence[Any]) -> Any:
    """Return a pandas dataframe indexed by `labels`, or a polars one with them as its first column.

    Parameters
    ----------
    columns : mapping
        Column names and their values.
    labels : sequence
        The names of the lines.

    Examples
    --------
    >>> from dpcov.tables import make_frame
    >>> make_frame({"mean": [41.3, 170.0]}, ["age", "height"]).shape[0]
    2
    """
    if importlib.util.find_spec("pandas") is None and importlib.util.find_spec("polars") is not None:
        return require("polars", "frames").DataFrame({"": list(labels), **columns})
    pandas = require("pandas", "frames")
    return pandas.DataFrame(columns, index=list(labels))


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return aligned text: the first column to the left, the others to the right.

    Examples
    --------
    >>> from dpcov.tables import text_table
    >>> print(text_table(["column", "mean"], [["age", "41.3"], ["height", "170.02"]]))
    column    mean
    age       41.3
    height  170.02
    """
    shown = [*lines[:_MOST_LINES]]
    widths = [max(len(cell) for cell in column) for column in zip(head, *shown, strict=True)]
    rows = [
        "  ".join(
            cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(r, widths, strict=True))
        )
        for r in (head, *shown)
    ]
    if len(lines) > len(shown):
        rows.append(f"... and {len(lines) - len(shown)} more")
    return "\n".join(row.rstrip() for row in rows)


def html_table(
    title: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    notes: Sequence[str],
    *,
    styles: Sequence[Sequence[str]] | None = None,
    drawings: Sequence[str] | None = None,
    text: bool = False,
) -> str:
    """Return an HTML table for notebooks; every text is escaped.

    Parameters
    ----------
    title : str
        Above the table.
    head : sequence of str
        The names of its columns.
    lines : sequence of sequence of str
        The cells; the first of a line names it.
    notes : sequence of str
        Below the table.
    styles : sequence of sequence of str, optional
        CSS for each cell but the first of a line, such as ``"background:#eee"``.
    drawings : sequence of str, optional
        HTML for one more cell of each line, put in as it is.
    text : bool, default False
        Whether cells are words, which stand to the left, and not numbers.

    Examples
    --------
    >>> from dpcov.tables import html_table
    >>> "&lt;b&gt;" in html_table("means", ["column", "mean"], [["<b>", "41.3"]], [])
    True
    """
    side = "left" if text else "right"
    named = "".join(f"<th style='text-align:{side}'>{html.escape(cell)}</th>" for cell in head[1:])
    rows = []
    for i, (first, *rest) in enumerate(lines[:_MOST_LINES]):
        given = [""] * len(rest) if styles is None else styles[i]
        cells = "".join(
            f"<td style='text-align:{side};{html.escape(style)}'>{html.escape(cell)}</td>"
            for cell, style in zip(rest, given, strict=True)
        )
        drawn = "" if drawings is None else f"<td>{drawings[i]}</td>"
        rows.append(f"<tr><th style='text-align:left'>{html.escape(first)}</th>{cells}{drawn}</tr>")
    more = f"<p>... and {len(lines) - _MOST_LINES} more</p>" if len(lines) > _MOST_LINES else ""
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (
        f"<div><b>{html.escape(title)}</b><table><thead><tr><th style='text-align:left'>"
        f"{html.escape(head[0])}</th>{named}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}{below}"
        "</div>"
    )


def shade(value: float, *, told: bool) -> str:
    """Return CSS for a number from -1 to 1: red is positive, blue negative, grey not told from zero.

    Examples
    --------
    >>> from dpcov.tables import shade
    >>> shade(1.0, told=True)
    'background:rgba(196,60,40,0.80)'
    >>> shade(0.1, told=False)
    'color:#888;background:rgba(128,128,128,0.15)'
    """
    if not told:
        return "color:#888;background:rgba(128,128,128,0.15)"
    red, green, blue = (196, 60, 40) if value > 0 else (40, 96, 196)
    return f"background:rgba({red},{green},{blue},{0.8 * min(abs(value), 1.0):.2f})"


def number(value: float) -> str:
    """Return a number in five digits.

    Examples
    --------
    >>> from dpcov.tables import number
    >>> number(170.0239)
    '170.02'
    """
    return f"{value:.5g}"


def percent(share: float) -> str:
    """Return a share in per cent, two digits, without an exponent.

    Examples
    --------
    >>> from dpcov.tables import percent
    >>> percent(0.0312), percent(0.996), percent(0.00012), percent(1.0)
    ('3.1%', '99.6%', '0.012%', '100%')
    """
    value = 100 * share
    if value >= 99:
        return f"{value:.1f}".removesuffix(".0") + "%"
    if 0 < value < 1e-4:
        return "below 0.0001%"
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 4)}f}%"
