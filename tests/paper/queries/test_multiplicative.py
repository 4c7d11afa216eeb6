from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.paper_lines import algorithm_3_weights
from helpers.paper_lines import weighted_mean as reference_mean
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from dpcov.core.entropy import SeededBits
from dpcov.paper.queries.groups import agreeing_groups
from dpcov.paper.queries.multiplicative import (
    LEAST_AGREEMENT,
    _arithmetic_delta,
    _epsilon,
    _integer_cholesky,
    _noise_factor,
    _Numbers,
    _spectral_change,
    groups_needed,
    multiplicative_noise_scale,
    noisy_weighted_mean,
)

Grams = NDArray[np.int64]
Matrix = NDArray[np.float64]

DELTA = Fraction(1, 10**6)


def bits(seed: int = 0) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


TINY = Fraction(1, 1 << 80)


def weighted_mean(grams: Grams, distance: float, compared: int | None = None) -> tuple[Matrix, float, float]:
    """The library's own S, from a release with hardly any noise, the sum of the paper's weights, and Q."""
    compared = compared or len(grams)
    agreeing = agreeing_groups(grams, distance, compared)
    mean = noisy_weighted_mean(bits(), grams, agreeing, compared, group_size=1, scale=TINY)
    total = sum(algorithm_3_weights(agreeing.tolist(), compared))
    return mean, total, float(agreeing.mean() / compared)


@pytest.mark.parametrize("compared", [10, 20, 37, 1001])
def test_the_weights_of_a_release_are_those_of_algorithm_3(compared: int) -> None:
    # Of a group that agrees with k of so many the release is its matrix; beside another, both show.
    rng = np.random.default_rng(0)
    for _ in range(60):
        agreeing = rng.integers(int(0.55 * compared), compared + 1, size=5)
        agreeing[0] = compared
        grams = (rng.integers(1, 1 << 20, size=(5, 1)) * np.ones((1, 1), dtype=np.int64)).reshape(5, 1, 1)
        found = noisy_weighted_mean(bits(), grams, agreeing, compared, group_size=4, scale=TINY)
        weights = algorithm_3_weights(agreeing.tolist(), compared)
        expected = reference_mean(grams / 4, weights)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-5)


def test_weights_at_the_ends_of_their_slope() -> None:
    # Of ten: six and fewer weigh nothing, seven and more all.
    grams = np.array([[[1 << 30]], [[1 << 40]]], dtype=np.int64)
    for k, share in ((0, 0.0), (1, 0.0), (6, 0.0), (7, 0.5), (8, 0.5), (10, 0.5)):
        found = noisy_weighted_mean(bits(), grams, np.array([10, k]), 10, group_size=1, scale=TINY)[0, 0]
        assert found == pytest.approx((1 - share) * 2**30 + share * 2**40)


def spectral_change(before: Matrix, after: Matrix) -> float:
    root = np.linalg.inv(np.linalg.cholesky(before))
    return float(np.linalg.norm(root @ after @ root.T - np.eye(len(before)), 2))


def worst_change(
    grams: Grams, replacements: list[tuple[int, Grams]], distance: float, compared: int | None = None
) -> float:
    """The largest change that replacing one group makes, and a check of what the proof says on the way."""
    before, total, share = weighted_mean(grams, distance, compared)
    assert share >= float(LEAST_AGREEMENT)
    assert total >= len(grams) / 2 - 1e-9
    worst = 0.0
    for place, other in replacements:
        changed = grams.copy()
        changed[place] = other
        after, other_total, _ = weighted_mean(changed, distance, compared)
        assert abs(other_total - total) <= 11 + 1e-9
        worst = max(worst, spectral_change(before, after))
    return worst


def three_clusters(d: int, distance: float, sizes: tuple[int, int, int]) -> Grams:
    """A middle that agrees with all, and two ends that agree with the middle but not with each other."""
    reach = (1 + distance) * 0.999
    values = np.repeat([1.0, 1 / reach, reach], sizes) * 2.0**30
    result: Grams = np.einsum("t,ij->tij", np.rint(values), np.eye(d)).astype(np.int64)
    return result


