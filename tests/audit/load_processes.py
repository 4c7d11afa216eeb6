"""What the processes of the load tests do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np

import dpcov
from dpcov.core import BudgetError, DpcovError

COST = Fraction(1, 100)
THREADS = 5
ROWS = np.random.default_rng(0).normal(size=(200, 3))


def release_once(path: str) -> str:
    """Release at the cost of the ledger; return what happened."""
    try:
        dpcov.release(
            ROWS, rho=COST, method="gaussian", radius=3.0, ledger=path, dataset="people", progress=False
        )
    except BudgetError:
        return "refused"
    except DpcovError as error:
        return type(error).__name__
    return "released"


def release_in_threads(path: str) -> list[str]:
    """Release from several threads at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(release_once, [path] * THREADS))
