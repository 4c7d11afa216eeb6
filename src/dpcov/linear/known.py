"""What a release tells about its columns: the matrix, the law of its noise, and what stands above it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.core import UnresolvedError
from dpcov.laws import NoiseLaw, least_resolved
from dpcov.linear.geometry import Geometry
from dpcov.linear.unresolved import Combination, all_unresolved, count_unresolved, find_unresolved
from dpcov.losses import LossLaw

# What a variance may be off by as a part of the mean square, once it is the difference of a few such sums.
_FLOAT_ROUNDING = 2.0**-48


def constant_name(columns: Sequence[str]) -> str:
    """Return what the constant column is called: "constant", or with strokes if a column has that name.

    Examples
    --------
    >>> from dpcov.linear.known import constant_name
    >>> constant_name(["age", "constant"])
    'constant_'
    """
    name = "constant"
    while name in columns:
        name += "_"
    return name


@dataclass(frozen=True, eq=False)
class Known:
    """A released second moment, and what is known about it.

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
    ends : ndarray, shape (number of columns, 2), optional
        The public lower and upper ends of the columns, infinite where none is known.
    exposed : mapping of str to str
        Columns that rows beyond the region may have moved by more than intervals tell, and why.
    clipped : str
        Which rows may have been clipped, in words; empty if none were.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import NoiseLaw
    >>> from dpcov.linear.known import Known
    >>> moment = np.array([[5.0, 0.0, 2.0], [0.0, 0.01, 0.0], [2.0, 0.0, 1.0]])
    >>> known = Known(("height", "ring"), 100, moment, NoiseLaw(np.eye(3), 0.01), ())
    >>> [str(combination) for combination in known.unresolved]
    ['ring']
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
    clipped: str = ""
    ends: Array | None = None

    @cached_property
    def column_ends(self) -> Array:
        """The public lower and upper ends of the columns, infinite where none is known."""
        unknown = np.tile([-math.inf, math.inf], (len(self.columns), 1))
        ends = unknown if self.ends is None else np.array(self.ends, dtype=np.float64)
        ends[list(self.shares)] = 0.0, 1.0
        return ends

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

    def names(self, chosen: Sequence[int]) -> tuple[str, ...]:
        """Return the names of columns, given their places."""
        return tuple(self.columns[i] for i in chosen)

    @property
    def constant_factor(self) -> Array:
        """The map of the noise of the constant, in the complete rows."""
        return np.asarray(self._factor[-1] / math.sqrt(self.geometry.complete))

    def refuse_unresolved(self, chosen: Sequence[int], what: str, advice: str) -> None:
        """Raise an `UnresolvedError` if a combination of these columns is not resolved."""
        _refuse(self.find_unresolved(chosen), what, advice)

    def refuse_below_noise(self, chosen: Sequence[int], what: str, advice: str) -> None:
        """Raise an `UnresolvedError` if one cannot be told from the noise; what may be clipped rows can."""
        _refuse([lost for lost in self.find_unresolved(chosen) if not lost.clipped], what, advice)

    def describe_combinations(self, chosen: Sequence[int]) -> list[str]:
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
            apart_from=self.clipped,
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
        least /= self.noise.overstated
        return bool(self.moment[-1, -1] <= least)


def _refuse(lost: Sequence[Combination], what: str, advice: str) -> None:
    if lost:
        reasons = "; ".join(combination.describe() for combination in lost)
        raise UnresolvedError(f"{what} cannot be answered: {reasons}. To go on, {advice}.")
