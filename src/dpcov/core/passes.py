"""Passes over a block of rows: to integers of bounded size, and by a factor to the lattice.

In numpy, which is the reference, and compiled (``passes.c``) where the package was built with a C compiler:
the same operations on every number, so the same bits, in fewer passes over memory. The proof note is
``lattice.md``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LIBRARY = Path(__file__).with_name("_passes.so")
_POINTER, _LENGTH, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


def entry_bits(d: int, norm_log2: int) -> int:
    """Return q such that d integers of at most 2^q have a squared norm of at most 4^norm_log2."""
    return (2 * norm_log2 - (d - 1).bit_length()) // 2


def round_rows(
    x: NDArray[np.float64], norm_log2: int, least: float, scratch: Sequence[Any] = (None, None)
) -> NDArray[np.int64]:
    """Round each row of the table, one a column, to integers with a squared norm of at most 4^norm_log2.

    In place. Rows whose largest entry is below `least`, infinite or NaN become zero. Returns the exponents e:
    each row was about its integers times 2^e. They lie in the first of two arrays of `scratch`, if given.
    """
    entry_log2 = entry_bits(len(x), norm_log2)
    largest: NDArray[np.float64] = np.maximum.reduce(x, axis=0, out=scratch[0])
    factor: NDArray[np.float64] = np.minimum.reduce(x, axis=0, out=scratch[1])
    np.maximum(largest, np.negative(factor, out=factor), out=largest)
    # A NaN among them fails both comparisons.
    if not (largest.min(initial=np.inf) >= least and largest.max(initial=0.0) < np.inf):
        hostile = ~((largest >= least) & (largest < np.inf))
        largest[hostile] = 1.0
        x[:, hostile] = 0.0
    # As the bits of normal positive numbers have it: 1022 more than frexp gives, in a tenth of its time.
    exponent, bits = largest.view(np.int64), factor.view(np.int64)
    exponent >>= 52
    np.left_shift(np.subtract(2045 + entry_log2, exponent, out=bits), 52, out=bits)
    np.rint(np.multiply(x, factor, out=x), out=x)
    exponent -= 1022 + entry_log2
    return exponent


class NumpyPasses:
    """The passes of a block with one column of the table after another: the reference."""

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
        """Subtract the columns' centres, multiply by their scales, do as `round_rows`; fill in `squares`."""
        if centres is not None:
            x -= centres[:, None]
        if scales is not None:
            x *= scales[:, None]
        exponents = round_rows(x, norm_log2, least)
        if squares is not None:
            np.einsum("ij,ij->j", x, x, out=squares)
        return exponents

    def scale_rows(self, x: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply every row by its factor and round, in place. Returns the squared norms."""
        np.rint(np.multiply(x, factors, out=x), out=x)
        squares: NDArray[np.float64] = np.einsum("ij,ij->j", x, x)
        return squares


class CompiledPasses(NumpyPasses):
    """The same passes by a compiled library.

    A foreign call releases the interpreter's lock, so blocks run in parallel.
    """

    def __init__(self, library: Path) -> None:
        functions = ctypes.CDLL(str(library))
        self._round, self._scale = functions.dpcov_round_rows_1, functions.dpcov_scale_rows_1
        block: list[Any] = [_POINTER, _LENGTH, _LENGTH]
        self._round.argtypes = [*block, _POINTER, _POINTER, _LENGTH, _NUMBER, _POINTER, _POINTER]
        self._scale.argtypes = [*block, _POINTER, _POINTER]
        self._round.restype = self._scale.restype = None

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
    """Return the compiled passes; those of numpy where they were not built, or differ from these in a bit."""
    try:
        compiled = CompiledPasses(_LIBRARY)
    except (OSError, AttributeError):
        return NumpyPasses()
    return compiled if _make_the_same(compiled) else NumpyPasses()


def _make_the_same(compiled: CompiledPasses) -> bool:
    """Whether a block with all kinds of rows becomes what numpy makes of it."""
    entries = np.arange(1.0, 1001.0).reshape(5, 200)
    block = np.ldexp(np.sin(entries), (entries % 37).astype(np.int64) * 50 - 925)
    block[0, 10:20] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 1e-300, 5e-324, 0.5]
    block[:, 100:110] = 0.0
    block[:, 40:70] = np.rint(1e3 * np.sin(entries[:, 40:70])) + 0.5
    with np.errstate(all="ignore"):
        return _made_of(block, compiled) == _made_of(block, NumpyPasses())


def _made_of(block: NDArray[np.float64], passes: NumpyPasses) -> list[bytes]:
    made, numbers = [], np.arange(1.0, 1.0 + len(block))
    for centres, scales in ((None, None), (numbers, 2.0**numbers)):
        x, squares = block.copy(), np.empty(block.shape[1])
        exponents = passes.round_rows(x, 26, 1e-280, centres=centres, scales=scales, squares=squares)
        made += [x.tobytes(), exponents.tobytes(), squares.tobytes()]
        made += [passes.scale_rows(x, np.geomspace(1e-9, 1.0, len(squares))).tobytes(), x.tobytes()]
    return made
