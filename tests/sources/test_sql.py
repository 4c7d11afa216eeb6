"""Rows from databases: DuckDB, SQLite, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import gc
import os
import pwd
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from helpers.command_line import run
from helpers.replay import chain
from helpers.typed_tables import gram
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError
from dpcov.sources import open_source, sql
from dpcov.sources.grouped import Grouping

sqlite = pytest.importorskip("adbc_driver_sqlite.dbapi")
postgresql = pytest.importorskip("adbc_driver_postgresql.dbapi")

KINDS = {
    "age": dpcov.number(),
    "wage": dpcov.number(),
    "region": dpcov.category(["north", "south"]),
    "late": dpcov.flag(),
    "visit": dpcov.date(since="2024-01-01"),
}
N_ROWS = 1000
_NO_SERVER = "there is no PostgreSQL server: apt-get install postgresql"
_HOLDERS = ["duckdb", "duckdb relation", "duckdb file", "sqlite", "sqlite file", "postgresql", "address"]
QUERY = "select age, wage, region, late, visit from people where age < 1000;"


def people() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    regions = rng.choice(["north", "south", "east"], N_ROWS).tolist()
    days = rng.integers(1, 29, N_ROWS).tolist()
    rows: list[tuple[Any, ...]] = [
        (int(rng.integers(20, 80)), float(rng.normal()), regions[i], bool(i % 3), f"2024-02-{days[i]:02d}")
        for i in range(N_ROWS)
    ]
    rows[7] = (31, None, None, None, None)
    return rows


def expected() -> NDArray[np.int64]:
    nan = np.nan
    rows = [
        [age, nan if wage is None else wage]
        + [nan if region is None else float(region == name) for name in ("south",)]
        + [nan if region is None else float(region == "east")]
        + [nan if late is None else float(late), nan if visit is None else 30.0 + int(visit[-2:])]
        for age, wage, region, late, visit in people()
    ]
    return gram(np.array(rows, dtype=np.float64))


def fill(cursor: Any, flag: str, day: str) -> None:
    columns = f"age int, wage double precision, region text, late {flag}, visit {day}"
    cursor.execute(f"create table people ({columns})")
    values = ", ".join(repr(row).replace("None", "null") for row in people())
    cursor.execute(f"insert into people values {values}")  # noqa: S608  (our own)


def as_user() -> list[str]:
    """What to put before a command of PostgreSQL, which root may not run."""
    return [] if os.getuid() else ["runuser", "-u", "nobody", "--"]


def programs() -> Path | None:
    """Where Debian keeps the programs of the newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of its own, in a temporary folder, on a socket there and no port."""
    del tmp_path_factory
    found = programs()
    if found is None:
        assert not os.environ.get("DPCOV_NEEDS_POSTGRESQL"), (
            "PostgreSQL is missing: apt-get install postgresql"
        )
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if not os.getuid():
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    cluster = folder / "cluster"

    def do(*words: str) -> None:
        subprocess.run([*as_user(), *words], check=True, capture_output=True, cwd=folder)  # noqa: S603

    try:
        do(str(found / "initdb"), "-D", str(cluster), "-U", "dpcov", "--auth=trust", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        do(str(found / "pg_ctl"), "-D", str(cluster), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://dpcov@/postgres?host={folder}"
        finally:
            do(str(found / "pg_ctl"), "-D", str(cluster), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(
    params=["duckdb", "duckdb relation", "duckdb file", "sqlite", "sqlite file", "postgresql", "address"]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str | None]]:
    """A database of people, and what to ask it for."""
    kind = request.param
    if kind.startswith("duckdb"):
        path = str(tmp_path / "people.db") if kind == "duckdb file" else ":memory:"
        with duckdb.connect(path) as own:
            fill(own, "boolean", "date")
            if kind != "duckdb file":
                yield (own.sql(QUERY), None) if kind == "duckdb relation" else (own, QUERY)
                return
        yield f"duckdb:///{path}", QUERY
    elif kind.startswith("sqlite"):
        path = str(tmp_path / "people.db")
        with sqlite.connect(path) as own:
            with own.cursor() as cursor:
                fill(cursor, "boolean", "text")
            own.commit()
            if kind == "sqlite":
                yield own, QUERY
                return
        yield f"sqlite:///{path}", QUERY
    else:
        address = request.getfixturevalue("server")
        with postgresql.connect(address) as own:
            with own.cursor() as cursor:
                cursor.execute("drop table if exists people")
                fill(cursor, "boolean", "date")
            own.commit()
            yield (own if kind == "postgresql" else address), QUERY


@pytest.fixture
def spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "spools"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_every_database_gives_the_same_bits(database: tuple[Any, str | None], spools: Path) -> None:
    data, query = database
    source = open_source(data, KINDS, query=query)
    (folder,) = spools.iterdir()
    assert (folder.stat().st_mode & 0o077, (folder / "result.arrow").stat().st_mode & 0o077) == (0, 0)
    result = sql.run_query(data, query)
    assert (gram(result, KINDS) == expected()).all()
    assert source.n_rows == N_ROWS
    del source, result
    gc.collect()
    assert not list(spools.iterdir())


def test_a_failing_query_is_told_without_a_value(database: tuple[Any, str | None], spools: Path) -> None:
    data, query = database
    if query is None:
        data = duckdb.sql(
            "select (case when i = 7 then 'salary 91234' else '1' end)::int as a from range(9) t(i)"
        )
        asked = None
    elif "sqlite" in str(data).lower():
        asked = "select abs(case when age = 31 then -9223372036854775807 - 1 else 1 end) as a from people"
    else:
        asked = "select cast(case when age = 31 then 'salary 91234' else '1' end as int) as a from people"
    with pytest.raises(ArgumentError, match="the query failed") as raised:
        open_source(data, ["a"], query=asked)
    assert not [one for one in chain(raised.value) if "91234" in repr(one.args)]
    assert [type(one) for one in chain(raised.value)] == [ArgumentError]
    assert not list(spools.iterdir())


def test_types_of_a_database_tell_kinds() -> None:
    with duckdb.connect() as own:
        own.execute("create type region as enum ('north', 'south')")
        own.execute("create table t as select 1.5::decimal(9, 2) as a, 'south'::region as r from range(20)")
        source = open_source(own, {"a": dpcov.number(), "r": dpcov.category(other=False)}, query="from t")
        assert source.columns == ("a", "r[south]")
        with pytest.raises(ArgumentError, match=r'not numeric: r\. .*"r": dpcov.category'):
            open_source(own, query="select * from t")


def test_numeric_of_postgresql_is_a_number(server: str) -> None:
    query = "select x::numeric as x from (values (1.5), (null), ('nan'::float8), (1e30)) as t(x)"
    assert (gram(sql.run_query(server, query)) == gram(np.array([[1.5], [np.nan], [np.nan], [1e30]]))).all()


def test_an_enum_of_postgresql_fixes_the_levels(server: str) -> None:
    query = "select m, a from moody"
    kinds = {"m": dpcov.category(other=False), "a": dpcov.number()}
    with postgresql.connect(server) as own:
        with own.cursor() as cursor:
            cursor.execute("create type mood as enum ('sad', 'so so', 'happy')")
            rows = "select 'happy'::mood as m, 1.5::float8 as a from generate_series(1, 9)"
            cursor.execute(f"create table moody as {rows}")
        own.commit()
        # To this connection the type has a number, to the next one a name.
        for connection in (own, server):
            source = open_source(connection, kinds, query=query)
            assert source.columns == ("m[so so]", "m[happy]", "a")
            found = gram(sql.run_query(connection, query), kinds)
            assert (found == gram(np.tile([0.0, 1.0, 1.5], (9, 1)))).all()
    with pytest.raises(ArgumentError, match="lists no levels"):
        open_source(server, {"m": dpcov.category()}, query="select m::text as m from moody")
    printed = run(f"dpcov schema '{server}' --query '{query}'")
    assert printed.exit_code == 0, printed.stderr
    assert 'm = { kind = "category", levels = ["sad", "so so", "happy"] }' in printed.stdout
    assert 'a = { kind = "number" }' in printed.stdout


def test_a_schema_of_a_query_is_made_without_a_row(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as own:
        own.execute("create type region as enum ('north', 'south')")
        own.execute("create table people (age integer, region region, name text)")
    printed = run(f"dpcov schema duckdb:///{path} --query 'from people'")
    assert tomllib.loads(printed.stdout) == {
        "columns": {"age": {"kind": "number"}, "region": {"kind": "category", "levels": ["north", "south"]}}
    }
    assert "# name = " in printed.stdout
    lite = tmp_path / "lite.db"
    with sqlite.connect(str(lite)) as own, own.cursor() as cursor:
        cursor.execute("create table people (age integer)")
        own.commit()
    told = run(f"dpcov schema sqlite:///{lite} --query 'select * from people'")  # noqa: S608  (our own)
    assert "# age = " in told.stdout
    assert run(f"dpcov schema duckdb:///{path}").exit_code == 2
    assert run("dpcov schema people.csv --query 'from people'").exit_code == 2


def test_a_value_of_another_type_in_sqlite_does_not_show(tmp_path: Path) -> None:
    # There a column holds values of any type: neither the first rows nor one odd cell may decide.
    path = tmp_path / "odd.db"
    with sqlite.connect(str(path)) as own, own.cursor() as cursor:
        cursor.execute("create table t (a)")
        values = "(null), (1), (0.1), ('x'), (x'ff00'), (1e-310), (9007199254740993)"
        cursor.execute(f"insert into t values {values}")  # noqa: S608  (our own)
        own.commit()
        found = gram(sql.run_query(own, "select * from t"), ["a"])
    cells = [[np.nan], [1.0], [0.1], [np.nan], [np.nan], [1e-310], [9007199254740992.0]]
    assert (found == gram(np.array(cells))).all()


def test_rows_of_a_person_may_come_from_a_database() -> None:
    with duckdb.connect() as own:
        own.execute("create table t as select i % 50 as person, i * 0.1 as x from range(500) s(i)")
        grouped = open_source(own, None, Grouping("person", even=False), "from t")
        assert (grouped.n_rows, grouped.columns) == (50, ("x",))


@pytest.mark.parametrize(
    ("data", "query", "message"),
    [
        ("postgresql://ada:secret@localhost/db", "select 1", "the address holds a password"),
        ("sqlite:///no/such/file.db", "select 1", "is not a file"),
        ("duckdb://", "select 1", "is not a file"),
        ("duckdb:///x.db", None, "say which rows"),
        ("duckdb:///x.db", "  ", "say which rows"),
        ("people.parquet", "select 1", "query is for databases"),
        (np.zeros((3, 2)), "select 1", "query is for databases"),
        ("postgresql:///none?host=/no/such/folder", "select 1", r"the database cannot be opened \("),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(data: Any, query: str | None, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as raised:
        open_source(data, query=query)
    assert "secret" not in str(raised.value)


def test_a_release_from_the_command_line(
    tmp_path: Path, spools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("people.db") as own:
        own.execute(
            "create table people as select i % 60 as age, (i % 7) * 1.5 as wage from range(20000) s(i)"
        )
    made = run(
        "dpcov release duckdb:///people.db --rho 1 -o out.dpcov --query", "select age, wage from people"
    )
    assert made.exit_code == 0, made.stderr
    assert abs(dpcov.load("out.dpcov").mean()["age"] - 29.5) < 1
    gc.collect()
    assert not list(spools.iterdir())
    wrong = run("dpcov release people.db --rho 1 -o o.dpcov --query", "select 1")
    assert (wrong.exit_code, "query is for databases" in wrong.stderr) == (2, True)
