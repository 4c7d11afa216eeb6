from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from dpcov.core import (
    ArgumentError,
    Budget,
    Clipping,
    Curator,
    PrivacyCost,
    SeededBits,
)
from dpcov.maps import identity_map
from dpcov.rivals.queries import Eigenpairs, StableMoment
from dpcov.rivals.queries.unvetted import bingham
from dpcov.rivals.queries.unvetted.bingham import (
    accepted_draws,
    envelope_width,
    log_acceptance,
    sample_bingham,
    sample_eigenvectors,
)
from dpcov.rivals.queries.unvetted.leverage import filter_rows, plan_filter, sampled_moment, weighted_factor
from dpcov.sources import ArraySource

Matrix = NDArray[np.float64]


def bits(seed: int = 0) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def _cell_probabilities(gaps: list[float], cells: int) -> NDArray[np.float64]:
    """Exact probabilities of equal cells of the largest axis' square, by quadrature over the sphere."""
    edges = np.linspace(0, 1, cells + 1)
    if len(gaps) == 2:
        # x = (cos t, sin t), gaps (g, 0): the density in t is exp(-g cos^2 t).
        def mass(low: float, high: float) -> float:
            # sin^2 t between low and high.
            first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
            return integrate.quad(lambda t: math.exp(-gaps[0] * math.cos(t) ** 2), first, last)[0]
    else:
        # x_3 = z is uniform on the sphere; given z, the angle of (x_1, x_2) is uniform.
        def mass(low: float, high: float) -> float:
            def inner(z: float) -> float:
                r = 1 - z * z
                return integrate.quad(
                    lambda t: math.exp(-r * (gaps[0] * math.cos(t) ** 2 + gaps[1] * math.sin(t) ** 2)),
                    0,
                    math.pi / 2,
                )[0]

            return integrate.quad(inner, math.sqrt(low), math.sqrt(high))[0]

    masses = np.array([mass(low, high) for low, high in itertools.pairwise(edges.tolist())])
    return np.asarray(masses / masses.sum())


def _p_value(gaps: list[float], cells: int = 12) -> float:
    drawn = accepted_draws(bits(1), np.array(gaps), 40_000)
    assert len(drawn) > 4_000
    seen = np.histogram(np.square(drawn[:, -1]), cells, (0, 1))[0]
    return float(stats.chisquare(seen, _cell_probabilities(gaps, cells) * len(drawn)).pvalue)


@pytest.mark.parametrize("gaps", [[3.0, 0.0], [1.0, 3.0, 0.0]])
def test_bingham_draws_follow_the_density(gaps: list[float]) -> None:
    # A correct sampler fails at 1e-4 once in 10^4 seeds; the seed is fixed.
    assert _p_value(gaps) > 1e-4


def test_a_draw_is_turned_to_the_axes_of_its_matrix() -> None:
    axes = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    matrix = -(axes * [50.0, 80.0, 0.0]) @ axes.T + 7 * np.eye(3)
    source = bits(1)
    drawn = np.array([sample_bingham(source, matrix) for _ in range(300)])
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1)
    # The mean square along axis i is about 1 / (2 gap): 0.01 and 0.006, with sd 0.0008.
    assert np.abs(np.square(drawn @ axes).mean(axis=0) - [0.0103, 0.0064, 0.983]).max() < 0.006


