"""The least eigenvalue of the table stays above 1 through a round of the recursion: by brute force.

After a round the second moment M of the unshrunk table becomes ``(8/7) Pi M Pi``; to show is
``Pi M Pi >= (7/8) mu`` if ``M >= mu = 1 / (1 - alpha)``. Let V be spanned by the eigenvectors of
``S + N`` of eigenvalue at least psi kappa, where S is the second moment of the shrunk rows,
``(1 - alpha) M <= S <= M`` and ``|N| <= c kappa``. For a unit vector with parts a in V and b outside, of
lengths s and t, write ``A = a'Ma - mu s^2`` and ``B = b'Mb - mu t^2``. Then

- ``A >= ((psi - c) kappa - mu) s^2``, since ``a'Ma >= a'Sa``, and A >= 0;
- ``0 <= B <= ((psi + c) kappa / (1 - alpha) - mu) t^2``;
- ``|a'Mb| = |a'(M - mu)b| <= sqrt(A B)``, and, as ``a'(S + N)b = 0`` and ``0 <= M - S <= alpha M``,
  ``|a'Mb| <= c kappa s t + alpha sqrt(a'Ma b'Mb)``.

A smaller alpha follows: scaling M to ``M >= 2`` scales kappa up.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

ETA, ALPHA = 0.5, 0.5
MU = 1 / (1 - ALPHA)

Array = NDArray[np.float64]


def quadratic_form(kappa: float, s2: Array, a: Array, b: Array, *, psi: float, c: float) -> Array:
    """A lower bound on ``u' Pi M Pi u``, for A and B given as shares of what they may be."""
    t2 = 1 - s2
    least = np.maximum(0.0, (psi - c) * kappa - MU) * s2
    most = np.maximum(0.0, (psi + c) * kappa / (1 - ALPHA) - MU) * t2
    big_a, big_b = least + a * (1 + least), b * most
    cross = c * kappa * np.sqrt(s2 * t2) + ALPHA * np.sqrt((big_a + MU * s2) * (big_b + MU * t2))
    cross = np.minimum(np.sqrt(big_a * big_b), cross)
    result: Array = MU * (ETA**2 * s2 + t2) + ETA**2 * big_a - 2 * ETA * cross + big_b
    return result


def least_form(psi: float, c: float, stop: float) -> float:
    """The least of it over kappa >= C, all vectors and all A and B, by ever finer grids."""
    worst = np.inf
    for kappa in stop * np.array([1.0, 1.02, 1.1, 1.3, 1.7, 2.5, 5.0, 20.0, 1e3, 1e6]):
        low, high = np.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 1.0])
        for _ in range(6):
            axes = [np.linspace(x, y, 41) for x, y in zip(low, high, strict=True)]
            # Steps of A and B grow from zero: small ones matter most.
            s2, a, b = np.meshgrid(axes[0], axes[1] ** 4 * 1e4, axes[2] ** 3, indexing="ij")
            values = quadratic_form(float(kappa), s2, a, b, psi=psi, c=c)
            worst = min(worst, float(values.min()))
            place = np.unravel_index(values.argmin(), values.shape)
            centre = np.array([axis[i] for axis, i in zip(axes, place, strict=True)])
            reach = (high - low) / 8
            low, high = np.maximum(centre - reach, 0.0), np.minimum(centre + reach, [1.0, 2.0, 1.0])
    return worst


@pytest.mark.parametrize(("psi", "c", "stop"), [(2 / 37, 1 / 900, 600)])
def test_the_least_eigenvalue_survives_a_round(psi: float, c: float, stop: float) -> None:
    assert psi + c <= 1 / 18
    # Found: 0.8909. Differential evolution finds the same to four digits.
    assert least_form(psi, c, stop) >= 7 / 8 * MU
    assert least_form(psi, c, stop) == pytest.approx(0.8909 * MU, abs=2e-3)


@pytest.mark.parametrize(
    ("psi", "c", "stop"), [(1 / 10, 1 / 80, 640), (2 / 37, 1 / 900, 400), (2 / 37, 1 / 240, 600)]
)
def test_other_constants_are_told_apart(psi: float, c: float, stop: float) -> None:
    assert least_form(psi, c, stop) < 7 / 8 * MU


def test_the_papers_constants_fail_the_lemma_on_the_tail() -> None:
    assert 1 / 10 + 1 / 80 > 1 / 18


def test_the_bounds_hold_for_random_matrices() -> None:
    rng = np.random.default_rng(0)
    psi, c, kappa = 2 / 37, 1 / 900, 600.0
    tried = 0
    for _ in range(300):
        d = int(rng.integers(2, 6))
        basis = np.linalg.qr(rng.normal(size=(d, d))).Q
        spectrum = MU + np.concatenate([[0.0], 10 ** rng.uniform(-2, np.log10(kappa), size=d - 1)])
        whole = (basis * spectrum) @ basis.T
        root = np.linalg.cholesky(whole)
        kept = np.linalg.qr(rng.normal(size=(d, d))).Q * rng.uniform(1 - ALPHA, 1, size=d) ** 0.5
        shrunk = root @ kept @ kept.T @ root.T
        noise = rng.normal(size=(d, d))
        noise += noise.T
        noise *= c * kappa / np.linalg.norm(noise, 2)
        values, vectors = np.linalg.eigh(shrunk + noise)
        large = values >= psi * kappa
        halved = (vectors * np.where(large, ETA, 1.0)) @ vectors.T
        direction = np.linalg.eigh(halved @ whole @ halved)[1][:, 0]
        parts = vectors.T @ direction
        a, b = vectors @ (parts * large), vectors @ (parts * ~large)
        s2, t2 = a @ a, b @ b
        big_a, big_b = a @ whole @ a - MU * s2, b @ whole @ b - MU * t2
        assert big_a >= ((psi - c) * kappa - MU) * s2 - 1e-9
        assert big_b <= ((psi + c) * kappa / (1 - ALPHA) - MU) * t2 + 1e-9
        cross = abs(a @ whole @ b)
        assert cross <= np.sqrt(max(big_a * big_b, 0.0)) + 1e-6
        assert (
            cross <= c * kappa * np.sqrt(s2 * t2) + ALPHA * np.sqrt((a @ whole @ a) * (b @ whole @ b)) + 1e-9
        )
        assert np.linalg.eigvalsh(halved @ whole @ halved)[0] >= 7 / 8 * MU
        tried += bool(large.any() and not large.all())
    assert tried > 100
