"""The same passes compiled, where the package was built with a C compiler (``passes.c``, ``products.c``).

A few rows at a time go through all of them, so that they stay in the cache. The bits are those of numpy: each
process compares the two before it uses these. The proof note is ``lattice.md``.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpcov.core.passes import Block, Mapper, NumpyPasses, Steps, copy_rows, entry_bits

_LIBRARY = Path(__file__).with_name("_passes.so")
_POINTER, _LENGTH, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
# So long are rows at most whose Gram matrix is added up in short integers.
_LONGEST_SHORT = (1 << 12) - 1


class CompiledPasses(NumpyPasses):
    """The passes of a compiled library.

    A foreign call releases the interpreter's lock, so blocks run in parallel.
    """

    def __init__(self, library: Path) -> None:
        functions = ctypes.CDLL(str(library))
        self._map, self._add = functions.dpcov_map_rows_2, functions.dpcov_add_gram_2
        self._add_short = functions.dpcov_add_short_gram_2
        self._round, self._scale = functions.dpcov_round_rows_2, functions.dpcov_scale_rows_2
        block: list[Any] = [_POINTER, _LENGTH, _LENGTH]
        rounding: list[Any] = [_POINTER, _POINTER, _LENGTH, _NUMBER]
        self._map.argtypes = [_POINTER, _LENGTH, _LENGTH, _LENGTH, *block, *rounding]
        self._map.argtypes += [_POINTER, _POINTER, _LENGTH, _POINTER, _POINTER, _POINTER]
        self._round.argtypes = [*block, *rounding, _POINTER, _POINTER]
        self._scale.argtypes = [*block, _POINTER, _POINTER]
        self._add.argtypes = [_POINTER, *block, _LENGTH]
        self._add_short.argtypes = [*self._add.argtypes, _POINTER]
        for function in (self._map, self._round, self._scale, self._add, self._add_short):
            function.restype = None
        sizes = (_LENGTH * 6)()
        functions.dpcov_sizes_2(sizes)
        self._tile, self._group, self._short_panel, *most = sizes
        # Of up to so many columns, these products are compiled as well.
        self._most_mapped, self._most_added, self._most_added_short = most

    def mapper(self, steps: Steps) -> Mapper:
        """Return the same, compiled."""
        if len(steps.coefficients) > self._most_mapped:
            return super().mapper(steps)
        return _CompiledMapper(steps, self._map, self._tile, self._group)

    def round_rows(
        self,
        x: NDArray[np.float64],
        norm_log2: int,
        least: float,
        *,
        centres: NDArray[np.float64] | None = None,
        scales: NDArray[np.float64] | None = None,
        squares: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """Do the same, compiled."""
        columns, rows = x.shape
        exponents = np.empty(rows, dtype=np.int64)
        self._round(
            _address(x, columns * rows, changed=True),
            columns,
            rows,
            _address(centres, columns),
            _address(scales, columns),
            entry_bits(columns, norm_log2),
            least,
            exponents.ctypes.data,
            _address(squares, rows, changed=True),
        )
        return exponents

    def scale_rows(self, x: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Do the same, compiled."""
        columns, rows = x.shape
        squares = np.empty(rows)
        self._scale(
            _address(x, columns * rows, changed=True),
            columns,
            rows,
            _address(factors, rows),
            squares.ctypes.data,
        )
        return squares

    def add_gram(self, total: NDArray[np.float64], x: NDArray[np.float64], largest_square: int) -> None:
        """Do the same, compiled: short rows as short integers."""
        columns, rows = x.shape
        short = largest_square <= _LONGEST_SHORT**2
        if columns > (self._most_added_short if short else self._most_added) or not rows:
            super().add_gram(total, x, largest_square)
            return
        if x.dtype != np.float64 or x.strides[1] != 8 or x.strides[0] % 8:
            raise ValueError("compiled passes need float64, one row after another.")
        sums = _address(total, columns * columns, changed=True)
        asked = (sums, x.ctypes.data, columns, rows, x.strides[0] // 8)
        if not short:
            self._add(*asked)
            return
        room = np.empty(self._short_panel * (columns + self._group) + 32, dtype=np.int16)
        self._add_short(*asked, room.ctypes.data)


class _CompiledMapper:
    """Takes blocks through some steps, for one thread."""

    def __init__(self, steps: Steps, function: Any, tile: int, group: int) -> None:
        self._steps, self._function = steps, function
        d = len(steps.coefficients)
        groups = -(-d // group)
        padded = np.zeros((groups * group, d))
        padded[:d] = steps.coefficients
        # As products.c reads them: of each column, the coefficients of a group of coordinates.
        self._coefficients = np.ascontiguousarray(padded.reshape(groups, group, d).transpose(0, 2, 1))
        # Before these columns, a group has no other coefficient than 0: maps may be diagonal.
        self._begin = self._coefficients.any(axis=2).argmax(axis=1).astype(np.int64)
        self._bits = [entry_bits(d, norm_log2) for norm_log2 in steps.norms_log2]
        self._scratch = np.zeros(2 * tile * (d + group) + 8)

    def __call__(
        self, block: Block, x: NDArray[np.float64], squares: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        (columns, rows), given, steps = x.shape, len(block), self._steps
        if not _can_be_read(block):
            copy_rows(block, x)
            block = x[:given]
        if block.shape != (given, rows) or given > columns:
            raise ValueError("a block and what it becomes must have the same rows.")
        exponents = np.empty(rows, dtype=np.int64)
        self._function(
            block.ctypes.data,
            block.strides[1] // 8,
            block.strides[0] // 8,
            given,
            _address(x, columns * rows, changed=True),
            columns,
            rows,
            _address(steps.centres, columns),
            _address(steps.scales, columns),
            self._bits[0],
            steps.least,
            self._coefficients.ctypes.data,
            self._begin.ctypes.data,
            self._bits[1],
            self._scratch.ctypes.data,
            exponents.ctypes.data,
            _address(squares, rows, changed=True),
        )
        return exponents


def _can_be_read(block: Block) -> TypeGuard[NDArray[np.float64]]:
    """Whether compiled code can read the block where it lies."""
    if not isinstance(block, np.ndarray) or block.dtype != np.float64 or not block.dtype.isnative:
        return False
    return block.flags.aligned and all(step % 8 == 0 for step in block.strides)


def _address(array: NDArray[np.float64] | None, length: int, *, changed: bool = False) -> int | None:
    """Return where so many numbers lie one after another, or None for no array."""
    if array is None:
        return None
    whole = array.flags.c_contiguous and array.flags.aligned and (array.flags.writeable or not changed)
    if array.dtype != np.float64 or array.size != length or not whole:
        raise ValueError("compiled passes need whole arrays of float64.")
    return int(array.ctypes.data)


@lru_cache(maxsize=1)
def fastest_passes() -> NumpyPasses:
    """Return the compiled passes; those of numpy where there are none, or they differ from these in a bit."""
    try:
        compiled = CompiledPasses(_LIBRARY)
    except (OSError, AttributeError):
        return NumpyPasses()
    return compiled if _make_the_same(compiled) else NumpyPasses()


def _make_the_same(compiled: CompiledPasses) -> bool:
    """Whether blocks with all kinds of rows become what numpy makes of them."""
    entries = np.arange(1.0, 1001.0).reshape(5, 200)
    block = np.ldexp(np.sin(entries), (entries % 37).astype(np.int64) * 50 - 925)
    block[0, 10:20] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 1e-300, 5e-324, 0.5]
    block[:, 100:110] = 0.0
    block[:, 120:130] = 1e-283 * np.sin(entries[:, 120:130])
    # The least that is no zero row; rows of which one alone is infinite; rows of which a map may leave a 1.
    block[:, 130], block[2, 195] = 1e-280, np.inf
    block[:, 196:] = [[1.0], [2.0**24], [2.0**24], [2.0**24], [2.0**24]]
    block[:, 40:70] = np.rint(1e3 * np.sin(entries[:, 40:70])) + 0.5
    with np.errstate(all="ignore"):
        return _made_of(block, compiled) == _made_of(block, NumpyPasses())


def _made_of(block: NDArray[np.float64], passes: NumpyPasses) -> list[bytes]:
    made, numbers = [], np.arange(1.0, 1.0 + len(block))
    for centres, scales in ((None, None), (numbers, 2.0**numbers)):
        x, squares = block.copy(), np.empty(block.shape[1])
        exponents = passes.round_rows(x, 26, 1e-280, centres=centres, scales=scales, squares=squares)
        made += [x.tobytes(), exponents.tobytes(), squares.tobytes()]
        factors = np.geomspace(1e-9, 1.0, len(squares))
        # Halves, of which even numbers are made.
        factors[::3] = 0.5
        made += [passes.scale_rows(x, factors).tobytes(), x.tobytes()]
        made += _products_of(block, centres, scales, passes)
    return made


def _products_of(
    block: NDArray[np.float64],
    centres: NDArray[np.float64] | None,
    scales: NDArray[np.float64] | None,
    passes: NumpyPasses,
) -> list[bytes]:
    """Map the rows, also with a constant column and from other places in memory; add up a Gram matrix."""
    made = []
    apart, one = np.repeat(block.T, 2, axis=1)[:, ::2].T, np.broadcast_to(block[:, :1], (5, 70))
    # As large as they may be: all bits of the sums matter.
    lower = np.rint(2.0**23 * np.cos(np.arange(25.0).reshape(5, 5)))
    for rows in (block, block[:-1], np.asfortranarray(block), apart[:, :197], block[:, ::-1], one):
        x, squares = np.empty((5, rows.shape[1])), np.empty(rows.shape[1])
        for coefficients in (np.diag([1.0, 0.0, 0.0, 0.0, 0.0]), np.tril(lower)):
            steps = Steps(np.asfortranarray(coefficients), centres, scales, 1e-280, (27, 26))
            exponents = passes.mapper(steps)(rows, x, squares)
            # A product may be -0, which is no other number.
            made += [(x + 0.0).tobytes(), exponents.tobytes(), squares.tobytes()]
        # Integers of at most 2^22, 144 of whose products stay below 2^53.
        x = np.rint(x * 2.0**-2)
        # More columns and rows than are added up at a time, also as short integers.
        wide, short = np.rint(np.resize(x, (67, 600)) / 4), np.rint(np.resize(x, (67, 1200)) * 2.0**-14)
        for integers, norm_log2 in ((x, 24), (wide, 24), (short[:5], 10), (short, 11)):
            total = np.ones((len(integers), len(integers)))
            for part in (integers[:, 1:57], integers[:, 57:]):
                passes.add_gram(total, part, 4**norm_log2)
            made.append(np.triu(total).tobytes())
    return made
