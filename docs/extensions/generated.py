"""Pages whose text the code tells: the help of every command, and what is known of every method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sphinx.application import Sphinx
from typer.cli import get_docs_for_click
from typer.main import get_command
from typer.models import Context

import dpcov
from dpcov.cli.app import app as tool


def command_help() -> str:
    """Return the help of all commands as Markdown, one heading each."""
    command = get_command(tool)
    context = Context(command, info_name="dpcov")
    text = get_docs_for_click(obj=command, ctx=context, name="dpcov", title="dpcov")
    # The page has a title of its own.
    return re.sub(r"^#(?=#* )", "##", text, flags=re.MULTILINE)


def method_list() -> str:
    """Return what is known of every method as Markdown, one heading each."""
    return "\n\n".join(_describe(method) for method in dpcov.methods())


def _describe(method: Any) -> str:
    facts = {
        "Status": method.status.lower(),
        "Guarantee": method.privacy,
        "Assumes": method.assumes,
        "Needs": method.needs,
        "Options": ", ".join(f"`{name}`" for name in method.parameters()),
        "Cannot be run": method.reason,
        "Rate": method.rate and f"`{method.rate}`",
        "From": method.citation,
    }
    lines = [f"- **{name}.** {fact}" for name, fact in facts.items() if fact]
    return "\n".join([f"## `{method.name}`", "", *lines])


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands": command_help,
    "reference/methods": method_list,
}
"""What follows the text of each page."""


def append(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what the code tells at the end of its page."""
    del app
    if page in PAGES:
        source[0] += "\n" + PAGES[page]()


def setup(app: Sphinx) -> dict[str, Any]:
    """Wait for the pages to be read."""
    app.connect("source-read", append)
    return {"parallel_read_safe": True}
