"""Principal components of the released covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer, Components
from dpcov.linear.questions import Questions
from dpcov.linear.uncertainty import Response

Array = NDArray[np.float64]

_TOLD_APART = 4.0


def principal_components(
    questions: Questions, n_components: int | None, columns: Sequence[str] | None, *, sampling: bool
) -> Components:
    """Return the directions of largest variance.

    Parameters
    ----------
    questions : Questions
        The release.
    n_components : int, optional
        How many; all by default.
    columns : sequence of str, optional
        Among which columns.
    sampling : bool
        Whether errors include sampling.

    Notes
    -----
    Noise spreads eigenvalues apart. To second order, the i-th moves by the sum over j of
    ``v_ij / (w_i - w_j)``, with v_ij the variance of noise between both directions. This is subtracted, with
    the gap kept away from zero, and its square is added to the variance of the error.
    """
    chosen = questions.choose(columns, "principal components")
    count = _check_count(n_components, len(chosen))
    geometry = questions.geometry
    values, vectors = np.linalg.eigh(geometry.covariance[np.ix_(chosen, chosen)])
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    leading = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(chosen))]
    directions = (vectors * np.sign(leading)).T
    forms = np.zeros((len(chosen), len(questions.columns)))
    forms[:, chosen] = directions

    pairs = geometry.of_products(forms)
    noise = np.zeros_like(pairs.noise) if questions.noise is None else questions.noise.sigma**2 * pairs.noise
    gaps = values[:, None] - values
    drift = np.divide(noise * gaps, gaps**2 + 2 * noise, out=np.zeros_like(gaps), where=gaps != 0).sum(axis=1)
    labels = [f"PC{i + 1}" for i in range(count)]
    diagonal = np.arange(count)
    response = _with_drift(pairs.select((diagonal, diagonal)), drift[:count], questions)
    corrected = np.maximum(values - drift, 0.0)[:count]
    return Components(
        variances=questions.answer(
            "variances of the principal components",
            corrected,
            [labels],
            response,
            sampling=sampling,
            limits=(0.0, math.inf),
        ),
        explained=_explained(
            questions, forms[:count], corrected, labels, float(values.sum()), sampling=sampling
        ),
        directions=questions.answer(
            "directions of the principal components",
            directions[:count],
            [labels, questions.names(chosen)],
            _direction_response(questions, forms, gaps, count, chosen),
            sampling=sampling,
            limits=(-1.0, 1.0),
            notes=_equal_pairs(gaps, noise, count),
        ),
    )


def _check_count(n_components: int | None, most: int) -> int:
    if n_components is None:
        return most
    if isinstance(n_components, bool) or not isinstance(n_components, int) or not 1 <= n_components <= most:
        raise ArgumentError(f"n_components must be a whole number from 1 to {most}, got {n_components!r}.")
    return n_components


def _with_drift(response: Response, drift: Array, questions: Questions) -> Response:
    """Add the squared drift to the variance of the noise."""
    if questions.noise is None:
        return response
    return replace(response, noise=response.noise + (drift / questions.noise.sigma) ** 2)


def _explained(
    questions: Questions, forms: Array, values: Array, labels: list[str], total: float, *, sampling: bool
) -> Answer:
    shares = values / total if total > 0 else np.zeros_like(values)
    inside = np.zeros(len(questions.columns))
    inside[np.any(forms != 0, axis=0)] = 1.0
    squares = np.einsum("ki,kj->kij", forms, forms)
    gradients = (squares - shares[:, None, None] * np.diag(inside)) / max(total, np.finfo(float).tiny)
    return questions.answer(
        "shares of the variance",
        np.clip(shares, 0.0, 1.0),
        [labels],
        questions.geometry.of_covariance_gradients(gradients),
        sampling=sampling,
        limits=(0.0, 1.0),
    )


def _direction_response(
    questions: Questions, forms: Array, gaps: Array, count: int, chosen: Sequence[int]
) -> Response:
    """Respond for ``dv_i = sum over j of v_j (v_j^T dC v_i) / (w_i - w_j)``."""
    responses = []
    for i in range(count):
        others = np.divide(1.0, gaps[i], out=np.zeros(len(gaps)), where=gaps[i] != 0)
        moving = (forms[:, chosen].T * others) @ forms
        responses.append(questions.geometry.of_mixed_products(moving, forms[i]).parts())
    return Response(*(np.array(part) for part in zip(*responses, strict=True)))


def _equal_pairs(gaps: Array, noise: Array, count: int) -> list[str]:
    """Name components that may as well be any rotation of each other."""
    close = np.abs(gaps) < _TOLD_APART * np.sqrt(noise)
    return [
        f"PC{i + 1} and PC{i + 2} have the same variance up to the noise: their directions may be mixed."
        for i in range(min(count, len(gaps) - 1))
        if close[i, i + 1]
    ]
