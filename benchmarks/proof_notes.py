"""Proof notes and tables of queries as data: which lines of code they cover, and their status.

``python benchmarks/proof_notes.py`` brings the line numbers in the tables of queries up to date.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dpcov"
QUERY_FOLDERS = ("core", "methods/whitening/queries", "paper/queries", "rivals/queries")
"""Where code sees rows and makes noise, with a note beside every mechanism."""

OTHER_NOTES = (PACKAGE / "methods" / "methods.md", PACKAGE / "sources" / "encoding" / "encoding.md")

PARTS = ("**Code.**", "**Statement", "**Precondition", "Proof", "**Status.**")
"""What every note has."""

QUERY_TABLES = tuple(PACKAGE / folder / "README.md" for folder in QUERY_FOLDERS)
"""Where every query stands in a table, with its sensitivity, noise, cost and lines."""

_TABLE_LINE = re.compile(r"^(\| `(\w+)` \|.*\| `([\w/]+\.py)` )(\d+-\d+)( \|)$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Note:
    """One note.

    Attributes
    ----------
    path : Path
        Where it is.
    title, status : str
        Its first line and its last word.
    code : tuple of (Path, str)
        Files that it covers, and the name in each that it is about; an empty name for all of a file.
    """

    path: Path
    title: str
    status: str
    code: tuple[tuple[Path, str], ...]

    def missing(self) -> list[str]:
        """Return the parts that it lacks."""
        text = self.path.read_text()
        return [part for part in PARTS if part not in text]


def proof_notes() -> list[Note]:
    """Return all notes."""
    beside = [path for folder in QUERY_FOLDERS for path in sorted((PACKAGE / folder).rglob("*.md"))]
    beside = [path for path in beside if path.name != "README.md"]
    return [read_note(path) for path in [*beside, *OTHER_NOTES]]


def read_note(path: Path) -> Note:
    """Read a note."""
    text = path.read_text()
    status = _paragraph(text, "**Status.**")
    return Note(path, text.splitlines()[0].removeprefix("# "), status, tuple(_code(path, text)))


def tabled_queries(table: Path) -> dict[str, tuple[Path, str]]:
    """Return the queries of a table: the file of each, and its first and last line as the table has them."""
    found = _TABLE_LINE.findall(table.read_text())
    return {name: (table.parent / file, lines) for _, name, file, lines, _ in found}


def with_lines(table: Path) -> str:
    """Return the text of a table of queries with the lines where they are now."""

    def numbered(match: re.Match[str]) -> str:
        first, last = lines_of(table.parent / match[3], match[2])
        return f"{match[1]}{first}-{last}{match[5]}"

    return _TABLE_LINE.sub(numbered, table.read_text())


def lines_of(path: Path, name: str) -> tuple[int, int]:
    """Return the first and the last line of a name in a file, or of the file; (0, 0) if it is not there."""
    if not path.is_file():
        return 0, 0
    text = path.read_text()
    if not name:
        return 1, len(text.splitlines())
    body: list[ast.stmt] = ast.parse(text).body
    first = last = 0
    for part in name.split("."):
        found = [
            node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        if not found:
            return 0, 0
        first, last, body = found[0].lineno, found[0].end_lineno or 0, found[0].body
    return first, last


def _code(path: Path, text: str) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    whole: set[Path] = set()
    for quoted in _QUOTED.findall(_paragraph(text, "**Code.**")):
        if quoted.endswith((".py", ".c")):
            found.append((path.parent / quoted, ""))
        elif found and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", quoted):
            whole.add(found[-1][0])
            found.append((found[-1][0], quoted))
    # A file whose names are listed is covered in those names only.
    return [(file, name) for file, name in found if name or file not in whole]


def _paragraph(text: str, start: str) -> str:
    for paragraph in text.split("\n\n"):
        if paragraph.strip().startswith(start):
            return " ".join(paragraph.strip().removeprefix(start).split())
    return ""


if __name__ == "__main__":
    for readme in QUERY_TABLES:
        readme.write_text(with_lines(readme))
