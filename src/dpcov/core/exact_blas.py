"""Exact integer matrix products by float64 BLAS.

Float64 holds every integer up to 2^53. A product whose partial sums are all integers of at
most that size therefore has no rounding at all, in any order, on any number of threads, with
or without fused multiply-add. The callers guarantee the sizes; this module calls BLAS and
checks once a process that the BLAS at hand does what it should.

SciPy's own wrappers hold the interpreter lock. Its Cython interface hands out the function
pointers of the same library, and a foreign call releases the lock, so blocks run in parallel.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.linalg.cython_blas
from numpy.typing import NDArray

from dpcov.core.errors import ExactnessError

LARGEST_EXACT = 1 << 53
"""Up to this magnitude every integer is a float64."""

_INT = ctypes.c_int
_ONE = ctypes.byref(ctypes.c_double(1.0))


def _foreign(name: str, arguments: int) -> Any:
    pythonapi = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", pythonapi))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", pythonapi)
    )
    functions: dict[str, Any] = dict(scipy.linalg.cython_blas.__pyx_capi__)
    capsule = functions[name]
    prototype = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * arguments))
    return prototype(get_pointer(capsule, get_name(capsule)))


_dtrmm = _foreign("dtrmm", 11)
_dsyrk = _foreign("dsyrk", 10)
_dgemm = _foreign("dgemm", 13)
# Of up to so many columns, OpenBLAS is faster with the whole product than with half of it.
_FEW_COLUMNS = 11


def apply_triangular(lower: NDArray[np.float64], block: NDArray[np.float64]) -> None:
    """Replace `block`, one row of the table a column, by ``lower @ block``; C order, `lower` in Fortran's."""
    d, rows = block.shape
    if not rows:
        return
    columns, length, place = ctypes.byref(_INT(d)), ctypes.byref(_INT(rows)), block.ctypes.data
    # Fortran reads the block as its transpose, so the map acts from the right, transposed.
    _dtrmm(b"R", b"L", b"T", b"N", length, columns, _ONE, lower.ctypes.data, columns, place, length)


def add_gram(total: NDArray[np.float64], block: NDArray[np.float64]) -> None:
    """Add ``block @ block.T`` to the upper triangle of `total`, perhaps to the lower; rows are contiguous."""
    d, rows = block.shape
    if not rows:
        return
    apart = ctypes.byref(_INT(max(block.strides[0] // block.itemsize, rows)))
    columns, length = ctypes.byref(_INT(d)), ctypes.byref(_INT(rows))
    place, sums = block.ctypes.data, total.ctypes.data
    if d <= _FEW_COLUMNS:
        _dgemm(b"T", b"N", columns, columns, length, _ONE, place, apart, place, apart, _ONE, sums, columns)
    else:
        _dsyrk(b"L", b"T", columns, length, _ONE, place, apart, _ONE, sums, columns)


@lru_cache(maxsize=1)
def check_blas() -> None:
    """Raise `ExactnessError` if this machine's BLAS is not exact on integers below 2^53.

    Public numbers only, chosen so that the partial sums come close to 2^53: a BLAS that
    emulates float64 by shorter numbers, or rounds in between, fails.
    """
    # 37 terms below 2^23 * 2^23 stay below 2^52; 64 squares below 2^46 stay below 2^53.
    numbers = np.arange(37 * 101).reshape(37, 101) ** 2 * 2654435761 % (1 << 24) - (1 << 23)
    block, lower = numbers[:, :64], np.tril(numbers[:, 64:])
    product = block.astype(np.float64)
    apply_triangular(np.asfortranarray(lower.astype(np.float64)), product)
    exact = (product.astype(np.int64) == lower.astype(object) @ block.astype(object)).all()
    for columns in (37, _FEW_COLUMNS):
        total, part = np.zeros((columns, columns)), block[:columns, 1:]
        add_gram(total, block.astype(np.float64)[:columns, 1:])
        exact &= (
            np.triu(total.astype(np.int64)) == np.triu(part.astype(object) @ part.T.astype(object))
        ).all()
    if not exact:
        raise ExactnessError(
            "The BLAS that SciPy uses here does not compute float64 products exactly, which the privacy "
            "guarantee rests on. Use a BLAS with IEEE float64 arithmetic, such as OpenBLAS."
        )
