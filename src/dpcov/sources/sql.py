"""What a query finds in a database: DuckDB, PostgreSQL or SQLite.

A release reads rows several times, and each time must meet the same ones. So the query runs once, as one
statement and on one snapshot of the database, and its result is written to a temporary file that only this
user can read. The alternative, a transaction that stays open for all scans, would hold up the database for as
long, and a query without an order may give its rows in another one each time. The file is removed with the
table, at the latest when the process ends. Rows pass through memory a batch at a time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dpcov._extras import require
from dpcov.core import ArgumentError
from dpcov.sources._scan import quietly
from dpcov.sources._table import Table
from dpcov.sources.arrow import arrow_type
from dpcov.sources.encoding import Columns, ColumnType, resolve
from dpcov.sources.encoding.texts import numbers_in
from dpcov.sources.files import ArrowFileSource, FileStamp

_BATCH_ROWS = 1 << 16
_FILE = "result.arrow"
_SCHEMES = ("postgresql", "postgres", "duckdb", "sqlite")

Types = list[tuple[str, ColumnType]]
_Found = TypeVar("_Found")


class QueryResult:
    """The result of a query, in a temporary file that is removed with this object.

    Parameters
    ----------
    types : list of (str, ColumnType)
        Its columns.
    batches : callable
        Yields its rows as record batches, or fails; it is called once.
    """

    def __init__(self, types: Types, batches: Callable[[], Iterator[Any]]) -> None:
        self.types = types
        folder = Path(tempfile.mkdtemp(prefix="dpcov-"))
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = folder / _FILE
        try:
            quietly(lambda: self._write(batches()), _failed)
        except BaseException:
            self._remove()
            raise

    def _write(self, batches: Iterator[Any]) -> None:
        arrow = require("pyarrow", "sql")
        writer = None
        try:
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for batch in batches:
                    writer = writer or arrow.ipc.new_file(file, batch.schema)
                    writer.write_batch(batch)
                if writer is None:
                    raise ArgumentError("data has no rows.")
                writer.close()
        except arrow.ArrowInvalid:
            # Dictionaries that change between batches: a file holds one alone.
            raise TypeError from None

    def open(self, columns: Columns) -> Table:
        """Return the table that reads the file, and keeps it."""
        path = str(self._path)
        source = ArrowFileSource([path], FileStamp([path]), resolve(columns, self.types))
        source.keeps = self
        return source


def _failed(kind: str) -> ArgumentError:
    return ArgumentError(
        f"the query failed ({kind}). What the database said is not shown, since it may quote a row: try the "
        "query in the database's own client."
    )


def is_database(data: Any) -> bool:
    """Whether `data` is a connection, a relation of DuckDB, or the address of a database."""
    if isinstance(data, list | tuple) and len(data) == 1:
        data = data[0]
    if isinstance(data, str):
        return data.split("://", maxsplit=1)[0] in _SCHEMES and "://" in data
    return _is_duckdb(data) or any(
        f"{kind.__module__}.{kind.__name__}" == "adbc_driver_manager.dbapi.Connection"
        for kind in type(data).__mro__
    )


def _is_duckdb(data: Any) -> bool:
    names = {kind.__name__ for kind in type(data).__mro__}
    return bool(names & {"DuckDBPyConnection", "DuckDBPyRelation"})


def run_query(data: Any, query: str | None) -> QueryResult:
    """Run a query, and return its result."""
    if not is_database(data):
        raise ArgumentError(
            "query is for databases: give a connection, or an address such as duckdb:///file.db."
        )
    return _asked(data, query, _result)


def query_types(data: Any, query: str | None) -> list[tuple[str, ColumnType, str]]:
    """Return the name, meaning and type of each column of a query's result; no row is looked at."""
    return _asked(data, query, _types)


def _asked(data: Any, query: str | None, ask: Callable[[Any, str | None], _Found]) -> _Found:
    """Ask a connection to a database, or a relation, which takes no query."""
    if isinstance(data, list | tuple):
        (data,) = data
    if _is_relation(data):
        if query is not None:
            raise ArgumentError("data is already the result of a query: leave out query.")
        return ask(data, None)
    if not isinstance(query, str) or not query.strip():
        raise ArgumentError(
            'data is a database: say which rows, as in query="select age, region from people".'
        )
    query = query.strip().rstrip(";")
    if isinstance(data, str):
        with closing(_connect(data)) as connection:
            return _asked(connection, query, ask)
    if _is_duckdb(data):
        return ask(quietly(lambda: data.sql(query), _failed), None)
    return ask(data, query)


def _result(data: Any, query: str | None) -> QueryResult:
    types: Types = [(name, found) for name, found, _ in _types(data, query)]
    if query is None:
        return QueryResult(types, lambda: iter(data.to_arrow_reader(_BATCH_ROWS)))
    # A value may have any type in SQLite, and the driver would fail on one that is not like the first.
    wanted = _as_text(query, [name for name, _ in types]) if _is_sqlite(data) else query
    return QueryResult(types, lambda: _fetch(data, wanted))