@pytest.mark.parametrize("compared", [None, 201])
@pytest.mark.parametrize(("d", "distance"), [(1, 0.25), (1, 1.0), (2, 0.5)])
def test_replacing_a_group_moves_the_mean_by_at_most_g(d: int, distance: float, compared: int | None) -> None:
    # With 40% in the middle the ends sit at 7/10 agreement, where one group less costs each of them 10/T.
    grams = three_clusters(d, distance, (104, 78, 78))
    if compared is not None:
        grams = np.random.default_rng(6).permutation(grams)
    far = np.eye(d, dtype=np.int64) << 50
    others = [far, np.zeros((d, d), dtype=np.int64), grams.min(axis=0), grams.max(axis=0)]
    replacements = [(place, other) for place in (0, 110, 259) for other in others]
    change = _spectral_change(len(grams), distance)
    assert change is not None
    worst = worst_change(grams, replacements, distance, compared)
    assert worst <= change
    # Were it divided by 100, this very neighbour would refute it.
    assert worst > change / 100


@given(st.integers(0, 2**32), st.integers(1, 3), st.floats(0.1, 3.0))
@settings(max_examples=30)
def test_replacing_a_group_of_random_ones_moves_the_mean_by_at_most_g(
    seed: int, d: int, distance: float
) -> None:
    rng = np.random.default_rng(seed)
    rows = np.rint(
        rng.normal(size=(60, 40 * d, d)) * 1000 * (1 + distance) ** rng.uniform(-0.5, 0.5, (60, 1, 1))
    )
    grams = np.einsum("tni,tnj->tij", rows, rows).astype(np.int64)
    if agreeing_groups(grams, distance, 60).mean() < float(LEAST_AGREEMENT) * 60:
        return
    other = np.rint(rng.normal(size=(d, d)) * 10 ** rng.uniform(0, 8))
    replacements = [(int(rng.integers(60)), (other @ other.T).astype(np.int64)), (0, grams[1] * 0)]
    # The formula itself, without the limit of 1/2 that small T would break.
    closeness = (1.01 * (1 + distance)) ** 2
    assert worst_change(grams, replacements, distance) <= 11 * (closeness + 1) / (30 - 11)


def test_the_mean_of_the_shares_is_the_score_even_with_singular_groups() -> None:
    grams = three_clusters(1, 0.5, (100, 0, 0))
    grams[:5] = 0
    assert agreeing_groups(grams, 0.5, 100).tolist() == [1] * 5 + [95] * 95
    _, total, share = weighted_mean(grams, 0.5)
    assert share == pytest.approx((5 + 95 * 95) / 100**2)
    assert total == 95


def divergence(ratio: float, scale: float, order: float, centre: float) -> tuple[float, float]:
    """Renyi divergences of N(c, s^2) and N(c sqrt(x), s^2 x) in both directions, by integration."""
    grid = np.linspace(centre - 60 * scale, centre + 60 * scale, 20_001)
    plain = stats.norm.logpdf(grid, centre, scale)
    stretched = stats.norm.logpdf(grid, centre * math.sqrt(ratio), scale * math.sqrt(ratio))

    def one_way(p: Matrix, q: Matrix) -> float:
        # Smooth and vanishing at both ends: the trapezoidal rule is exact to many digits.
        return math.log(integrate.trapezoid(np.exp(order * p + (1 - order) * q), grid)) / (order - 1)

    return one_way(plain, stretched), one_way(stretched, plain)


