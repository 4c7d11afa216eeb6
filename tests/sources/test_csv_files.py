from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, RowTask
from dpcov.sources import csv_records, open_source
from dpcov.sources.csv_files import CsvSource
from dpcov.sources.encoding import texts


class _Collector:
    """A task that keeps what it is given, to look at rows as the core would see them."""

    block_rows = 1000
    shape = (1,)

    def __init__(self) -> None:
        self.seen: dict[int, list[float]] = {}

    def worker(self) -> _Collector:
        return self

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        raise NotImplementedError

    def with_notes(self, notes: NDArray[np.int64]) -> RowTask:
        raise NotImplementedError

    def add(self, block: object, first_row: int, units: object = None) -> None:
        del units
        for i, row in enumerate(np.array(list(block), dtype=np.float64).T):  # type: ignore[call-overload]
            self.seen[first_row + i] = row.tolist()

    def total(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)


def read(path: Path, columns: list[str]) -> list[list[float]]:
    source = open_source(str(path), columns)
    task = _Collector()
    source.scan(task)
    assert sorted(task.seen) == list(range(source.n_rows))
    return [task.seen[i] for i in range(source.n_rows)]


NAN = math.nan
LINES: dict[bytes, list[float]] = {
    b"1,x,2": [1, 2],
    b"-1.5e3,,.25": [-1500, 0.25],
    b'"3","a,b",4': [3, 4],
    b'5,"he said ""so""",6': [5, 6],
    b" 7 ,x,\t8": [7, 8],
    b"9,x,abc": [9, NAN],
    b"9,x,": [9, NAN],
    b"9,x,NA": [9, NAN],
    b"9,x,+1": [9, 1],
    b"9,x,1e400": [9, math.inf],
    b"9,x,1e-400": [9, 0],
    b"9,x,\xff\xfe": [9, NAN],
    b"": [NAN, NAN],
    b"1,2": [NAN, NAN],
    b"1,2,3,4": [NAN, NAN],
    b'1,"x,2': [NAN, NAN],
    b'1,x"y"z,2': [NAN, NAN],
    b'1,"x"y,2': [NAN, NAN],
    b"1,x\r,2": [NAN, NAN],
    b"\xef\xbb\xbf1,x,2": [NAN, NAN],
    b'"","",""': [NAN, NAN],
}


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("block", [1, 7, 1 << 22])
def test_every_record_is_a_row_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: bytes, block: int
) -> None:
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", block)
    path = tmp_path / "table.csv"
    lines = list(LINES)
    for seed in range(3):
        np.random.default_rng(seed).shuffle(lines)
        path.write_bytes(b"\xef\xbb\xbfa,text,b" + ending + ending.join(lines) + ending)
        np.testing.assert_array_equal(read(path, ["a", "b"]), [LINES[line] for line in lines])


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a\n1\n\n2")
    np.testing.assert_array_equal(read(path, ["a"]), [[1], [NAN], [2]])


SIGNS = [b'"', b",", b"\r", b"1", b"x", b" ", b".", b"e", b"-", b"\xef\xbb\xbf", b"\x00", b"nan", b"_"]
HOSTILE = st.lists(st.sampled_from(SIGNS), max_size=9).map(b"".join) | st.binary(max_size=12)


FIELD = rb'(?:"(?:[^"]|"")*"|[^",\r\n]*)'
RECORD = re.compile(FIELD + rb"(?:," + FIELD + rb")*\r?\n")


def records_by_the_rule(text: bytes, longest: int) -> list[bytes]:
    """The rule in its own words: a record where one begins, else a line."""
    found = []
    while text:
        record = RECORD.match(text)
        end = text.index(b"\n") + 1 if record is None or len(record[0]) > longest else record.end()
        found.append(text[:end])
        text = text[end:]
    return found


@given(
    st.lists(HOSTILE | st.just(b"\n"), min_size=1, max_size=16).map(b"".join),
    st.sampled_from([1, 2, 5, 30, 1 << 22]),
    st.sampled_from([4, 9, 1 << 24]),
)
@settings(max_examples=400)
def test_records_are_found_by_the_rule_whatever_the_blocks(text: bytes, block: int, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "BLOCK_BYTES", block)
        patch.setattr(csv_records, "LONGEST_RECORD", longest)
        found = list(csv_records.read_records(io.BytesIO(text)))
    text = text.removeprefix(b"\xef\xbb\xbf")
    whole = text if text.endswith(b"\n") or not text else text + b"\n"
    expected = records_by_the_rule(whole, longest)
    pieces = [
        records.text[int(start) : int(end) + 1]
        for records in found
        for start, end in zip([0, *(records.ends[:-1] + 1)], records.ends, strict=True)
    ]
    if longest == 1 << 24:
        assert pieces == expected
        broken = [bool(one) for records in found for one in records.broken]
        assert broken == [RECORD.fullmatch(piece) is None for piece in expected]
    else:
        # A line beyond the longest record is cut; its row counts once.
        assert len(pieces) == len(expected)
        short = [piece for piece in expected if len(piece) <= longest]
        assert [piece for piece in pieces if len(piece) <= longest] == short


