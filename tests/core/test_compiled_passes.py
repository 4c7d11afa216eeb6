"""Compiled passes make the bits that numpy makes, or are not used."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hatch_build import CompiledPassesHook, build
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Clipping, Gram, NormHistogram, Rule, SeededBits, compiled_passes, lattice
from dpcov.core.compiled_passes import CompiledPasses, fastest_passes
from dpcov.core.passes import NumpyPasses, Steps
from dpcov.core.queries import gram
from dpcov.core.query import Query, Table
from dpcov.maps import integer_map
from dpcov.methods.whitening.looks import wide_grid
from dpcov.sources import ArraySource

SOURCES = Path(compiled_passes.__file__).parent
COMPILER = shlex.split(os.environ.get("CC", "cc"))[0]
needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C compiler")
HOSTILE = [
    np.nan, np.inf, -np.inf, 1e308, -1.7e308, 5e-324, -2e-310, -0.0, 0.0, 0.5, -1.5, 2.5,
    float(2**63), 2.0**-1022, 2.0**-961, 2.0**-960, 2.0**53 + 2, 1e-30, 1.0,
]  # fmt: skip


def changed(folder: Path, name: str, right: str, wrong: str) -> Path:
    """Write the sources to a folder, one of them changed."""
    for source in SOURCES.glob("*.[ch]"):
        text = source.read_text()
        assert source.name != name or right in text
        (folder / source.name).write_text(text.replace(right, wrong) if source.name == name else text)
    return folder


@pytest.fixture(scope="module", params=["fastest", "AVX2", "neither"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledPasses:
    """The library, also as on processors that have less."""
    folder = tmp_path_factory.mktemp("built")
    text = changed(folder, "products.c", "", "").joinpath("products.c").read_text()
    for feature in {"fastest": [], "AVX2": ["avx512f"], "neither": ["avx512f", "avx2"]}[request.param]:
        text = text.replace(f'__builtin_cpu_supports("{feature}")', "0")
    (folder / "products.c").write_text(text)
    clones = '__attribute__((target_clones("avx512f", "avx2", "default")))'
    left_out = {"fastest": "", "AVX2": '"avx512f", ', "neither": clones}[request.param]
    text = (folder / "passes.c").read_text()
    assert clones in text
    (folder / "passes.c").write_text(text.replace(left_out, ""))
    assert build(folder, folder / "passes.so")
    return CompiledPasses(folder / "passes.so")


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
        factors[::2] = 0.5  # halves
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


SIZES = [1, 2, 3, 4, 5, 8, 10, 63, 64, 65, 130]


def blocks_of(table: NDArray[np.float64]) -> list[Any]:
    """The columns of a table from all kinds of places in memory, and as other types."""
    rows, d = table.shape
    wide = np.zeros((rows, 2 * d + 1))
    wide[:, 1::2] = table
    blocks = [table.T, np.asfortranarray(table).T, wide[:, 1::2].T, table[::-1].T, list(table.T)]
    packed = np.zeros((d, rows), dtype=[("number", np.float64), ("other", np.int32)])
    packed["number"] = table.T
    whole = np.nan_to_num(table.T).clip(-(2.0**62), 2.0**62).astype(np.int64)
    blocks += [packed["number"], whole, table.T.astype(np.float32), table.T.astype(">f8")]
    blocks += [np.broadcast_to(table[:1].T, (d, rows))]
    return [*blocks, table[:, 1:].T, list(table[:, 1:].T)] if d > 1 else blocks


@needs_compiler
@pytest.mark.parametrize("d", SIZES)
def test_mapped_rows_are_those_of_numpy_from_wherever_they_come(d: int, compiled: CompiledPasses) -> None:
    rng = np.random.default_rng(d)
    full = rng.normal(size=(700, d)) * np.geomspace(1, 1e5, d)
    full[::5, d // 2] = rng.choice(HOSTILE, size=140)
    lower = np.tril(np.rint(2.0**25 / d * rng.normal(size=(d, d))))
    lower[d // 2 :, : d // 3] = 0.0
    centres, scales = rng.normal(size=d), np.ldexp(1.0, rng.integers(-900, 900, size=d))
    several = [
        Steps(np.asfortranarray(lower), None, None, 2.0**-960, (27, 26)),
        Steps(np.asfortranarray(np.diag(np.diag(lower))), centres, scales, 2.0**-60, (27, 26)),
    ]
    for steps, rows in itertools.product(several, (0, 1, 7, 64, 65, 700)):
        with np.errstate(all="ignore"):
            for block in blocks_of(full[:rows]):
                found = []
                for by in (NumpyPasses(), compiled):
                    x, squares = np.full((d, rows), np.nan), np.full(rows, np.nan)
                    shift = by.mapper(steps)(block, x, squares)
                    found.append([(x + 0.0).tobytes(), squares.tobytes(), shift.tobytes()])
                assert found[0] == found[1]


@needs_compiler
@pytest.mark.parametrize("d", [*SIZES, 12, 200])
def test_gram_matrices_are_exact(d: int, compiled: CompiledPasses) -> None:
    rng = np.random.default_rng(d)
    # 1,500 squares of 42 bits: close to 2^53, where a sum that is rounded on its way would show.
    block = rng.integers(-(2**21), 2**21, size=(d, 1531))
    x = np.empty((d, 1543))
    x[:, 3:1534] = block
    for first, last in ((0, 1531), (0, 0), (5, 6), (1, 513), (2, 1026), (8, 1528)):
        total = np.full((d, d), 3.0)
        compiled.add_gram(total, x[:, 3 + first : 3 + last], 2**43)
        exact = block[:, first:last].astype(np.int64) @ block[:, first:last].T.astype(np.int64) + 3
        assert (np.triu(total.astype(np.int64)) == np.triu(exact)).all()


@needs_compiler
@pytest.mark.parametrize("d", [*SIZES, 12, 200])
def test_gram_matrices_of_short_integers_are_exact(d: int, compiled: CompiledPasses) -> None:
    rng, longest = np.random.default_rng(d), 4095
    block = np.rint(longest / np.sqrt(d) * rng.uniform(-1, 1, size=(d, 3100)))
    # As long as rows may be, all along one column or between two of them: no sum in 32 bits may be larger.
    block[:, 1000:] = 0.0
    block[d // 2, 1000:] = -longest
    for first, last in ((0, 3100), (0, 0), (5, 6), (1, 1025), (2, 2050), (999, 3000)):
        x = np.empty((d, 3103))
        x[:, 3:] = block
        total = np.full((d, d), 3.0)
        compiled.add_gram(total, x[:, 3 + first : 3 + last], longest**2)
        exact = block[:, first:last].astype(np.int64) @ block[:, first:last].T.astype(np.int64) + 3
        assert (np.triu(total.astype(np.int64)) == np.triu(exact)).all()


@needs_compiler
def test_short_integers_are_used_for_short_rows_alone(compiled: CompiledPasses) -> None:
    # An entry of 16 bits does not fit: the sum that comes out tells which product was used.
    x, square = np.full((2, 40), 2.0**15), 2.0**30 * 40
    for largest, exact in ((4095**2, not compiled._most_added_short), (4095**2 + 1, True), (2**40, True)):
        total = np.zeros((2, 2))
        compiled.add_gram(total, x, largest)
        assert (total[0, 0] == square) == exact


@needs_compiler
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("passes.c", "rint(entry[j] * factor[j])", "floor(entry[j] * factor[j] + 0.5)"),
        ("passes.c", "rint(entry[j] * factors[first + j])", "floor(entry[j] * factors[first + j] + 0.5)"),
        ("passes.c", "rint(entry[j] * factors[first + j])", "round(entry[j] * factors[first + j])"),
        ("passes.c", "(largest[j] < lowest) | (largest[j] >= infinite)", "largest[j] < lowest"),
        ("passes.c", "(largest[j] < lowest) | (largest[j] >= infinite)", "largest[j] >= infinite"),
        ("passes.c", "largest[j] = one;", ""),
        ("passes.c", "x[i * stride + j] = 0.0", "(void)x"),
        ("passes.c", "2045 + entry_log2", "2046 + entry_log2"),
        ("passes.c", "biased - 1022", "biased - 1021"),
        ("passes.c", "entry[j] -= centres[i]", "entry[j] += centres[i]"),
        ("passes.c", "entry[j] *= scales[i]", "entry[j] *= scales[0]"),
        ("passes.c", "own > largest[j] ? own : largest[j]", "own"),
        ("passes.c", "memcpy(squares + first, sums", "memcpy(squares, sums"),
        ("passes.c", "memcpy(squares, sums", "memcpy(squares, factor"),
        ("passes.c", "first += TILE", "first += 2 * TILE"),
        ("passes.c", "& INT64_MAX", ""),
        ("passes.c", "largest[j] = 0;", "largest[j] = one;"),
        ("passes.c", "sums[j] = 0.0;", "sums[j] = 1.0;"),
        ("passes.c", "rows.first += first * rows.down", "rows.first += first"),
        ("passes.c", "tile[TILE * i + j] = 1.0", "tile[TILE * i + j] = 2.0"),
        ("passes.c", "tile[TILE * i + j] = rows.first", "tile[TILE * i + j] = 2 * rows.first"),
        ("passes.c", "target[k] = entry[rows.down * k]", "target[k] = entry[rows.across * k]"),
        ("passes.c", "entry += rows.across", "entry += 1"),
        ("passes.c", "exponents[first + j] += own[j]", "exponents[first + j] -= own[j]"),
        ("passes.c", "x + count * i + first, some", "x + count * i, some"),
        ("products_of_lanes.h", "sums[i][b] += own", "sums[i][b] -= own"),
        ("products_of_lanes.h", "row += BESIDE * LANES", "row += 2 * BESIDE * LANES"),
        ("products_of_lanes.h", "int64_t k = begin[group]", "int64_t k = begin[group] + 1"),
        ("products_of_lanes.h", "first + GROUP < columns ? first + GROUP : columns", "first + 1"),
        ("products_of_lanes.h", "(first + i) * TILE + row", "first * TILE + row"),
        ("products_of_lanes.h", "sums[a][b] += own[a] * other[b]", "sums[a][b] += own[a] * own[b]"),
        ("products_of_lanes.h", "rest = row", "rest = row + 1"),
        ("products_of_lanes.h", "half = LANES / 2", "half = LANES / 4"),
        ("products_of_lanes.h", "i + a < columns &&", "i + a + 1 < columns &&"),
        ("products_of_lanes.h", "k < i + GROUP &&", "k < i &&"),
        (
            "products_of_lanes.h",
            "(i + a < columns ? i + a : i) * stride",
            "(i + a < columns ? i + a : i) * rows",
        ),
        ("products_of_lanes.h", "add_products(total, x + first,", "add_products(total, x,"),
        ("products_of_lanes.h", "k < beside + BAND &&", "k < beside + BAND / 2 &&"),
        ("products_of_lanes.h", "x + i * stride + first", "x + i * stride"),
        ("products_of_lanes.h", "double parts[LANES]", "float parts[2 * LANES]"),
        ("products_of_lanes.h", "ADD_PAIRS(own[a], other[b])", "ADD_PAIRS(own[a], own[b])"),
        ("products_of_lanes.h", "lane < 2 * LANES", "lane < LANES"),
        ("products_of_lanes.h", "row += 4 * LANES", "row += 8 * LANES"),
        ("products_of_lanes.h", "memset(target + count, 0", "memset(target + count, 1"),
        ("products_of_lanes.h", "(int16_t)(int32_t)column[row]", "(int8_t)(int32_t)column[row]"),
    ],
)
@pytest.mark.usefixtures("fresh")
def test_a_library_that_makes_other_bits_is_not_used(
    name: str, right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build(changed(tmp_path, name, right, wrong), tmp_path / "passes.so")
    monkeypatch.setattr(compiled_passes, "_LIBRARY", tmp_path / "passes.so")
    assert type(fastest_passes()) is NumpyPasses


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_a_library_is_used_where_it_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_passes, "_LIBRARY", tmp_path / "passes.so")
    assert type(fastest_passes()) is NumpyPasses
    assert build(SOURCES, tmp_path / "passes.so")
    fastest_passes.cache_clear()
    assert type(fastest_passes()) is CompiledPasses
    # One of another version has no such functions, and one for another machine is no library.
    (tmp_path / "nothing.so").write_bytes(b"nothing to run")
    monkeypatch.setattr(compiled_passes, "_LIBRARY", tmp_path / "nothing.so")
    fastest_passes.cache_clear()
    assert type(fastest_passes()) is NumpyPasses


@pytest.mark.parametrize("compiler", ["a-compiler-that-nobody-has", "", "cc '", "true", "false", "{file}"])
def test_without_a_compiler_nothing_is_built(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler.format(file=tmp_path))
    assert not build(SOURCES, tmp_path / "passes.so")
    assert not (tmp_path / "passes.so").exists()


@needs_compiler
def test_an_editable_install_keeps_no_library_of_older_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src" / "dpcov" / "core"
    folder.mkdir(parents=True)
    changed(folder, "passes.c", "", "")
    nothing: Any = None
    hook = CompiledPassesHook(str(tmp_path), {}, nothing, nothing, "", "wheel")
    for compiler, found in ((COMPILER, 1), ("false", 0)):
        monkeypatch.setenv("CC", compiler)
        hook.initialize("editable", {})
        hook.finalize("editable", {}, "")
        assert len(list(folder.glob("_passes.*"))) == found


@needs_compiler
def test_whatever_the_compiler_is_asked_for_numbers_keep_their_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A library that is linked for fast arithmetic may change that of the whole process when it is loaded.
    monkeypatch.setenv("CC", f"{COMPILER} -Ofast -ffast-math -funsafe-math-optimizations")
    assert build(SOURCES, tmp_path / "passes.so")
    load = f"ctypes.CDLL({str(tmp_path / 'passes.so')!r})"
    code = f"import ctypes, numpy; {load}; print(numpy.float64(5e-324) * 1)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert said.stdout.strip() == "5e-324"
    # Registers of another length round twice.
    monkeypatch.setenv("CC", f"{COMPILER} -mfpmath=387")
    assert not build(SOURCES, tmp_path / "other.so")


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
    if compiled._most_mapped:
        mapper = compiled.mapper(Steps(np.asfortranarray(np.eye(4)), None, None, 1.0, (27, 26)))
        for wrong in (fixed, np.asfortranarray(block)):
            with pytest.raises(ValueError, match="whole arrays of float64"):
                mapper(block, wrong, np.ones(6))
        with pytest.raises(ValueError, match="whole arrays of float64"):
            mapper(block, block.copy(), np.ones(5))
        for wrong in (block[:, :5], np.ones((5, 6))):
            with pytest.raises(ValueError, match="the same rows"):
                mapper(wrong, np.ones((4, 6)), np.ones(6))
        apart: NDArray[Any] = np.ndarray((4, 6), buffer=np.zeros(4 * 52), strides=(52, 8))
        others: list[NDArray[Any]] = [block[:, ::2], apart, np.ones((4, 6), dtype=np.int64)]
        for wrong in others:
            with pytest.raises(ValueError, match="one row after another"):
                compiled.add_gram(np.zeros((4, 4)), wrong, 9)
        with pytest.raises(ValueError, match="whole arrays of float64"):
            compiled.add_gram(np.zeros((5, 5)), block, 9)


def before_a_wall(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array to where a page ends, and the next one may not be touched."""
    length = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    room = mmap.mmap(-1, length + mmap.PAGESIZE)
    wall = ctypes.addressof(ctypes.c_char.from_buffer(room)) + length
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(wall), mmap.PAGESIZE, 0) == 0
    flat: NDArray[Any] = np.frombuffer(room, array.dtype, array.size, length - array.nbytes)
    copy = flat.reshape(array.shape, order="C" if array.flags.c_contiguous else "F")
    copy[...] = array
    return copy


