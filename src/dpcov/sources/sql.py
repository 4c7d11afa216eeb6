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
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
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
    if isinstance(data, list | tuple):
        (data,) = data
    if _is_duckdb(data) and type(data).__name__ == "DuckDBPyRelation":
        if query is not None:
            raise ArgumentError("data is the result of a query already: leave query out.")
        return _duckdb_result(data)
    if not isinstance(query, str) or not query.strip():
        raise ArgumentError(
            'data is a database: say which rows, as in query="select age, region from people".'
        )
    query = query.strip().rstrip(";")
    if isinstance(data, str):
        with closing(_connect(data)) as connection:
            return run_query(connection, query)
    if _is_duckdb(data):
        return _duckdb_result(quietly(lambda: data.sql(query), _failed))
    return _adbc_result(data, query)


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
                f"{path or 'the address'} is no file; write {parts.scheme}:///folder/file.db."
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


def _duckdb_result(relation: Any) -> QueryResult:
    types: Types = []
    schema = quietly(lambda: relation.limit(0).to_arrow_table().schema, _failed)
    for field, found in zip(schema, relation.types, strict=True):
        levels = tuple(dict(found.children)["values"]) if found.id == "enum" else None
        types.append((field.name, ColumnType(arrow_type(field.type).holds, levels)))
    return QueryResult(types, lambda: iter(relation.to_arrow_reader(_BATCH_ROWS)))


def _adbc_result(connection: Any, query: str) -> QueryResult:
    names_and_types = quietly(lambda: _columns_of(connection, query), _failed)
    if connection.adbc_get_info().get("vendor_name") == "SQLite":
        names = [name for name, _ in names_and_types]
        # A value may have any type there, and the driver would fail on one that is not like the first.
        types: Types = [(name, ColumnType("unsaid")) for name in names]
        return QueryResult(types, lambda: _fetch(connection, _as_text(query, names)))
    types = [(name, _meaning(dtype)) for name, dtype in names_and_types]
    return QueryResult(types, lambda: _fetch(connection, query))


def _columns_of(connection: Any, query: str) -> list[tuple[str, Any]]:
    """Return names and types of a query's columns, without a row."""
    with connection.cursor() as cursor:
        cursor.execute(f"select * from (\n{query}\n) as result limit 0")  # noqa: S608  (the user's own query)
        return [(field.name, field.type) for field in cursor.fetch_record_batch().schema]


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


def _meaning(dtype: Any) -> ColumnType:
    return ColumnType("number") if _is_numeric(dtype) else arrow_type(getattr(dtype, "storage_type", dtype))


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
