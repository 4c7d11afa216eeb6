"""The trust boundary, checked on the source text."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
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


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path.read_text())):
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


# What every room but the core may use: none of it has anything to do with rows.
TOOLS = ("dpcov.arrays", "dpcov.checks", "dpcov._extras", "dpcov.pictures", "dpcov.tables")
QUERIES = files("methods/whitening/queries", "paper/queries", "rivals/queries")
# These two open tables themselves, as `release` does.
FRONT = {ROOT / "paper" / "parameters.py", ROOT / "rivals" / "compare.py"}
ESTIMATORS = sorted(
    {*files("methods"), *(ROOT / "paper").glob("*.py"), *(ROOT / "rivals").glob("*.py")}
    - FRONT
    - set(QUERIES)
)


def outside(path: Path, *allowed: str) -> set[str]:
    """The imports of ours in `path` that lie in none of the allowed modules."""
    ours = {name for name in imports(path) if name == "dpcov" or name.startswith("dpcov.")}
    return {name for name in ours if not any(name == a or name.startswith(f"{a}.") for a in allowed)}


@pytest.mark.parametrize("path", files("core"), ids=place)
def test_core_imports_nothing_of_ours_but_core(path: Path) -> None:
    assert not outside(path, "dpcov.core")


def test_the_kernel_can_be_read_in_one_sitting() -> None:
    compiled = list((ROOT / "core").rglob("*.[ch]"))
    for sources, most in ((files("core"), 3250), (compiled, 520)):
        assert sum(len(path.read_text().splitlines()) for path in sources) <= most


@pytest.mark.parametrize("path", files("methods/whitening/queries"), ids=place)
def test_queries_of_the_default_see_the_core_only(path: Path) -> None:
    assert not outside(path, "dpcov.core")


@pytest.mark.parametrize("path", files("paper/queries"), ids=place)
def test_queries_of_the_paper_see_the_core_and_each_other_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.paper.queries")


@pytest.mark.parametrize("path", files("rivals/queries"), ids=place)
def test_queries_of_the_rivals_see_the_core_and_queries_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.paper.queries", "dpcov.rivals.queries")


def looks_at_rows(path: Path) -> set[str]:
    """The classes and functions of `path` that take blocks of rows."""
    found = set()
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any(a.arg == "block" or "Block" in ast.unparse(a.annotation or a) for a in arguments):
                found.add(node.name)
    return found


def attribute_calls(path: Path, name: str) -> list[str]:
    """What `path` calls an attribute called `name` of."""
    calls = [node.func for node in ast.walk(parsed(path.read_text())) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call.value) for call in calls if isinstance(call, ast.Attribute) and call.attr == name
    ]


@pytest.mark.parametrize("path", files("."), ids=place)
def test_rows_are_seen_by_row_tasks_in_queries_and_by_sources_only(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    # The arithmetic that row tasks share, and the protocol of a task.
    shared = {f"core/{name}.py" for name in ("compiled_passes", "exact_blas", "lattice", "passes", "tasks")}
    if "queries" not in parts and parts[0] != "sources" and place(path) not in shared:
        assert looks_at_rows(path) == set()


@pytest.mark.parametrize("path", files("."), ids=place)
def test_the_curator_alone_holds_the_rows_charges_and_scans(path: Path) -> None:
    if place(path) == "core/curator.py":
        assert attribute_calls(path, "charge") == ["self._budget"]
        assert sorted(attribute_calls(path, "scan")) == ["self._sample", "self._source"]
        assert attribute_calls(path, "hold") == ["self._source"]
        return
    held = {"_source", "_table", "_sample"}
    touched = [node for node in ast.walk(parsed(path.read_text())) if isinstance(node, ast.Attribute)]
    assert not [node for node in touched if node.attr in held and "curator" in ast.unparse(node.value)]
    if place(path) == "ledger/budget.py":
        assert attribute_calls(path, "charge") == ["super()", "self._ledger"]
    else:
        assert not attribute_calls(path, "charge")
    if path.relative_to(ROOT).parts[0] != "sources":
        assert not attribute_calls(path, "scan")


@pytest.mark.parametrize("path", files("."), ids=place)
def test_what_queries_remember_is_read_in_queries_only(path: Path) -> None:
    tree = parsed(path.read_text())
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "memory"]
    assert not reads or "queries" in path.relative_to(ROOT).parts


def test_the_default_loads_no_rival() -> None:
    code = "import sys, dpcov; print([name for name in sys.modules if name.startswith('dpcov.rivals')])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", files("sources"), ids=place)
def test_sources_see_the_core_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.sources", *TOOLS)


def sees_public_names_only(path: Path) -> bool:
    """Whether `path` imports public names of core and queries only, and none that hands out rows or noise."""
    private = {"BitSource", "Block", "OSEntropy", "RowTask", "RowWorker", "SeededBits", "Source"}
    rooms = {"dpcov.core": dpcov.core, "dpcov.paper.queries": paper, "dpcov.rivals.queries": rivals}
    public = {f"{room}.{name}" for room, module in rooms.items() for name in module.__all__} | set(rooms)
    public -= {f"dpcov.core.{name}" for name in private}
    return {name for name in imports(path) if name.startswith(tuple(rooms))} <= public


@pytest.mark.parametrize("path", ESTIMATORS, ids=place)
def test_methods_see_public_names_of_the_core_and_theory_only(path: Path) -> None:
    rooms = ("dpcov.methods", "dpcov.paper", "dpcov.rivals")
    assert not outside(path, "dpcov.core", "dpcov.laws", "dpcov.losses", "dpcov.maps", *TOOLS, *rooms)
    assert sees_public_names_only(path)
    # The first looks at rows, and is for public ones; the others open tables.
    closed = ("dpcov.paper.theory.public_rows", "dpcov.paper.parameters", "dpcov.rivals.compare")
    assert not [name for name in imports(path) if name.startswith(closed)]


@pytest.mark.parametrize("path", files("linear"), ids=place)
def test_linear_questions_know_no_method_and_no_source(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.laws", "dpcov.losses", *TOOLS, "dpcov.linear")


@pytest.mark.parametrize("name", ["laws", "losses", "checks", "arrays", "_extras", "pictures", "tables"])
def test_laws_and_tools_see_the_core_only(name: str) -> None:
    assert not outside(ROOT / f"{name}.py", "dpcov.core", "dpcov.arrays", "dpcov._extras")


@pytest.mark.parametrize("path", files("methods"), ids=place)
def test_the_default_does_not_know_the_other_rooms(path: Path) -> None:
    assert not [name for name in imports(path) if name.startswith(("dpcov.paper", "dpcov.rivals"))]


@pytest.mark.parametrize("path", files("paper/theory"), ids=place)
def test_theory_sees_public_names_of_the_core_only_and_no_curator(path: Path) -> None:
    assert not outside(path, "dpcov.core", *TOOLS, "dpcov.paper.theory")
    assert sees_public_names_only(path)
    assert "dpcov.core.Curator" not in set(imports(path))


@pytest.mark.parametrize("path", [*files("core"), *QUERIES, *ESTIMATORS], ids=place)
def test_no_float_generator_makes_noise(path: Path) -> None:
    tree = parsed(path.read_text())
    calls = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {call.attr for call in calls if isinstance(call, ast.Attribute)} & FLOAT_GENERATORS
    assert not {name for name in imports(path) if name.split(".")[0] in {"random", "secrets"}}


@pytest.mark.parametrize("path", [*files("core"), *QUERIES], ids=place)
def test_core_and_queries_print_log_and_warn_nothing(path: Path) -> None:
    assert not {name for name in imports(path) if name.split(".")[0] in {"logging", "warnings"}}
    calls = {node.func.id for node in ast.walk(parsed(path.read_text()))
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
    bad.write_text("def f(block, first): ...\nclass W:\n    def add(self, rows: Block): ...\n")
    assert looks_at_rows(bad) == {"f", "add"}
    bad.write_text("curator._budget.charge(1)\n")
    assert attribute_calls(bad, "charge") == ["curator._budget"]
