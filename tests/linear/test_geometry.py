"""Responses against numerical derivatives: formulas must not depend on how they were derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.laws import NoiseLaw
from dpcov.linear import Questions
from dpcov.linear.components import principal_components
from dpcov.linear.geometry import Geometry
from dpcov.linear.loss_draws import LossDraws
from dpcov.linear.responses import Response
from dpcov.losses import LossLaw

Array = NDArray[np.float64]

D = 4


def make_moment(seed: int = 0, complete: float = 0.8) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((200, D)) @ rng.standard_normal((D, D)) + rng.standard_normal(D)
    rows = np.column_stack([rows, np.ones(200)])
    return np.asarray(complete * rows.T @ rows / 200)


def covariance(moment: Array) -> Array:
    mean = moment[:-1, -1] / moment[-1, -1]
    return np.asarray(moment[:-1, :-1] / moment[-1, -1] - np.outer(mean, mean))


def inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def correlation(matrix: Array) -> Array:
    spread = np.sqrt(np.diag(matrix))
    return np.asarray(matrix / np.outer(spread, spread))


def numerical_gradients(function: Callable[[Array], Array], moment: Array) -> Array:
    """Symmetric gradients of every entry of a function of a symmetric matrix."""
    size = len(moment)
    gradients = np.zeros((function(moment).size, size, size))
    for i in range(size):
        for j in range(i, size):
            step = np.zeros((size, size))
            step[i, j] = step[j, i] = 1e-6 * np.sqrt(moment[i, i] * moment[j, j])
            change = (function(moment + step) - function(moment - step)).ravel() / (2 * step[i, j])
            gradients[:, i, j] = gradients[:, j, i] = change if i == j else change / 2
    return gradients


HEAVY = np.linalg.qr(np.random.default_rng(8).standard_normal((D, 2))).Q.T


def white_factor(moment: Array) -> Array:
    return np.asarray(np.linalg.cholesky(moment[-1, -1] * covariance(moment)))


def expected_response(gradients: Array, moment: Array, noise_map: Array) -> dict[str, Array]:
    """The definition of a response, by explicit matrices."""
    complete = moment[-1, -1]
    factor = np.zeros_like(moment)
    factor[:-1, :-1] = white_factor(moment)
    factor[:, -1] = moment[:, -1] / np.sqrt(complete)
    assert np.allclose(factor @ factor.T, moment)
    white = factor.T @ gradients @ factor
    products = white[:, :-1, :-1] @ HEAVY.T
    along = np.einsum("rd,qdr->qr", HEAVY, products)
    return {
        "noise": np.square(noise_map.T @ gradients @ noise_map).sum(axis=(1, 2)),
        "own": np.square(white[:, :-1, :-1]).sum(axis=(1, 2)),
        "cross": np.square(white[:, :-1, -1]).sum(axis=1),
        "trace": np.einsum("qii->q", white[:, :-1, :-1]),
        "constant": white[:, -1, -1],
        "along": along,
        "beside": np.linalg.norm(products - along[:, None] * HEAVY.T, axis=1),
        "across": white[:, :-1, -1] @ HEAVY.T,
    }


def make_law() -> LossLaw:
    return LossLaw(np.ones(1), np.zeros(1), np.ones(1), radius=4.0)


def forms() -> Array:
    return np.random.default_rng(5).standard_normal((3, D))


INSIDE = np.append(np.ones(D - 1), 0.0)


def shares(matrix: Array) -> Array:
    values = np.einsum("ij,jk,ik->i", forms() * INSIDE, matrix, forms() * INSIDE)
    return np.asarray(values / (INSIDE @ np.diag(matrix)))


def respond_for_shares(geometry: Geometry) -> Response:
    found, total = shares(geometry.covariance), float(INSIDE @ np.diag(geometry.covariance))
    inside = forms() * INSIDE
    return geometry.of_scaled_products(inside, inside / total, found[:, None] * INSIDE / total)


CASES: dict[str, tuple[Callable[[Array], Array], Callable[[Geometry], Response]]] = {
    "second moment": (lambda s: s, Geometry.of_moment),
    "mean": (lambda s: s[:-1, -1] / s[-1, -1], Geometry.of_mean),
    "products": (lambda s: forms() @ covariance(s) @ forms().T, lambda g: g.of_products(forms())),
    "precision": (
        lambda s: inverse(covariance(s)),
        lambda g: g.of_products(inverse(g.covariance), sign=-1.0),
    ),
    "correlation": (lambda s: correlation(covariance(s)), lambda g: g.of_ratios(np.eye(D))),
    "partial correlation": (
        lambda s: -correlation(inverse(covariance(s))),
        lambda g: g.of_ratios(inverse(g.covariance)),
    ),
    "shares": (lambda s: shares(covariance(s)), respond_for_shares),
}


@pytest.mark.parametrize("name", CASES)
def test_responses_are_the_sizes_of_true_gradients(name: str) -> None:
    function, respond = CASES[name]
    moment = make_moment()
    noise_map = np.random.default_rng(1).standard_normal(moment.shape)
    heavy = HEAVY @ white_factor(moment).T
    response = respond(Geometry(moment, noise_map @ noise_map.T, has_constant=True, heavy=heavy))
    expected = expected_response(numerical_gradients(function, moment), moment, noise_map)
    found = response.flat().parts()
    if name == "mean":
        # A mean has no part in what rows lose among their own directions.
        assert np.abs(expected.pop("along")).max() < 1e-8
        assert np.abs(expected.pop("beside")).max() < 1e-8
    if "across" not in found:
        # Centred answers know nothing of the constant's products.
        assert np.abs(expected.pop("across")).max() < 1e-6 * np.abs(expected["own"]).max()
    assert set(found) == set(expected)
    for part, values in expected.items():
        np.testing.assert_allclose(found[part], values, rtol=1e-5, atol=2e-7 * np.abs(values).max() + 1e-8)


def test_without_a_constant_the_moment_itself_is_the_geometry() -> None:
    moment = make_moment()[:-1, :-1]
    geometry = Geometry(moment, np.eye(D), has_constant=False)
    response = geometry.of_moment()
    gradients = numerical_gradients(lambda s: s, moment)
    root = np.linalg.cholesky(moment)
    white = root.T @ gradients @ root
    np.testing.assert_allclose(response.own.ravel(), np.square(white).sum(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(response.noise.ravel(), np.square(gradients).sum(axis=(1, 2)), rtol=1e-6)
    assert not response.cross.any()


def eigen(moment: Array, *, standardize: bool) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, largest first, the largest coefficient positive."""
    matrix = covariance(moment)
    values, vectors = np.linalg.eigh(correlation(matrix) if standardize else matrix)
    vectors = vectors[:, ::-1].T
    leading = vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)]
    return values[::-1], vectors * np.sign(leading)[:, None]


