from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.linear_tables import make_release, make_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcov
from dpcov.core import Charge, PrivacyCost, Receipt
from dpcov.laws import NoiseLaw
from dpcov.losses import LossLaw

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)
TEXT = st.text(max_size=12)


def small_release() -> dpcov.Release:
    """A release with every part that a file can have."""
    spread = LossLaw(
        np.array([3.0, 0.1]),
        np.array([0.2, -1 / 3]),
        np.array([0.1, 0.7]),
        radius=5.5,
        directions=2,
        restored=0.01,
    )
    along = replace(spread, rows=np.array([1.0]), shape=np.zeros(1), spread=np.ones(1), directions=1)
    along = replace(along, along=np.array([0.1, -1e-300, 3.0, 1 / 3]), tilt=0.07)
    made = make_release(
        make_rows(),
        names=("a", 'quoted "b", with a comma', "line\nbreak", "Größe"),
        losses=(spread, along, replace(along, directions=0)),
    )
    charges = (
        Charge("first", PrivacyCost(Fraction(1, 3))),
        Charge("last", PrivacyCost(Fraction(1, 6), Fraction(1, 10**9))),
    )
    receipt = Receipt(PrivacyCost(Fraction(1, 2), Fraction(1, 10**6)), charges, private=True)
    facts = {
        "resolved": 4,
        "predicted_error": math.inf,
        "history": [{"rho": 0.1, "what": None, "sure": True}],
    }
    return replace(made, receipt=receipt, diagnostics=facts, options={"contamination": 0.01})


def assert_same(first: dpcov.Release, second: dpcov.Release) -> None:
    for name in ("columns", "n_rows", "method", "options", "receipt", "diagnostics", "intercept", "versions"):
        assert getattr(first, name) == getattr(second, name), name
    pairs = [(first._matrix, second._matrix)]
    assert (first.noise is None) == (second.noise is None)
    if first.noise is not None and second.noise is not None:
        pairs.append((first.noise.inverse, second.noise.inverse))
        for part in ("sigma", "hidden", "overstated"):
            assert getattr(first.noise, part) == getattr(second.noise, part)
    assert len(first.losses) == len(second.losses)
    for law, other_law in zip(first.losses, second.losses, strict=True):
        pairs += [(getattr(law, part), getattr(other_law, part)) for part in ("rows", "shape", "spread")]
        for part in ("radius", "directions", "evenness", "restored", "restored_constant", "tilt"):
            assert getattr(law, part) == getattr(other_law, part)
        assert (law.along is None) == (other_law.along is None)
        if law.along is not None and other_law.along is not None:
            pairs.append((law.along, other_law.along))
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def test_a_round_trip_is_bit_exact(tmp_path: Path) -> None:
    made = small_release()
    made.save(tmp_path / "r.dpcov")
    read = dpcov.load(tmp_path / "r.dpcov")
    assert_same(made, read)
    read.save(str(tmp_path / "again.dpcov"))
    assert (tmp_path / "r.dpcov").read_bytes() == (tmp_path / "again.dpcov").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.dpcov", "r.dpcov"]
    target, *on = made.columns
    np.testing.assert_array_equal(
        made.regress(target, on=on).coefficients.interval(),
        read.regress(target, on=on).coefficients.interval(),
    )


@pytest.mark.parametrize("options", [{}, {"intercept": False}, {"method": "gaussian", "radius": 6.0}])
def test_true_releases_survive(tmp_path: Path, options: dict[str, Any]) -> None:
    made = dpcov.release(make_rows(5000), rho=0.5, rng=np.random.default_rng(0), **options)
    made.save(tmp_path / "r.dpcov")
    read = dpcov.load(tmp_path / "r.dpcov")
    assert_same(made, read)
    assert not read.receipt.private