@pytest.mark.parametrize(
    ("d", "change", "scale", "order"), [(1, 0.1, 0.05, 2.0), (2, 0.02, 0.03, 8.0), (3, 0.2, 0.5, 3.0)]
)
def test_the_divergence_is_what_integration_gives(d: int, change: float, scale: float, order: float) -> None:
    claimed = _epsilon(_Numbers(d, change, scale, 0.0), order, math.log, math.sqrt)
    assert claimed is not None
    claimed -= math.log(1 - 1 / order) - math.log(order) / (order - 1)

    def total(ratio: float, direction: int) -> float:
        with_centre = divergence(ratio, scale, order, 1.0)[direction]
        without = divergence(ratio, scale, order, 0.0)[direction]
        return d * (with_centre + (d - 1) * without)

    ends = [total(ratio, way) for ratio in (1 - change, 1 + change) for way in (0, 1)]
    assert claimed == pytest.approx(max(ends), rel=1e-6)
    for part in (0.9, 0.5, 0.1, -0.3, -0.8):
        assert max(total(1 + part * change, way) for way in (0, 1)) <= claimed * (1 + 1e-6)


def test_an_infinite_divergence_is_told() -> None:
    assert _epsilon(_Numbers(1, 0.5, 1.0, -10.0), 2.0, math.log, math.sqrt) is None


def exact_delta(change: float, scale: float, epsilon: float) -> float:
    """The least delta for one column, whose noise is one normal number: by integration."""
    worst = 0.0
    for ratio in (1 - change, 1 + change):
        plain, stretched = stats.norm(1, scale), stats.norm(math.sqrt(ratio), scale * math.sqrt(ratio))
        for p, q in ((plain, stretched), (stretched, plain)):
            grid = np.linspace(1 - 30 * scale, 1 + 30 * scale, 400_001)
            excess = np.maximum(p.pdf(grid) - math.exp(epsilon) * q.pdf(grid), 0.0)
            worst = max(worst, float(integrate.trapezoid(excess, grid)))
    return worst


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_noise_meets_epsilon_and_delta_and_half_of_it_does_not(epsilon: float) -> None:
    n_groups = groups_needed(1, 0.2, Fraction(epsilon), DELTA)
    assert n_groups is not None
    scale = multiplicative_noise_scale(n_groups, 1, 0.2, Fraction(epsilon), DELTA)
    change = _spectral_change(n_groups, 0.2)
    assert scale is not None
    assert change is not None
    assert exact_delta(float(change), float(scale), epsilon) <= float(DELTA)
    assert exact_delta(float(change), float(scale) / 2, epsilon) > float(DELTA)


def test_more_groups_need_less_noise_and_too_few_are_refused() -> None:
    given_ = 2, 0.2, Fraction(3), DELTA
    needed = groups_needed(*given_)
    assert needed is not None
    assert multiplicative_noise_scale(needed - needed // 500 - 1, *given_) is None
    scales = [multiplicative_noise_scale(needed * k, *given_) for k in (1, 2, 5, 50, 1000)]
    for more, less in itertools.pairwise(scales):
        assert more is not None
        assert less is not None
        assert less < more
    for n_groups in (0, 1, 2, 22, 23, 100):
        assert multiplicative_noise_scale(n_groups, *given_) is None


def test_what_arithmetic_costs_is_paid_for_or_refused() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(30)):
        cost = 9 * (1 + math.exp(epsilon)) / 2**60
        assert 2 * cost <= float(_arithmetic_delta(3, epsilon)) <= 2 * cost + 9 * 2 / 2**60
    assert groups_needed(3, 0.2, Fraction(1), Fraction(1, 10**18)) is None
    assert groups_needed(3, 0.2, Fraction(1000), DELTA) is None
    # A hundredth of delta is for the choice of compared groups.
    just = _arithmetic_delta(1, Fraction(1)) * Fraction(100, 99)
    assert multiplicative_noise_scale(10**6, 1, 0.2, Fraction(1), just + Fraction(1, 10**400)) is not None
    assert multiplicative_noise_scale(10**6, 1, 0.2, Fraction(1), just) is None


