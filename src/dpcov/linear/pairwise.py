"""Pairwise answers: each covariance from the rows in which both columns are there.

A release with gaps has, for each column i, its values w_i, zero where they are missing, and its presence p_i,
1 where they are there: both are linear forms of the released row, so that with M the released matrix

    N_ij = p_i^T M p_j,   m_ij = w_i^T M p_j / N_ij,   C_ij = w_i^T M w_j / N_ij - m_ij m_ji

are, up to the noise, the share of rows that have both, the mean of column i over these rows, and the
covariance over them: pandas' ``cov`` and R's ``pairwise.complete.obs``, with sums divided by the number of
rows. The mean of a column is m_ii. A change of M moves them by

    dC_ij = (u_ij^T dM u_ji - C_ij p_i^T dM p_j) / N_ij,   u_ij = w_i - m_ij p_i,
    dm_ii = u_ii^T dM p_i / N_ii,

as in `Geometry`, with the presence in place of the constant. So the gradient of any function of C and of the
means is one of the released matrix as well, whose errors have a known law: that is all there is to intervals.
C need not be positive semidefinite, even without noise; it is moved to the nearest such matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.linear.geometry import Geometry, nearest_covariance, pair_squares
from dpcov.linear.loss_draws import LossDraws
from dpcov.linear.responses import Response

_Gradient = Callable[[Array, Array], Array]

_LEAST_SHARED = 4.0
"""How many standard deviations of its noise a share of rows must exceed: noise alone does once in 30,000."""


@dataclass(frozen=True, eq=False)
class PairwiseGeometry(Geometry):
    """Columns with gaps as a geometry: means and covariances of pairs, and how they respond to a change.

    Attributes
    ----------
    moment : ndarray, shape (k + 1, k + 1)
        Mean products of the columns and a constant, as pairs make them up.
    noise_gram, has_constant, heavy
        As in `Geometry`; errors do not come from these, but from `released`.
    released : Geometry
        The released matrix and its noise.
    pairs : Pairs
        The columns as forms of the released row.
    """

    released: Geometry = field(kw_only=True)
    pairs: Pairs = field(kw_only=True)

    @cached_property
    def mean(self) -> Array:
        """Means of the rows in which each column is there."""
        return self.pairs.mean

    @cached_property
    def covariance(self) -> Array:
        """The covariance of pairs, as the nearest matrix that is positive semidefinite."""
        return self.pairs.positive_covariance

    def of_mean(self) -> Response:
        """Respond for every mean."""
        columns = range(len(self.mean))
        return _gathered([self._respond(np.zeros((1, 1)), np.ones(1), [i]) for i in columns], (len(columns),))

    def of_products(self, forms: Array, sign: float = 1.0) -> Response:
        """Respond for every ``sign * a_i^T dC a_j``, with a_i the rows of `forms`."""
        return self._of_pairs(forms, lambda first, second: sign * _product(first, second))

    def of_variances(self, columns: Sequence[int]) -> Response:
        """Respond for the variances of some columns."""
        return _gathered([self._respond(np.ones((1, 1)), np.zeros(1), [i]) for i in columns], (len(columns),))

    def of_ratios(self, forms: Array) -> Response:
        """Respond for the correlations of ``a_i^T C a_j``."""
        scaled = forms / np.sqrt(np.einsum("ij,jk,ik->i", forms, self.covariance, forms))[:, None]

        def gradient(first: Array, second: Array) -> Array:
            ratio = float(first @ self.covariance @ second)
            return _product(first, second) - ratio / 2 * (_product(first, first) + _product(second, second))

        return self._of_pairs(scaled, gradient)

    def of_scaled_products(
        self, first: Array, second: Array, diagonal: Array, *, scale_free: bool = False
    ) -> Response:
        """Respond for answers whose gradients by C are ``sym(a b^T) - diag(c)``."""
        del scale_free
        parts = np.broadcast_arrays(first, second, diagonal)
        shape, size = parts[0].shape[:-1], parts[0].shape[-1]
        lines = zip(*(part.reshape(-1, size) for part in parts), strict=True)
        return _gathered([self._of_gradient(_product(a, b) - np.diag(c)) for a, b, c in lines], shape)

    def of_gradients(self, gradients: Array, index: Sequence[int]) -> Response:
        """Respond for answers with these symmetric gradients of the block `index` of `moment`."""
        return self.released.of_gradients(*self._pulled_back(gradients, index))

    def with_losses(self, losses: LossDraws, chosen: Sequence[int]) -> None:
        """Return nothing: each pair has rows of its own, and errors follow from derivatives."""

    def products_of_gradients(self, gradients: Array, index: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return for all pairs of gradients what `of_gradients` gives for each: noise, own and cross."""
        return self.released.products_of_gradients(*self._pulled_back(gradients, index))

    def _pulled_back(self, gradients: Array, index: Sequence[int]) -> tuple[Array, list[int]]:
        """Return gradients by a block of `moment` as gradients by the released matrix, and its block.

        The moment is ``C + m m^T``, and with the constant m. The constant's own entry never changes.
        """
        size = len(self.mean)
        columns = [place for place in index if place < size]
        own = [i for i, place in enumerate(index) if place < size]
        constant = [i for i, place in enumerate(index) if place == size]
        by_covariance = gradients[:, own][:, :, own]
        by_mean = 2 * by_covariance @ self.mean[columns]
        by_mean += 2 * gradients[:, own][:, :, constant].sum(axis=-1)
        return self.pairs.pull_back(by_covariance, by_mean, columns)

    def _of_pairs(self, forms: Array, gradient: _Gradient) -> Response:
        """Respond for all pairs of forms; a pair and its mirror image have the same gradient."""
        size = len(forms)
        upper = {
            (i, j): self._of_gradient(gradient(forms[i], forms[j]))
            for i in range(size)
            for j in range(i, size)
        }
        whole = [upper[min(i, j), max(i, j)] for i in range(size) for j in range(size)]
        return _gathered(whole, (size, size))

    def _of_gradient(self, gradient: Array) -> Response:
        """Respond for one answer, of which few columns may matter."""
        columns = np.flatnonzero((gradient != 0).any(axis=0)).tolist() or [0]
        return self._respond(gradient[np.ix_(columns, columns)], np.zeros(len(columns)), columns)

    def _respond(self, by_covariance: Array, by_mean: Array, columns: Sequence[int]) -> Response:
        return self.released.of_gradients(*self.pairs.pull_back(by_covariance[None], by_mean[None], columns))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Columns with gaps as forms of a released row, and what pairs of them come to.

    Attributes
    ----------
    released : ndarray, shape (d, d)
        The released second moment.
    noise_gram : ndarray, shape (d, d)
        Of its noise, whose standard deviation is `sigma`.
    sigma : float
        NaN if the noise has no law.
    values, presence : ndarray, shape (k, d)
        Each column, zero where it is missing, and where it is there: as forms of the released row.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear.pairwise import Pairs
    >>> rows = np.array([[1.0, 0.0, 1.0], [3.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # value, missing, constant
    >>> forms = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, -1.0, 1.0]])
    >>> pairs = Pairs(rows.T @ rows / 3, np.eye(3), 0.0, *forms)
    >>> pairs.mean, pairs.covariance
    (array([2.]), array([[1.]]))
    """

    released: Array
    noise_gram: Array
    sigma: float
    values: Array
    presence: Array

    @cached_property
    def shared(self) -> Array:
        """The share of rows, or how many for each unit, that have both columns of a pair."""
        return self.presence @ self.released @ self.presence.T

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """Which pairs are there together in no more rows than noise alone could show."""
        noise = np.nan_to_num(self.sigma) * np.sqrt(
            pair_squares(self.presence @ self.noise_gram @ self.presence.T)
        )
        return np.asarray(self.shared <= _LEAST_SHARED * noise)

    @cached_property
    def _each(self) -> Array:
        """One over the share of rows; zero for a pair that is lost, so that nothing comes of it."""
        return np.where(self.lost, 0.0, 1 / np.where(self.lost, 1.0, self.shared))

    @cached_property
    def mean(self) -> Array:
        """The mean of each column over the rows that have it."""
        sums = np.einsum("ij,jk,ik->i", self.values, self.released, self.presence)
        return np.asarray(sums * np.diag(self._each))

    @cached_property
    def centred(self) -> Array:
        """Each column less its mean, zero where it is missing, as forms."""
        return self.values - self.mean[:, None] * self.presence

    @cached_property
    def _shifts(self) -> Array:
        """How far the mean of a column over a pair's rows is from its mean over its own."""
        return np.asarray(self.centred @ self.released @ self.presence.T * self._each)

    @cached_property
    def covariance(self) -> Array:
        """The covariance of each pair; it need not be positive semidefinite."""
        products = self.centred @ self.released @ self.centred.T * self._each
        return np.asarray(products - self._shifts * self._shifts.T)

    @cached_property
    def positive_covariance(self) -> Array:
        """The nearest matrix that is positive semidefinite."""
        return nearest_covariance(self.covariance)

    @cached_property
    def widening(self) -> Array:
        """For each column a factor f such that the noise of every pair is at most ``f_i f_j`` times its own.

        That of a pair is divided by the share N_ij of rows that have both columns, so that
        ``f_i f_j >= 1 / N_ij`` for all pairs; of all such factors those of least product.
        """
        from scipy.optimize import linprog  # noqa: PLC0415  (takes long, is rarely needed)

        size = len(self.mean)
        first, second = np.triu_indices(size)
        needed = -np.log(np.where(self.lost, 1.0, self.shared)[first, second])
        if size == 1 or not (needed > 0).any():
            return np.exp(np.maximum(needed[:1], 0.0) / 2).repeat(size)
        pairs = np.zeros((len(first), size))
        np.add.at(pairs, (np.arange(len(first)), first), 1.0)
        np.add.at(pairs, (np.arange(len(first)), second), 1.0)
        found = linprog(np.ones(size), A_ub=-pairs, b_ub=-np.maximum(needed, 0.0), bounds=(0.0, None))
        return np.exp(np.asarray(found.x, dtype=np.float64))

    def pull_back(
        self, by_covariance: Array, by_mean: Array, columns: Sequence[int]
    ) -> tuple[Array, list[int]]:
        """Return gradients by covariances and means of some columns as gradients by the released matrix.

        Parameters
        ----------
        by_covariance : ndarray, shape (q, m, m)
            Symmetric gradients by the covariances of `columns`.
        by_mean : ndarray, shape (q, m)
            Gradients by their means.
        columns : sequence of int
            The places of the columns.

        Returns
        -------
        ndarray, list of int
            Symmetric gradients, by a block of the released matrix that they touch, and the block.
        """
        chosen = list(columns)
        block = np.ix_(chosen, chosen)
        touched = np.flatnonzero(((self.values[chosen] != 0) | (self.presence[chosen] != 0)).any(axis=0))
        centred, presence = self.centred[chosen][:, touched], self.presence[chosen][:, touched]
        weights, shifts = by_covariance * self._each[block], self._shifts[block]
        own = centred.T @ weights @ centred
        crossed = presence.T @ (weights * shifts) @ centred
        by_presence = weights * (shifts * shifts.T - self.covariance[block])
        own = own - crossed - crossed.transpose(0, 2, 1) + presence.T @ by_presence @ presence
        halves = centred.T @ ((by_mean * np.diag(self._each)[chosen] / 2)[..., None] * presence)
        return own + halves + halves.transpose(0, 2, 1), touched.tolist()


def _product(first: Array, second: Array) -> Array:
    product = np.outer(first, second)
    return np.asarray((product + product.T) / 2)


def _gathered(responses: Sequence[Response], shape: tuple[int, ...]) -> Response:
    """Return responses of one answer each as that of all of them."""
    parts = [one.parts() for one in responses]
    whole = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    return Response(**{name: part.reshape(*shape, *part.shape[1:]) for name, part in whole.items()})
