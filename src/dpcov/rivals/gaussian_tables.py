"""What the methods for Gaussian tables share: how long their rows are."""

from __future__ import annotations

import math


def chi_radius(d: int, failure: float) -> float:
    """Return a length that a standard normal vector exceeds with probability `failure` at most.

    Laurent and Massart (2000), Lemma 1.
    """
    log = math.log(1 / failure)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)