def test_the_noise_is_normal_to_the_last_bits() -> None:
    scale = Fraction(1, 8)
    one = 1 << 1024
    factors = [_noise_factor(source, 4, scale) for source in [bits(1)] for _ in range(600)]
    entries = [
        Fraction(int(entry) - (one if i == j else 0), one) / scale
        for factor in factors
        for (i, j), entry in np.ndenumerate(factor)
    ]
    normal = np.array([float(entry) for entry in entries])
    # 9,600 samples: a true law fails each check once in 10,000 seeds; a scale 5% off fails the second.
    assert stats.kstest(normal, "norm").pvalue > 1e-4
    limit = 4 * math.sqrt(2 / len(normal))
    assert abs(normal.var() - 1) < limit < abs((normal * 1.05).var() - 1)
    # The spread within a cell: uniform as well, also in bits that float64 does not see.
    for places in (57, 200, 900):
        part = np.array([float(entry * 2**places % 1) for entry in entries])
        assert stats.kstest(part, "uniform").pvalue > 1e-4


def released(root: Matrix, scale: Fraction, draws: int) -> Matrix:
    """Whitened releases of groups that all equal ``root root^T``."""
    gram = (root @ root.T).astype(np.int64)
    grams, agreeing = np.repeat(gram[None], 3, axis=0), np.full(3, 3)
    source = bits(2)
    inverse = np.linalg.inv(np.linalg.cholesky(gram.astype(np.float64)))
    matrices = np.array(
        [noisy_weighted_mean(source, grams, agreeing, 3, group_size=1, scale=scale) for _ in range(draws)]
    )
    assert (matrices == matrices.transpose(0, 2, 1)).all()
    assert (matrices * 2**20 == np.rint(matrices * 2**20)).all()
    whitened: Matrix = inverse @ matrices @ inverse.T
    return whitened


@pytest.mark.parametrize("root", [np.diag([300.0, 70.0]), np.array([[500.0, 3.0], [-400.0, 20.0]])])
def test_a_release_has_the_law_of_its_formula_whatever_the_root(root: Matrix) -> None:
    eta, draws = 0.25, 1500
    whitened = released(root, Fraction(eta), draws)
    # Moments of (I + eta N)(I + eta N)^T; five sd of each estimate, so one in 10^6 seeds fails.
    rng = np.random.default_rng(3)
    noise = np.eye(2) + eta * rng.normal(size=(200_000, 2, 2))
    ideal = noise @ noise.transpose(0, 2, 1)
    assert ideal[:, 0, 0].mean() == pytest.approx(1 + 2 * eta**2, abs=0.01)
    for i, j in ((0, 0), (1, 1), (0, 1)):
        found, law = whitened[:, i, j], ideal[:, i, j]
        assert abs(found.mean() - law.mean()) < 5 * law.std() / math.sqrt(draws)
        assert stats.ks_2samp(found, law).pvalue > 1e-6
        # A noise scale a fifth off is found.
        assert stats.ks_2samp(law.mean() + 1.2 * (found - law.mean()), law).pvalue < 1e-2


@given(st.integers(0, 2**32), st.integers(1, 5), st.floats(0, 17))
@settings(max_examples=40)
def test_the_integer_root_is_a_root(seed: int, d: int, magnitude: float) -> None:
    rng = np.random.default_rng(seed)
    factor = np.rint(rng.normal(size=(d, d)) * 10**magnitude).astype(np.int64).astype(object)
    matrix = factor @ factor.T + np.eye(d, dtype=int).astype(object)
    root = _integer_cholesky(matrix)
    assert (np.triu(root, 1) == 0).all()
    error = np.abs(root @ root.T - (matrix << 2048)).max()
    assert error <= 4 * int(np.abs(root).max()) + 4


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((3, 3)),
        np.ones((3, 3)) * 7,
        np.diag([1.0, 0.0, 5.0]),
        np.array([[0.0, 0.0], [0.0, 3.0]]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def test_no_matrix_makes_root_or_release_fail(matrix: Matrix) -> None:
    integers = matrix.astype(np.int64)
    root = _integer_cholesky(integers.astype(object))
    assert root.shape == matrix.shape
    pair = np.array([integers, integers])
    result = noisy_weighted_mean(bits(), pair, np.full(2, 2), 2, group_size=5, scale=Fraction(1, 10))
    assert np.isfinite(result).all()
