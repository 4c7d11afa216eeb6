"""From a public matrix to a nearby integer map: arithmetic of public numbers, which sees no row.

Privacy does not rest on it: whatever map comes out, ``core/lattice.md`` bounds the rows that it maps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcov.core.errors import ArgumentError
from dpcov.core.lattice import (
    ENTRY_NORM_LOG2,
    GREATEST_COLUMN_EXPONENT,
    MAP_NORM_LOG2,
    LatticeMap,
)
from dpcov.core.passes import entry_bits

_NEGLIGIBLE_EXPONENT_SPREAD = 2
_GREATEST_MAP_EXPONENT = 800


def identity_map(n_columns: int) -> LatticeMap:
    """Return the identity on `n_columns` columns."""
    return integer_map(np.eye(n_columns))


def integer_map(
    matrix: ArrayLike, sizes: ArrayLike | None = None, centres: ArrayLike | None = None
) -> LatticeMap:
    """Round a square matrix to a nearby integer map, up to a rotation of its output.

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        Any finite matrix A. The result T is lower triangular with ``T.T @ T`` close to
        ``A.T @ A``: a rotation changes no norm, and a triangular product costs half.
    sizes : array_like, shape (d,), optional
        How large the entries of each column typically are, `centres` subtracted. If not given, those of a
        table that A whitens.
    centres : array_like, shape (d,), optional
        What to subtract from each column first, for a table whose last column is the constant one: of rows
        far from zero, rounding then leaves as much as of others.

    Returns
    -------
    LatticeMap
        Always invertible. It is the map it says it is: invert ``result.matrix()``, not A.
    """
    target = np.asarray(matrix, dtype=np.float64)
    if target.ndim != 2 or target.shape[0] != target.shape[1] or target.shape[0] == 0:
        raise ArgumentError(f"map must be a square matrix, got shape {target.shape}.")
    if not np.isfinite(target).all() or not target.any():
        raise ArgumentError("map must be finite and not zero.")
    d = len(target)
    magnitude = int(np.frexp(np.abs(target).max())[1])
    if abs(magnitude) > _GREATEST_MAP_EXPONENT:
        raise ArgumentError("map must have entries between 1e-240 and 1e240.")
    target = np.ldexp(target, -magnitude)
    moved = _moderate(np.zeros(d) if centres is None else np.asarray(centres, dtype=np.float64))
    # A x = A' (x - c) with the constant column x_d = 1, where A' has A c more of it.
    target[:, -1] += target @ moved
    exponents = _column_exponents(target) if sizes is None else _size_exponents(np.asarray(sizes))
    triangle = _lower_triangular_factor(np.ldexp(target, -exponents))
    norm = float(np.linalg.norm(triangle))
    units = ((1 << MAP_NORM_LOG2) - d) / norm
    coefficients = np.asfortranarray(np.rint(triangle * units))
    diagonal = np.diagonal(coefficients)
    np.fill_diagonal(coefficients, np.where(np.abs(diagonal) < 1, 1.0, diagonal))
    return LatticeMap(coefficients, float(np.ldexp(units, -magnitude)), exponents, moved)


def largest_gain_ratio(n_columns: int) -> float:
    """Return how much longer than another a map may make a direction before rounding shows in it.

    Entries of a row have q bits, 23 to 27 of them. At a ratio of ``2^(q - 4)`` rounding has a share of about
    ``4^-4 / 12 = 0.0003`` of the variance of a direction, times how many columns it is made of.

    Examples
    --------
    >>> from dpcov.maps import largest_gain_ratio
    >>> largest_gain_ratio(10) == 2**21
    True
    """
    return 2.0 ** (entry_bits(n_columns, ENTRY_NORM_LOG2) - 4)


def rounding_variance(lattice_map: LatticeMap, sizes: ArrayLike) -> float:
    """Return how much variance the rounding of rows adds at most to any direction of their image.

    Parameters
    ----------
    lattice_map : LatticeMap
        The map.
    sizes : array_like, shape (d,)
        Root mean squares of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.maps import integer_map, rounding_variance
    >>> bool(rounding_variance(integer_map(np.diag([1.0, 1.0])), [1.0, 1.0]) < 1e-15)
    True
    >>> amplified = integer_map(np.array([[1.0, 0.0], [2.0**22, -(2.0**22)]]))
    >>> bool(rounding_variance(amplified, [1.0, 1.0]) > 1e-4)
    True
    """
    bits = entry_bits(lattice_map.n_columns, ENTRY_NORM_LOG2)
    scaled = np.ldexp(np.asarray(sizes, dtype=np.float64), lattice_map.column_exponents)
    # A unit of a row is between 2^-q and 2^(1-q) of its largest entry, whose square is at most the sum of all
    # squares; rounding to units is off by a twelfth of a squared unit on average.
    unit = 2.0 ** (1 - bits) * float(np.linalg.norm(scaled))
    gain = float(np.linalg.norm(lattice_map.coefficients, 2)) / lattice_map.scale
    return (unit * gain) ** 2 / 12


def map_rounding(lattice_map: LatticeMap, sizes: ArrayLike) -> float:
    """Return how far a row's image is at most from what `integer_map` was asked for.

    `sizes` bound the entries of the row, and the result is proportional to them. It counts the rounding
    of the row and of the coefficients (by at most 1/2 each, 1 on the diagonal); the image itself is
    rounded as well, by at most 2^-24 d of its length.
    """
    d = lattice_map.n_columns
    scaled = np.ldexp(np.asarray(sizes, dtype=np.float64), lattice_map.column_exponents)
    row = float(scaled.max()) * 2.0 ** -entry_bits(d, ENTRY_NORM_LOG2)
    columns = float(np.linalg.norm(lattice_map.coefficients, axis=0).sum())
    coefficients = math.sqrt(d * (d - 1) / 8 + d)
    return (row * columns + coefficients * float(np.linalg.norm(scaled))) / lattice_map.scale


def _column_exponents(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return powers of two that bring the columns of a table to a common scale.

    A map that whitens a table tells the scale of each column: the norm of that row of its
    inverse. Scaled by it, a row has entries of like size, and rounding them to a common
    exponent costs least.
    """
    exponents = np.frexp(np.abs(matrix).max(axis=0))[1].astype(np.int64)
    try:
        with np.errstate(all="ignore"):
            scales = np.linalg.norm(np.linalg.inv(np.ldexp(matrix, -exponents)), axis=1)
    except np.linalg.LinAlgError:
        scales = np.ones(len(matrix))
    if np.isfinite(scales).all() and (scales > 0).all():
        exponents -= np.frexp(scales)[1]
    return _relative(exponents)