@needs_compiler
@pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="pages cannot be protected")
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 9, 65])
def test_nothing_beyond_an_array_is_touched(d: int, compiled: CompiledPasses) -> None:
    # A process that does is ended.
    steps = Steps(np.asfortranarray(np.tri(d)), None, None, 1.0, (27, 26))
    mapper: Any = compiled.mapper(steps)
    if d <= compiled._most_mapped:
        mapper._coefficients, mapper._begin = map(before_a_wall, (mapper._coefficients, mapper._begin))
    for rows, order in itertools.product((1, 7, 8, 63, 65, 71, 129, 520), ("C", "F")):
        layout: Any = order
        block = before_a_wall(np.ones((d, rows), order=layout))
        x, squares, total = map(before_a_wall, (np.zeros((d, rows)), np.zeros(rows), np.zeros((d, d))))
        mapper(block, x, squares)
        compiled.round_rows(
            x, 27, 1.0, centres=before_a_wall(np.zeros(d)), scales=before_a_wall(np.ones(d)), squares=squares
        )
        compiled.scale_rows(x, before_a_wall(np.full(rows, 2.0**-17)))
        for largest_square in (2**40, 4095**2):
            if compiled._most_added:
                compiled.add_gram(total, x, largest_square)


@needs_compiler
def test_threads_do_not_share_what_they_work_with(compiled: CompiledPasses) -> None:
    lower = np.asfortranarray(np.tril(np.rint(2.0**22 * np.random.default_rng(0).normal(size=(9, 9)))))
    steps = Steps(lower, None, None, 1e-280, (27, 26))

    def totals(by: NumpyPasses, seed: int) -> list[bytes]:
        block, total = np.random.default_rng(seed).normal(size=(9, 30_000)), np.zeros((9, 9))
        mapper, x, squares = by.mapper(steps), np.empty_like(block), np.empty(30_000)
        for longest in (2**19, 4000) * 5:
            exponents = mapper(block, x, squares)
            by.scale_rows(x, longest / np.sqrt(squares))
            by.add_gram(total, x[:, :3000], longest**2)
        return [np.triu(total).tobytes(), exponents.tobytes(), (x + 0.0).tobytes()]

    with ThreadPoolExecutor(8) as executor:
        found = list(executor.map(totals, [compiled] * 16, range(16)))
    assert found == [totals(NumpyPasses(), seed) for seed in range(16)]


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
        Gram(Clipping(lattice_map, 1.0, rule), 1, "", coarse=True),
        NormHistogram(lattice_map, wide_grid(), 1, ""),
    ]
    size = Table.of_size(len(table), d, constant=constant, in_memory=True)
    tasks = [query.task(size, SeededBits(rng)) for query in queries]
    totals = []
    for by in (NumpyPasses(), compiled):
        for module in (lattice, gram):
            monkeypatch.setattr(module, "fastest_passes", lambda by=by: by)
        totals.append([ArraySource(table).scan(task).tobytes() for task in tasks])
    assert totals[0] == totals[1]
