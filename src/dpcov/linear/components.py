"""Principal components of the released covariance, and the spectrum of the correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.checks import count
from dpcov.core import UnresolvedError
from dpcov.laws import least_resolved
from dpcov.linear.answers import Answer
from dpcov.linear.geometry import Geometry, pair_squares
from dpcov.linear.questions import Questions
from dpcov.linear.spectra import Components, Spectrum
from dpcov.linear.uncertainty import Response

_TOLD_APART = 4.0


def principal_components(
    questions: Questions, n_components: int | None, columns: Sequence[str] | None, *, sampling: bool
) -> Components:
    """Return the directions of largest variance.

    Parameters
    ----------
    questions : Questions
        The release to ask.
    n_components : int, optional
        The number of components to return; all by default.
    columns : sequence of str, optional
        The columns to use; all by default.
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.

    Notes
    -----
    Noise spreads eigenvalues apart. To second order, the i-th moves by the sum over j of
    ``v_ij / (w_i - w_j)``, with v_ij the variance of noise between both directions. This is subtracted, with
    the gap kept away from zero, and its square is added to the variance of the error.
    """
    chosen = questions.choose(columns, "principal components")
    most = len(chosen)
    shown = most if n_components is None else count(n_components, "n_components", at_most=most)
    geometry = questions.geometry
    values, vectors = np.linalg.eigh(geometry.covariance[np.ix_(chosen, chosen)])
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    leading = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(chosen))]
    directions = (vectors * np.sign(leading)).T
    forms = np.zeros((len(chosen), len(questions.columns)))
    forms[:, chosen] = directions

    errors = _EigenvalueErrors(questions, geometry.of_products(forms), values)
    labels = [f"PC{i + 1}" for i in range(shown)]
    corrected = errors.corrected[:shown]
    return Components(
        variances=questions.answer(
            "variances of the principal components",
            corrected,
            [labels],
            errors.response.select(np.arange(shown)),
            sampling=sampling,
            limits=(0.0, math.inf),
        ),
        explained=_explained(
            questions, forms[:shown], corrected, labels, float(values.sum()), sampling=sampling
        ),
        directions=questions.answer(
            "directions of the principal components",
            directions[:shown],
            [labels, questions.names(chosen)],
            partial(_turning, geometry, forms, values, shown, np.array(chosen)),
            sampling=sampling,
            limits=(-1.0, 1.0),
            notes=_equal_pairs(errors.gaps, errors.noise, shown),
        ),
    )


class _EigenvalueErrors:
    """What noise does to eigenvalues, from the responses of all pairs of their directions."""

    def __init__(self, questions: Questions, pairs: Response, values: Array) -> None:
        sigma = 0.0 if questions.noise is None else questions.noise.sigma
        diagonal = np.arange(len(values))
        self.noise = np.zeros_like(pairs.noise) if sigma == 0 else sigma**2 * pairs.noise
        self.gaps = values[:, None] - values
        moved = np.divide(
            self.noise * self.gaps,
            self.gaps**2 + 2 * self.noise,
            out=np.zeros_like(self.gaps),
            where=self.gaps != 0,
        )
        drift = moved.sum(axis=1)
        self.corrected = np.maximum(values - drift, 0.0)
        own = pairs.select((diagonal, diagonal))
        # The squared drift joins the variance of the noise.
        self.response = own if sigma == 0 else replace(own, noise=own.noise + (drift / sigma) ** 2)


def spectrum(questions: Questions, *, sampling: bool) -> Spectrum:
    """Return the eigenvalues of the correlation matrix, with the noise floor of each.

    Parameters
    ----------
    questions : Questions
        The release. Without a constant, its second moment takes the covariance's place.
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.
    """
    chosen = list(questions.varying)
    if not chosen:
        raise UnresolvedError("every column is below the noise by itself.")
    matrix, factor = questions.centred
    scale = np.sqrt(np.diag(matrix)[chosen])
    values, vectors = np.linalg.eigh(matrix[np.ix_(chosen, chosen)] / np.outer(scale, scale))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    forms = np.zeros((len(chosen), len(questions.columns)))
    forms[:, chosen] = vectors.T / scale
    errors = _EigenvalueErrors(questions, _pairs(questions, forms), values)
    released, floor = errors.corrected, np.full(len(chosen), math.nan)
    if questions.noise is not None:
        least = least_resolved(len(chosen), questions.noise.sigma, questions.noise.hidden)
        floor = least * np.square(forms @ factor).sum(axis=1)
        # Among eigenvalues that are noise the correction is noise as well.
        released = np.where(values > floor, errors.corrected, values)
    labels = [str(i + 1) for i in range(len(chosen))]
    eigenvalues = questions.answer(
        "eigenvalues of the correlation matrix",
        released,
        [labels],
        errors.response,
        sampling=sampling,
        limits=(0.0, math.inf),
    )
    return Spectrum(questions.names(chosen), eigenvalues, floor)


def _pairs(questions: Questions, forms: Array) -> Response:
    geometry = questions.geometry
    if questions.has_constant:
        return geometry.of_products(forms)
    values = forms @ geometry.moment @ forms.T
    zero = np.zeros_like(values)
    return Response(
        noise=pair_squares(forms @ geometry.noise_gram @ forms.T),
        own=pair_squares(values),
        cross=zero,
        trace=values,
        constant=zero,
        **geometry.heavy_pairs(values, forms),
    )


def _explained(
    questions: Questions, forms: Array, values: Array, labels: list[str], total: float, *, sampling: bool
) -> Answer:
    shares = values / total if total > 0 else np.zeros_like(values)
    inside = np.any(forms != 0, axis=0).astype(np.float64)
    return questions.answer(
        "shares of the variance",
        np.clip(shares, 0.0, 1.0),
        [labels],
        questions.geometry.of_shares(forms, shares, inside, max(total, np.finfo(float).tiny)),
        sampling=sampling,
        limits=(0.0, 1.0),
    )


def _turning(
    geometry: Geometry, forms: Array, values: Array, count: int, chosen: NDArray[np.int64]
) -> Response:
    return geometry.of_rotations(forms, values, count).select((slice(None), chosen))


def _equal_pairs(gaps: Array, noise: Array, count: int) -> list[str]:
    """Name components that may as well be any rotation of each other."""
    close = np.abs(gaps) < _TOLD_APART * np.sqrt(noise)
    return [
        f"PC{i + 1} and PC{i + 2} have the same variance up to the noise: their directions may be mixed."
        for i in range(min(count, len(gaps) - 1))
        if close[i, i + 1]
    ]
