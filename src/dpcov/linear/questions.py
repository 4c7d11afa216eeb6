"""The questions: each a function of the released matrix, answered with the law of its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from dpcov.arrays import Array
from dpcov.checks import flag
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.laws import LossLaw, NoiseLaw, least_resolved
from dpcov.linear.answers import Answer
from dpcov.linear.columns import find_columns
from dpcov.linear.geometry import Geometry
from dpcov.linear.shares import pool_shares
from dpcov.linear.spectra import Whitening
from dpcov.linear.uncertainty import ErrorLaw, LossDraws, Response
from dpcov.linear.unresolved import Combination, all_unresolved, count_unresolved, find_unresolved

# What a variance may be off by as a part of the mean square, once it is the difference of a few such sums.
_FLOAT_ROUNDING = 2.0**-48
_WITHOUT_COLUMNS = "leave one of these columns out with columns=[...]"


def constant_name(columns: Sequence[str]) -> str:
    """Return what the constant column is called: "constant", or with strokes if a column has that name.

    Examples
    --------
    >>> from dpcov.linear.questions import constant_name
    >>> constant_name(["age", "constant"])
    'constant_'
    """
    name = "constant"
    while name in columns:
        name += "_"
    return name


@dataclass(frozen=True, eq=False)
class Questions:
    """A released second moment, ready to be asked.

    Attributes
    ----------
    columns : tuple of str
        Names of the table's columns; the constant is not among them.
    n_rows : int
        The public number of rows; if they are grouped, that of units.
    moment : ndarray
        The released matrix; with a constant, its last column.
    noise : NoiseLaw, optional
        The law of its noise; None if nothing was released, or the noise is not additive.
    losses : tuple of LossLaw
        The laws of what clipping took away.
    notes : tuple of str
        What should be known about every answer that rows beyond the region can move.
    grouped : bool
        Whether rows come in units of several: the last entry of `moment` is then the number of complete rows
        of a unit, on average.
    shares : tuple of int
        The places of columns that hold 0 and 1 alone.
    levels : mapping of str to tuple of str
        The names of all levels of each category. The first has no column: it is what the others leave.
    even : bool
        Whether every unit counts the same: its rows then add up to one.
    exposed : mapping of str to str
        Columns that rows beyond the region may have moved by more than intervals tell, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.linear import Questions
    >>> moment = np.array([[5.0, 2.0], [2.0, 1.0]])
    >>> asked = Questions(("height",), 100, moment, None, ())
    >>> asked.variance(None, sampling=False).values
    array([1.])
    """

    columns: tuple[str, ...]
    n_rows: int
    moment: Array
    noise: NoiseLaw | None
    losses: tuple[LossLaw, ...]
    notes: tuple[str, ...] = ()
    grouped: bool = False
    shares: tuple[int, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    even: bool = False
    exposed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def has_constant(self) -> bool:
        """Whether means and covariances can be asked for."""
        return len(self.moment) > len(self.columns)

    @cached_property
    def constant(self) -> str:
        """What the constant column is called."""
        return constant_name(self.columns)

    @cached_property
    def geometry(self) -> Geometry:
        """The matrix and its noise, for all columns."""
        if self._nothing_released():
            raise UnresolvedError(
                "Everything is below the noise: for this budget the rows are too few, or all zero."
            )
        if self._constant_is_lost():
            raise UnresolvedError("Even the share of complete rows is below the noise.")
        heavy = [law.along for law in self.losses if law.along is not None]
        return Geometry(
            self.moment,
            self._factor @ self._factor.T,
            self.has_constant,
            np.array(heavy) if heavy else None,
        )

    @property
    def complete_rows(self) -> float:
        """About how many rows are complete: noise may have made it more than there are."""
        return min(self.n_rows * self.geometry.complete, self.most_rows)

    @property
    def most_rows(self) -> float:
        """How many rows there are at most, as far as that is public."""
        return math.inf if self.grouped and not self.even else float(self.n_rows)

    @cached_property
    def law(self) -> ErrorLaw:
        """The law of the errors of all answers."""
        sigma = math.nan if self.noise is None else self.noise.sigma
        draws = None
        if self.losses:
            draws = LossDraws(self.losses, self.n_rows, has_constant=self.has_constant)
        return ErrorLaw(sigma, self.n_rows * self.geometry.complete, draws)

    @cached_property
    def unresolved(self) -> tuple[Combination, ...]:
        """The independent combinations of columns that lie below the noise."""
        if self._nothing_released() or self._constant_is_lost():
            return tuple(all_unresolved(self.columns))
        return tuple(self.find_unresolved(range(len(self.columns))))

    @cached_property
    def resolved(self) -> int | None:
        """How many independent combinations of columns stand above the noise; None if it has no law."""
        if self._nothing_released() or self._constant_is_lost():
            return 0
        if self.noise is None:
            return None
        return len(self.columns) - count_unresolved(*self.resolvable, self.noise.sigma, self.noise.hidden)

    def answer(
        self,
        name: str,
        values: Array,
        labels: Sequence[Sequence[str]],
        response: Response | Callable[[], Response],
        *,
        sampling: bool,
        limits: tuple[float, float] = (-math.inf, math.inf),
        notes: Sequence[str] = (),
    ) -> Answer:
        """Return an answer under this release's law of errors.

        Rows of one unit are no sample of independent ones, so that nothing is said about a population. A
        `response` that takes long to find may come as a function, called once errors are asked for.
        """
        self.check_sampling(sampling=sampling)
        if self.notes:
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
        return self.answer(
            "mean",
            values[chosen],
            [self.names(chosen)],
            response.select(np.asarray(chosen)),
            sampling=sampling,
            notes=self.describe_doubts(chosen),
        )

    def _means(self, *, sampling: bool) -> tuple[Array, Response]:
        """Return all means with their responses; shares are pooled from two entries of the matrix."""
        values, response = self.geometry.mean.copy(), self.geometry.of_mean()
        seen = [place for place in self.shares if not self.find_unresolved([place])]
        means, pooled, places = pool_shares(self.geometry, self.law, seen, sampling=sampling)
        if places:
            values[places] = np.clip(means, 0.0, 1.0)
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
            notes=self._doubtful_combinations(chosen),
        )

    def variance(self, columns: Sequence[str] | None, *, sampling: bool) -> Answer:
        """Return variances; sums are divided by the number of rows."""
        chosen = self.choose(columns, "a variance")
        diagonal = np.arange(len(chosen))
        response = self.geometry.of_products(np.eye(len(self.columns))[chosen])
        return self.answer(
            "variance",
            np.diag(self.geometry.covariance)[chosen],
            [self.names(chosen)],
            response.select((diagonal, diagonal)),
            sampling=sampling,
            limits=(0.0, math.inf),
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
        notes = self._doubtful_combinations(chosen)
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
            notes=self._doubtful_combinations(chosen),
        )

    def whitening(self, columns: Sequence[str] | None) -> Whitening:
        """Return the map that makes the chosen columns white."""
        chosen = self.choose(columns, "a whitening map")
        # A map has no notes.
        self.refuse_unresolved(chosen, "The whitening map", _WITHOUT_COLUMNS)
        values, vectors = np.linalg.eigh(self.geometry.covariance[np.ix_(chosen, chosen)])
        matrix = (vectors / np.sqrt(values)) @ vectors.T
        return Whitening(self.names(chosen), self.geometry.mean[chosen].copy(), (matrix + matrix.T) / 2)

    def names(self, chosen: Sequence[int]) -> tuple[str, ...]:
        """Return the names of columns, given their places."""
        return tuple(self.columns[i] for i in chosen)

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
            shares=shares,
        )  # fmt: skip

    @property
    def rests_on(self) -> str:
        """On which rows a regression rests, in words, if not on the complete ones."""
        return ""

    @property
    def constant_factor(self) -> Array:
        """The map of the noise of the constant, in the complete rows."""
        return np.asarray(self._factor[-1] / math.sqrt(self.geometry.complete))

    def inverse_covariance(self, chosen: Sequence[int], what: str) -> Array:
        """Return the inverse covariance of some columns, or raise if a combination is below the noise.

        One that stands above the noise, and may rest on clipped rows, is inverted: its answers have notes.
        """
        if any(not combination.clipped for combination in self.find_unresolved(chosen)):
            self.refuse_unresolved(chosen, what, _WITHOUT_COLUMNS)
        covariance = self.geometry.covariance[np.ix_(chosen, chosen)]
        spread = np.sqrt(np.diag(covariance))
        inverse = np.linalg.inv(covariance / np.outer(spread, spread)) / np.outer(spread, spread)
        return np.asarray((inverse + inverse.T) / 2)

    def refuse_unresolved(self, chosen: Sequence[int], what: str, advice: str) -> None:
        """Raise an `UnresolvedError` if a combination of these columns lies below the noise."""
        lost = self.find_unresolved(chosen)
        if lost:
            reasons = "; ".join(combination.describe() for combination in lost)
            raise UnresolvedError(f"{what} cannot be answered: {reasons}. To go on, {advice}.")

    def _ratios(self, forms: Array) -> Response:
        response = self.geometry.of_ratios(forms)
        places = np.arange(len(forms))
        for part in response.parts().values():
            part[places, places] = np.where(np.isnan(part[places, places]), math.nan, 0.0)
        return response

    def _doubtful_combinations(self, chosen: Sequence[int]) -> list[str]:
        """Return a note for every combination that is not resolved, and for columns that clipping moved."""
        lost = (f"{combination.describe()}." for combination in self.find_unresolved(chosen))
        return [*lost, *self.find_exposed(chosen)]

    def describe_doubts(self, chosen: Sequence[int]) -> list[str]:
        """Return a note for every column that is not resolved by itself, or that clipping may have moved."""
        lost = (f"{combination.describe()}." for i in chosen for combination in self.find_unresolved([i]))
        return [*lost, *self.find_exposed(chosen)]

    def find_exposed(self, chosen: Sequence[int]) -> list[str]:
        """Return a note for every column that clipping may have moved by more than intervals say."""
        return [self.exposed[name] for name in self.names(chosen) if name in self.exposed]

    def find_unresolved(self, chosen: Sequence[int]) -> list[Combination]:
        """Return the independent combinations of some columns that lie below the noise."""
        if self.noise is None:
            return []
        chosen = list(chosen)
        block, factor = self.resolvable
        return find_unresolved(
            block[np.ix_(chosen, chosen)],
            factor[chosen],
            self.noise.sigma,
            self.names(chosen),
            self.noise.hidden,
        )

    def is_below_noise(self, place: int) -> bool:
        """Whether a column cannot be told from the noise; one that may rest on clipped rows can."""
        return any(not combination.clipped for combination in self.find_unresolved([place]))

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """The covariance and the map of its noise; without a constant, those of the second moment."""
        geometry = self.geometry
        if not self.has_constant:
            return geometry.moment, self._factor
        factor = self._factor[:-1] - np.outer(geometry.mean, self._factor[-1])
        return geometry.covariance, factor / math.sqrt(geometry.complete)

    @cached_property
    def resolvable(self) -> tuple[Array, Array]:
        """As `centred`, with what floats round off counted as noise: for tests of what is resolved."""
        covariance, factor = self.centred
        if not self.has_constant or self.noise is None or self.noise.sigma == 0:
            return covariance, factor
        # A variance is the difference of two squares, which floats round: noise of its own, by column.
        squares = np.abs(np.diag(self.geometry.moment)[:-1]) / self.geometry.complete
        rounding = np.diag(np.sqrt(_FLOAT_ROUNDING * squares / self.noise.sigma))
        return covariance, np.hstack([factor, rounding])

    @cached_property
    def without_constant(self) -> Questions:
        """The complete rows as if there were no constant: for what goes through the origin."""
        if not self.has_constant:
            return self
        complete, noise = self.geometry.complete, self.noise
        if noise is not None:
            noise = replace(noise, inverse=noise.inverse[:-1] / math.sqrt(complete))
        return replace(self, moment=self.moment[:-1, :-1] / complete, noise=noise)

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The places of the columns that stand above the noise by themselves."""
        spreads = np.diag(self.centred[0])
        return tuple(i for i in range(len(self.columns)) if spreads[i] > 0 and not self.is_below_noise(i))

    @property
    def _factor(self) -> Array:
        return np.full_like(self.moment, math.nan) if self.noise is None else self.noise.inverse

    def _nothing_released(self) -> bool:
        return not self.moment.any()

    def _constant_is_lost(self) -> bool:
        if not self.has_constant:
            return False
        if self.noise is None:
            return bool(self.moment[-1, -1] <= 0)
        least = least_resolved(1, self.noise.sigma) * np.square(self.noise.inverse[-1]).sum()
        return bool(self.moment[-1, -1] <= least)
