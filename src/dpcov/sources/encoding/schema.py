"""What is declared about a table, and how it meets the columns that the table has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpcov.checks import choice, did_you_mean
from dpcov.core import ArgumentError
from dpcov.sources.encoding.categories import CategoryKind
from dpcov.sources.encoding.encoding import COMPLETE, MODES, PAIRWISE, Encoding
from dpcov.sources.encoding.kinds import FlagKind, Kind, NumberKind
from dpcov.sources.encoding.terms import read_term

Bounds = Mapping[str, tuple[float, float]]

_ID_LIKE = re.compile(
    r"(?i:(.*[_. -])?(id|ids|nr|no|num|key|uuid|guid|ssn|index|rownum|rowid))|.*[a-z](Id|ID|Nr|Key)"
)
_SHOWN = 8


@dataclass(frozen=True)
class Schema:
    """Which columns to use, and what they hold, as far as that was said.

    Attributes
    ----------
    names : tuple of str, optional
        The columns to use; all of them if None.
    kinds : mapping
        What columns hold, by name.
    terms : tuple of str
        Products, powers and logarithms of columns.
    missing : str
        Whether answers rest on "complete" rows, or "pairwise" on those in which both columns are there.
    """

    names: tuple[str, ...] | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    missing: str = COMPLETE


Columns = Sequence[str] | Mapping[str, Kind] | Schema | Encoding | None
"""What a source may be told about columns: names, kinds by name, or all that is known already."""


@dataclass(frozen=True)
class ColumnType:
    """What a table says of one of its columns, all of it public.

    Attributes
    ----------
    holds : str
        What its type stands for: "number", "flag", "text" or "date"; "unsaid" in a file without types,
        "nothing" for missing values alone, "else" for what no kind reads.
    levels : tuple of str, optional
        All levels that it may have, if its type lists them.
    gaps : bool
        Whether values may be missing; not where a schema of Arrow says that none is.
    """

    holds: str
    levels: tuple[str, ...] | None = None
    gaps: bool = True


def declared(
    columns: Columns,
    bounds: Bounds | None = None,
    terms: Sequence[str] = (),
    schema: Schema | None = None,
    missing: str | None = None,
) -> Schema:
    """Return what the arguments say, or raise an `ArgumentError` that says what is wrong with them.

    With a `schema`, `columns` are names of its columns, all of them by default. What it says about `missing`
    values holds unless the argument says otherwise.
    """
    told = _declared(columns)
    if schema is not None:
        told = _chosen(schema, told)
    if isinstance(terms, str) or not isinstance(terms, Sequence):
        raise ArgumentError('terms must be a list, such as ["age^2", "age:sex"].')
    mode = told.missing if missing is None else choice(missing, "missing", MODES)
    return replace(_with_bounds(told, bounds), terms=(*told.terms, *terms), missing=mode)


def _chosen(schema: Schema, told: Schema) -> Schema:
    """Return a schema for some of its columns."""
    if told.kinds:
        raise ArgumentError("a schema says what columns hold: give columns as a list of names beside it.")
    names = told.names or schema.names or ()
    unknown = [name for name in names if name not in schema.kinds]
    if unknown:
        near = did_you_mean(unknown, list(schema.kinds))
        raise ArgumentError(f"columns not in the schema: {', '.join(unknown)}. {near}".strip())
    return replace(schema, names=names, kinds={name: schema.kinds[name] for name in names})


def _declared(columns: Columns) -> Schema:
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
    return schema


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
            raise ArgumentError(f"bounds: {name} already has a kind or bounds of its own; give them once.")
        try:
            kinds[name] = NumberKind(*ends)
        except ArgumentError as error:
            raise ArgumentError(f"bounds: {name}: {error}") from None
    return replace(schema, kinds=kinds)


def resolve(columns: Columns, present: Sequence[tuple[str, ColumnType]], *, hidden: str = "") -> Encoding:
    """Return how to read a table with these columns; each that is used must exist, once, and be readable.

    An error lists those that are there, unless `hidden` says why it does not.
    """
    if isinstance(columns, Encoding):
        return columns
    schema, types = declared(columns), dict(present)
    wanted = tuple(types) if schema.names is None else schema.names
    missing = [name for name in dict.fromkeys([*wanted, *schema.kinds]) if name not in types]
    if missing:
        there = " ".join([did_you_mean(missing, list(types)), f"It has: {', '.join(types)}."]).strip()
        raise ArgumentError(f"columns not in data: {', '.join(missing)}. " + (hidden or there))
    # After the names that were asked for: where they are not, names of a file may be a person's record.
    if len(types) != len(present):
        raise ArgumentError("data has two columns of the same name; rename one first.")
    kinds = {name: schema.kinds.get(name) or default_kind(types[name]) for name in wanted}
    strange = [name for name, kind in kinds.items() if kind is None]
    if strange:
        raise ArgumentError(_what_to_write(strange, types))
    told = [_checked(name, kind, types[name]) for name, kind in kinds.items() if kind is not None]
    if schema.missing == PAIRWISE:
        told = [_with_gaps(kind, types[name]) for name, kind in zip(wanted, told, strict=True)]
    terms = tuple(read_term(term, wanted) for term in schema.terms)
    return Encoding(wanted, tuple(told), terms, schema.missing)


def _with_gaps(kind: Kind, found: ColumnType) -> Kind:
    """Return the kind, which says whether values may be missing."""
    if kind.gaps is not None:
        return kind
    return replace(kind, gaps=found.gaps or kind.fails_on(found.holds))  # type: ignore[type-var]


def default_kind(found: ColumnType) -> Kind | None:
    """Return the kind of a column that nothing was said about, if its type tells."""
    if found.holds == "flag":
        return FlagKind()
    return NumberKind() if found.holds in ("number", "unsaid") else None


def is_id_like(name: str) -> bool:
    """Whether a name is that of a number that stands for a row or a person, and measures nothing.

    Examples
    --------
    >>> from dpcov.sources.encoding.schema import is_id_like
    >>> [name for name in ["id", "patient_id", "customerId", "nr", "humid", "height"] if is_id_like(name)]
    ['id', 'patient_id', 'customerId', 'nr']
    """
    return _ID_LIKE.fullmatch(name) is not None


def _checked(name: str, kind: Kind, found: ColumnType) -> Kind:
    """Return the kind with all that the type adds, or say that the one does not go with the other."""
    if found.holds not in ("unsaid", "nothing", *kind.reads):
        word = type(kind).__name__.removesuffix("Kind").lower()
        held = {"else": "values that no kind reads", "date": "dates", "text": "text", "number": "numbers"}
        raise ArgumentError(
            f"column {name} has a type of {held.get(found.holds, 'booleans')}, which {word}() does not read."
            + (" Say dpcov.date() instead." if found.holds == "date" else "")
        )
    if isinstance(kind, CategoryKind) and kind.levels is None:
        if found.levels is None:
            raise ArgumentError(
                f"column {name} has a type that lists no levels: name them, as in "
                'category(["north", "south"]).'
            )
        return replace(kind, levels=found.levels)
    return kind


def _what_to_write(strange: Sequence[str], types: Mapping[str, ColumnType]) -> str:
    """Return the message for columns that say nothing of how to read them, with the line to write."""
    told = ", ".join(strange[:_SHOWN]) + (", ..." if len(strange) > _SHOWN else "")
    lines = []
    for name in strange[:3]:
        kind = "date()" if types[name].holds == "date" else 'category(["north", "south"])'
        if types[name].holds != "else":
            lines.append(f'"{name}": dpcov.{kind}')
    numeric = [
        name for name, kind in types.items() if default_kind(kind) is not None and not is_id_like(name)
    ]
    message = f"columns that are not numeric: {told}."
    if lines:
        message += (
            f" Say what they hold, as in columns={{{', '.join(lines)}}}; there are number, category, flag "
            "and date. For the command line, dpcov schema prints what to fill in."
        )
    if numeric:
        return f"{message} Or choose columns among: {', '.join(numeric)}."
    return f"{message} No column is numeric."
