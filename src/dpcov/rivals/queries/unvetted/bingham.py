"""Samples of the Bingham distribution, and the exponential mechanism for eigenvectors built on it.

The sampler is that of Kent, Ganeiber and Mardia (2018): rejection from an angular central Gaussian envelope.
The mechanism is that of Amin, Dick, Kulesza, Munoz Medina and Vassilvitskii (2019). Two widely used libraries
multiply by the envelope where they should divide, which gives a narrower density and leaks more than is
claimed; ``tests/rivals/queries/test_unvetted.py`` checks ours against the density and rejects theirs. The
proof note is ``unvetted.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcov.core.entropy import BitSource
from dpcov.rivals.queries.unvetted.floats import normals, uniforms

Matrix = NDArray[np.float64]

_BATCH = 64


def sample_bingham(bits: BitSource, matrix: Matrix) -> NDArray[np.float64]:
    """Draw a unit vector x with a density proportional to ``exp(x^T matrix x)``.

    Parameters
    ----------
    bits : BitSource
        Where randomness comes from.
    matrix : ndarray, shape (d, d)
        Symmetric.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # exp(-x^T A x) with A = diag(gaps), all at least 0: the same density.
    gaps = values[-1] - values
    while True:
        accepted = accepted_draws(bits, gaps, _BATCH)
        if len(accepted):
            result: NDArray[np.float64] = vectors @ accepted[0]
            return result


def accepted_draws(bits: BitSource, gaps: NDArray[np.float64], proposals: int) -> Matrix:
    """Return those of some proposals that are accepted: draws of the density ``exp(-sum gaps x^2)``."""
    width = envelope_width(gaps)
    draws = normals(bits, proposals, len(gaps)) / np.sqrt(1 + 2 * gaps / width)
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    accepted = np.log(uniforms(bits, proposals) + 2.0**-54) < log_acceptance(draws, gaps, width)
    kept: Matrix = draws[accepted]
    return kept


def envelope_width(gaps: NDArray[np.float64]) -> float:
    """Return the b with ``sum 1 / (b + 2 gap) = 1``, for which the envelope is tightest."""
    low, high = 1.0, float(len(gaps))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (middle + 2 * gaps)).sum() > 1 else (low, middle)
    return high


def log_acceptance(x: Matrix, gaps: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the logarithm of target over envelope, at most 0, for unit rows x.

    Target ``exp(-x^T A x)``; envelope ``M (x^T Omega x)^(-q/2)`` with ``Omega = I + 2 A / b`` and the
    least M for which it lies above, ``exp(-(q - b) / 2) (q / b)^(q/2)``.
    """
    q = len(gaps)
    exponent = np.square(x) @ gaps
    log_bound = -(q - width) / 2 + q / 2 * math.log(q / width)
    ratios: NDArray[np.float64] = -exponent + q / 2 * np.log1p(2 * exponent / width) - log_bound
    return ratios


def sample_eigenvectors(bits: BitSource, gram: Matrix, epsilons: Sequence[float]) -> Matrix:
    """Draw orthonormal directions one after another, each in the complement of those before.

    Parameters
    ----------
    bits : BitSource
        Where randomness comes from.
    gram : ndarray, shape (d, d)
        A sum of ``y y^T`` over rows y of length at most 1.
    epsilons : sequence of float
        What each direction may spend.

    Returns
    -------
    ndarray, shape (d, d)
        One direction a column.

    Notes
    -----
    ``u^T gram u`` moves by at most 1 when a row is replaced, so a density proportional to
    ``exp(epsilon / 2 * u^T gram u)`` is epsilon-DP (the exponential mechanism).
    """
    d = len(gram)
    basis = np.eye(d)
    found = []
    for epsilon in epsilons:
        inner = sample_bingham(bits, epsilon / 2 * (basis.T @ gram @ basis))
        found.append(basis @ inner)
        # What is orthogonal to all directions so far, from a full decomposition of them.
        basis = np.linalg.qr(np.column_stack(found), mode="complete")[0][:, len(found) :]
        if basis.shape[1] == 1:
            found.append(basis[:, 0])
            break
    return np.column_stack(found)
