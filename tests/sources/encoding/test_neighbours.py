"""An odd cell is missing, and nothing else can be seen of it: no error, warning, count, or slower path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pyarrow as pa
import pytest
from helpers.replay import compare
from helpers.typed_tables import HOLDERS, Cell, Table

import dpcov
from dpcov.sources.encoding import Kind, texts

KINDS: dict[str, Kind] = {
    "region": dpcov.category(["north", "south"]),
    "late": dpcov.flag(),
    "visit": dpcov.date(since="2024-01-01"),
    "age": dpcov.number(0, 120),
}
ORDINARY: dict[str, Cell] = {"region": "north", "late": "yes", "visit": "2024-05-01", "age": "41"}
ODD: dict[str, list[Cell]] = {
    "region": ["Atlantis", "", None, "\x00", "north" * 5000, "S\N{COMBINING DIAERESIS}ud"],
    "late": ["perhaps", "", None, "2"],
    "visit": ["yesterday", "2024-02-30", "0000-00-00", "99999-01-01", None, "2024-05-01T25:00"],
    "age": ["forty-one", "1e999", "-7", "0x29", "nan", None, "4_1"],
}


def table(odd: dict[str, list[Cell]]) -> Table:
    """Four hundred rows of text, a few of them with odd cells."""
    return {name: [*odd.get(name, []), *[cell] * 400][:400] for name, cell in ORDINARY.items()}


def released(data: Any) -> Callable[[], str]:
    return lambda: repr(
        dpcov.release(data, rho=1, columns=KINDS, terms=["age^2", "log(age)"], method="gaussian", radius=1.0)
    )


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_odd_cell_shows(holder: str, tmp_path: Path) -> None:
    with dask.config.set(scheduler="synchronous"):
        (tmp_path / "one").mkdir()
        (tmp_path / "other").mkdir()
        one = released(HOLDERS[holder](table({}), tmp_path / "one"))
        assert compare(one, released(HOLDERS[holder](table(ODD), tmp_path / "other"))) == []


class Bomb:
    """A cell that fails whatever it is asked."""

    def __str__(self) -> str:
        raise ValueError("91234")

    __repr__ = __eq__ = __hash__ = __float__ = __str__  # type: ignore[assignment]


def test_one_cell_of_another_type_does_not_show() -> None:
    # It makes the whole column one of objects: the type comes from the schema all the same.
    whole = pd.DataFrame({"age": [41.0] * 400})
    for odd in ("forty", Bomb(), b"\xff", [1], 1j, 10**400, pd.NaT):
        mixed = whole.astype(object)
        mixed["age"] = pd.Series([*[41.0] * 7, odd, *[41.0] * 392], dtype=object)
        kinds = {"age": dpcov.number()}

        def one(data: pd.DataFrame = whole, kinds: dict[str, Kind] = kinds) -> str:  # type: ignore[assignment]
            return repr(dpcov.release(data, rho=1, columns=kinds, method="gaussian", radius=1.0))

        def other(data: pd.DataFrame = mixed, kinds: dict[str, Kind] = kinds) -> str:  # type: ignore[assignment]
            return repr(dpcov.release(data, rho=1, columns=kinds, method="gaussian", radius=1.0))

        assert compare(one, other) == []


def test_an_odd_cell_is_parsed_again_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # One cell must not move its block to a slower way of reading, which a clock would show.
    parsed = []
    number = texts._number

    def counted(text: bytes | None) -> float:
        parsed.append(text)
        return number(text)

    monkeypatch.setattr(texts, "_number", counted)
    cells = pa.array([f"{i}.5" if i % 3 else " NA" for i in range(20_000)])
    texts.numbers_in(cells)
    assert parsed == []
    odd = pa.concat_arrays([cells[:777], pa.array(["about 7"]), cells[778:]])
    texts.numbers_in(odd)
    assert 1 <= len(parsed) <= 256


def test_what_python_parses_beside_an_odd_cell_is_what_arrow_parses() -> None:
    # Otherwise a number would depend on its neighbours in the block.
    written = [
        "1",
        "-0.0",
        "1e-320",
        "17976931348623157e292",
        "0.1",
        "1e22",
        "9007199254740993",
        "+5",
        ".5",
        "5.",
    ]
    written += [
        "inf",
        "-Infinity",
        "1E5",
        "123456789012345678901234567890",
        "4.9e-324",
        "2.2250738585072011e-308",
    ]
    alone = texts.numbers_in(pa.array(written))
    beside = texts.numbers_in(pa.array([*written, "odd"]))[:-1]
    assert alone.tobytes() == beside.tobytes()
