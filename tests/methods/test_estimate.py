from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcov.methods.estimate import shrink_towards

Matrix = NDArray[np.float64]


def noise(rng: np.random.Generator, d: int) -> Matrix:
    square = rng.standard_normal((d, d))
    return np.asarray((square + square.T) / 2, dtype=np.float64)


def truths(d: int) -> dict[str, Matrix]:
    spread = np.diag(np.linspace(0.5, 1.5, d))
    spike = np.eye(d)
    spike[0, 0] = 3.0
    return {"identity": np.eye(d), "spread": spread, "spike": spike, "zero": np.zeros((d, d))}


@pytest.mark.parametrize("d", [3, 10])
@pytest.mark.parametrize("sigma", [0.03, 0.3])
@pytest.mark.parametrize("name", ["identity", "spread", "spike", "zero"])
def test_shrinking_lowers_the_mean_squared_error_whatever_the_truth(d: int, sigma: float, name: str) -> None:
    truth, rng = truths(d)[name], np.random.default_rng(0)
    noisy = [truth + sigma * noise(rng, d) for _ in range(400)]
    before = np.array([np.linalg.norm(matrix - truth) ** 2 for matrix in noisy])
    after = np.array(
        [np.linalg.norm(shrink_towards(np.eye(d), matrix, sigma)[0] - truth) ** 2 for matrix in noisy]
    )
    gain = before - after
    # It is lower in the mean: three standard errors of it fail once in 700 where the gain is near zero.
    assert gain.mean() > -3 * gain.std() / math.sqrt(len(gain))
    if name == "identity" and d == 10:
        assert after.mean() < 0.3 * before.mean()
        # Twice the weight would not do that where the truth is no identity.
    if name == "spread" and d == 10 and sigma > 0.1:
        twice = [matrix + 2 * (shrink_towards(np.eye(d), matrix, sigma)[0] - matrix) for matrix in noisy]
        assert np.mean([np.linalg.norm(matrix - truth) ** 2 for matrix in twice]) > after.mean()


def test_no_direction_moves_by_more_than_the_noise_norm() -> None:
    rng = np.random.default_rng(1)
    for d in (2, 5, 40):
        for height in (0.0, 1.0, 10.0, 1e6):
            matrix = np.eye(d) + 0.1 * noise(rng, d)
            matrix[0, 0] += height
            shrunk, weight = shrink_towards(np.eye(d), matrix, 0.1)
            assert 0 <= weight <= 1
            assert np.linalg.norm(shrunk - matrix, 2) <= math.sqrt(2 * d) * 0.1 * (1 + 1e-9)
            assert np.trace(shrunk) == pytest.approx(np.trace(matrix))


def test_exact_and_tiny_matrices_stay_as_they_are() -> None:
    for matrix in (np.eye(4), np.zeros((3, 3)), np.diag([1.0, 2.0, 3.0])):
        assert (shrink_towards(np.eye(len(matrix)), matrix, 0.0)[0] == matrix).all()
    assert shrink_towards(np.eye(2), np.diag([1.0, 5.0]), 1.0)[1] == 0


def test_the_target_need_not_be_the_identity() -> None:
    target, rng = np.diag([1.0, 1.0, 0.2, 0.2, 0.2]), np.random.default_rng(2)
    noisy = [3 * target + 0.3 * noise(rng, 5) for _ in range(400)]

    def error(to: Matrix) -> float:
        return float(
            np.mean([np.linalg.norm(shrink_towards(to, m, 0.3)[0] - 3 * target) ** 2 for m in noisy])
        )

    # Drawn to the truth's own shape they lose most of their error, drawn elsewhere little.
    assert error(target) < 0.3 * error(np.eye(5))
