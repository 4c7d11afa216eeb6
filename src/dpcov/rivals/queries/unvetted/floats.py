"""Uniform and normal numbers in float64, from the core's bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource
from dpcov.core.noise import rounded_gaussian

_FRACTION_BITS = 40


def uniforms(bits: BitSource, count: int) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1) on a grid of 2^-53."""
    numbers: NDArray[np.float64] = (bits.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def normals(bits: BitSource, *shape: int) -> NDArray[np.float64]:
    """Return standard normal numbers on a grid of 2^-40."""
    whole = rounded_gaussian(bits, 1 << (2 * _FRACTION_BITS), math.prod(shape))
    numbers: NDArray[np.float64] = whole.astype(np.float64).reshape(shape) * 2.0**-_FRACTION_BITS
    return numbers
