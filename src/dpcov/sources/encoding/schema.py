"""What is declared about a table, and how it meets the columns that the table has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpcov.checks import did_you_mean
from dpcov.core import ArgumentError
from dpcov.sources.encoding.encoding import Encoding
from dpcov.sources.encoding.kinds import FlagKind, Kind, NumberKind

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Schema:
    """Which columns to use, and what they hold, as far as that was said.

    Attributes
    ----------
    names : tuple of str, optional
        The columns to use; all of them if None.
    kinds : mapping
        What columns hold, by name.
    """

    names: tuple[str, ...] | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)


Columns = Sequence[str] | Mapping[str, Kind] | Schema | Encoding | None
"""What a source may be told about columns: names, kinds by name, or all that is known already."""


@dataclass(frozen=True)
class ColumnType:
    """What a table says of one of its columns, all of it public.

    Attributes
    ----------
    holds : str
        One of "number", "flag", "text", "date", "anything" (in a file without types), or "else".
    """

    holds: str


def declared(columns: Columns, bounds: Bounds | None = None) -> Schema:
    """Return what `columns` and `bounds` say, or raise an `ArgumentError` that says what is wrong."""
    if isinstance(columns, Schema):
        schema = columns
    elif columns is None:
        schema = Schema()
    elif isinstance(columns, Mapping):
        strange = [str(name) for name, kind in columns.items() if not isinstance(kind, Kind)]
        if strange or not all(isinstance(name, str) for name in columns):
            raise ArgumentError(
                "columns must be a list of names, or a mapping from names to kinds such as "
                f"dpcov.number(0, 120); see {', '.join(strange) or 'its names'}."
            )
        schema = Schema(tuple(columns), dict(columns))
    elif isinstance(columns, Sequence) and not isinstance(columns, str | bytes):
        if not all(isinstance(name, str) for name in columns):
            raise ArgumentError("columns must be a list of column names.")
        schema = Schema(tuple(columns))
    else:
        raise ArgumentError("columns must be a list of column names.")
    if schema.names is not None and len(set(schema.names)) != len(schema.names):
        raise ArgumentError("columns must not repeat a name.")
    return _with_bounds(schema, bounds)


def _with_bounds(schema: Schema, bounds: Bounds | None) -> Schema:
    if bounds is None:
        return schema
    if not isinstance(bounds, Mapping):
        raise ArgumentError('bounds must map names of columns to two numbers, such as {"age": (0, 120)}.')
    kinds = dict(schema.kinds)
    for name, ends in bounds.items():
        if schema.names is not None and name not in schema.names:
            near = did_you_mean([str(name)], schema.names)
            raise ArgumentError(f"bounds: {name} is not among the columns. {near}".strip())
        if not isinstance(ends, Sequence) or len(ends) != 2 or isinstance(ends, str):
            raise ArgumentError(f"bounds: {name} needs two numbers, such as (0, 120).")
        if kinds.get(name, NumberKind()) != NumberKind():
            raise ArgumentError(f"bounds: {name} has a kind of its own already, or bounds; say it once.")
        try:
            kinds[name] = NumberKind(*ends)
        except ArgumentError as error:
            raise ArgumentError(f"bounds: {name}: {error}") from None
    return Schema(schema.names, kinds)


def resolve(columns: Columns, present: Sequence[tuple[str, ColumnType]], *, listed: bool = True) -> Encoding:
    """Return how to read a table with these columns; each that is used must exist, once, and be readable.

    An error lists those that are there, unless they are not to be `listed`.
    """
    if isinstance(columns, Encoding):
        return columns
    schema, types = declared(columns), dict(present)
    if len(types) != len(present):
        raise ArgumentError("data has two columns of the same name; rename one first.")
    wanted = tuple(types) if schema.names is None else schema.names
    missing = [name for name in dict.fromkeys([*wanted, *schema.kinds]) if name not in types]
    if missing:
        there = " ".join([did_you_mean(missing, list(types)), f"It has: {', '.join(types)}."]).strip()
        raise ArgumentError(
            f"columns not in data: {', '.join(missing)}. "
            + (there if listed else "Its first line does not look like names of columns: is there a header?")
        )
    kinds = {name: schema.kinds.get(name) or _default(types[name]) for name in wanted}
    strange = [name for name, kind in kinds.items() if kind is None]
    if strange:
        numeric = [name for name, kind in types.items() if _default(kind) is not None]
        raise ArgumentError(
            f"columns that are not numeric: {', '.join(strange)}. "
            + (f"Choose columns among: {', '.join(numeric)}." if numeric else "No column is numeric.")
        )
    return Encoding(wanted, tuple(kind for kind in kinds.values() if kind is not None))


def _default(found: ColumnType) -> Kind | None:
    """Return the kind of a column that nothing was said about."""
    if found.holds == "flag":
        return FlagKind()
    return NumberKind() if found.holds in ("number", "anything") else None
