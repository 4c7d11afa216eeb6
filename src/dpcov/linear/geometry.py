"""The released matrix as a geometry: how each kind of answer responds to a change of it.

Write S for the second moment with its constant column e, c for its last entry (the share of complete
rows), m for the means, ``C = L S L^T / c`` for the covariance with ``L = [I, -m]``. Then

    dC = (L dS L^T - C dS_cc) / c,        dm = L dS e / c,

and every other answer is a function of C and m. Symmetric products make up all gradients: for
``sym(a b^T) = (a b^T + b a^T) / 2`` and any K, its squared norm is ``(a K a b K b + (a K b)^2) / 2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.laws import nearest_positive_semidefinite, square_root
from dpcov.linear.loss_draws import LossDraws
from dpcov.linear.responses import Response


@dataclass(frozen=True, eq=False)
class Geometry:
    """A second moment and the map of its noise.

    Attributes
    ----------
    moment : ndarray, shape (d, d)
        The released matrix; if `has_constant`, its last column belongs to the constant.
    noise_gram : ndarray, shape (d, d)
        ``B B^T`` for the map B of the noise law.
    has_constant : bool
        Whether there is a constant column.
    heavy : ndarray, shape (number of heavy directions, number of columns), optional
        White unit vectors along which many long rows agree, in the table's columns.
    """

    moment: Array
    noise_gram: Array
    has_constant: bool
    heavy: Array | None = None

    @cached_property
    def complete(self) -> float:
        """The share of complete rows; 1 if there is no constant to tell."""
        return float(self.moment[-1, -1]) if self.has_constant else 1.0

    @cached_property
    def mean(self) -> Array:
        """Means of the complete rows."""
        return self.moment[:-1, -1] / self.complete

    @cached_property
    def covariance(self) -> Array:
        """The Schur complement of the constant: symmetric positive semidefinite."""
        return nearest_covariance(self.moment[:-1, :-1] / self.complete - np.outer(self.mean, self.mean))

    @property
    def centred(self) -> Array:
        """The covariance; the second moment if there is no constant to centre by."""
        return self.covariance if self.has_constant else self.moment

    @cached_property
    def centred_noise(self) -> tuple[Array, Array, float]:
        """The noise Gram matrix K over c: among centred columns, between them and the constant, of it."""
        if not self.has_constant:
            return self.noise_gram, np.zeros(len(self.moment)), 0.0
        centring = np.column_stack([np.eye(len(self.mean)), -self.mean])
        mapped = centring @ self.noise_gram / self.complete
        return mapped @ centring.T, mapped[:, -1], float(self.noise_gram[-1, -1] / self.complete)

    def of_moment(self) -> Response:
        """Respond for every entry of the second moment."""
        own, means = self.moment, np.zeros(len(self.moment))
        if self.has_constant:
            own = np.zeros_like(self.moment)
            own[:-1, :-1] = self.covariance * self.complete
            means = np.append(self.mean, 1.0) * np.sqrt(self.complete)
        variance = np.diag(own)
        mixed = np.outer(variance, means**2)
        products = np.outer(means, means)
        return Response(
            noise=pair_squares(self.noise_gram),
            own=pair_squares(own),
            cross=(mixed + mixed.T + 2 * own * products) / 4,
            trace=own,
            constant=products,
            **self.heavy_pairs(own, np.eye(len(own))[:, : len(own) - self.has_constant]),
            **self._across_pairs(means),
        )

    def of_mean(self) -> Response:
        """Respond for every mean."""
        own, with_constant, constant = self.centred_noise
        zero = np.zeros(len(self.mean))
        return Response(
            noise=(np.diag(own) * constant + with_constant**2) / 2,
            own=zero,
            cross=np.diag(self.covariance) / 4,
            trace=zero,
            constant=zero,
            across=None if self.heavy is None else self.heavy.T / (2 * np.sqrt(self.complete)),
        )

    def of_products(self, forms: Array, sign: float = 1.0) -> Response:
        """Respond for every ``sign * a_i^T dC a_j``, with a_i the rows of `forms`."""
        own, with_constant, constant = self.centred_noise
        values = forms @ self.centred @ forms.T
        noise, mixed = forms @ own @ forms.T, forms @ with_constant
        # d(a C b) contains -a C b dS_cc / c: the noise of the constant's entry.
        squares = pair_squares(noise) - 2 * values * np.outer(mixed, mixed) + (values * constant) ** 2
        return Response(
            noise=np.maximum(squares, 0.0),
            own=pair_squares(values),
            cross=np.zeros_like(values),
            trace=sign * values,
            constant=-sign * values if self.has_constant else np.zeros_like(values),
            **self.heavy_pairs(values, forms / np.sqrt(self.complete), sign),
        )

    def of_ratios(self, forms: Array) -> Response:
        """Respond for the correlations of ``a_i^T C a_j``: whatever scales C leaves them as they are."""
        own, _, _ = self.centred_noise
        values = forms @ self.covariance @ forms.T
        scale = np.sqrt(np.outer(np.diag(values), np.diag(values)))
        ratios = values / scale
        zero = np.zeros_like(values)
        heavy = {}
        if self.heavy is not None:
            parts = forms @ self.heavy.T / np.sqrt(np.diag(values) * self.complete)[:, None]
            first = parts - ratios[..., None] * parts[:, None]
            second = first.transpose(1, 0, 2)
            length = (first**2 + second**2 + 2 * ratios[..., None] * first * second) / 4
            heavy = _along_and_beside((first * parts[:, None] + second * parts) / 2, length)
        return Response(
            noise=_ratio_squares(forms @ own @ forms.T / scale, ratios),
            own=_ratio_squares(ratios, ratios),
            cross=zero,
            trace=zero,
            constant=zero,
            **heavy,
        )

    def of_scaled_products(
        self, first: Array, second: Array, diagonal: Array, *, scale_free: bool = False
    ) -> Response:
        """Respond for answers whose gradients G by C are ``sym(a b^T) - diag(c)``.

        So are those of eigenvalues and eigenvectors whose columns are brought to one scale, and of shares of
        a trace. Along the last axis lie a (`first`), b (`second`) and c (`diagonal`). Answers that are
        `scale_free` stay as they are if C is scaled: ``tr(G C)`` is zero, without rounding.
        """
        own, with_constant, constant = self.centred_noise
        first, second, diagonal = np.broadcast_arrays(first, second, diagonal)

        def squares(matrix: Array) -> Array:
            """``tr(G K G K)`` for every gradient G."""
            left, right = first @ matrix, second @ matrix
            both = (left * first).sum(-1) * (right * second).sum(-1) + np.square((left * second).sum(-1))
            mixed = (diagonal * left * right).sum(-1)
            return np.asarray(both / 2 - 2 * mixed + ((diagonal @ np.square(matrix)) * diagonal).sum(-1))

        centred = self.centred
        values = (first @ centred * second).sum(-1) - diagonal @ np.diag(centred)
        values = np.zeros_like(values) if scale_free else values
        outer = (first @ with_constant) * (second @ with_constant) - diagonal @ np.square(with_constant)
        heavy = {}
        if self.heavy is not None:
            white = self.heavy / np.sqrt(self.complete)
            parts = (first @ white.T)[..., None], (second @ white.T)[..., None]
            products = (first[..., None, :] * parts[1] + second[..., None, :] * parts[0]) / 2
            products -= diagonal[..., None, :] * white
            heavy = _along_and_beside((products * white).sum(-1), (products @ centred * products).sum(-1))
        return Response(
            noise=np.maximum(squares(own) - 2 * values * outer + (values * constant) ** 2, 0.0),
            own=np.maximum(squares(centred), 0.0),
            cross=np.zeros_like(values),
            trace=values,
            constant=-values if self.has_constant else np.zeros_like(values),
            **heavy,
        )

    def products_of_gradients(self, gradients: Array, index: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return for all pairs of gradients what `of_gradients` gives for each: noise, own and cross."""
        chosen = np.asarray(index)
        factor = self._white_factor[chosen]
        own = factor[:, :-1] if self.has_constant else factor
        constant = factor[:, -1] if self.has_constant else np.zeros(len(chosen))
        mapped = gradients @ self.noise_gram[np.ix_(chosen, chosen)]
        white, across = own.T @ gradients @ own, own.T @ gradients @ constant
        return (
            np.einsum("pij,qji->pq", mapped, mapped, optimize=True),
            np.einsum("pij,qij->pq", white, white, optimize=True),
            across @ across.T,
        )

    def of_gradients(self, gradients: Array, index: Sequence[int]) -> Response:
        """Respond for answers with these symmetric gradients of the second moment's block `index`."""
        chosen = np.asarray(index)
        noise = self.noise_gram[np.ix_(chosen, chosen)]
        factor = self._white_factor[chosen]
        own = factor[:, :-1] if self.has_constant else factor
        constant = factor[:, -1] if self.has_constant else np.zeros(len(chosen))
        mapped = gradients @ noise
        white = own.T @ gradients @ own
        heavy = {}
        if self.heavy is not None:
            block = np.zeros((len(self.heavy), len(self.moment)))
            block[:, : self.heavy.shape[1]] = self.heavy
            vectors = block[:, chosen]
            products = np.einsum("qij,rj->qri", gradients, vectors)
            length = np.square(products @ own).sum(axis=-1)
            heavy = _along_and_beside(np.einsum("qri,ri->qr", products, vectors), length)
            heavy["across"] = products @ constant
        return Response(
            noise=np.maximum(np.einsum("qij,qji->q", mapped, mapped), 0.0),
            own=np.einsum("qij,qij->q", white, white),
            cross=np.square(own.T @ gradients @ constant).sum(axis=-1),
            trace=np.einsum("qii->q", white),
            constant=constant @ gradients @ constant,
            **heavy,
        )

    def with_losses(self, losses: LossDraws, chosen: Sequence[int]) -> tuple[Array, Array] | None:
        """Return covariances and means of some columns with what clipping may have taken along `heavy`.

        Rows along v that lost squares l and, on one side, lengths a have changed S by
        ``l v v^T + a (v k^T + k v^T)``, where ``k = sqrt(c) (m, 1)`` is what all rows have in common. So
        ``dm = a v / sqrt(c)`` and ``dC = l v v^T / c - dm dm^T``, without a remainder. Too much may have been
        given back: then no variance falls below zero.

        Parameters
        ----------
        losses : LossDraws
            How much, draw by draw.
        chosen : sequence of int
            Places of the columns.

        Returns
        -------
        tuple of ndarray or None
            One covariance and one line of means for each draw; None if no direction is known.
        """
        if self.heavy is None:
            return None
        block = list(chosen)
        vectors = self.heavy[:, block] / np.sqrt(self.complete)
        squares, lengths = losses.located
        scales = np.sqrt(np.diag(self.covariance)[block])
        scales = np.where(scales > 0, scales, 1.0)
        units = vectors / scales
        relative = self.covariance[np.ix_(block, block)] / np.outer(scales, scales)
        moved = lengths.T @ units
        added = np.einsum("rk,ri,rj->kij", squares, units, units, optimize=True)
        values, turns = np.linalg.eigh(relative + added - moved[:, :, None] * moved[:, None, :])
        whole = np.einsum("kij,kj,klj->kil", turns, np.maximum(values, 0.0), turns, optimize=True)
        return whole * np.outer(scales, scales), self.mean[block] + moved * scales

    def heavy_pairs(self, values: Array, forms: Array, sign: float = 1.0) -> dict[str, Array]:
        """Along and beside the heavy directions, for ``sign * sym(a_i a_j^T)`` with products `values`."""
        if self.heavy is None:
            return {}
        parts = forms @ self.heavy.T
        first, second = parts[:, None], parts[None]
        variances = np.diag(values)[:, None]
        length = variances[:, None] * second**2 + variances[None] * first**2
        along = first * second
        return _along_and_beside(sign * along, (length + 2 * values[..., None] * along) / 4)

    def _across_pairs(self, means: Array) -> dict[str, Array]:
        """Across the heavy directions and the constant, for every entry of the second moment."""
        if self.heavy is None or not self.has_constant:
            return {}
        parts = np.zeros((len(means), len(self.heavy)))
        parts[:-1] = self.heavy.T
        mixed = parts[:, None] * means[:, None] / 2
        return {"across": mixed + mixed.transpose(1, 0, 2)}

    @cached_property
    def _white_factor(self) -> Array:
        """F with ``F F^T`` the second moment; its last column belongs to the constant."""
        if not self.has_constant:
            return square_root(self.moment)
        scale = np.sqrt(self.complete)
        factor = np.zeros_like(self.moment)
        factor[:-1, :-1] = scale * square_root(self.covariance)
        factor[:, -1] = scale * np.append(self.mean, 1.0)
        return factor


