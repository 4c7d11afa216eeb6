"""The trust boundary, checked on the source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpcov

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


def files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def outside(path: Path, *allowed: str) -> set[str]:
    """The imports of ours in `path` that lie in none of the allowed modules."""
    ours = {name for name in imports(path) if name == "dpcov" or name.startswith("dpcov.")}
    return {name for name in ours if not any(name == a or name.startswith(f"{a}.") for a in allowed)}


@pytest.mark.parametrize("path", files("core"), ids=lambda p: p.name)
def test_core_imports_nothing_of_ours_but_core(path: Path) -> None:
    assert not outside(path, "dpcov.core")


@pytest.mark.parametrize("path", files("sources"), ids=lambda p: p.name)
def test_sources_see_the_core_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.sources", "dpcov._extras")


def sees_public_names_only(path: Path) -> bool:
    """Whether `path` imports public names of the core only, and none that hands out rows or makes noise."""
    private = {"Source", "RowTask", "RowWorker", "Block", "OSEntropy"}
    public = {f"dpcov.core.{name}" for name in dpcov.core.__all__ if name not in private} | {"dpcov.core"}
    return {name for name in imports(path) if name.startswith("dpcov.core")} <= public


@pytest.mark.parametrize("path", files("methods"), ids=lambda p: p.name)
def test_methods_see_public_names_of_the_core_and_theory_only(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.methods", "dpcov.theory")
    assert sees_public_names_only(path)
    # This module looks at rows, and is for public ones.
    assert "dpcov.theory.public_rows" not in set(imports(path))


@pytest.mark.parametrize("path", files("theory"), ids=lambda p: p.name)
def test_theory_sees_public_names_of_the_core_only_and_no_curator(path: Path) -> None:
    assert not outside(path, "dpcov.core", "dpcov.theory")
    assert sees_public_names_only(path)
    assert "dpcov.core.Curator" not in set(imports(path))


@pytest.mark.parametrize("path", [*files("core"), *files("methods")], ids=lambda p: p.name)
def test_no_float_generator_makes_noise(path: Path) -> None:
    tree = ast.parse(path.read_text())
    calls = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {call.attr for call in calls if isinstance(call, ast.Attribute)} & FLOAT_GENERATORS
    assert not {name for name in imports(path) if name.split(".")[0] in {"random", "secrets"}}


@pytest.mark.parametrize("path", files("core"), ids=lambda p: p.name)
def test_core_prints_logs_and_warns_nothing(path: Path) -> None:
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
    bad.write_text("from dpcov.core import ArgumentError\n")
    assert sees_public_names_only(bad)
