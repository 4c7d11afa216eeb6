"""Names in a ledger: of datasets and of what is protected, each one line of text."""

from __future__ import annotations

import unicodedata

from dpcov.core import ArgumentError
from dpcov.privacy_unit import ROW

_LONGEST_TEXT = 500


def dataset_key(name: str) -> str:
    """Return what a dataset's name is compared by: no case, no look-alike forms, single spaces."""
    folded = unicodedata.normalize("NFKC", one_line(name, "dataset")).casefold()
    key = " ".join(unicodedata.normalize("NFKC", folded).split())
    if not key:
        raise ArgumentError("dataset must have a name.")
    return key


def unit_name(privacy_unit: str | None) -> str:
    """Return what is protected where `privacy_unit` was given, or raise an `ArgumentError`."""
    if privacy_unit is None:
        return ROW
    name = one_line(privacy_unit, "privacy_unit")
    if not name or name == ROW:
        raise ArgumentError(
            f'privacy_unit must name whose rows are protected together, such as "patient"; got {name!r}. '
            "Leave it out to protect each row by itself."
        )
    return name


def one_line(text: str, argument: str) -> str:
    """Return `text` without outer spaces, or raise an `ArgumentError` that names the argument."""
    if not isinstance(text, str):
        raise ArgumentError(f"{argument} must be text, got {type(text).__name__}.")
    line = text.strip()
    if not line.isprintable() or len(line) > _LONGEST_TEXT:
        raise ArgumentError(f"{argument} must be one line of at most {_LONGEST_TEXT} printable characters.")
    return line
