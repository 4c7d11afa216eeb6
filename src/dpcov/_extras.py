"""Optional dependencies, imported when they are first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from dpcov.core import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed. Run: pip install 'dpcov[{extra}]'"
        ) from error