ANSWERS: dict[str, Callable[[Array, Array], Array]] = {
    "variances": lambda values, vectors: values[:2],  # noqa: ARG005
    "explained": lambda values, vectors: values[:2] / values.sum(),  # noqa: ARG005
    "directions": lambda values, vectors: vectors[:2],  # noqa: ARG005
    "loadings": lambda values, vectors: vectors[:2] * np.sqrt(values[:2, None]),
}


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_components_respond_like_eigenvectors_that_turn_and_grow(name: str, *, standardize: bool) -> None:
    moment = make_moment()
    noise_map = np.random.default_rng(1).standard_normal(moment.shape)
    heavy = tuple(replace(make_law(), along=along) for along in HEAVY @ white_factor(moment).T)
    # Noise this small moves no eigenvalue by its square.
    questions = Questions(tuple("abcd"), 200, moment, NoiseLaw(noise_map, 1e-9), heavy)
    found = principal_components(questions, 2, None, standardize=standardize, sampling=False)
    answer = getattr(found, name)

    def function(s: Array) -> Array:
        return ANSWERS[name](*eigen(s, standardize=standardize))

    np.testing.assert_allclose(answer.values, function(moment), rtol=1e-6)
    expected = expected_response(numerical_gradients(function, moment), moment, noise_map)
    response = answer._response.flat().parts()
    assert "across" not in response
    for part, values in response.items():
        atol = 1e-6 * np.abs(expected[part]).max() + 1e-8
        np.testing.assert_allclose(values, expected[part], rtol=1e-4, atol=atol)


def test_the_covariance_is_positive_semidefinite_whatever_rounding_does() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.standard_normal((50, 2)) * 1e-9 + 1e3, np.ones(50)])
        found = Geometry(rows.T @ rows / 50, np.eye(3), has_constant=True).covariance
        assert (found == found.T).all()
        assert np.linalg.eigvalsh(found).min() >= -1e-22
        assert (np.diag(found) >= 0).all()


def test_a_small_column_keeps_its_variance_beside_a_large_one() -> None:
    scales = np.array([1e-7, 1.0, 1e7])
    shape = np.array([[1.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 1.0]])
    # Noise makes two copies of the large column correlate by more than 1.
    columns = np.array([0, 1, 2, 2])
    centred = (shape * np.outer(scales, scales))[np.ix_(columns, columns)]
    centred[2, 3] = centred[3, 2] = (1 + 1e-9) * centred[2, 2]
    moment = np.zeros((5, 5))
    moment[:-1, :-1] = centred
    moment[-1, -1] = 1.0
    found = Geometry(moment, np.eye(5), has_constant=True).covariance
    assert np.allclose(np.diag(found) / np.diag(centred), 1.0, rtol=1e-6)


def test_losses_are_added_to_covariances_and_means_without_derivatives() -> None:
    moment, along = make_moment(), np.array([0.7, -0.2, 0.0, 1.1])
    law = LossLaw(np.full(8, 30.0), np.full(8, 0.1), np.full(8, 1.5), 2.0, directions=0, along=along)
    other = replace(law, along=np.array([0.0, 1.0, 0.5, 0.0]), rows=np.full(8, 3.0))
    geometry = Geometry(moment, np.eye(D + 1), has_constant=True, heavy=np.array([law.along, other.along]))
    draws = LossDraws([law, other], 1_000, has_constant=True)
    found = geometry.with_losses(draws, [0, 3, 1])
    assert found is not None
    squares, lengths = draws.located
    for draw in (0, 11):
        raw = moment.copy()
        for place, one in enumerate((law, other)):
            assert one.along is not None
            white, common = np.append(one.along, 0.0), moment[-1] / np.sqrt(moment[-1, -1])
            lost = lengths[place, draw] * np.outer(white, common)
            raw += squares[place, draw] * np.outer(white, white) + lost + lost.T
        np.testing.assert_allclose(found[1][draw], (raw[:-1, -1] / raw[-1, -1])[[0, 3, 1]])
        np.testing.assert_allclose(found[0][draw], covariance(raw)[np.ix_([0, 3, 1], [0, 3, 1])])
    # What was given back may be taken away again, and no more than there is.
    back = LossDraws([replace(law, restored=100.0)], 1_000, has_constant=True)
    along_one = replace(geometry, heavy=np.array([law.along]))
    without = along_one.with_losses(back, [0, 3])
    assert without is not None
    assert np.linalg.eigvalsh(without[0]).min() > -1e-9
    assert replace(geometry, heavy=None).with_losses(back, [0]) is None
