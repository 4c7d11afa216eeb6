"""Questions to a release with gaps: each answer from the rows in which both columns are there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.linear.answers import Answer, Limits
from dpcov.linear.geometry import Geometry
from dpcov.linear.pairwise import Pairs, PairwiseGeometry
from dpcov.linear.questions import Questions
from dpcov.linear.responses import Response
from dpcov.linear.spectra import Whitening
from dpcov.linear.uncertainty import ErrorLaw
from dpcov.linear.unresolved import Combination, all_unresolved

_NO_SAMPLING = (
    "sampling=True is for means, variances and covariances of a pairwise release: what else is asked joins "
    "pairs of columns that rest on different rows, and how much these have in common is not released. Ask "
    'without it, or release with missing="complete".'
)


@dataclass(frozen=True, eq=False)
class PairwiseQuestions(Questions):
    """A released second moment of columns with gaps, ready to be asked.

    `moment`, `noise` and `losses` are those of the released row: values, then where they are missing, then
    the constant. `columns` are the values alone, or some of them.

    Attributes
    ----------
    released : Questions
        The release as it is, with every column of it.
    values, presence : ndarray, shape (number of columns, size of the released row)
        Each column, zero where it is missing, and where it is there: as forms of the released row.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear import Questions
    >>> from dpcov.linear.pairwise_questions import pairwise_questions
    >>> rows = np.array([[1.0, 0.0, 1.0], [3.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # value, missing, constant
    >>> released = Questions(("age", "missing(age)"), 3, rows.T @ rows / 3, None, ())
    >>> asked = pairwise_questions(released, ("age",), [((0,), (0.0,))])
    >>> asked.mean(None, sampling=False).values, asked.variance(None, sampling=False).values
    (array([2.]), array([1.]))
    """

    released: Questions = field(kw_only=True)
    values: Array = field(kw_only=True)
    presence: Array = field(kw_only=True)

    @cached_property
    def pairs(self) -> Pairs:
        """What pairs of the columns come to."""
        sigma = math.nan if self.noise is None else self.noise.sigma
        released = self.released.geometry
        return Pairs(released.moment, released.noise_gram, sigma, self.values, self.presence)

    @cached_property
    def geometry(self) -> PairwiseGeometry:
        """Means and covariances of pairs, and how they respond to a change of the released matrix."""
        mean = self.pairs.mean
        moment = np.ones((len(mean) + 1, len(mean) + 1))
        moment[:-1, :-1] = self.pairs.covariance + np.outer(mean, mean)
        moment[:-1, -1] = moment[-1, :-1] = mean
        _, factor = self.centred
        return PairwiseGeometry(
            moment, factor @ factor.T, has_constant=True, released=self.released.geometry, pairs=self.pairs
        )

    @cached_property
    def law(self) -> ErrorLaw:
        """The law of the errors of all answers; sampling error is added by those that know of it."""
        return self.released.law.without_sampling()

    @cached_property
    def rows(self) -> Array:
        """About how many rows have both columns of each pair."""
        return np.clip(self.n_rows * self.pairs.shared, 0.0, self.released.complete_rows)

    @property
    def complete_rows(self) -> float:
        """How many rows the pair of columns has that shares fewest."""
        return float(self.rows.min())

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """The covariance, and a map whose noise is at least that of each of its entries."""
        return self._covariance, self.pairs.widening[:, None] * (self.pairs.centred @ self._factor)

    @property
    def constant_factor(self) -> Array:
        """The map of the noise of the constant, over the least share of rows."""
        return np.asarray(self._factor[-1] * self.pairs.widening.max())

    @cached_property
    def resolved(self) -> int | None:
        """How many independent combinations of columns stand above the noise; None if it has no law."""
        if self.noise is None and self.released.resolved is None:
            return None
        return len(self.columns) - len(self.unresolved)

    @property
    def without_constant(self) -> Questions:
        """There is none: what goes through the origin would rest on other rows than the means."""
        raise ArgumentError(
            "a pairwise release cannot answer a regression through the origin: leave out intercept=False, or "
            'release with missing="complete".'
        )

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
        """Return an answer under this release's law of errors, about the rows of the table."""
        self.check_sampling(sampling=sampling)
        if sampling:
            raise ArgumentError(_NO_SAMPLING)
        return super().answer(
            name,
            values,
            labels,
            response,
            sampling=sampling,
            limits=limits,
            notes=notes,
            allowed_for=allowed_for,
        )

    def second_moment(self, *, sampling: bool) -> Answer:
        """Return every entry of the released matrix, with where values are missing."""
        self.check_sampling(sampling=sampling)
        if sampling:
            raise ArgumentError(_NO_SAMPLING)
        return self.released.second_moment(sampling=sampling)

    def mean(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the means, each of the rows that have the column."""
        chosen = self.choose(columns, "a mean")
        found = super().mean(columns, sampling=False)
        known = np.where(np.diag(self.pairs.lost)[chosen], math.nan, found.values)
        squares = (np.diag(self._covariance) / np.maximum(np.diag(self.rows), 1.0))[chosen]
        return self._sampled(replace(found, values=known), squares, sampling=sampling)

    def covariance(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return covariances, each of the rows that have both columns; sums are divided by their number."""
        chosen = self.choose(columns, "a covariance")
        found = super().covariance(columns, sampling=False)
        block = np.ix_(chosen, chosen)
        squares = self._sampling_squares[block]
        known = np.where(self.pairs.lost[block], math.nan, found.values)
        found = replace(found, values=known, notes=(*self._lost_pairs(chosen), *found.notes))
        return self._sampled(found, squares, sampling=sampling)

    def variance(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return variances, each of the rows that have the column; sums are divided by their number."""
        chosen = self.choose(columns, "a variance")
        values = np.where(np.diag(self.pairs.lost), math.nan, np.diag(self._covariance))[chosen]
        limits = self._limits_of_variances(chosen)
        found = self.answer(
            "variance", np.clip(values, *limits), [self.names(chosen)], self.geometry.of_variances(chosen),
            sampling=False, limits=limits, notes=self.describe_doubts(chosen),
        )  # fmt: skip
        return self._sampled(found, np.diag(self._sampling_squares)[chosen], sampling=sampling)

    def correlation(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return covariances of pairs over the standard deviations of both columns, each of its own rows."""
        chosen = self.choose(columns, "a correlation")
        found = super().correlation(columns, sampling=sampling)
        known = np.where(self.pairs.lost[np.ix_(chosen, chosen)], math.nan, found.values)
        return replace(found, values=known, notes=(*self._lost_pairs(chosen), *found.notes))

    def precision(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the inverse of the covariance."""
        return Questions.precision(self._joined(columns, "a precision matrix"), None, sampling=sampling)

    def partial_correlation(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return the correlation of each pair, given all other chosen columns."""
        asked = self._joined(columns, "a partial correlation")
        return Questions.partial_correlation(asked, None, sampling=sampling)

    def whitening(self, columns: Sequence[str] | None) -> Whitening:
        """Return the map that makes the chosen columns white."""
        return Questions.whitening(self._joined(columns, "a whitening map"), None)

    def rows_of(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return how many rows have each column."""
        chosen = self.choose(columns, "a number of rows")
        forms = self.presence[chosen]
        gradients = np.einsum("ki,kj->kij", forms, forms)
        response = self.released.geometry.of_gradients(gradients, range(forms.shape[1]))
        return self.answer(
            "rows", np.diag(self.rows)[chosen], [self.names(chosen)], response.times(float(self.n_rows)),
            sampling=sampling, limits=(0.0, self.most_rows),
        )  # fmt: skip

    @property
    def forms(self) -> tuple[Array, Array]:
        """Each column, zero where it is missing, and where it is there: as forms of the released row."""
        return self.values, self.presence

    @property
    def matrix(self) -> Geometry:
        """The released matrix and its noise."""
        return self.released.geometry

    def recoded(self, sums: Array, columns: tuple[str, ...], shares: tuple[int, ...]) -> PairwiseQuestions:
        """Return questions about sums of columns that are missing together, one a line.

        The last coefficient is that of the constant, where these columns are there.
        """
        first = np.argmax(sums[:, :-1] != 0, axis=1)
        presence = self.presence[first]
        values = sums[:, :-1] @ self.values + sums[:, -1:] * presence
        ends = self._ends_of_sums(sums)
        return replace(self, columns=columns, values=values, presence=presence, shares=shares, ends=ends)

    def among(self, chosen: Sequence[int]) -> tuple[PairwiseQuestions, list[int]]:
        """Return questions about some columns alone, whose pairs must be there together, and their places."""
        block = list(chosen)
        lost = self._lost_pairs(block)
        if lost:
            raise UnresolvedError(f"This cannot be answered. {' '.join(lost)}")
        return self._part(block), list(range(len(block)))

    def _part(self, chosen: list[int]) -> PairwiseQuestions:
        """Return the same about some columns alone."""
        return replace(
            self,
            columns=self.names(chosen),
            values=self.values[chosen],
            presence=self.presence[chosen],
            shares=tuple(i for i, place in enumerate(chosen) if place in self.shares),
            ends=self.column_ends[chosen],
        )

    def find_unresolved(self, chosen: Sequence[int]) -> list[Combination]:
        """Return the independent combinations of some columns that lie below the noise."""
        lost = [i for i in chosen if self.pairs.lost[i, i]]
        rest = [i for i in chosen if i not in lost]
        found = all_unresolved(self.names(lost))
        if rest and len(rest) < len(self.columns):
            return [*found, *self._part(rest).find_unresolved(range(len(rest)))]
        return [*found, *(super().find_unresolved(rest) if rest else [])]

    @property
    def rests_on(self) -> str:
        """About how many rows pairs of the columns have, in words."""
        fewest, most = float(self.rows.min()), float(self.rows.max())
        return f"Pairwise: each covariance is that of {fewest:,.0f} to {most:,.0f} rows with both columns."

    @property
    def _covariance(self) -> Array:
        return self.pairs.positive_covariance

    @cached_property
    def _sampling_squares(self) -> Array:
        """The variance of each covariance in samples of as many normal rows."""
        variances = np.diag(self._covariance)
        return np.asarray((np.outer(variances, variances) + self._covariance**2) / np.maximum(self.rows, 1.0))

    def _sampled(self, found: Answer, squares: Array, *, sampling: bool) -> Answer:
        """Return an answer with sampling error as more of the noise, if that is asked for."""
        self.check_sampling(sampling=sampling)
        if not sampling:
            return found
        sigma = math.nan if self.noise is None else self.noise.sigma
        response = found._response  # noqa: SLF001
        return replace(
            found, sampling=True, _given=replace(response, noise=response.noise + squares / sigma**2)
        )

    def _joined(self, columns: Sequence[str] | None, what: str) -> PairwiseQuestions:
        return self.among(self.choose(columns, what))[0]

    def _lost_pairs(self, chosen: Sequence[int]) -> list[str]:
        """Return a note for every pair of columns that is hardly ever there together."""
        return [
            f"{self.columns[i]} is missing in nearly all rows."
            if i == j
            else f"{self.columns[i]} and {self.columns[j]} are hardly ever there together."
            for place, i in enumerate(chosen)
            for j in chosen[place:]
            if self.pairs.lost[i, j] and (i == j or not (self.pairs.lost[i, i] or self.pairs.lost[j, j]))
        ]


def pairwise_questions(
    released: Questions, columns: Sequence[str], gaps: Sequence[tuple[Sequence[int], Sequence[float]]]
) -> PairwiseQuestions:
    """Return the questions to a release of columns with gaps.

    Parameters
    ----------
    released : Questions
        The release: `columns` first, then one column for each of `gaps`, then the constant.
    columns : sequence of str
        The names of the columns that hold values.
    gaps : sequence of (places, fills)
        For each column that tells where others are missing: the places of these, and what stands in them.
    """
    size = len(released.moment)
    values, presence = np.eye(size)[: len(columns)], np.zeros((len(columns), size))
    presence[:, -1] = 1.0
    for missing, (places, fills) in enumerate(gaps, start=len(columns)):
        presence[list(places), missing] = -1.0
        values[list(places), missing] = -np.array(fills)
    return PairwiseQuestions(
        tuple(columns), released.n_rows, released.moment, released.noise, released.losses, released.notes,
        released.grouped, released.shares, released.levels, released.even, released.exposed,
        released.clipped, released.column_ends[: len(columns)],
        released=released, values=values, presence=presence,
    )  # fmt: skip
