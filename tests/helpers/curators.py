"""Curators of real rows, for tests."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core import (
    Budget,
    Clipping,
    Curator,
    OSEntropy,
    PrivacyCost,
    Report,
    RowTask,
    SeededBits,
)
from dpcov.core.budget import Number
from dpcov.maps import identity_map
from dpcov.sources import ArraySource


class CountingSource(ArraySource):
    """A real source that counts its scans."""

    scans = 0

    def scan(self, task: RowTask, report: Report | None = None) -> NDArray[np.int64]:
        self.scans += 1
        return super().scan(task, report)


def curator(
    rows: NDArray[np.float64],
    rho: Number = 1,
    delta: Number = 0,
    seed: int | None = 0,
    *,
    constant: bool = False,
) -> tuple[Curator, CountingSource]:
    source = CountingSource(rows)
    bits = OSEntropy() if seed is None else SeededBits(np.random.default_rng(seed))
    return Curator(
        source, Budget(PrivacyCost(Fraction(rho), Fraction(delta))), bits, constant=constant
    ), source


def gaussian_rows(n_rows: int = 20_000, d: int = 4) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(n_rows, d))


def identity(d: int, radius: float = 10.0, **options: Any) -> Clipping:
    return Clipping(identity_map(d), radius, **options)
