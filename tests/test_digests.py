"""The same seed gives the same release, before and after a change of the code that should change nothing.

``digests.json`` holds what every method released. Values are compared up to rounding, since kernels of
linear algebra differ from machine to machine. ``DPCOV_EXACT_DIGESTS=1`` compares every bit as well, which
holds on the machine that wrote the file. After a change that is meant to change releases, write it anew:
``python tests/test_digests.py``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov

STORED = Path(__file__).with_name("digests.json")
Rows = NDArray[np.float64]
Asked = tuple[NDArray[np.float64], dpcov.Receipt]


def normal_rows(n_rows: int, n_columns: int, largest: float = 1.0) -> Rows:
    """Correlated columns whose sizes fall to a hundredth of the largest."""
    rng = np.random.default_rng([n_rows, n_columns])
    sizes = largest * 10.0 ** np.linspace(0, -2, n_columns)
    rows: Rows = rng.standard_normal((n_rows, n_columns)) * sizes
    rows[:, 0] += largest * np.cumsum(rows[:, ::-1] / sizes[::-1], axis=1)[:, -1] / n_columns
    return rows


def heavy_rows(n_rows: int) -> Rows:
    """A heavy column, a rare one, and two normal ones away from zero."""
    rng = np.random.default_rng(n_rows)
    columns = [
        np.exp(rng.standard_normal(n_rows)),
        (rng.random(n_rows) < 0.02).astype(np.float64),
        3 + rng.standard_normal(n_rows),
        40 + 5 * rng.standard_normal(n_rows),
    ]
    return np.column_stack(columns)


def hostile_rows(n_rows: int, outliers: float = 1e4) -> Rows:
    """Rows with gaps, infinities and outliers."""
    rows = normal_rows(n_rows, 3)
    rows[::50, 1] = np.nan
    rows[7::90, 0] = np.inf
    rows[11::70] *= outliers
    return rows


def released(rows: Rows, method: str, **options: Any) -> Asked:
    options = {"rho": 1, "intercept": False, **options}
    made = dpcov.release(rows, method=method, rng=np.random.default_rng(1), **options)
    return np.asarray(made.second_moment()), made.receipt


def told(ask: Callable[..., Any], names: tuple[str, ...], rows: Rows, **options: Any) -> Asked:
    answer = ask(rows, rng=np.random.default_rng(2), **options)
    return np.concatenate([np.atleast_1d(getattr(answer, name)) for name in names]), answer.receipt


FEW, MANY = partial(normal_rows, 2000, 3), partial(normal_rows, 300_000, 1)
CASES: dict[str, Callable[[], Asked]] = {
    "whitening": lambda: released(FEW(), "whitening"),
    "whitening, constant": lambda: released(FEW() + 2, "whitening", intercept=True),
    "whitening, epsilon": lambda: released(FEW(), "whitening", rho=None, epsilon=2, delta=1e-6),
    "whitening, heavy": lambda: released(heavy_rows(8000), "whitening", intercept=True),
    "whitening, hostile": lambda: released(hostile_rows(3000, 5.0), "whitening", intercept=True),
    "whitening, contamination": lambda: released(hostile_rows(3000), "whitening", contamination=0.05),
    "whitening, m": lambda: released(FEW(), "whitening", m=40, alpha=0.5, beta=1e-6),
    "whitening, one column": lambda: released(normal_rows(500, 1), "whitening"),
    "whitening, wide": lambda: released(normal_rows(3000, 30), "whitening", rho=10),
    "recursive": lambda: released(FEW(), "recursive", rho=40, m=6, radius=10.0, least_eigenvalue=1e-3),
    "recursive, paper": lambda: released(
        FEW(), "recursive", rho=400, m=4, radius=10.0, least_eigenvalue=1e-3, constants="paper"
    ),
    "recursive, nothing told": lambda: released(
        normal_rows(4000, 2), "recursive", rho=400, delta=1e-3, m=20, intercept=True
    ),
    "aggregate": lambda: released(MANY(), "aggregate", rho=400, delta=1e-6, m=500, alpha=0.2, radius=8.0),
    "aggregate, radius found": lambda: released(MANY(), "aggregate", rho=400, delta=1e-6, m=500, alpha=0.2),
    "gaussian": lambda: released(FEW(), "gaussian", radius=10.0),
    "gaussian, constant": lambda: released(hostile_rows(3000), "gaussian", radius=10.0, intercept=True),
    "coinpress": lambda: released(FEW(), "coinpress", largest_eigenvalue=100.0, rounds=4),
    "preconditioning": lambda: released(
        FEW(), "preconditioning", largest_eigenvalue=100.0, least_eigenvalue=1e-4
    ),
    "unbounded": lambda: released(normal_rows(4000, 2), "unbounded", rho=200, delta=1e-2),
    "separate": lambda: released(FEW(), "separate", radius=10.0),
    "adaptive": lambda: released(FEW(), "adaptive", radius=10.0),
    "exponential": lambda: released(FEW(), "exponential", radius=10.0, allow_unvetted=True),
    "leverage": lambda: released(
        normal_rows(4000, 2), "leverage", rho=200, delta=1e-2, leverage=20.0, allow_unvetted=True
    ),
    "covering_radius": lambda: told(
        dpcov.covering_radius, ("radius", "outside_at_most"), hostile_rows(3000), rho=1
    ),
    "enclosing_ball": lambda: told(
        dpcov.enclosing_ball, ("centre", "radius", "outside_at_most"), heavy_rows(4000), rho=1
    ),
    "least_eigenvalue": lambda: told(
        dpcov.least_eigenvalue, ("value",), FEW(), m=20, radius=10.0, epsilon=4, delta=1e-3
    ),
    "subsamplability": lambda: told(
        dpcov.subsamplability, ("score", "at_least"), FEW(), m=5, radius=10.0, epsilon=1, delta=1e-6
    ),
}  # fmt: skip


def digest(values: NDArray[np.float64], receipt: dpcov.Receipt) -> dict[str, Any]:
    charges = [[charge.purpose, str(charge.cost.rho), str(charge.cost.delta)] for charge in receipt.charges]
    whole = np.ascontiguousarray(values, dtype=np.float64)
    bits = hashlib.sha256(whole.astype("<f8").tobytes() + json.dumps(charges).encode())
    return {"sha256": bits.hexdigest(), "values": whole.tolist(), "charges": charges}


def scale_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How large each value may be: in a second moment, an entry is judged by its row and column."""
    if values.ndim < 2:
        return np.abs(values)
    sizes = np.sqrt(np.abs(np.diagonal(values)))
    return np.outer(sizes, sizes)


def test_every_method_has_a_digest() -> None:
    covered = {name.split(",")[0] for name in CASES}
    assert {method.name for method in dpcov.methods() if method.available} <= covered
    assert set(json.loads(STORED.read_text())) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_seed_gives_the_stored_release(name: str) -> None:
    stored, now = json.loads(STORED.read_text())[name], digest(*CASES[name]())
    if os.environ.get("DPCOV_EXACT_DIGESTS"):
        assert now == stored
    expected, found = np.array(stored["values"]), np.array(now["values"])
    # What is spent on a round follows from earlier answers, in floats that another machine rounds otherwise.
    for before, after in zip(stored["charges"], now["charges"], strict=True):
        assert [before[0], before[2]] == [after[0], after[2]]
        assert math.isclose(Fraction(before[1]), Fraction(after[1]), rel_tol=1e-9)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-6 * scale_of(expected)).all()


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(digest(*ask()))}" for name, ask in CASES.items()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