def _types(data: Any, query: str | None) -> list[tuple[str, ColumnType, str]]:
    """Return the columns of a relation of DuckDB, or of what a query finds elsewhere."""
    if query is None:
        schema = quietly(lambda: data.limit(0).to_arrow_table().schema, _failed)
        return [
            (field.name, replace(arrow_type(field.type), levels=_duckdb_levels(found)), str(found))
            for field, found in zip(schema, data.types, strict=True)
        ]
    fields = quietly(lambda: _fields_of(data, query), _failed)
    if _is_sqlite(data):
        return [(field.name, ColumnType("unsaid"), "SQLite tells no types") for field in fields]
    enums = quietly(lambda: _enums(data), _failed)
    return [(field.name, *_meaning(field, enums)) for field in fields]


def _is_relation(data: Any) -> bool:
    return _is_duckdb(data) and type(data).__name__ == "DuckDBPyRelation"


def _is_sqlite(connection: Any) -> bool:
    return bool(connection.adbc_get_info().get("vendor_name") == "SQLite")


def _connect(address: str) -> Any:
    """Return a connection; neither the address nor what the database says about it is shown."""
    parts = urlsplit(address)
    if parts.password is not None:
        raise ArgumentError(
            "the address holds a password, which others may read: leave it out, and give it in PGPASSWORD, a "
            "password file or a service file of PostgreSQL."
        )
    if parts.scheme in ("duckdb", "sqlite"):
        # As elsewhere: three strokes before a path from here, four before one from the root.
        path = parts.path.removeprefix("/")
        if not path or not Path(path).is_file():
            raise ArgumentError(
                f"{path or 'the address'} is not a file; write {parts.scheme}:///folder/file.db."
            )
        if parts.scheme == "duckdb":
            duckdb = require("duckdb", "sql")
            return quietly(lambda: duckdb.connect(path, read_only=True), _unreachable)
        sqlite = require("adbc_driver_sqlite.dbapi", "sql")
        return quietly(lambda: sqlite.connect(path), _unreachable)
    postgresql = require("adbc_driver_postgresql.dbapi", "sql")
    return quietly(lambda: postgresql.connect(address), _unreachable)


def _unreachable(kind: str) -> ArgumentError:
    return ArgumentError(f"the database cannot be opened ({kind}); can its own client open it?")


def _duckdb_levels(found: Any) -> tuple[str, ...] | None:
    return tuple(dict(found.children)["values"]) if found.id == "enum" else None


def _fields_of(connection: Any, query: str) -> list[Any]:
    """Return names and types of a query's columns, without a row."""
    with connection.cursor() as cursor:
        cursor.execute(f"select * from (\n{query}\n) as result limit 0")  # noqa: S608  (the user's own query)
        return list(cursor.fetch_record_batch().schema)


def _enums(connection: Any) -> dict[str, tuple[str, ...]]:
    """Return the levels of the enumerated types of PostgreSQL, by all that the driver may call them.

    That is their name; or their number, if they are younger than the connection. A name that two schemas have
    stands for neither.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "select t.oid::int8 as number, t.typname::text as name, e.enumlabel::text as label "
            "from pg_enum e join pg_type t on t.oid = e.enumtypid order by t.oid, e.enumsortorder"
        )
        found = cursor.fetch_arrow_table().to_pylist()
    levels: dict[int, tuple[str, ...]] = {}
    names: dict[str, set[int]] = {}
    for line in found:
        levels[line["number"]] = (*levels.get(line["number"], ()), line["label"])
        names.setdefault(line["name"], set()).add(line["number"])
    by_number = {f"unnamed<oid:{number}>": known for number, known in levels.items()}
    return by_number | {name: levels[min(own)] for name, own in names.items() if len(own) == 1}


def _as_text(query: str, names: Sequence[str]) -> str:
    """Return a query for the same rows with every value as text, numbers with all their digits."""
    columns = []
    for name in names:
        quoted = '"' + name.replace('"', '""') + '"'
        columns.append(
            f"case typeof({quoted}) when 'null' then '' when 'real' then printf('%!.17g', {quoted}) "
            f"else cast({quoted} as text) end as {quoted}"
        )
    return f"select {', '.join(columns)} from (\n{query}\n) as result"  # noqa: S608  (the user's own query)


def _fetch(connection: Any, query: str) -> Iterator[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        for batch in cursor.fetch_record_batch():
            yield _plain_batch(batch)


def _meaning(field: Any, enums: Mapping[str, tuple[str, ...]]) -> tuple[ColumnType, str]:
    """Return what a type of PostgreSQL stands for, and what it is called."""
    name = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if _is_numeric(field.type):
        return ColumnType("number"), "numeric"
    if name in enums:
        return ColumnType("text", enums[name]), "enum"
    return arrow_type(getattr(field.type, "storage_type", field.type)), name or str(field.type)


def _is_numeric(dtype: Any) -> bool:
    """Whether a type is PostgreSQL's numeric, which comes as text."""
    return getattr(dtype, "type_name", None) == "numeric"


def _plain_batch(batch: Any) -> Any:
    """Return a batch in types that every program knows; numbers in text become floats."""
    arrow = require("pyarrow", "sql")
    columns = []
    for column in batch.columns:
        plain = column.storage if isinstance(column.type, arrow.BaseExtensionType) else column
        columns.append(
            arrow.array(numbers_in(plain), from_pandas=True) if _is_numeric(column.type) else plain
        )
    return arrow.record_batch(columns, names=batch.schema.names)