@settings(max_examples=50)
@given(st.data())
def test_every_release_survives(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    names = tuple(data.draw(st.lists(TEXT, min_size=1, max_size=4, unique=True)))
    intercept = data.draw(st.booleans())
    size = len(names) + intercept
    square = np.array(data.draw(st.lists(FLOATS, min_size=size**2, max_size=size**2))).reshape(size, size)
    matrix = np.triu(square) + np.triu(square, 1).T
    np.fill_diagonal(matrix, np.abs(np.diag(matrix)))
    noise = NoiseLaw(square, data.draw(st.floats(1e-300, 1e300))) if data.draw(st.booleans()) else None
    made = replace(
        small_release(),
        columns=names,
        intercept=intercept,
        noise=noise,
        losses=(),
        diagnostics={data.draw(TEXT): data.draw(st.floats(allow_nan=False))},
        _matrix=matrix,
    )
    path = tmp_path_factory.mktemp("file") / "r.dpcov"
    made.save(path)
    assert_same(made, dpcov.load(path))


def test_files_are_read_without_dpcov(tmp_path: Path) -> None:
    made = small_release()
    made.save(tmp_path / "r.dpcov")
    with zipfile.ZipFile(tmp_path / "r.dpcov") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        lines = list(csv.reader(io.StringIO(archive.read("second_moment.csv").decode(), newline="")))
    assert manifest["format"] == "dpcov release"
    assert manifest["schema_version"] == 2
    assert manifest["private"] is True
    assert manifest["receipt"]["charges"][0] == {
        "purpose": "first",
        "rho": "1/3",
        "delta": "0",
        "gaussian": False,
    }
    assert lines[0] == [*made.columns, "constant"]
    assert [[float(cell) for cell in line] for line in lines[1:]] == made.second_moment().values.tolist()


def test_damaged_files_give_the_clear_error(tmp_path: Path) -> None:
    made = small_release()
    path = tmp_path / "r.dpcov"
    made.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = [whole[: int(cut)] for cut in rng.integers(0, len(whole), 60)]
    for position in rng.integers(0, 8 * len(whole), 300):
        flipped = bytearray(whole)
        flipped[position // 8] ^= 1 << (position % 8)
        broken.append(bytes(flipped))
    messages = [message for content in broken if (message := complaint(path, content, made))]
    assert len(messages) > 0.8 * len(broken)
    assert all("r.dpcov" in message for message in messages)


def complaint(path: Path, content: bytes, made: dpcov.Release) -> str:
    """What `load` says about a file; nothing if it reads the same release."""
    path.write_bytes(content)
    try:
        read = dpcov.load(path)
    except dpcov.ArtefactError as error:
        return str(error)
    # A flip may hit what no reader looks at, such as a date; then nothing else may change.
    assert_same(made, read)
    return ""


def edited(path: Path, edit: Callable[[dict[str, Any], dict[str, bytes]], object]) -> None:
    """Rewrite a file with a changed manifest and tables, checksums left as they are."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    edit(manifest, files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"manifest.json": json.dumps(manifest).encode(), **files}.items():
            archive.writestr(name, content)


HOSTILE: dict[str, tuple[Callable[[dict[str, Any], dict[str, bytes]], object], str]] = {
    "later schema": (lambda m, _: m.update(schema_version=3), "schema version is 3"),
    "other format": (lambda m, _: m.update(format="zip"), "another format"),
    "no columns": (lambda m, _: m.update(columns=[]), "columns"),
    "column twice": (lambda m, _: m.update(columns=["a", "a", "b", "c"]), "columns"),
    "columns no text": (lambda m, _: m.update(columns=[1, 2, 3, 4]), "str was expected"),
    "fewer columns": (lambda m, _: m.update(columns=["a"]), "header"),
    "rows no number": (lambda m, _: m.update(n_rows="many"), "whole number"),
    "rows negative": (lambda m, _: m.update(n_rows=-5), "whole number"),
    "private no bool": (lambda m, _: m.update(private=1), "bool was expected"),
    "huge rational": (lambda m, _: m["receipt"]["limit"].update(rho="1e999999999"), "rational"),
    "rho too large": (lambda m, _: m["receipt"]["limit"].update(rho="9" * 30), "at most 1e9"),
    "missing key": (lambda m, _: m.pop("receipt"), "receipt"),
    "sigma zero": (lambda m, _: m["noise"].update(sigma=0), "noise law"),
    "understated": (lambda m, _: m["noise"].update(overstated=0.9), "noise law"),
    "table missing": (lambda _, f: f.pop("second_moment.csv"), "second_moment.csv"),
    "table changed": (
        lambda _, f: f.update({"second_moment.csv": f["second_moment.csv"].replace(b"1", b"2")}),
        "checksum of second_moment.csv",
    ),
    "table too large": (lambda _, f: f.update({"tail.csv": b"0," * 2**24}), "too large"),
    "too many laws": (lambda m, _: m["tail"][0].update(laws=10**9), "too many laws"),
    "short direction": (lambda m, _: m["tail"][1].update(along=[1.0]), "tail is not valid"),
    "endless direction": (lambda m, _: m["tail"][1].update(along=[math.inf] * 4), "damaged"),
    "two even laws": (lambda m, _: m["tail"][1].update(along=None), "two laws"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_give_the_clear_error(tmp_path: Path, name: str) -> None:
    edit, message = HOSTILE[name]
    path = tmp_path / "r.dpcov"
    small_release().save(path)
    edited(path, edit)
    with pytest.raises(dpcov.ArtefactError, match=message):
        dpcov.load(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x80\x04\x95pickle", b"[" * 100_000])
def test_foreign_files_give_the_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.dpcov"
    path.write_bytes(content)
    with pytest.raises(dpcov.ArtefactError, match="not a dpcov release"):
        dpcov.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", content)
    with pytest.raises(dpcov.ArtefactError, match="not a dpcov release"):
        dpcov.load(path)


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(dpcov.ArtefactError, match="No such file"):
        dpcov.load(tmp_path / "nowhere.dpcov")
    with pytest.raises(dpcov.ArtefactError, match="cannot be read"):
        dpcov.load(tmp_path)
    with pytest.raises(dpcov.ArgumentError, match="cannot be written"):
        small_release().save(tmp_path / "no" / "folder" / "r.dpcov")
    (tmp_path / "folder").mkdir()
    with pytest.raises(dpcov.ArgumentError, match="cannot be written"):
        small_release().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
