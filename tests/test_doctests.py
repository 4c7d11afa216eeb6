"""The examples in docstrings run, and everything that users are to call has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpcov
import dpcov.learn
import dpcov.ledger
import dpcov.linear
from dpcov.core import MissingExtraError

ROOT = Path(dpcov.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text()
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


# A test's name decides its noise: what an example shows must not depend on it, unless it is seeded.
@pytest.mark.parametrize("noise", ["of one kind", pytest.param("of another", marks=pytest.mark.audit)])
@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_they_give(
    name: str, noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del noise
    try:
        module = importlib.import_module(name)
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for example in doctest.DocTestFinder().find(module):
        folder = tmp_path / example.name
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner.run(example, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


def public_names() -> Iterator[tuple[str, object]]:
    """Classes and functions that users are to call, and what a release answers."""
    for module in (dpcov, dpcov.learn, dpcov.ledger, dpcov.linear):
        for name in module.__all__:
            found = getattr(module, name)
            is_error = isinstance(found, type) and issubclass(found, BaseException)
            if not (is_error or inspect.ismodule(found)):
                yield f"{found.__module__}.{found.__qualname__}", found
    # Fields are described by the class.
    fields = set(dpcov.Release.__dataclass_fields__)
    for name, method in inspect.getmembers(dpcov.Release):
        if not (name.startswith("_") or name in fields):
            yield f"dpcov.Release.{name}", method


def test_everything_public_has_an_example() -> None:
    assert [name for name, found in public_names() if ">>> " not in (inspect.getdoc(found) or "")] == []


def test_an_example_that_lies_would_be_noticed() -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    parser = doctest.DocTestParser()
    lie = ">>> import dpcov, numpy as np\n>>> len(dpcov.release(np.eye(9), rho=1).columns)\n8\n"
    runner.run(parser.get_doctest(lie, {}, "lie", None, 0), out=lambda _: None)
    assert runner.summarize(verbose=False).failed == 1
