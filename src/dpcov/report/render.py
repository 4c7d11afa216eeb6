"""From the report's data to the page: one file, no network, nothing that runs but our own script."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpcov._extras import require
from dpcov.ledger import Account, Entry
from dpcov.released import Release
from dpcov.report.content import Bounded, ReportData
from dpcov.report.data import report_data
from dpcov.report.words import number
from dpcov.tables import percent

_TEMPLATE, _STYLE, _SCRIPT = "report.html.j2", "report.css", "report.js"


def write_report(
    release: Release,
    path: str | Path,
    *,
    name: str,
    account: Account | None = None,
    history: Sequence[Entry] = (),
) -> None:
    """Write the page about a release.

    Parameters
    ----------
    release : Release
        The release to describe.
    path : path
        The file to write; an existing one is replaced.
    name : str
        The release's file, for the lines that load it.
    account, history
        From the ledger, if there is one.
    """
    page = render_page(report_data(release, name, account, history))
    Path(path).write_text(page, encoding="utf-8", errors="replace", newline="\n")


def render_page(data: ReportData) -> str:
    """Return the page; needs the extra ``report``."""
    require("jinja2", "report")
    from dpcov.report import figures  # noqa: PLC0415  (needs what jinja2 brings along)

    style, script = _text(_STYLE), _text(_SCRIPT)
    names = [column.name for column in data.columns]
    page: str = _template().render(
        data=data,
        # What the script reads. "<" is escaped, so no name can end the block.
        embedded=_safe_json(data.to_dict()),
        style=style,
        script=script,
        trade_off=figures.trade_off_figure(data.trade_off) if data.private else "",
        spectrum="" if data.spectrum is None else figures.spectrum_figure(data.spectrum),
        heatmap="" if data.correlation is None else figures.heatmap_figure(data.correlation, names),
        example=_example(data),
        quoted=_quoted,
        shell=shlex.quote,
    )
    return page


@cache
def _template() -> Any:
    """Return the template, compiled once: that takes much longer than filling it in."""
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=_number, bounds=_bounds, brief=_brief, percent=_percent, csp=_hash)
    return environment.from_string(_text(_TEMPLATE))


def _example(data: ReportData) -> tuple[str, ...]:
    """Return two columns for an example that is answered: both stand above the noise by themselves."""
    lost = () if data.spectrum is None else data.spectrum.left_out
    known = [column.name for column in data.columns if column.name not in lost]
    return () if data.problem or len(known) < 2 else (known[0], known[1])


def _text(name: str) -> str:
    return (files("dpcov.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _safe_json(document: Any) -> str:
    text = json.dumps(document, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _number(value: float | None) -> str:
    return "unknown" if value is None else number(value)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else percent(share)


def _brief(value: float) -> str:
    return f"{value:.4g}"


def _bounds(value: Bounded) -> str:
    if value.lower is None and value.upper is None:
        return "unknown"
    return f"{_number(value.lower)} to {_number(value.upper)}"


def _quoted(name: str) -> str:
    """Return a text as Python and R write it."""
    return json.dumps(name, ensure_ascii=False)
