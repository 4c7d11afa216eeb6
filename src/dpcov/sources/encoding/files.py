"""Schemas as TOML files, and as plain values in a release."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dpcov.checks import choice, did_you_mean
from dpcov.core import ArgumentError
from dpcov.sources.encoding.categories import CategoryKind
from dpcov.sources.encoding.dates import DateKind
from dpcov.sources.encoding.encoding import COMPLETE, Encoding
from dpcov.sources.encoding.kinds import FlagKind, Kind, NumberKind
from dpcov.sources.encoding.schema import ColumnType, Schema, declared, default_kind, is_id_like, resolve

KINDS: Mapping[str, type[Kind]] = {
    "number": NumberKind, "flag": FlagKind, "category": CategoryKind, "date": DateKind,
}  # fmt: skip

_TOP = ("columns", "terms", "missing")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema from a TOML file, such as ``dpcov schema`` prints.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dpcov.sources.encoding import read_schema
    >>> _ = Path("schema.toml").write_text('''
    ... terms = ["age^2"]
    ... [columns]
    ... age = { kind = "number", lower = 0, upper = 120 }
    ... late = { kind = "flag" }
    ... ''')
    >>> read_schema("schema.toml").names
    ('age', 'late')
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        plain = tomllib.loads(text)
    except OSError as error:
        raise ArgumentError(f"the schema {path} cannot be read ({type(error).__name__}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"the schema {path} is not TOML: {error}") from None
    try:
        return schema_from_plain(plain)
    except ArgumentError as error:
        raise ArgumentError(f"the schema {path}: {error}") from None


def schema_from_plain(plain: Mapping[str, Any]) -> Schema:
    """Return the schema that plain values stand for."""
    for name in plain:
        choice(name, "a schema has columns, terms and missing", _TOP)
    columns = plain.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise ArgumentError('it has no [columns], such as: age = { kind = "number" }.')
    kinds = {name: kind_from_plain(name, told) for name, told in columns.items()}
    return declared(kinds, terms=plain.get("terms", ()), missing=plain.get("missing"))


def encoding_to_plain(encoding: Encoding) -> dict[str, Any]:
    """Return an encoding as the plain values of its schema."""
    kinds = zip(encoding.raw, encoding.kinds, strict=True)
    columns = {name: kind_to_plain(kind) for name, kind in kinds}
    plain = {"columns": columns, "terms": [str(term) for term in encoding.terms]}
    return plain if encoding.missing == COMPLETE else {**plain, "missing": encoding.missing}


def encoding_from_plain(plain: Mapping[str, Any]) -> Encoding:
    """Undo `encoding_to_plain`."""
    schema = schema_from_plain(plain)
    return resolve(schema, [(name, ColumnType("unsaid")) for name in schema.names or ()])


def kind_from_plain(name: str, told: Any) -> Kind:
    """Return the kind that a table of TOML, or its name alone, stands for."""
    options = {"kind": told} if isinstance(told, str) else told
    if not isinstance(options, Mapping) or "kind" not in options:
        raise ArgumentError(f'column {name} needs a kind, such as {{ kind = "number" }}.')
    kind = KINDS[choice(options["kind"], f"column {name}", list(KINDS), kind="kind ")]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {key: value for key, value in options.items() if key != "kind"}
    for key in given:
        if key not in known:
            near = did_you_mean([key], known) or (f"It takes: {', '.join(known)}." if known else "")
            raise ArgumentError(f"column {name}: {options['kind']} takes no {key}. {near}".strip())
    try:
        return kind(**given)
    except ArgumentError as error:
        raise ArgumentError(f"column {name}: {error}") from None


def kind_to_plain(kind: Kind) -> dict[str, Any]:
    """Return a kind as plain values; what is as by default is left out."""
    (word,) = (word for word, known in KINDS.items() if type(kind) is known)
    plain: dict[str, Any] = {"kind": word}
    for field in fields(kind):  # type: ignore[arg-type]
        value = getattr(kind, field.name)
        if field.default is MISSING or value != field.default:
            plain[field.name] = list(value) if isinstance(value, tuple) else value
    return plain


def schema_template(present: Sequence[tuple[str, ColumnType, str]]) -> str:
    """Return a schema to be filled in, from names and types of columns alone.

    Parameters
    ----------
    present : sequence of (str, ColumnType, str)
        Name, meaning and type of each column.
    """
    lines = [
        "# What each column holds: number, category, flag or date. All of it is public, and none of it may",
        "# come from the rows. Lines that begin with # are left out: fill them in, and take the # away.",
        "[columns]",
    ]
    for name, found, dtype in present:
        key = name if _BARE.fullmatch(name) else json.dumps(name)
        kind, note = default_kind(found), dtype
        if kind is None or found.holds == "unsaid":
            told = _SUGGESTED.get(found.holds)
            if found.levels is not None:
                levels = json.dumps(found.levels, ensure_ascii=False)
                lines.append(f'{key} = {{ kind = "category", levels = {levels} }}  # {note}')
                continue
            if told is None:
                lines.append(f"# {key}: {dtype}, which no kind reads")
                continue
            line = f"# {key} = {told}"
        else:
            line = f'{key} = {{ kind = "{kind_to_plain(kind)["kind"]}" }}'
            if is_id_like(name):
                line, note = f"# {line}", f"{dtype}; a name like that of an id, which measures nothing"
        lines.append(f"{line}  # {note}")
    return "\n".join([*lines, ""])


_SUGGESTED = {
    "text": '{ kind = "category", levels = ["...", "..."] }',
    "date": '{ kind = "date", since = "2000-01-01", unit = "day" }',
    "nothing": '{ kind = "number" }',
    "unsaid": '{ kind = "number" }',
}