@pytest.mark.parametrize("gaps", [[3.0, 0.0], [1.0, 3.0, 0.0]])
def test_the_inverted_ratio_of_public_libraries_is_rejected(
    gaps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def inverted(x: Matrix, gaps: NDArray[np.float64], width: float) -> NDArray[np.float64]:
        # Target times envelope, not target over envelope.
        exponent = np.square(x) @ gaps
        over = log_acceptance(x, gaps, width) + exponent
        constant = log_acceptance(np.eye(len(gaps))[-1:], gaps, width)
        return np.asarray(-exponent - (over - constant) + constant)

    monkeypatch.setattr(bingham, "log_acceptance", inverted)
    assert _p_value(gaps) < 1e-12


def test_the_envelope_lies_above_the_target_and_touches_it() -> None:
    rng = np.random.default_rng(0)
    for d in (2, 3, 10):
        gaps = np.sort(rng.exponential(50, d))[::-1]
        gaps -= gaps[-1]
        width = envelope_width(gaps)
        x = rng.normal(size=(20_000, d)) / np.sqrt(1 + 2 * gaps / width)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        ratios = log_acceptance(x, gaps, width)
        assert ratios.max() <= 1e-12
        assert ratios.max() > -0.01
        assert math.isclose((1 / (width + 2 * gaps)).sum(), 1, rel_tol=1e-9)


def test_directions_are_orthonormal_and_right_when_the_budget_is_large() -> None:
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    gram = (axes * [1e6, 1e5, 1e4, 1e3]) @ axes.T
    found = sample_eigenvectors(bits(), gram, [10.0] * 3)
    assert np.allclose(found.T @ found, np.eye(4), atol=1e-12)
    assert np.abs(np.diag(found.T @ axes)).min() > 0.999


def _table(n: int, d: int, seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    rows: Matrix = rng.normal(size=(n, d)) * np.logspace(0, -3, d)
    rows[: n // 50] *= rng.uniform(1, 6, size=(n // 50, 1))
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_neighbours_have_close_scores_and_close_stable_moments(seed: int) -> None:
    n, d, steps, leverage = 600, 3, 6, 9.0
    rng = np.random.default_rng(seed)
    rows = _table(n, d, seed)
    highest = math.e**2 * leverage / n
    assert highest <= -math.expm1(-1 / steps)
    other = rows.copy()
    other[rng.integers(n)] = rng.normal(size=d) * rng.choice([0.0, 1.0, 30.0]) * np.logspace(0, -3, d)
    (weights, score), (others, other_score) = (filter_rows(one, leverage, steps) for one in (rows, other))
    assert abs(score - other_score) <= 2
    if max(score, other_score) < steps:
        g = 2 * highest / (1 - (steps - 1) * highest)
        first = weighted_factor(rows, weights)
        inverse = np.linalg.inv(first)
        second = weighted_factor(other, others)
        values = np.linalg.svd(second @ inverse, compute_uv=False) ** 2
        assert np.abs(values - 1).sum() <= g + g / (1 - g)


def test_the_filter_finds_the_largest_good_set() -> None:
    rows = _table(400, 3, 1)
    weights, score = filter_rows(rows, 12.0, 60)
    # By brute force, one row at a time, in another order.
    kept = np.ones(400, dtype=bool)
    while True:
        moment = rows[kept].T @ rows[kept] / 400
        leverages = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(moment), rows)
        worst = int(np.argmax(np.where(kept, leverages, -1)))
        if leverages[worst] <= 12.0:
            break
        kept[worst] = False
    assert 0 < 400 - kept.sum() < 60
    assert score <= 400 - kept.sum()
    assert (weights[kept] > 1 - 1e-9).all()


def test_rows_of_high_leverage_raise_the_score() -> None:
    rows = _table(2000, 3, 2)[100:]
    assert filter_rows(rows, 30.0, 20)[1] == 0
    rows[:40] *= 100
    assert filter_rows(rows, 30.0, 20)[1] == 20
    assert filter_rows(np.zeros((50, 2)), 30.0, 20)[1] == 20


def test_samples_have_the_covariance_they_should() -> None:
    factor = np.array([[2.0, 1.0], [0.0, 0.5]])
    moment = sampled_moment(bits(), factor, 200_000)
    # Relative sd sqrt(2 / 200,000) = 0.003 on the diagonal: 0.02 is beyond 6 sd.
    assert np.abs(moment / (factor.T @ factor) - 1).max() < 0.02


def test_more_rows_allow_more_samples() -> None:
    given = {"epsilon": Fraction(1, 2), "rho": Fraction(1, 4), "delta": Fraction(1, 10**6)}
    plans = [plan_filter(n, 5, 40.0, **given) for n in (1000, 10**5, 10**6)]
    assert plans[0] is None
    assert plans[1] is not None
    assert plans[2] is not None
    assert plans[1].samples * 50 < plans[2].samples


def curator(rows: Matrix) -> Curator:
    return Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(1), Fraction(1, 10**6))), bits())


def test_consent_is_demanded_before_anything_is_spent() -> None:
    asked = curator(_table(500, 2, 0))
    clipping = Clipping(identity_map(2), 1.0)
    with pytest.raises(ArgumentError, match="allow_unvetted=True"):
        asked.ask(Eigenpairs(clipping, epsilon=1, purpose=""))
    with pytest.raises(ArgumentError, match="allow_unvetted=True"):
        asked.ask(StableMoment(20.0, epsilon=1, rho=0.1, delta=1e-7, purpose=""))
    with pytest.raises(ArgumentError, match="needs about"):
        asked.ask(StableMoment(20.0, epsilon=1, rho=0.1, delta=1e-7, purpose="", allow_unvetted=True))
    assert not asked.receipt().charges


def test_receipts_say_idealised() -> None:
    asked = curator(_table(500, 2, 0))
    asked.ask(
        Eigenpairs(Clipping(identity_map(2), 1.0), epsilon=1, purpose="eigenvectors", allow_unvetted=True)
    )
    assert "idealised arithmetic" in str(asked.receipt())
    assert asked.receipt().spent.rho == Fraction(1, 2)
