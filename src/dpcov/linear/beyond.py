"""What rows beyond the region mean for answers, in words.

Units are rows, or what the privacy unit is called. All counts are private answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def unexplained_rows(diagnostics: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    """Return a note if units are seen far beyond the region of a release: nobody knows how far.

    Examples
    --------
    >>> from dpcov.linear.beyond import unexplained_rows
    >>> counted = {"about": 60.0, "at_most": 130.0, "explained": False}
    >>> unexplained_rows({"rows_beyond": counted}, "row")
    ('About 60 rows, at most 130, lie beyond the region that rows were clipped to.',)
    """
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping) or beyond.get("explained") is not False:
        return ()
    return (f"{_count(beyond, unit)}.",)


def exposed_columns(diagnostics: Mapping[str, Any], unit: str) -> dict[str, str]:
    """Return the columns along which most of the units beyond the region may lie, each with a note.

    Examples
    --------
    >>> from dpcov.linear.beyond import exposed_columns
    >>> exposed_columns({"rows_beyond": {"about": 60.0, "at_most": 130.0, "columns": ["rain"]}}, "row")
    {'rain': 'About 60 rows, at most 130, lie beyond the region that rows were clipped to. Many far rows lie \
along rain: they can move it by more than its interval says.'}
    """
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping):
        return {}
    count = _count(beyond, unit)
    notes = {}
    for name in map(str, beyond.get("columns", ())):
        far = f"Many far {unit}s lie along {name}: they can move it by more than its interval says."
        notes[name] = f"{count}. {far}"
    return notes


def which_were_clipped(diagnostics: Mapping[str, Any], unit: str) -> str:
    """Return which units may have been clipped, in words; empty if none of interest were.

    Examples
    --------
    >>> from dpcov.linear.beyond import which_were_clipped
    >>> which_were_clipped({"rows_beyond": {"about": 60.0, "at_most": 130.0}}, "row")
    'at most 130 rows that were clipped'
    """
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping):
        # This method does not count them.
        return f"{unit}s that were clipped"
    at_most = float(beyond["at_most"])
    return f"at most {at_most:.0f} {unit}s that were clipped" if at_most else ""


def _count(beyond: Mapping[str, Any], unit: str) -> str:
    about, at_most = float(beyond["about"]), float(beyond["at_most"])
    seen = f"About {about:.0f} {unit}s, at most {at_most:.0f}, lie"
    return f"{seen} beyond the region that {unit}s were clipped to"
