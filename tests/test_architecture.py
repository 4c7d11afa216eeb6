"""The trust boundary, checked on the source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpcov
from dpcov.paper import queries as paper
from dpcov.rivals import queries as rivals

ROOT = Path(dpcov.__file__).parent
FLOAT_GENERATORS = {
    "normal", "standard_normal", "laplace", "uniform", "random", "exponential", "gumbel", "gauss",
    "multivariate_normal", "integers", "randn", "rand",
}  # fmt: skip


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(*folders: str) -> list[Path]:
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert found
    return found


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


QUERIES = files("paper/queries", "rivals/queries")
# These two open tables themselves, as `release` does.
FRONT = {ROOT / "paper" / "parameters.py", ROOT / "rivals" / "compare.py"}
ESTIMATORS = sorted(
    {*files("methods"), *(ROOT / "paper").glob("*.py"), *(ROOT / "rivals").glob("*.py")} - FRONT
)


def outside(path: Path, *allowed: str) -> set[str]:
    """The imports of ours in `path` that lie in none of the allowed modules."""
    ours = {name for name in imports(path) if name == "dpcov" or name.startswith("dpcov.")}
    return {name for name in ours if not any(name == a or name.startswith(f"{a}.") for a in allowed)}


@pytest.mark.parametrize("path", files("core"), ids=place)
def test_core_imports_nothing_of_ours_but_core(path: Path) -> None:
    # The curator's bases are queries of all rooms.
    rooms = ("dpcov.paper.queries", "dpcov.rivals.queries") if path.name == "curator.py" else ()
    assert not outside(path, "dpcov.core", *rooms)


@pytest.mark.parametrize("path", QUERIES, ids=place)
def test_queries_see_the_core_and_queries_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.paper.queries", "dpcov.rivals.queries")


@pytest.mark.parametrize("path", [*files("core"), *files("paper/queries")], ids=place)
def test_core_and_paper_do_not_lean_on_unvetted_queries(path: Path) -> None:
    if path.name != "curator.py":
        assert not [name for name in imports(path) if name.startswith("dpcov.rivals")]


@pytest.mark.parametrize("path", files("sources"), ids=place)
def test_sources_see_the_core_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.sources", "dpcov._extras")


def sees_public_names_only(path: Path) -> bool:
    """Whether `path` imports public names of core and queries only, and none that hands out rows or noise."""
    private = {"Source", "RowTask", "RowWorker", "Block", "OSEntropy"}
    rooms = {"dpcov.core": dpcov.core, "dpcov.paper.queries": paper, "dpcov.rivals.queries": rivals}
    public = {f"{room}.{name}" for room, module in rooms.items() for name in module.__all__} | set(rooms)
    public -= {f"dpcov.core.{name}" for name in private}
    return {name for name in imports(path) if name.startswith(tuple(rooms))} <= public


@pytest.mark.parametrize("path", ESTIMATORS, ids=place)
def test_methods_see_public_names_of_the_core_and_theory_only(path: Path) -> None:
    rooms = ("dpcov.methods", "dpcov.paper", "dpcov.rivals")
    assert not outside(path, "dpcov.core", "dpcov.laws", "dpcov.checks", *rooms)
    assert sees_public_names_only(path)
    # The first looks at rows, and is for public ones; the others open tables.
    closed = ("dpcov.paper.theory.public_rows", "dpcov.paper.parameters", "dpcov.rivals.compare")
    assert not [name for name in imports(path) if name.startswith(closed)]


@pytest.mark.parametrize("path", files("linear"), ids=place)
def test_linear_questions_know_no_method_and_no_source(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.laws", "dpcov.checks", "dpcov._extras", "dpcov.linear")


def test_laws_and_checks_see_the_core_only() -> None:
    assert not outside(ROOT / "laws.py", "dpcov.core")
    assert not outside(ROOT / "checks.py", "dpcov.core")


@pytest.mark.parametrize("path", files("methods"), ids=place)
def test_the_default_does_not_know_the_other_rooms(path: Path) -> None:
    assert not [name for name in imports(path) if name.startswith(("dpcov.paper", "dpcov.rivals"))]


@pytest.mark.parametrize("path", files("paper/theory"), ids=place)
def test_theory_sees_public_names_of_the_core_only_and_no_curator(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.checks", "dpcov.paper.theory")
    assert sees_public_names_only(path)
    assert "dpcov.core.Curator" not in set(imports(path))


@pytest.mark.parametrize("path", [*files("core"), *QUERIES, *ESTIMATORS], ids=place)
def test_no_float_generator_makes_noise(path: Path) -> None:
    tree = ast.parse(path.read_text())
    calls = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {call.attr for call in calls if isinstance(call, ast.Attribute)} & FLOAT_GENERATORS
    assert not {name for name in imports(path) if name.split(".")[0] in {"random", "secrets"}}


@pytest.mark.parametrize("path", [*files("core"), *QUERIES], ids=place)
def test_core_and_queries_print_log_and_warn_nothing(path: Path) -> None:
    assert not {name for name in imports(path) if name.split(".")[0] in {"logging", "warnings"}}
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
    assert "print" not in calls


def test_the_checks_would_notice(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import dpcov.release\nfrom dpcov.core import noise\n")
    assert outside(bad, "dpcov.core") == {"dpcov.release"}
    assert not sees_public_names_only(bad)
    bad.write_text("from dpcov.core import ArgumentError, Source\n")
    assert not sees_public_names_only(bad)
    bad.write_text("from dpcov.paper.queries.groups import random_groups\n")
    assert not sees_public_names_only(bad)
    bad.write_text("from dpcov.core import ArgumentError\n")
    assert sees_public_names_only(bad)
