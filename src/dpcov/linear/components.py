"""Principal components of the released covariance or correlation, and the spectrum of the correlation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import count, flag
from dpcov.core import UnresolvedError
from dpcov.laws import least_resolved
from dpcov.linear.questions import Questions
from dpcov.linear.responses import Response
from dpcov.linear.spectra import Components, Spectrum

_TOLD_APART = 4.0
_TINY = float(np.finfo(np.float64).tiny)


def principal_components(
    questions: Questions,
    n_components: int | None,
    columns: Sequence[str] | None,
    *,
    standardize: bool,
    sampling: bool,
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
    standardize : bool
        Whether columns are brought to a variance of 1 first. Those below the noise are left out then.
    sampling : bool
        Whether errors also cover that the rows are a sample of a population.
    """
    asked = questions.choose(columns, "principal components")
    wanted = len(asked) if n_components is None else count(n_components, "n_components", at_most=len(asked))
    left_out = [i for i in asked if i not in questions.varying] if flag(standardize, "standardize") else []
    chosen = [i for i in asked if i not in left_out]
    if not chosen:
        raise UnresolvedError("Every column is below the noise by itself.")
    lost = ", ".join(questions.names(left_out))
    questions, chosen = questions.among(chosen)
    shown = min(wanted, len(chosen))
    found = _Eigen(questions, chosen, standardize=standardize)
    labels, names = [f"PC{i + 1}" for i in range(shown)], questions.names(chosen)
    doubts = questions.describe_doubts(chosen)
    notes = [f"Left out, because each is below the noise by itself: {lost}."] if left_out else []
    places = np.arange(shown)
    return Components(
        columns=names,
        standardized=standardize,
        mean=questions.geometry.mean[chosen].copy(),
        scale=found.scale.copy(),
        n_above_noise=None if questions.noise is None else int((found.values > found.floor).sum()),
        variances=questions.answer(
            "variances of the principal components",
            found.corrected[:shown],
            [labels],
            found.response.select(places),
            sampling=sampling,
            limits=(0.0, math.inf),
            notes=[*notes, *doubts],
        ),
        explained=questions.answer(
            "shares of the variance",
            np.clip(found.shares[:shown], 0.0, 1.0),
            [labels],
            found.of_shares().select(places),
            sampling=sampling,
            limits=(0.0, 1.0),
            notes=doubts,
        ),
        directions=questions.answer(
            "directions of the principal components",
            found.directions[:shown],
            [labels, names],
            partial(found.of_directions, shown),
            sampling=sampling,
            limits=(-1.0, 1.0),
            notes=[*_equal_pairs(found.gaps, found.noise, shown), *doubts],
        ),
        loadings=questions.answer(
            "loadings of the principal components",
            found.directions[:shown] * np.sqrt(found.corrected[:shown, None]),
            [labels, names],
            partial(found.of_loadings, shown),
            sampling=sampling,
            limits=(-1.0, 1.0) if standardize else (-math.inf, math.inf),
            notes=doubts,
        ),
    )


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
        raise UnresolvedError("Every column is below the noise by itself.")
    questions, chosen = questions.among(chosen)
    found = _Eigen(questions, chosen, standardize=True)
    eigenvalues = questions.answer(
        "eigenvalues of the correlation matrix",
        # Among eigenvalues that are noise the correction is noise as well.
        np.where(found.values > found.floor, found.corrected, found.values)
        if questions.noise is not None
        else found.corrected,
        [[str(i + 1) for i in range(len(chosen))]],
        found.response,
        sampling=sampling,
        limits=(0.0, math.inf),
        notes=questions.describe_doubts(chosen),
    )
    return Spectrum(questions.names(chosen), eigenvalues, found.floor)


