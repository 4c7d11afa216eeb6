from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov

Matrix = NDArray[np.float64]


def release(rows: Matrix, seed: int = 0, **options: Any) -> dpcov.Release:
    rng = np.random.default_rng(seed)
    return dpcov.release(rows, method="coinpress", intercept=False, rng=rng, **options)


def plain_coinpress(rows: Matrix, bound: float, rounds: int, *, published_order: bool) -> Matrix:
    """The rounds in floats and without noise, with the maps in the right or in the published order."""
    n, d = rows.shape
    log = math.log(10)
    radius = math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)
    margin = math.sqrt(d / n) + d / n / 2
    forms = np.eye(d) / math.sqrt(bound)

    def clipped(forms: Matrix) -> Matrix:
        mapped = rows @ (forms if published_order else forms.T)
        mapped *= np.minimum(1, radius / np.linalg.norm(mapped, axis=1))[:, None]
        return np.asarray(mapped.T @ mapped / n)

    for _ in range(rounds - 1):
        values, vectors = np.linalg.eigh(clipped(forms) + margin * np.eye(d))
        forms = (vectors / np.sqrt(values)) @ vectors.T @ forms
    inverse = np.linalg.inv(forms)
    return np.asarray(inverse @ clipped(forms) @ (inverse if published_order else inverse.T))


def test_maps_are_multiplied_in_the_right_order() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 4)) @ rng.normal(size=(4, 4)) * [3.0, 1.0, 0.1, 0.02]
    exact = rows.T @ rows / len(rows)
    bound = 1.1 * float(np.linalg.eigvalsh(exact)[-1])
    found = release(rows, rho=10**6, largest_eigenvalue=bound, rounds=5).second_moment().values
    right = plain_coinpress(rows, bound, 5, published_order=False)
    wrong = plain_coinpress(rows, bound, 5, published_order=True)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    # What is left is rounding to the lattice and almost no noise.
    assert np.abs((found - right) / scale).max() < 1e-3
    assert np.abs((wrong - wrong.T) / scale).max() > 0.01
    assert (found == found.T).all()
    assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.parametrize(("rounds", "published"), [(1, 2.843), (2, 0.557), (3, 0.306), (4, 0.353)])
def test_the_published_accuracy_is_reached(rounds: int, published: float) -> None:
    """The paper's headline setting: d = 10, rho = 0.5, bound 10 sqrt(10), n = 3000, error in Frobenius norm.

    Published results are trimmed means of 100 runs. Ours must lie between 0.5 and 1.05 of them: the noise is
    smaller by up to sqrt 2, since entries off the diagonal need only half the variance.
    """
    errors = []
    for seed in range(12):
        rows = np.random.default_rng(seed).normal(size=(3000, 10))
        found = release(rows, seed, rho=0.5, largest_eigenvalue=10 * math.sqrt(10), rounds=rounds)
        errors.append(float(np.linalg.norm(found.second_moment().values - np.eye(10))))
    # The mean of 12 has a relative sd of 5%.
    assert 0.5 * published < np.mean(errors) < 1.05 * published


def test_the_whole_budget_is_spent_and_no_more() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3))
    receipt = release(rows, rho=Fraction(1, 3), largest_eigenvalue=2.0, rounds=4).receipt
    assert receipt.spent.rho == Fraction(1, 3)
    assert [charge.cost.rho for charge in receipt.charges] == [Fraction(1, 36)] * 3 + [Fraction(1, 4)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs largest_eigenvalue"),
        ({"largest_eigenvalue": -1.0}, "largest_eigenvalue"),
        ({"largest_eigenvalue": 1.0, "rounds": 0}, "rounds"),
        ({"largest_eigenvalue": 1.0, "rounds": 2.5}, "rounds"),
        ({"largest_eigenvalue": 1.0, "rounds": True}, "rounds"),
        ({"largest_eigenvalue": 1.0, "radius": 1.0}, "takes no radius"),
    ],
)
def test_bad_options_are_refused_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        release(np.ones((10, 2)), rho=1, **options)
