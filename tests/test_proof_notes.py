"""Every mechanism has a proof note with all its parts, and every note is about code that exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from helpers.query_classes import QUERIES
from proof_notes import (
    PACKAGE,
    QUERY_FOLDERS,
    QUERY_TABLES,
    ROOT,
    Note,
    lines_of,
    proof_notes,
    read_note,
    tabled_queries,
    with_lines,
)

import dpcov

# No mechanisms: names, errors, what a query is, consent.
BESIDES = {"__init__.py", "errors.py", "query.py", "consent.py"}


@pytest.mark.parametrize("note", proof_notes(), ids=lambda note: note.path.name)
def test_a_note_has_statement_precondition_proof_code_and_status(note: Note) -> None:
    assert note.missing() == []
    assert note.status
    assert note.code
    assert [item for item in note.code if lines_of(*item) == (0, 0)] == []


def test_every_file_that_sees_rows_is_in_a_note() -> None:
    named = {file.resolve() for note in proof_notes() for file, _ in note.code}
    files = {file for folder in QUERY_FOLDERS for file in (PACKAGE / folder).rglob("*.py")}
    files = {file for file in files if file.name not in BESIDES}
    assert files - named == set()


def test_every_query_and_every_method_is_in_a_note() -> None:
    notes = [note.path.read_text() for note in proof_notes() if note.path.parent != PACKAGE / "methods"]
    assert [name for name in QUERIES if not any(re.search(rf"\b{name}\b", text) for text in notes)] == []
    methods = (PACKAGE / "methods" / "methods.md").read_text()
    assert [m.name for m in dpcov.methods() if m.available and f"| {m.name} |" not in methods] == []


def test_every_query_stands_in_the_table_of_its_room_with_its_lines() -> None:
    tabled = {name: file for table in QUERY_TABLES for name, (file, _) in tabled_queries(table).items()}
    assert tabled == {name: Path(inspect.getfile(query)) for name, query in QUERIES.items()}
    # `python benchmarks/proof_notes.py` brings them up to date.
    assert [table for table in QUERY_TABLES if table.read_text() != with_lines(table)] == []


def test_files_that_tables_name_exist() -> None:
    for table in QUERY_TABLES:
        quoted = re.findall(r"`([\w/]+\.(?:py|md))`", table.read_text())
        places = (table.parent, PACKAGE, ROOT)
        assert len(quoted) >= 3
        assert [name for name in quoted if not any((place / name).exists() for place in places)] == []


def test_a_table_with_wrong_lines_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text("class Query:\n    pass\n")
    table = tmp_path / "README.md"
    table.write_text("| `Query` | what | 1 | noise | cost | `gone.py` 1-3 |\n")
    assert with_lines(table) == "| `Query` | what | 1 | noise | cost | `gone.py` 1-2 |\n"
    assert tabled_queries(table) == {"Query": (tmp_path / "gone.py", "1-3")}


def test_a_note_that_lacks_something_would_be_noticed(tmp_path: Path) -> None:
    path = tmp_path / "bad.md"
    path.write_text("# Bad\n\n**Code.** `gone.py` (`Name`).\n\n**Statement.** None.\n")
    note = read_note(path)
    assert note.missing() == ["**Precondition", "Proof", "**Status.**"]
    assert [lines_of(*item) for item in note.code] == [(0, 0)]
