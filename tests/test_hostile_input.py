"""Commands, ledgers and tables may be broken: a clear error, no partial file, no charge lost."""

from __future__ import annotations

import datetime as dt
import decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit.record import record
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpcov
from dpcov.cli.app import app
from dpcov.core import DpcovError, LedgerError
from dpcov.ledger import Ledger

SETTINGS = settings(max_examples=40)
CODES = {0, 2, 3, 4, 5, 6, 7}

WORDS = (
    "methods", "ask", "report", "summary",
    "release", "plan", "ledger", "create", "show", "history", "table.csv", "no.csv", "budget.db", "--rho",
    "1", "0.1", "-1", "nan", "1e999", "1/3", "--epsilon", "--delta", "1e-6", "--columns", "a,b", "a,a",
    "c", "", "--method", "gaussian", "whitening", "recursive", "--option", "radius=1", "radius=x", "m=2",
    "=", "--ledger", "--dataset", "people", "nobody", "-o", "made.dpcov", "/nowhere/made.dpcov", ".",
    "--json", "--dry-run", "--overwrite", "--seed", "--not-private", "--no-intercept", "--contamination",
    "0.9", "--help", "\x00", "\xe9\u202e",
)  # fmt: skip


SOUND = ["release", "table.csv", "--columns", "a,b", "--rho", "0.5", "-o", "made.dpcov"]


def prepare(folder: Path) -> Ledger:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    lines = [f"{a!r},{b!r}" for a, b in rows.tolist()]
    (folder / "table.csv").write_text("\n".join(["a,b", *lines]) + "\n")
    ledger = Ledger.create(folder / "budget.db")
    ledger.add_dataset("people", rho=1)
    return ledger


def check_command(folder: Path, words: list[str]) -> int:
    """Run a command in a folder of its own; return its exit code."""
    ledger = prepare(folder)
    before = {path.name for path in folder.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, words)
    assert done.exit_code in CODES, (words, done.output, done.exception)
    assert "Traceback" not in done.output
    made = {path.name for path in folder.iterdir()} - before
    charged = ledger.account("people").spent.rho
    if done.exit_code:
        assert done.stderr.strip() or done.stdout.strip(), words
        # A release in which nothing is usable was paid for, and is kept.
        asked = [Path(word) for option, word in pairwise(words) if option == "-o"]
        kept = {name for path in asked for name in (path.name, path.with_suffix(".html").name)}
        kept = kept if "nothing in this release" in done.stderr else set()
        assert not {name for name in made - kept if not name.startswith("budget.db")}, words
        assert charged == 0 or "harged" in done.stderr, words
    return done.exit_code


def command_lines() -> st.SearchStrategy[list[str]]:
    free = st.lists(st.sampled_from(WORDS), max_size=8)
    paid = [*SOUND, "--ledger", "budget.db", "--dataset", "people"]
    return st.one_of(free, free.map(lambda more: [*SOUND, *more]), free.map(lambda more: [*paid, *more]))


@given(command_lines())
@example([*SOUND, "--contamination", "1e999"])
@example([*SOUND, "--method", "gaussian", "--option", "radius=1e999"])
@example([*SOUND, "--method", "gaussian", "--option", "radius=x"])
@example([*SOUND, "--delta", "1e999"])
@example(["plan", "--columns", "1e999", "--rows", "10", "--rho", "1"])
@example(["plan", "--columns", "2", "--rows", "1e999", "--rho", "1"])
@example(["plan", "--columns", "2", "--error", "1e999", "--rho", "1"])
@example(["plan", "--columns", "2", "--rows", "10", "--rho", "1e999"])
@SETTINGS
def test_no_command_line_crashes(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    check_command(tmp_path_factory.mktemp("command"), words)


def damaged(data: bytes, changes: list[tuple[int, int]], length: float) -> bytes:
    broken = bytearray(data)
    for place, value in changes:
        broken[place % len(broken)] = value
    return bytes(broken[: int(len(broken) * length)])


DAMAGE = (
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6),
    st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.01, 0.0]),
)


def check_ledger(folder: Path, changes: list[tuple[int, int]], length: float) -> str:
    """Damage a ledger and pay from it; return what happened."""
    ledger = prepare(folder)
    ledger.path.write_bytes(damaged(ledger.path.read_bytes(), changes, length))
    rows = np.ones((20, 2))
    try:
        made = dpcov.release(
            rows, rho=Fraction(1, 2), method="gaussian", radius=1.0, ledger=ledger.path, dataset="people",
            progress=False,
        )  # fmt: skip
    except LedgerError:
        return "refused"
    except DpcovError as error:
        return type(error).__name__
    account = Ledger.open(ledger.path).account("people")
    assert account.spent.rho >= made.receipt.spent.rho
    return "paid"


@given(*DAMAGE)
@example([(2167, 128)], 1.0)  # no UTF-8, which SQLite notices
@SETTINGS
def test_a_damaged_ledger_pays_in_full_or_refuses(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: float
) -> None:
    check_ledger(tmp_path_factory.mktemp("ledger"), changes, length)


@cache
def release_file() -> bytes:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.dpcov"
        made = dpcov.release(rows, rho=1, columns=["a", "b"], rng=np.random.default_rng(0), progress=False)
        made.save(path)
        return path.read_bytes()


