"""Releases for the tests of linear questions: exact ones, without noise, and noisy ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov import Release
from dpcov.core import PrivacyCost, Receipt
from dpcov.laws import NoiseLaw
from dpcov.losses import LossLaw

Array = NDArray[np.float64]

NAMES = ("alpha", "beta", "gamma", "delta")


def make_rows(n: int = 400, seed: int = 0, d: int = len(NAMES)) -> Array:
    """Correlated rows with means."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3 * rng.standard_normal(d))


def make_release(
    rows: Array,
    *,
    noise: float = 1e-6,
    names: tuple[str, ...] | None = None,
    intercept: bool = True,
    losses: tuple[LossLaw, ...] = (),
    rng: np.random.Generator | None = None,
) -> Release:
    """A release of exactly the rows' second moment, plus noise of this size in white coordinates if `rng`."""
    table = np.column_stack([rows, np.ones(len(rows))]) if intercept else rows
    moment = table.T @ table / len(rows)
    values, vectors = np.linalg.eigh(moment)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    if rng is not None:
        square = rng.standard_normal(moment.shape)
        moment = moment + noise * root @ ((square + square.T) / 2) @ root.T
    return Release(
        columns=names or tuple(f"x{i}" for i in range(rows.shape[1])),
        n_units=len(rows),
        method="whitening",
        options={},
        receipt=Receipt(PrivacyCost(Fraction(1, 2)), (), private=False),
        diagnostics={},
        intercept=intercept,
        noise=NoiseLaw(root, noise),
        losses=losses,
        versions={"dpcov": "0"},
        _matrix=(moment + moment.T) / 2,
    )
