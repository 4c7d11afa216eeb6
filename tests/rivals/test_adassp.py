from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Budget, Curator, PrivacyCost, SeededBits
from dpcov.rivals import adassp
from dpcov.rivals.adassp import fit_adassp, fit_boosted_adassp
from dpcov.rivals.queries import NoisyMoments
from dpcov.sources import ArraySource

Array = NDArray[np.float64]
BOUNDS = {"x0": (-4.0, 4.0), "x1": (0.0, 100.0), "x2": (-50.0, 150.0)}


def rows(n: int = 20_000) -> Array:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, n), rng.uniform(20, 80, n)
    return np.column_stack([first, second, 10 * first + 0.5 * second + rng.normal(0, 5, n)])


def curator(table: Array, rho: float, seed: int = 1) -> Curator:
    bits = SeededBits(np.random.default_rng(seed))
    return Curator(ArraySource(table), Budget(PrivacyCost(Fraction(rho))), bits, constant=True)


def least_squares(table: Array) -> Array:
    design = np.column_stack([table[:, :2], np.ones(len(table))])
    return np.asarray(np.linalg.lstsq(design, table[:, 2])[0])


@pytest.mark.parametrize("fit", [fit_adassp, fit_boosted_adassp])
def test_with_a_large_budget_it_is_least_squares(fit: Any) -> None:
    asked = curator(rows(), rho=1e6)
    found = fit(asked, target="x2", bounds=BOUNDS)
    assert found.on == ("x0", "x1")
    assert found.ridge == 0
    # Noise of a mean product is below 1e-6 of the bounds, and a direction of them has a variance above 0.05.
    np.testing.assert_allclose(found.coefficients, least_squares(rows()), rtol=2e-3)
    assert asked.remaining.rho < 1e-6


@pytest.mark.parametrize("fit", [fit_adassp, fit_boosted_adassp])
def test_with_a_small_budget_a_ridge_keeps_coefficients_small(fit: Any) -> None:
    few = rows(300)
    noise = [fit(curator(few, rho=1e-4, seed=seed), target="x2", bounds=BOUNDS) for seed in range(5)]
    assert all(found.ridge > 0 for found in noise)
    assert all(np.isfinite(found.coefficients).all() for found in noise)


def test_the_ridge_is_what_the_least_eigenvalue_lacks_to_the_norm_of_the_noise() -> None:
    norm = 4.0  # sqrt(2 d) sigma
    inverse, ridge = adassp._penalised_inverse(NoisyMoments(np.diag([5.0, 1.0]), sigma=2.0))
    assert ridge == pytest.approx(norm - 1)
    np.testing.assert_allclose(inverse, np.diag([1 / 8, 1 / 4]))
    assert adassp._penalised_inverse(NoisyMoments(np.diag([5.0, 6.0]), sigma=2.0))[1] == 0
    # Only noise has negative eigenvalues: they count as zero, and the ridge is no larger than the norm.
    inverse, ridge = adassp._penalised_inverse(NoisyMoments(np.diag([5.0, -3.0]), sigma=2.0))
    assert ridge == pytest.approx(norm)
    np.testing.assert_allclose(inverse, np.diag([1 / 9, 1 / 4]))


def test_boosting_wears_the_ridge_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_ridge(gram: NoisyMoments) -> tuple[Array, float]:
        return np.asarray(np.linalg.inv(gram.values + 0.1 * np.eye(3))), 0.1

    monkeypatch.setattr(adassp, "_penalised_inverse", with_ridge)
    exact = least_squares(rows())
    plain = fit_adassp(curator(rows(), rho=1e6), target="x2", bounds=BOUNDS)
    assert abs(plain.coefficients[0] / exact[0] - 1) > 0.2
    # A round leaves 0.1 / (0.1 + v) of what was missing, with variances v of 0.06 and more: 3e-5 after 20.
    boosted = fit_boosted_adassp(curator(rows(), rho=1e6), target="x2", bounds=BOUNDS, clip=1.0)
    np.testing.assert_allclose(boosted.coefficients, exact, rtol=5e-3)
    once = fit_boosted_adassp(curator(rows(), rho=1e6), target="x2", bounds=BOUNDS, clip=1.0, rounds=1)
    np.testing.assert_allclose(once.coefficients, plain.coefficients, rtol=1e-3)


def test_all_is_spent_as_stated() -> None:
    asked = curator(rows(200), rho=1.0)
    fit_boosted_adassp(asked, target="x2", bounds=BOUNDS, rounds=4, gram_share=0.25)
    spent = [float(charge.cost.rho) for charge in asked.receipt().charges]
    assert spent == [0.25, *[0.1875] * 4]
    asked = curator(rows(200), rho=1.0)
    fit_adassp(asked, target="x2", bounds=BOUNDS)
    assert [float(charge.cost.rho) for charge in asked.receipt().charges] == [0.5, 0.5]


def test_steps_stop_where_a_query_would_not_take_them() -> None:
    slopes = np.array([2**37, 0], dtype=np.int64)
    step = adassp._whole_units(np.array([1e9, -1e9]), slopes)
    assert np.abs(slopes + step).sum() <= 2**40
    assert (adassp._whole_units(np.array([0.5, -0.25]), slopes) == [2**19, -(2**18)]).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"target": "x9"}, "no column 'x9'"),
        ({"bounds": {"x0": (0, 1)}}, "lacks x1, x2"),
        ({"bounds": {**BOUNDS, "x0": (1.0, 1.0)}}, "below its upper"),
        ({"bounds": {**BOUNDS, "x0": ("a", 1.0)}}, "bound must be a number"),
        ({"rounds": 0}, "rounds"),
        ({"clip": 0.0}, "clip"),
        ({"gram_share": 1.0}, "gram_share"),
    ],
)
def test_bad_arguments_spend_nothing(more: dict[str, Any], message: str) -> None:
    asked = curator(rows(50), rho=1.0)
    with pytest.raises(ArgumentError, match=message):
        fit_boosted_adassp(asked, **{"target": "x2", "bounds": BOUNDS, **more})
    assert asked.remaining.rho == 1
