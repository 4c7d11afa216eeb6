"""What the documentation names must exist."""

from __future__ import annotations

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path

import pytest

from dpcov.methods.whitening import method

ROOT = Path(__file__).parent.parent
PAPER = ROOT / "docs" / "paper.md"
CODE = re.compile(r"`([^`\n]+)`")
ITEMS = (
    *(f"Algorithm {number}" for number in range(1, 5)),
    "Definition 1.1", "Fact 2.1", "Definitions 2.2 and 2.3", "Theorem 2.4", "Theorem 2.5",
    "Theorem 3.1", "Definition 3.2", "Theorem 3.3", "Lemma 3.4", "Corollary 3.5", "Corollary 3.6",
    "Claim 3.7", "Lemma 3.8", "Lemma 3.9", "Corollary 3.10", "Fact 4.1", "Claim 4.2",
    "Equation (1)", "Section 4.2",
    "Definition A.1", "Lemma A.2", "Fact A.3", "Lemma A.4", "Lemma A.5", "Theorem A.6",
    "Definition B.1", "Theorem B.2", "Theorem B.3", "D.1", "D.2",
)  # fmt: skip


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def exists(reference: str) -> bool:
    """Whether a file, a test of it, or a name of the package exists."""
    if "::" in reference:
        path, test = reference.split("::")
        return (ROOT / path).is_file() and test in functions_in(ROOT / path)
    if "/" in reference:
        return (ROOT / reference).is_file()
    parts = reference.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for name in parts[length:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def references(text: str) -> list[str]:
    """Everything in backticks that names a file, a test or a name of the package."""
    return [name for name in CODE.findall(text) if re.match(r"(tests|src|benchmarks|docs)/|dpcov\.", name)]


def test_everything_the_map_of_the_paper_names_exists() -> None:
    named = references(PAPER.read_text())
    assert len(named) > 100
    assert not [name for name in named if not exists(name)]


@pytest.mark.parametrize("item", ITEMS)
def test_the_map_of_the_paper_is_complete(item: str) -> None:
    rows = [line for line in PAPER.read_text().splitlines() if line.startswith("| ")]
    assert any(re.search(rf"\b{re.escape(item)}(?!\d)", row.split("|")[1]) for row in rows)


def test_the_notebook_goes_through_all_of_the_paper_and_is_kept_without_outputs() -> None:
    cells = json.loads((ROOT / "examples" / "paper.ipynb").read_text())["cells"]
    words = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    numbers = [item.split()[-1].strip("()") for item in ITEMS]
    assert not [number for number in numbers if not re.search(rf"\b{re.escape(number)}(?!\d)", words)]
    mistakes = len(re.findall(r"^\*\*\[", PAPER.read_text(), re.MULTILINE))
    quoted = [int(n) for found in re.findall(r"\[([\d, ]+)\]", words) for n in found.split(",")]
    assert set(quoted) <= set(range(1, mistakes + 1))
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_every_row_of_the_map_names_a_test_and_every_mistake_is_listed() -> None:
    text = PAPER.read_text()
    table, mistakes = text.split("## Where the paper must not be followed")
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| Paper")]
    assert len(rows) > 30
    assert not [row for row in rows if "::test_" not in row.split("|")[3]]
    entries = [entry for entry in mistakes.split("\n\n") if entry.startswith("**[")]
    listed = [int(entry[3 : entry.index("]")]) for entry in entries]
    assert listed == list(range(1, len(listed) + 1))
    assert not [entry for entry in entries if "::test_" not in entry]
    used = {int(n) for row in rows for group in re.findall(r"\[([\d, ]+)\]", row) for n in group.split(",")}
    assert used == set(listed)


@pytest.mark.parametrize(
    ("reference", "there"),
    [
        ("dpcov.theory.tail", True),
        ("dpcov.paper.recursive.estimate_recursive", True),
        ("dpcov.core.Curator.ask", True),
        ("dpcov.theory.no_such_name", False),
        ("dpcov.core.Curator.no_such_query", False),
        ("tests/test_docs.py::test_the_map_of_the_paper_is_complete", True),
        ("tests/test_docs.py::test_that_is_not_there", False),
        ("tests/no_such_file.py::test_a", False),
        ("src/dpcov/paper/theory/recursion.md", True),
        ("src/dpcov/paper/theory/no_such.md", False),
    ],
)
def test_a_missing_name_would_be_noticed(reference: str, there: bool) -> None:  # noqa: FBT001
    assert exists(reference) == there


def test_everything_public_stands_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    listed = set(re.findall(r"^   (\w+)$", text, re.MULTILINE))
    for module in ("dpcov", "dpcov.learn", "dpcov.ledger", "dpcov.linear"):
        missing = set(importlib.import_module(module).__all__) - listed
        assert not missing, f"docs/reference/api.md does not list {sorted(missing)} of {module}"


def test_the_page_on_whitening_has_the_steps_of_the_code_in_their_order() -> None:
    page = (ROOT / "docs" / "whitening.md").read_text()
    told = re.findall(r"^(\d)\. \*\*\w+\*\* \(([^)]*)\)", page, re.MULTILINE)
    assert method.__doc__ is not None
    steps = re.split(r"^\d\. ", method.__doc__.split("\n\n``docs/whitening.md``")[0], flags=re.MULTILINE)[1:]
    assert [number for number, _ in told] == [str(i + 1) for i in range(len(steps))]
    for (number, files), step in zip(told, steps, strict=True):
        missing = set(re.findall(r"\w+\.py", step)) - set(re.findall(r"\w+\.py", files))
        assert not missing, f"step {number} of docs/whitening.md does not name {sorted(missing)}"
