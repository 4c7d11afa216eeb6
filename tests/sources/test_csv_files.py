from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, RowTask
from dpcov.sources import csv_files, open_source
from dpcov.sources.csv_files import CsvSource


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

    def add(self, block: object, first_row: int) -> None:
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
def test_every_line_is_a_row_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: bytes, block: int
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", block)
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


@given(st.lists(HOSTILE, min_size=1, max_size=8), st.integers(0, 7))
def test_no_line_changes_another_or_fails(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], at: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    lines = [line.replace(b"\n", b"") for line in lines]
    lines.insert(min(at, len(lines)), b'1,"2, 3",4')
    path.write_bytes(b"a,b,c\n" + b"".join(line + b"\n" for line in lines))
    together = read(path, ["a", "c"])
    assert len(together) == len(lines)
    assert together[min(at, len(lines) - 1)] == [1, 4]
    for line, row in zip(lines, together, strict=True):
        path.write_bytes(b"a,b,c\n" + line + b"\n")
        np.testing.assert_array_equal(read(path, ["a", "c"]), [row])


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False), st.text(st.characters(exclude_characters="\r\n\x00", codec="utf-8"))
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
    with pytest.raises(ArgumentError, match=r"which of its columns hold numbers.*among: a, b"):
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
