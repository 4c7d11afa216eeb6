"""Compiled passes make the bits that numpy makes, or are not used."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hatch_build import build
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Clipping, Gram, NormHistogram, Rule, SeededBits, lattice, passes
from dpcov.core.passes import CompiledPasses, NumpyPasses, fastest_passes
from dpcov.core.query import Query, Table
from dpcov.maps import integer_map
from dpcov.methods.whitening.looks import wide_grid
from dpcov.sources import ArraySource

SOURCE = Path(passes.__file__).with_name("passes.c")
COMPILER = shlex.split(os.environ.get("CC", "cc"))[0]
needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C compiler")
HOSTILE = [
    np.nan, np.inf, -np.inf, 1e308, -1.7e308, 5e-324, -2e-310, -0.0, 0.0, 0.5, -1.5, 2.5,
    float(2**63), 2.0**-1022, 2.0**-961, 2.0**-960, 2.0**53 + 2, 1e-30, 1.0,
]  # fmt: skip


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPasses:
    library = tmp_path_factory.mktemp("built") / "passes.so"
    assert build(SOURCE, library)
    return CompiledPasses(library)


@pytest.fixture
def fresh() -> Iterator[None]:
    fastest_passes.cache_clear()
    yield
    fastest_passes.cache_clear()


def made(
    by: NumpyPasses, block: NDArray[np.float64], exponents: NDArray[np.int64], least: float
) -> list[bytes]:
    """All that the passes make of a block whose columns have some centres and are scaled by powers of two."""
    x, squares = block.copy(), np.empty(block.shape[1])
    with np.errstate(all="ignore"):
        centres = np.where(np.isfinite(block[:, 0]), block[:, 0], 0.0)
        first = by.round_rows(x, 27, least, centres=centres.copy(), scales=np.ldexp(1.0, exponents))
        found = [x.tobytes(), first.tobytes()]
        second = by.round_rows(x, 26, 1.0, squares=squares)
        found += [x.tobytes(), second.tobytes(), squares.tobytes()]
        factors = 2.0**20 / np.sqrt(np.maximum(squares, 1.0))
        return [*found, by.scale_rows(x, factors).tobytes(), x.tobytes()]


@needs_compiler
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 9)),
               elements=st.one_of(st.sampled_from(HOSTILE), st.floats(width=64), st.floats(-10, 10))),
    st.integers(1, 40),
    st.data(),
)  # fmt: skip
def test_the_bits_are_those_of_numpy(
    compiled: CompiledPasses, few: NDArray[np.float64], times: int, data: st.DataObject
) -> None:
    exponents = data.draw(hnp.arrays(np.int64, len(few), elements=st.integers(-900, 900)))
    # Up to 360 rows: several of the compiled tiles, and a part of one.
    block = np.tile(few, times)
    with np.errstate(all="ignore"):
        block[:, ::7] *= 3.0
    least = data.draw(st.sampled_from([1.0, 2.0**-960, 2.0**-60]))
    assert made(compiled, block, exponents, least) == made(NumpyPasses(), block, exponents, least)


@needs_compiler
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("rint(entry[j] * factor[j])", "floor(entry[j] * factor[j] + 0.5)"),
        ("rint(entry[j] * factors[first + j])", "floor(entry[j] * factors[first + j] + 0.5)"),
        ("(largest[j] < lowest) | (largest[j] >= infinite)", "largest[j] < lowest"),
        ("(largest[j] < lowest) | (largest[j] >= infinite)", "largest[j] >= infinite"),
        ("largest[j] = one;", ""),
        ("x[i * rows + first + j] = 0.0", "(void)x"),
        ("2045 + entry_log2", "2046 + entry_log2"),
        ("biased - 1022", "biased - 1021"),
        ("entry[j] -= centres[i]", "entry[j] += centres[i]"),
        ("entry[j] *= scales[i]", "entry[j] *= scales[0]"),
        ("own > largest[j] ? own : largest[j]", "own"),
        ("memcpy(squares + first, sums", "memcpy(squares, sums"),
        ("first += TILE", "first += 2 * TILE"),
        ("& INT64_MAX", ""),
    ],
)
@pytest.mark.usefixtures("fresh")
def test_a_library_that_makes_other_bits_is_not_used(
    right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SOURCE.read_text()
    assert right in text
    (tmp_path / "passes.c").write_text(text.replace(right, wrong))
    assert build(tmp_path / "passes.c", tmp_path / "passes.so")
    monkeypatch.setattr(passes, "_LIBRARY", tmp_path / "passes.so")
    assert type(fastest_passes()) is NumpyPasses


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_a_library_is_used_where_it_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_LIBRARY", tmp_path / "passes.so")
    assert type(fastest_passes()) is NumpyPasses
    assert build(SOURCE, tmp_path / "passes.so")
    fastest_passes.cache_clear()
    assert type(fastest_passes()) is CompiledPasses
    # One of another version has no such functions, and one for another machine is no library.
    (tmp_path / "nothing.so").write_bytes(b"nothing to run")
    monkeypatch.setattr(passes, "_LIBRARY", tmp_path / "nothing.so")
    fastest_passes.cache_clear()
    assert type(fastest_passes()) is NumpyPasses


@pytest.mark.parametrize("compiler", ["a-compiler-that-nobody-has", "", "cc '", "true", "false", "{file}"])
def test_without_a_compiler_nothing_is_built(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler.format(file=tmp_path))
    assert not build(SOURCE, tmp_path / "passes.so")
    assert not (tmp_path / "passes.so").exists()


@needs_compiler
def test_arrays_in_pieces_are_refused(compiled: CompiledPasses) -> None:
    block = np.ones((4, 6))
    fixed = np.ones((4, 6))
    fixed.setflags(write=False)
    for wrong in (fixed, block[:, ::2], block.T, block.astype(np.float32).astype(object)):
        with pytest.raises(ValueError, match="whole arrays of float64"):
            compiled.scale_rows(wrong, np.ones(wrong.shape[1]))
    with pytest.raises(ValueError, match="whole arrays of float64"):
        compiled.scale_rows(block, np.ones(5))


@needs_compiler
@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_whole_scans_have_the_same_total(
    rule: Rule,
    *,
    constant: bool,
    dtype: type[np.number[Any]],
    compiled: CompiledPasses,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    table: NDArray[np.generic] = (100 * rng.normal(size=(50_000, 5))).astype(dtype)
    if dtype is not np.int16:
        table[::97, 2] = np.nan
    d = 5 + constant
    centres = [*rng.normal(size=5), 0.0] if constant else None
    lattice_map = integer_map(rng.normal(size=(d, d)), np.geomspace(1, 1e3, d), centres)
    queries: list[Query[object]] = [
        Gram(Clipping(lattice_map, 1.0, rule), 1, ""),
        NormHistogram(lattice_map, wide_grid(), 1, ""),
    ]
    size = Table.of_size(len(table), d, constant=constant, in_memory=True)
    tasks = [query.task(size, SeededBits(rng)) for query in queries]
    totals = []
    for by in (NumpyPasses(), compiled):
        monkeypatch.setattr(lattice, "fastest_passes", lambda by=by: by)
        totals.append([ArraySource(table).scan(task).tobytes() for task in tasks])
    assert totals[0] == totals[1]
