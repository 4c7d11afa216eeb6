"""What the methods for Gaussian tables share: how long rows are, and what a matrix is mapped back to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpcov.core import LatticeMap, NoisyGram
from dpcov.laws import NoiseLaw, nearest_positive_semidefinite
from dpcov.methods.estimate import Estimate


def chi_radius(d: int, failure: float) -> float:
    """Return a length that a standard normal vector exceeds with probability `failure` at most.

    Laurent and Massart (2000), Lemma 1.
    """
    log = math.log(1 / failure)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)


def mapped_back(lattice_map: LatticeMap, answer: NoisyGram, diagnostics: Mapping[str, Any]) -> Estimate:
    """Return the estimate that a noisy second moment of mapped rows stands for."""
    inverse = np.asarray(np.linalg.inv(lattice_map.matrix()), dtype=np.float64)
    matrix = inverse @ nearest_positive_semidefinite(answer.mean()) @ inverse.T
    return Estimate((matrix + matrix.T) / 2, diagnostics, NoiseLaw(inverse, answer.sigma))
