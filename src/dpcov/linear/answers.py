"""What a release answers: numbers with names, standard errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array
from dpcov.checks import share
from dpcov.core import ArgumentError
from dpcov.linear.columns import find_label, find_labels
from dpcov.linear.responses import Index, Response
from dpcov.linear.uncertainty import ONE_SIGMA, ErrorLaw
from dpcov.pictures import draw_heat_map, draw_intervals
from dpcov.tables import html_table, make_frame, number, shade, text_table

Names = str | Sequence[str]
Limits = tuple[float, float] | tuple[Array, Array]
"""The least and the greatest possible value: of all entries, or of each."""

_MOST_COLUMNS = 12


class Interval(NamedTuple):
    """Lower and upper bounds, arrays of the shape of the answer.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> lower, upper = made.mean().interval(0.99)
    >>> bool((lower < upper).all())
    True
    """

    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A vector or matrix of numbers, with names and the law of their error.

    ``numpy.asarray(answer)`` gives the numbers.

    Attributes
    ----------
    name : str
        The question that was asked.
    values : ndarray
        The numbers, read-only.
    labels : tuple of tuple of str
        The names of the entries along each dimension.
    sampling : bool
        Whether errors include that the rows are a sample of a population.
    notes : tuple of str
        What should be known about these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> answer = made.mean()
    >>> answer.labels
    (('height', 'weight'),)
    >>> answer.values.round()
    array([170.,  62.])
    >>> answer.differs_from_zero()
    array([ True,  True])
    >>> bool((answer.standard_error < 0.1).all())
    True
    >>> round(answer["height"])
    170
    >>> answer[["weight"]].interval(0.5).lower.round()
    array([62.])
    """

    name: str
    values: Array
    labels: tuple[tuple[str, ...], ...]
    sampling: bool
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    limits: Limits = field(default=(-math.inf, math.inf), kw_only=True)
    _given: Response | Callable[[], Response] = field(kw_only=True)
    _law: ErrorLaw = field(kw_only=True)

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @cached_property
    def _response(self) -> Response:
        return self._given if isinstance(self._given, Response) else self._given()

    @property
    def standard_error(self) -> Array:
        """Half the width of the central 68.3% interval: the standard deviation where the law is normal."""
        return self._law.standard_error(self._response, sampling=self.sampling)

    def interval(self, level: float = 0.95) -> Interval:
        """Return bounds that hold the answer of the raw rows with probability `level`, each on its own.

        If the question was asked with ``sampling=True``: the answer of the population.
        """
        bounds = self._law.interval(self.values, self._response, level, sampling=self.sampling)
        return Interval(*_within(bounds, self.limits))

    def differs_from_zero(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Return where the interval leaves zero out; False where there is no answer."""
        return self.p_values() < 1 - share(level, "level")

    def p_values(self) -> Array:
        """Return for each number how likely an error is that reaches as far as from zero to it.

        The smallest value for which ``interval(1 - value)`` leaves zero out. It tests that the raw rows give
        zero, against the noise and what clipping took; if the question was asked with ``sampling=True``, that
        the population does.
        """
        return self._law.p_values(self.values, self._response, sampling=self.sampling)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe: for a vector with its errors and intervals, for a matrix the numbers.

        pandas if it is installed, else polars.
        """
        if self.values.ndim == 1:
            lower, upper = self.interval(level)
            columns = {"estimate": self.values, "standard_error": self.standard_error}
            return make_frame({**columns, "lower": lower, "upper": upper}, self.labels[0])
        return make_frame(dict(zip(self.labels[1], self.values.T, strict=True)), self.labels[0])

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the numbers and return the axes: a vector with its intervals, a matrix as a heat map.

        Grey is what does not differ from zero at `level`. Needs the extra ``plot``.
        """
        told = self.differs_from_zero(level)
        if self.values.ndim == 1:
            bounds = self.interval(level)
            return draw_intervals(self.labels[0], self.values, bounds, told, label=self.name, axes=ax)
        return draw_heat_map((self.labels[0], self.labels[1]), self.values, told, self.name, ax)

    def __getitem__(self, names: Names | tuple[Names, ...]) -> Any:
        """Return the number of a name, or the part of the answer that some names belong to.

        One name, or a list of them, for each dimension: ``mean["age"]``, ``covariance["age", "height"]``,
        ``covariance[["age", "height"], ["age", "height"]]``. A dimension that is left out stays whole.
        """
        wanted = names if isinstance(names, tuple) else (names,)
        if len(wanted) > len(self.labels):
            raise ArgumentError(
                f"{self.name} has {len(self.labels)} dimension(s), got names for {len(wanted)}."
            )
        single = [isinstance(name, str) for name in wanted]
        single += [False] * (len(self.labels) - len(wanted))
        places = [
            [find_label(axis, name)] if isinstance(name, str) else find_labels(axis, name)
            for axis, name in zip(self.labels, wanted, strict=False)
        ]
        places += [list(range(len(axis))) for axis in self.labels[len(wanted) :]]
        if all(single):
            return float(self.values[tuple(place[0] for place in places)])
        # Where one name was given its dimension goes.
        index = np.ix_(*(np.array(place) for place in places))
        kept = tuple(0 if one else slice(None) for one in single)
        return replace(
            self,
            values=self.values[index][kept].copy(),
            labels=tuple(
                tuple(axis[i] for i in place)
                for axis, place, one in zip(self.labels, places, single, strict=True)
                if not one
            ),
            limits=_of_limits(self.limits, index, kept),
            _given=partial(_selected, self, index, kept),
        )

    # Without it, Python would try 0, 1, 2, ... as names.
    __iter__ = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        if copy is False:
            return np.asarray(self.values, dtype=dtype)
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __float__(self) -> float:
        return float(self.values.item())

    def __repr__(self) -> str:
        head, lines, notes = self._table()
        return "\n".join([self.name, text_table(head, lines), *notes])

    def _repr_html_(self) -> str:
        head, lines, notes = self._table()
        if self.values.ndim == 1 or self.limits != (-1.0, 1.0):
            return html_table(self.name, head, lines, notes)
        values, told = self.values[:, :_MOST_COLUMNS], self.differs_from_zero()[:, :_MOST_COLUMNS]
        cells = [
            [label, *("?" if math.isnan(v) else f"{v:.2f}" for v in row)]
            for label, row in zip(self.labels[0], values, strict=True)
        ]
        styles = [
            [shade(v, told=t) for v, t in zip(row, seen, strict=True)]
            for row, seen in zip(values.tolist(), told.tolist(), strict=True)
        ]
        return html_table(self.name, head, cells, ["Grey: below the noise.", *notes], styles=styles)

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        if self.values.ndim == 1:
            lower, upper = self.interval()
            numbers = np.column_stack([self.values, self.standard_error, lower, upper])
            head = ["", "estimate", "standard error", "lower 95%", "upper 95%"]
            notes = [*self.notes]
        else:
            numbers = self.values[:, :_MOST_COLUMNS]
            head = ["", *self.labels[1][:_MOST_COLUMNS]]
            hidden = self.values.shape[1] - _MOST_COLUMNS
            notes = [f"... and {hidden} more columns"] if hidden > 0 else []
            notes += [*self.notes, "standard errors: .standard_error, intervals: .interval()"]
        lines = [[label, *map(number, row)] for label, row in zip(self.labels[0], numbers, strict=True)]
        return head, lines, notes


def _of_limits(limits: Limits, index: Index, kept: Index) -> Limits:
    """Return the limits of a part of an answer."""
    least, most = limits
    if isinstance(least, np.ndarray) and isinstance(most, np.ndarray):
        return least[index][kept], most[index][kept]
    return limits


def _within(bounds: tuple[Array, Array], limits: Limits) -> tuple[Array, Array]:
    """Return lower and upper bounds that keep to the limits, and are these where nothing is known.

    An interval that lies beyond a limit is moved there, and keeps its length: a point would claim too much.
    """
    (lower, upper), (least, most) = bounds, limits
    lower, upper = np.where(np.isnan(lower), least, lower), np.where(np.isnan(upper), most, upper)
    # What is not finite lies beyond no limit.
    length = np.subtract(
        upper, lower, where=np.isfinite(upper) & np.isfinite(lower), out=np.zeros(np.shape(lower))
    )
    first = np.where(lower > most, most - length, lower)
    last = np.where(upper < least, least + length, upper)
    return np.clip(first, least, most), np.clip(last, least, most)


def _selected(answer: Answer, index: Index, kept: Index) -> Response:
    """Return the responses of a part of an answer; a function, so that the part can be pickled."""
    return answer._response.select(index).select(kept)  # noqa: SLF001


class RootAnswer(Answer):
    """Square roots, such as standard deviations: bounds are the roots of those of the squares.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> spread, square = made.std(), made.variance()
    >>> bool(np.allclose(spread.interval().upper ** 2, square.interval().upper))
    True
    """

    @property
    def standard_error(self) -> Array:
        """Half the width of the central 68.3% interval."""
        lower, upper = self.interval(ONE_SIGMA)
        return np.where(np.isfinite(upper), (upper - lower) / 2, math.nan)

    def interval(self, level: float = 0.95) -> Interval:
        """Return bounds that hold the answer of the raw rows with probability `level`, each on its own."""
        bounds = self._law.interval(np.square(self.values), self._response, level, sampling=self.sampling)
        least, most = map(np.square, self.limits)
        return Interval(*map(np.sqrt, _within(bounds, (least, most))))

    def p_values(self) -> Array:
        """Return for each number how likely an error is that reaches as far as from zero to it."""
        return self._law.p_values(np.square(self.values), self._response, sampling=self.sampling)