def check_release(folder: Path, changes: list[tuple[int, int]], length: float) -> str:
    """Damage a release, ask it and make its report; return what happened."""
    path = folder / "made.dpcov"
    path.write_bytes(damaged(release_file(), changes, length))
    codes = set()
    for words in (["ask", str(path), "summary"], ["report", str(path)]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code in CODES, (words, done.output, done.exception)
        assert "Traceback" not in done.output
        assert done.exit_code == 0 or done.stderr.strip()
        codes.add(done.exit_code)
    made = {file.name for file in folder.iterdir()} - {path.name}
    assert made == ({"made.html"} if codes == {0} else set())
    return "read" if codes == {0} else "refused"


@given(*DAMAGE)
@SETTINGS
def test_a_damaged_release_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: float
) -> None:
    check_release(tmp_path_factory.mktemp("release"), changes, length)


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float16": (pa.float16(), [np.float16(1)] * 4),
    "float32": (pa.float32(), [1.0, None, float("nan"), float("inf")]),
    "float64": (pa.float64(), [1e308, -1e308, 5e-324, None]),
    "int64": (pa.int64(), [2**63 - 1, -(2**63), 0, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, None, 1]),
    "bool": (pa.bool_(), [True, False, None, True]),
    "decimal": (
        pa.decimal128(38, 10),
        [decimal.Decimal(1), None, decimal.Decimal(0), decimal.Decimal(2)],
    ),
    "text": (pa.string(), ["1", "x", None, ""]),
    "date": (pa.date32(), [dt.date(2020, 1, 1)] * 4),
    "null": (pa.null(), [None] * 4),
    "list": (pa.list_(pa.float64()), [[1.0], [], None, [2.0, 3.0]]),
    "struct": (pa.struct([("a", pa.float64())]), [{"a": 1.0}, None, {"a": None}, {"a": 2.0}]),
    "dictionary": (pa.dictionary(pa.int8(), pa.float64()), [1.0, 2.0, None, 1.0]),
    "binary": (pa.binary(), [b"1", b"", None, b"\xff"]),
}


def write_parquet(path: Path, kinds: list[str], names: list[str], n_rows: int) -> None:
    arrays = [pa.array(VALUES[kind][1][:n_rows], type=VALUES[kind][0]) for kind in kinds]
    chosen = [names[i % len(names)] if names else f"c{i}" for i in range(len(kinds))]
    pq.write_table(pa.Table.from_arrays(arrays, names=chosen), path)


def check_table(path: Path, columns: list[str] | None = None) -> str:
    try:
        made = dpcov.release(str(path), rho=1, method="gaussian", radius=1.0, columns=columns, progress=False)
    except DpcovError as error:
        return type(error).__name__ if str(error) else "no message"
    assert np.isfinite(made._matrix).all()
    return "released"


SCHEMA = (
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4),
    st.lists(st.sampled_from(["a", "b", "", " ", "é", "a.b", "x" * 300]), max_size=4),
    st.integers(0, 4),
)


@given(*SCHEMA)
@SETTINGS
def test_a_strange_parquet_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], names: list[str], n_rows: int
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "table.parquet"
    write_parquet(path, kinds, names, n_rows)
    assert check_table(path) != "no message"


@given(*DAMAGE)
@SETTINGS
def test_a_damaged_parquet_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: float
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "table.parquet"
    write_parquet(path, ["float64", "int64"], ["a", "b"], 4)
    path.write_bytes(damaged(path.read_bytes(), changes, length))
    assert check_table(path) != "no message"


TEXT = st.lists(
    st.lists(
        st.one_of(
            st.text(max_size=5), st.sampled_from(["1", "-2.5", "", "NA", '"', '"1', "1e999", "\r", "\x00"])
        ),
        max_size=4,
    ).map(",".join),
    max_size=6,
).map("\n".join)


@given(TEXT, st.booleans())
@SETTINGS
def test_strange_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    header: bool,  # noqa: FBT001
) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes((("a,b\n" if header else "") + text).encode("utf-8", "surrogatepass"))
    assert check_table(path, ["a", "b"]) != "no message"


@pytest.mark.audit
def test_many_hostile_inputs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same checks on many more inputs, counted."""
    longer = settings(SETTINGS, max_examples=400, database=None)
    seen: dict[str, dict[str, int]] = {}

    def count(kind: str, outcome: str) -> None:
        of = seen.setdefault(kind, {})
        of[outcome] = of.get(outcome, 0) + 1

    @given(command_lines())
    @longer
    def commands(words: list[str]) -> None:
        count("command lines", f"exit {check_command(tmp_path_factory.mktemp('c'), words)}")

    @given(*DAMAGE)
    @longer
    def ledgers(changes: list[tuple[int, int]], length: float) -> None:
        count("damaged ledgers", check_ledger(tmp_path_factory.mktemp("l"), changes, length))

    @given(*DAMAGE)
    @longer
    def releases(changes: list[tuple[int, int]], length: float) -> None:
        count("damaged releases", check_release(tmp_path_factory.mktemp("r"), changes, length))

    @given(*SCHEMA)
    @longer
    def schemas(kinds: list[str], names: list[str], n_rows: int) -> None:
        path = tmp_path_factory.mktemp("p") / "table.parquet"
        write_parquet(path, kinds, names, n_rows)
        count("strange Parquet schemas", check_table(path))

    @given(*DAMAGE)
    @longer
    def parquet(changes: list[tuple[int, int]], length: float) -> None:
        path = tmp_path_factory.mktemp("d") / "table.parquet"
        write_parquet(path, ["float64", "int64"], ["a", "b"], 4)
        path.write_bytes(damaged(path.read_bytes(), changes, length))
        count("damaged Parquet files", check_table(path))

    @given(TEXT)
    @longer
    def texts(text: str) -> None:
        path = tmp_path_factory.mktemp("t") / "table.csv"
        path.write_bytes(("a,b\n" + text).encode("utf-8", "surrogatepass"))
        count("CSV texts", check_table(path, ["a", "b"]))

    for check in (commands, ledgers, releases, schemas, parquet, texts):
        check()
    for kind, outcomes in seen.items():
        record("hostile input", kind, tried=sum(outcomes.values()), outcomes=outcomes)