@given(st.lists(HOSTILE | st.just(b"\n"), min_size=1, max_size=9).map(b"".join))
def test_no_record_changes_another_or_fails(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    whole = b'1,"2,\n3",4\n' + text + b"\n"
    path.write_bytes(b"a,b,c\n" + whole)
    together = read(path, ["a", "c"])
    records = records_by_the_rule(whole, 1 << 24)
    assert len(together) == len(records)
    assert together[0] == [1, 4]
    for record, row in zip(records, together, strict=True):
        path.write_bytes(b"a,b,c\n" + record)
        np.testing.assert_array_equal(read(path, ["a", "c"]), [row])


def test_a_line_break_in_quotes_makes_no_second_row(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'"first\nname",b\r\n"x\r\ny, z",1\r\n"",2\r\n"a ""quoted""\nline",3\r\n')
    np.testing.assert_array_equal(read(path, ["b"]), [[1], [2], [3]])


def test_a_quote_that_never_closes_costs_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'a,b\n1,2\n"3,4\n5,6\n7,"8\n9,"10"\n')
    np.testing.assert_array_equal(read(path, ["a", "b"]), [[1, 2], [NAN, NAN], [5, 6], [NAN, NAN], [9, 10]])


def test_a_line_without_end_is_one_row_and_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 1 << 12)
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n1,2\n" + b"3," * 100_000 + b'\n5,6\n"' + b"7" * 100_000 + b'",8\n9,10')
    np.testing.assert_array_equal(read(path, ["a", "b"]), [[1, 2], [NAN, NAN], [5, 6], [NAN, NAN], [9, 10]])
    with path.open("rb") as file:
        held = [len(records.text) for records in csv_records.read_records(file)]
    assert max(held) < 4 << 12


def test_an_odd_field_is_parsed_again_with_few_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One field must not move its block to a slower way of reading, which a clock would show.
    parsed: list[bytes | None] = []
    number = texts._number

    def counted(text: bytes | None) -> float:
        parsed.append(text)
        return number(text)

    monkeypatch.setattr(texts, "_number", counted)
    path = tmp_path / "table.csv"
    lines = [f"{i}.5,{'' if i % 3 else 'NA'}" for i in range(20_000)]
    lines[777] = "about 7,1"
    path.write_text("\n".join(["a,b", *lines]) + "\n")
    found = np.array(read(path, ["a", "b"]))
    assert math.isnan(found[777, 0])
    assert (np.delete(found[:, 0], 777) == np.delete(np.arange(20_000) + 0.5, 777)).all()
    assert np.isnan(np.delete(found[:, 1], 777)).all()
    assert 1 <= len(parsed) <= 256


@pytest.mark.parametrize(
    "first", ["Ada,91234,1815-12-10", "Ada,,x", "Ada,NA,x", '"Ada, Countess",91234,x', "Ada,-1,x"]
)
def test_a_first_record_that_is_no_header_is_not_shown(tmp_path: Path, first: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{first}\nBob,2,3\n")
    for columns in (None, ["a", "b"], ["Ad", "x"]):
        with pytest.raises(ArgumentError) as caught:
            open_source(path, columns)
        for word in ("Ada", "91234", "1815"):
            assert word not in str(caught.value)


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False), st.text(st.characters(exclude_characters="\x00", codec="utf-8"))
        ),
        min_size=1,
    )
)
def test_what_a_csv_writer_wrote_is_read_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    text = io.StringIO()
    csv.writer(text).writerows([("number", "text"), *rows])
    path.write_bytes(text.getvalue().encode())
    assert read(path, ["number"]) == [[number] for number, _ in rows]


def test_columns_must_be_chosen_and_headers_agree(tmp_path: Path) -> None:
    one, two, none = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.csv"
    one.write_text("a,b\n1,2\n")
    two.write_text("b,a\n1,2\n")
    none.write_text("")
    with pytest.raises(ArgumentError, match=r"which of its columns hold numbers.*is not shown"):
        open_source(one)
    with pytest.raises(ArgumentError, match="another header"):
        open_source([one, two], ["a"])
    with pytest.raises(ArgumentError, match="not in data: c"):
        open_source(one, ["c"])
    with pytest.raises(ArgumentError, match="no header"):
        open_source(none, ["a"])
    one.write_text("a,a\n1,2\n")
    with pytest.raises(ArgumentError, match="same name"):
        open_source(one, ["a"])
    assert isinstance(open_source(two, ["a"]), CsvSource)
