"""What error the default method is predicted to have: calibrated on benchmarks, not proved."""

from __future__ import annotations

import math
from collections.abc import Callable

# Measured on the Gaussian tables of benchmarks/results/accuracy.csv.
_RELEASED_SHARE = 0.85


def whitening_error(
    n_rows: int, n_columns: int, rho: float, leverage_beyond: Callable[[float], float]
) -> float:
    """Return the noise of the last release, at the radius beyond which d sqrt(2 d / rho) rows are clipped.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table.
    rho : float
        The budget.
    leverage_beyond : callable
        The squared length of a whitened row that a part of the rows exceeds, such as
        ``Distribution.leverage_beyond``.
    """
    clipped = min(n_columns * math.sqrt(2 * n_columns / rho) / n_rows, 0.5)
    noise = math.sqrt(2 * n_columns) / (n_rows * math.sqrt(rho * _RELEASED_SHARE))
    return noise * leverage_beyond(clipped)
