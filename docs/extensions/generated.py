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
    text = _in_full(text, _first_sentences(command, context))
    # The page has a title of its own.
    return re.sub(r"^#(?=#* )", "##", text, flags=re.MULTILINE)


def _first_sentences(command: Any, context: Context, path: str = "dpcov") -> dict[tuple[str, str], str]:
    """Return what each command does, by the command that it is part of and its name."""
    told = {}
    for name in getattr(command, "list_commands", lambda _: [])(context):
        part = command.get_command(context, name)
        told[path, name] = " ".join(part.help.split("\n\n")[0].split())
        told |= _first_sentences(part, context, f"{path} {name}")
    return told


def _in_full(text: str, told: Mapping[tuple[str, str], str]) -> str:
    """Return the help with whole sentences in its lists of commands, which a terminal cuts off."""
    lines, path = [], "dpcov"
    for line in text.splitlines():
        if heading := re.match(r"#+ `(.*)`", line):
            path = heading[1]
        item = re.match(r"\* `([\w-]+)`: ", line)
        known = item and told.get((path, item[1]))
        lines.append(f"{item[0]}{known}" if item and known else line)
    return "\n".join(lines)


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


def hide_private(app: Sphinx, what: str, *told: Any) -> tuple[str, Any] | None:
    """Leave out how a class is called that only the library itself makes: with arguments of its own."""
    del app
    signature, returned = told[-2:]
    made_inside = what == "class" and signature is not None and re.search(r"[(,]\s*_\w", signature)
    return ("", returned) if made_inside else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Wait for the pages to be read."""
    app.connect("source-read", append)
    app.connect("autodoc-process-signature", hide_private)
    return {"parallel_read_safe": True}
