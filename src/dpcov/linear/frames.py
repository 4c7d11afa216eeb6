"""Tables for people: dataframes, aligned text, HTML."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from dpcov._extras import require

_MOST_LINES = 24


def make_frame(columns: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """Return a pandas dataframe indexed by `labels`, or a polars one with them as its first column.

    Parameters
    ----------
    columns : mapping
        Column names and their values.
    labels : sequence of str
        The names of the lines.

    Examples
    --------
    >>> from dpcov.linear.frames import make_frame
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
    >>> from dpcov.linear.frames import text_table
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


def html_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return an HTML table for notebooks; every text is escaped.

    Examples
    --------
    >>> from dpcov.linear.frames import html_table
    >>> "&lt;b&gt;" in html_table("means", ["column", "mean"], [["<b>", "41.3"]], [])
    True
    """
    cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    rows = [
        f"<tr><th style='text-align:left'>{html.escape(first)}</th>"
        + "".join(f"<td style='text-align:right'>{html.escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in lines[:_MOST_LINES]
    ]
    more = f"<p>... and {len(lines) - _MOST_LINES} more</p>" if len(lines) > _MOST_LINES else ""
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (
        f"<div><b>{html.escape(title)}</b><table><thead><tr>{cells}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{more}{below}</div>"
    )


def number(value: float) -> str:
    """Return a number in five digits.

    Examples
    --------
    >>> from dpcov.linear.frames import number
    >>> number(170.0239)
    '170.02'
    """
    return f"{value:.5g}"
