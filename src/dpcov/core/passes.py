"""Passes over a block of rows: to integers of bounded size, through a map, to the lattice, to a Gram matrix.

In numpy and BLAS: the reference, for ``compiled_passes.py`` as well. The proof note is ``lattice.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core.exact_blas import add_gram, apply_triangular

Block = NDArray[np.float64] | Sequence[NDArray[np.generic]]
"""Some rows, one table column after another: shape (columns, rows), or a sequence of columns."""

_TILE_ENTRIES = 1 << 15
_LEAST_TILE = 512


@dataclass(frozen=True, eq=False)
class Steps:
    """How rows become mapped integers: what is subtracted, multiplied and rounded, and the map.

    Attributes
    ----------
    coefficients : ndarray of float64, shape (d, d), Fortran order
        Lower triangular integers.
    centres, scales : ndarray of float64, shape (d,), optional
        Subtracted from the columns, and what these are multiplied by then.
    least : float
        Rows without an entry as large become zero.
    norms_log2 : tuple of int
        Binary logarithms of how long the integers are at most before the map, and after.
    """

    coefficients: NDArray[np.float64]
    centres: NDArray[np.float64] | None
    scales: NDArray[np.float64] | None
    least: float
    norms_log2: tuple[int, int]


Mapper = Callable[[Block, NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]
"""Fills x with the mapped integers of a block, and an array with their squared norms; returns the exponents.

Where x has one column more than the block, it is 1.
"""


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

    def mapper(self, steps: Steps) -> Mapper:
        """Return what takes blocks of rows through these steps, one after another."""
        return partial(self._map_rows, steps)

    def _map_rows(
        self, steps: Steps, block: Block, x: NDArray[np.float64], squares: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        own = copy_rows(block, x)
        x[own:] = 1.0
        before, after = steps.norms_log2
        exponents = self.round_rows(x, before, steps.least, centres=steps.centres, scales=steps.scales)
        apply_triangular(steps.coefficients, x)
        exponents += self.round_rows(x, after, 1.0, squares=squares)
        return exponents

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

    def add_gram(self, total: NDArray[np.float64], x: NDArray[np.float64], largest_square: int) -> None:
        """Add ``x @ x.T`` to the upper triangle of `total`, perhaps to the lower.

        The squared norms of the rows, which are integers, are at most `largest_square`.
        """
        del largest_square
        add_gram(total, x)


def copy_rows(block: Block, x: NDArray[np.float64]) -> int:
    """Copy the columns of a block to the first ones of x; return how many these are."""
    given = len(block)
    if not isinstance(block, np.ndarray):
        for target, column in zip(x[:given], block, strict=True):
            np.copyto(target, column, casting="unsafe")
        return given
    # In tiles: a row-major table is then read once from memory, not once a column.
    tile = max(_LEAST_TILE, _TILE_ENTRIES // len(x))
    for first in range(0, x.shape[1], tile):
        np.copyto(x[:given, first : first + tile], block[:, first : first + tile], casting="unsafe")
    return given