class _Eigen:
    """Eigenvalues and eigenvectors of a block of the covariance, or of its correlation, and their errors.

    With s the columns' spreads (all 1 for the covariance), v an eigenvector of ``R = C / (s s^T)`` and w its
    eigenvalue, ``a = v / s`` is the form of the table's columns that has the variance w. A change of C
    changes the scale as well:

        v_j^T dR v_i = a_j^T dC a_i - (w_i + w_j) / 2 * sum over k of a_ik a_jk dC_kk,
        dw_i = v_i^T dR v_i,       dv_i = sum over j of v_j (v_j^T dR v_i) / (w_i - w_j).

    For the covariance the sums over k fall away. Noise spreads eigenvalues apart. To second order, the i-th
    moves by the sum over j of ``n_ij / (w_i - w_j)``, with n_ij the variance of noise between both
    directions. This is subtracted, with the gap kept away from zero, and its square is added to the variance
    of the error.
    """

    def __init__(self, questions: Questions, chosen: list[int], *, standardize: bool) -> None:
        self._geometry, self._standardize = questions.geometry, standardize
        matrix, factor = questions.centred
        block = matrix[np.ix_(chosen, chosen)]
        self.scale = np.sqrt(np.diag(block)) if standardize else np.ones(len(chosen))
        values, vectors = np.linalg.eigh(block / np.outer(self.scale, self.scale))
        self.values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        leading = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(chosen))]
        self.directions = (vectors * np.sign(leading)).T
        self._forms = np.zeros((len(chosen), len(questions.columns)))
        self._forms[:, chosen] = self.directions / self.scale
        self._inside = np.zeros(len(questions.columns))
        self._inside[chosen] = 1.0

        sigma = 0.0 if questions.noise is None else questions.noise.sigma
        pairs = self._geometry.of_products(self._forms).noise
        self.noise = np.zeros_like(pairs) if sigma == 0 else sigma**2 * pairs
        self.gaps = self.values[:, None] - self.values
        drift = np.divide(
            self.noise * self.gaps,
            self.gaps**2 + 2 * self.noise,
            out=np.zeros_like(self.gaps),
            where=self.gaps != 0,
        ).sum(axis=1)
        self.corrected = np.maximum(self.values - drift, 0.0)
        own = self._geometry.of_scaled_products(
            self._forms, self._forms, self._rescaling, scale_free=standardize
        )
        # The squared drift joins the variance of the noise.
        self.response = own if sigma == 0 else replace(own, noise=own.noise + (drift / sigma) ** 2)
        self.floor = np.full(len(chosen), math.nan)
        if questions.noise is not None:
            least = least_resolved(len(chosen), questions.noise.sigma, questions.noise.hidden)
            self.floor = least * np.square(self._forms @ factor).sum(axis=1)

    @property
    def _rescaling(self) -> Array:
        """What a change of the scale does to each eigenvalue: the c of its gradient."""
        return np.asarray(self.values[:, None] * np.square(self._forms) * self._standardize)

    @cached_property
    def _total(self) -> float:
        return max(float(self.values.sum()), _TINY)

    @property
    def shares(self) -> Array:
        """Of the whole variance."""
        return np.asarray(self.corrected / self._total)

    def of_shares(self) -> Response:
        """Respond for the shares; the trace of a correlation matrix never changes."""
        if self._standardize:
            return self.response.times(1 / self._total)
        lost = self.shares[:, None] * self._inside / self._total
        return self._geometry.of_scaled_products(self._forms, self._forms / self._total, lost)

    def of_directions(self, count: int) -> Response:
        """Respond for the first `count` eigenvectors; eigenvalues that are equal are left out."""
        return self._stacked((self._turning(i, 1.0, 0.0) for i in range(count)), scale_free=True)

    def of_loadings(self, count: int) -> Response:
        """Respond for the first `count` eigenvectors, each times the root of its eigenvalue."""
        roots = np.sqrt(np.maximum(self.values, _TINY))
        gradients = (self._turning(i, roots[i], 1 / (2 * roots[i])) for i in range(count))
        return self._stacked(gradients, scale_free=self._standardize)

    def _turning(self, i: int, turned: float, grown: float) -> tuple[Array, Array, Array]:
        """Return a, b and c of the gradient of ``turned * dv_i + grown * v_i dw_i``, one column a line."""
        inverse = np.divide(1.0, self.gaps[i], out=np.zeros(len(self.values)), where=self.gaps[i] != 0)
        own = self._forms[i]
        coordinates = self.directions.T
        second = turned * (coordinates * inverse) @ self._forms + grown * np.outer(coordinates[:, i], own)
        diagonal = np.zeros_like(second)
        if self._standardize:
            middle = (self.values[i] + self.values) / 2
            diagonal = own * (turned * (coordinates * inverse * middle) @ self._forms)
            diagonal += grown * self.values[i] * np.outer(coordinates[:, i], np.square(own))
        return own, second, diagonal

    def _stacked(self, gradients: Iterable[tuple[Array, Array, Array]], *, scale_free: bool) -> Response:
        """Respond for gradients component by component: all at once they would not fit into memory."""
        respond = partial(self._geometry.of_scaled_products, scale_free=scale_free)
        responses = [respond(*parts).parts() for parts in gradients]
        return Response(**{name: np.stack([one[name] for one in responses]) for name in responses[0]})


def _equal_pairs(gaps: Array, noise: Array, count: int) -> list[str]:
    """Name components that may as well be any rotation of each other."""
    close = np.abs(gaps) < _TOLD_APART * np.sqrt(noise)
    return [
        f"PC{i + 1} and PC{i + 2} have the same variance up to the noise: their directions may be mixed."
        for i in range(min(count, len(gaps) - 1))
        if close[i, i + 1]
    ]
