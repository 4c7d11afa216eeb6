"""Every query there is, found in the folders called ``queries``."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dpcov

ROOT = Path(dpcov.__file__).parent
_PARTS = ("purpose", "charges", "check", "task", "answer")


def _query_modules() -> tuple[ModuleType, ...]:
    files = sorted(file for folder in ROOT.rglob("queries") for file in folder.rglob("*.py"))
    names = [".".join(("dpcov", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    return tuple(import_module(name.removesuffix(".__init__")) for name in names)


def _is_query(thing: object, module: ModuleType) -> bool:
    if not (inspect.isclass(thing) and is_dataclass(thing) and thing.__module__ == module.__name__):
        return False
    fields = thing.__dataclass_fields__
    return all(hasattr(thing, part) or part in fields for part in _PARTS)


QUERY_MODULES = _query_modules()
"""All modules of folders called ``queries``."""

QUERIES: dict[str, type] = {
    name: thing
    for module in QUERY_MODULES
    for name, thing in vars(module).items()
    if _is_query(thing, module)
}
"""All classes of queries, by name."""
