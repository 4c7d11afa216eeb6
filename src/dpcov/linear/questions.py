"""The questions: each a function of the released matrix, answered with the law of its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import flag
from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer, Limits
from dpcov.linear.columns import find_columns
from dpcov.linear.geometry import Geometry
from dpcov.linear.known import Known
from dpcov.linear.loss_draws import LossDraws
from dpcov.linear.responses import Response
from dpcov.linear.shares import pool_shares
from dpcov.linear.spectra import Whitening
from dpcov.linear.uncertainty import ErrorLaw

_WITHOUT_COLUMNS = "leave one of these columns out with columns=[...]"


@dataclass(frozen=True, eq=False)
class Questions(Known):
    """A released second moment, ready to be asked; its attributes are those of `Known`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear import Questions
    >>> moment = np.array([[5.0, 2.0], [2.0, 1.0]])
    >>> asked = Questions(("height",), 100, moment, None, ())
    >>> asked.variance(None, sampling=False).values
    array([1.])
    """

    @cached_property
    def law(self) -> ErrorLaw:
        """The law of the errors of all answers."""
        sigma = math.nan if self.noise is None else self.noise.sigma
        draws = None
        if self.losses:
            draws = LossDraws(self.losses, self.n_rows, has_constant=self.has_constant)
        return ErrorLaw(sigma, self.n_rows * self.geometry.complete, draws)

    def answer(
        self,
        name: str,
        values: Array,
        labels: Sequence[Sequence[str]],
        response: Response | Callable[[], Response],
        *,
        sampling: bool,
        limits: Limits = (-math.inf, math.inf),
        notes: Sequence[str] = (),
        allowed_for: bool = False,
    ) -> Answer:
        """Return an answer under this release's law of errors.

        Rows of one unit are no sample of independent ones, so that nothing is said about a population. A
        `response` that takes long to find may come as a function, called once errors are asked for. The
        release's notes about rows beyond the region are left out of an answer whose interval allows for them
        (`allowed_for`), as that of a slope does, on whose line clipped rows stay.
        """
        self.check_sampling(sampling=sampling)
        if self.notes and not (allowed_for and self.losses):
            response = response if isinstance(response, Response) else response()
            notes = (*notes, *self._doubts(response, labels, sampling=sampling))
        return Answer(
            name, np.array(values), tuple(map(tuple, labels)), sampling,
            notes=tuple(notes), limits=limits, _given=response, _law=self.law,
        )  # fmt: skip

    def _doubts(
        self, response: Response, labels: Sequence[Sequence[str]], *, sampling: bool
    ) -> tuple[str, ...]:
        """Return the release's notes if they concern these answers: by name, if only some of several."""
        moved = self.law.ruled_by_clipping(response, sampling=sampling)
        if not moved.any():
            return ()
        moves = "They can move this answer by more than its interval says."
        if moved.ndim == 1 and not moved.all():  # a matrix has no names for its entries
            named = ", ".join(name for name, is_moved in zip(labels[0], moved, strict=True) if is_moved)
            moves = f"They can move each of these by more than its interval says: {named}."
        return tuple(f"{note} {moves}" for note in self.notes)

    def check_sampling(self, *, sampling: bool) -> None:
        """Raise an `ArgumentError` if sampling error is asked for, and rows of one person belong together."""
        if flag(sampling, "sampling") and self.grouped:
            raise ArgumentError(
                "sampling=True assumes that rows are independent draws, and the rows of one person are not. "
                "Leave it out to ask about the table itself."
            )

    def second_moment(self, *, sampling: bool) -> Answer:
        """Return every entry of the released matrix."""
        names = (*self.columns, self.constant) if self.has_constant else self.columns
        if self._nothing_released() or self._constant_is_lost():
            # The matrix is what was released, but its errors have no law worth stating.
            unknown = np.full_like(self.moment, math.nan)
            law = ErrorLaw(math.nan, self.n_rows, None)
            note = "Everything is below the noise."
            return Answer(
                "second moment", self.moment.copy(), (names, names), sampling,
                notes=(note,), _given=Response(*(unknown,) * 5), _law=law,
            )  # fmt: skip
        response = self.geometry.of_moment()
        return self.answer("second moment", self.moment, (names, names), response, sampling=sampling)

    def mean(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the means of the complete rows."""
        chosen = self.choose(columns, "a mean")
        values, response = self._means(sampling=flag(sampling, "sampling"))
        limits = self._ends(chosen)
        return self.answer(
            "mean",
            # The interval is that of this number: of one beyond an end nothing but the end would be left.
            np.clip(values[chosen], *limits),
            [self.names(chosen)],
            response.select(np.asarray(chosen)),
            sampling=sampling,
            limits=limits,
            notes=self.describe_doubts(chosen),
        )

    def _ends(self, chosen: Sequence[int]) -> tuple[Array, Array]:
        """Return the public ends of columns, which are those of their means."""
        lower, upper = self.column_ends[list(chosen)].T
        return lower, upper

    def _limits_of_variances(self, chosen: Sequence[int]) -> tuple[Array, Array]:
        """Return 0, and the variance of values of which half lie at either public end."""
        lower, upper = self._ends(chosen)
        return np.zeros(len(chosen)), np.square((upper - lower) / 2)

    def _means(self, *, sampling: bool) -> tuple[Array, Response]:
        """Return all means with their responses; shares are pooled from two entries of the matrix."""
        values, response = self.geometry.mean.copy(), self.geometry.of_mean()
        seen = [place for place in self.shares if not self.find_unresolved([place])]
        means, pooled, places = pool_shares(self.geometry, self.law, seen, sampling=sampling)
        if places:
            values[places] = means
            # Several parts of a response may be one array of zeros.
            parts, own = {name: part.copy() for name, part in response.parts().items()}, pooled.parts()
            for name in own:
                part = parts.setdefault(name, np.zeros((len(values), *own[name].shape[1:])))
                part[places] = own[name]
            response = Response(**parts)
        return values, response

    def covariance(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return covariances; sums are divided by the number of rows."""
        chosen = self.choose(columns, "a covariance")
        forms = np.eye(len(self.columns))[chosen]
        names = self.names(chosen)
        return self.answer(
            "covariance",
            self.geometry.covariance[np.ix_(chosen, chosen)],
            [names, names],
            partial(self.geometry.of_products, forms),
            sampling=sampling,
            notes=self.describe_combinations(chosen),
        )

    def variance(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return variances; sums are divided by the number of rows."""
        chosen = self.choose(columns, "a variance")
        diagonal = np.arange(len(chosen))
        response = self.geometry.of_products(np.eye(len(self.columns))[chosen])
        limits = self._limits_of_variances(chosen)
        return self.answer(
            "variance",
            np.clip(np.diag(self.geometry.covariance)[chosen], *limits),
            [self.names(chosen)],
            response.select((diagonal, diagonal)),
            sampling=sampling,
            limits=limits,
            notes=self.describe_doubts(chosen),
        )

    def correlation(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return correlations; NaN for a column that is below the noise by itself."""
        chosen = self.choose(columns, "a correlation")
        names = self.names(chosen)
        lost = [self.is_below_noise(i) for i in chosen]
        covariance = self.geometry.covariance[np.ix_(chosen, chosen)]
        spread = np.sqrt(np.where(lost, math.nan, np.diag(covariance)))
        values = np.clip(covariance / np.outer(spread, spread), -1.0, 1.0)
        np.fill_diagonal(values, np.where(lost, math.nan, 1.0))
        forms = np.eye(len(self.columns))[chosen] / spread[:, None]
        return self.answer(
            "correlation",
            values,
            [names, names],
            partial(self._ratios, forms),
            sampling=sampling,
            limits=(-1.0, 1.0),
            notes=self.describe_doubts(chosen),
        )

    def precision(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the inverse of the covariance."""
        chosen = self.choose(columns, "a precision matrix")
        inverse = self.inverse_covariance(chosen, "The precision matrix")
        forms = inverse @ np.eye(len(self.columns))[chosen]
        names = self.names(chosen)
        response = self.geometry.of_products(forms, sign=-1.0)
        notes = self.describe_combinations(chosen)
        return self.answer("precision", inverse, [names, names], response, sampling=sampling, notes=notes)

    def partial_correlation(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the correlation of each pair, given all other chosen columns."""
        chosen = self.choose(columns, "a partial correlation")
        inverse = self.inverse_covariance(chosen, "The partial correlation")
        spread = np.sqrt(np.diag(inverse))
        values = np.clip(-inverse / np.outer(spread, spread), -1.0, 1.0)
        np.fill_diagonal(values, 1.0)
        forms = inverse @ np.eye(len(self.columns))[chosen]
        names = self.names(chosen)
        return self.answer(
            "partial correlation",
            values,
            [names, names],
            self._ratios(forms),
            sampling=sampling,
            limits=(-1.0, 1.0),
            notes=self.describe_combinations(chosen),
        )

    def whitening(self, columns: Sequence[str] | None) -> Whitening:
        """Return the map that makes the chosen columns white."""
        chosen = self.choose(columns, "a whitening map")
        # A map has no notes.
        self.refuse_unresolved(chosen, "The whitening map", _WITHOUT_COLUMNS)
        covariance = self.geometry.covariance[np.ix_(chosen, chosen)]
        scales = np.sqrt(np.diag(covariance))
        # In their own units, columns of very different scales would leave nothing but rounding of the short.
        values, vectors = np.linalg.eigh(covariance / np.outer(scales, scales))
        matrix = (vectors / np.sqrt(values)) @ vectors.T / scales
        return Whitening(self.names(chosen), self.geometry.mean[chosen].copy(), matrix)

    def choose(self, columns: Sequence[str] | None, what: str) -> list[int]:
        """Return the places of columns for a question that needs the constant."""
        if not self.has_constant:
            raise ArgumentError(
                f"this release has no constant column, so {what} cannot be asked for; "
                "release with intercept=True."
            )
        return find_columns(self.columns, columns, "columns")

    def among(self, chosen: Sequence[int]) -> tuple[Questions, list[int]]:
        """Return whom to ask about some columns together, and their places there."""
        return self, list(chosen)

    @property
    def forms(self) -> tuple[Array, Array]:
        """Each column, zero where it is missing, and where it is there: as forms of the released row."""
        whole = np.eye(len(self.moment))
        return whole[: len(self.columns)], np.tile(whole[-1], (len(self.columns), 1))

    @property
    def matrix(self) -> Geometry:
        """The released matrix and its noise."""
        return self.geometry

    def recoded(self, sums: Array, columns: tuple[str, ...], shares: tuple[int, ...]) -> Questions:
        """Return questions about sums of columns: one a line, with the constant's coefficient last."""
        forms = np.vstack([sums, np.eye(len(self.moment))[-1]])
        noise = self.noise
        if noise is not None:
            noise = replace(noise, inverse=forms @ noise.inverse)
        losses = tuple(
            law if law.along is None else replace(law, along=sums[:, :-1] @ law.along) for law in self.losses
        )
        return replace(
            self, columns=columns, moment=forms @ self.moment @ forms.T, noise=noise, losses=losses,
            shares=shares, ends=self._ends_of_sums(sums),
        )  # fmt: skip

    def _ends_of_sums(self, sums: Array) -> Array:
        """Return the public ends of sums of columns: one a line, with the constant's coefficient last."""
        parts, each = sums[:, :-1, None], np.zeros((len(sums), *self.column_ends.shape))
        # Zero times an end that is not known is zero.
        np.multiply(parts, self.column_ends, where=parts != 0, out=each)
        return np.column_stack([each.min(axis=2).sum(axis=1), each.max(axis=2).sum(axis=1)]) + sums[:, -1:]

    @property
    def rests_on(self) -> str:
        """On which rows a regression rests, in words, if not on the complete ones."""
        return ""

    def inverse_covariance(self, chosen: Sequence[int], what: str) -> Array:
        """Return the inverse covariance of some columns, or raise if a combination is below the noise.

        One that stands above the noise, and may rest on clipped rows, is inverted: its answers have notes.
        """
        self.refuse_below_noise(chosen, what, _WITHOUT_COLUMNS)
        covariance = self.geometry.covariance[np.ix_(chosen, chosen)]
        spread = np.sqrt(np.diag(covariance))
        inverse = np.linalg.inv(covariance / np.outer(spread, spread)) / np.outer(spread, spread)
        return np.asarray((inverse + inverse.T) / 2)

    def _ratios(self, forms: Array) -> Response:
        response = self.geometry.of_ratios(forms)
        places = np.arange(len(forms))
        for part in response.parts().values():
            part[places, places] = np.where(np.isnan(part[places, places]), math.nan, 0.0)
        return response

    @cached_property
    def without_constant(self) -> Questions:
        """The complete rows as if there were no constant: for what goes through the origin."""
        if not self.has_constant:
            return self
        complete, noise = self.geometry.complete, self.noise
        if noise is not None:
            noise = replace(noise, inverse=noise.inverse[:-1] / math.sqrt(complete))
        return replace(self, moment=self.moment[:-1, :-1] / complete, noise=noise)