def _moderate(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return centres that a map may have: others are 0, and that of the constant column is."""
    sizes = np.abs(centres)
    moderate = (sizes > 2.0**-_GREATEST_MAP_EXPONENT) & (sizes < 2.0**_GREATEST_MAP_EXPONENT)
    moderate[-1] = False
    return np.where(moderate, centres, 0.0)


def _size_exponents(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return powers of two that bring columns of these sizes to a common one."""
    if sizes.ndim != 1 or not ((sizes > 0) & (sizes < np.inf)).all():
        raise ArgumentError("sizes must be finite numbers greater than 0, one a column.")
    return _relative(-np.frexp(sizes)[1].astype(np.int64))


def _relative(exponents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bring the greatest exponent to 0; all of them, if they hardly differ."""
    exponents = np.maximum(exponents - exponents.max(), -GREATEST_COLUMN_EXPONENT)
    if exponents.min() >= -_NEGLIGIBLE_EXPONENT_SPREAD:
        return np.zeros_like(exponents)
    return exponents


def _lower_triangular_factor(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return lower triangular T with ``T.T @ T == matrix.T @ matrix`` and no negative diagonal."""
    lower = np.linalg.qr(matrix[:, ::-1]).R[::-1, ::-1]
    signs = np.where(np.diagonal(lower) < 0, -1.0, 1.0)
    triangle: NDArray[np.float64] = lower * signs[:, None]
    return triangle