def nearest_covariance(raw: Array) -> Array:
    """Return the nearest positive semidefinite matrix, in units of each column's own spread.

    In other units rounding of a large column would drown small ones.
    """
    spread = np.sqrt(np.abs(np.diag(raw)))
    spread[spread == 0] = 1.0
    units = np.outer(spread, spread)
    relative = np.asarray((raw + raw.T) / (2 * units))
    if np.linalg.eigvalsh(relative)[0] < 0:
        relative = nearest_positive_semidefinite(relative)
    return np.asarray(relative * units, dtype=np.float64)


def _along_and_beside(along: Array, length: Array) -> dict[str, Array]:
    """Split the squared length of Qv into what lies along v and what lies beside it."""
    return {"along": along, "beside": np.sqrt(np.maximum(length - along**2, 0.0))}


def pair_squares(matrix: Array) -> Array:
    """Return ``|sym(a_i a_j^T)|^2`` for all pairs, from the products ``a_i . a_j``."""
    variances = np.diag(matrix)
    return np.asarray((np.outer(variances, variances) + matrix**2) / 2)


def _ratio_squares(matrix: Array, ratios: Array) -> Array:
    """Squared norm of ``sym(a_i a_j) - r_ij / 2 (a_i a_i + a_j a_j)``, from the products of the a_i."""
    variances = np.diag(matrix)
    first = np.broadcast_to(variances[:, None], matrix.shape)
    both = first + first.T
    squares = (
        pair_squares(matrix)
        + ratios**2 / 4 * (first**2 + first.T**2 + 2 * matrix**2)
        - ratios * matrix * both
    )
    return np.maximum(squares, 0.0)
