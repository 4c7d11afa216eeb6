"""``dpcov schema``: a template that says what the columns of a table hold."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcov.cli.failures import reported
from dpcov.core import ArgumentError
from dpcov.sources.encoding import schema_template
from dpcov.sources.files import column_types
from dpcov.sources.sql import is_database, query_types


@reported
def schema(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Parquet, Arrow or CSV files of one table, patterns, or the address of a database.",
        ),
    ],
    *,
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="The SQL query to read. DATA is then the address of a database."),
    ] = None,
    header: Annotated[
        bool,
        typer.Option("--header", help="The first line of a CSV file names its columns, and may be printed."),
    ] = False,
) -> None:
    """Print a schema to fill in: what each column holds, as far as its type tells.

    It is made from names and types alone; no row is read, and nothing is spent. A CSV file cannot say whether
    its first line is a header or a person's record: look at it, and say --header.

    ```text
    dpcov schema people.parquet > people.toml
    dpcov release people.parquet --schema people.toml --epsilon 1 --delta 1e-6 -o people.dpcov
    dpcov schema duckdb:///f.db --query "select age, region from people" > people.toml
    ```
    """
    if query is not None and not is_database(data):
        raise ArgumentError("--query is for databases: give an address such as duckdb:///file.db.")
    found = query_types(data, query) if is_database(data) else column_types(data, header=header)
    typer.echo(schema_template(found), nl=False)
