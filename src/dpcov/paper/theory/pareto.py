"""Rows with a heavy tail: a truncated Pareto length times, or beside, a uniform direction (Appendix D.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import count, number, share
from dpcov.paper.theory.distributions import (
    Distribution,
    elliptical_fourth,
    largest_on_ellipsoid,
    uniform_directions,
)

PARETO_SHAPE, PARETO_BOUND = 5.0, 10.0
"""Of the paper's law P_6: its density is proportional to lambda^-6 on [1, 10]."""

# Powers of larger numbers leave the range of floats.
_LARGEST = 1e50


@dataclass(frozen=True)
class ParetoTimesDirection(Distribution):
    """Rows ``lambda v``: a truncated Pareto length times a uniform direction. Appendix D.2.

    M1 = B sqrt(d) / s, M2 = d E[lambda^4] / s^4 with ``s^2 = E[lambda^2]``, at most 9/5 d for shape 5.

    Attributes
    ----------
    direction_columns : int
        The dimension d.
    bound : float, default 10
        B: lambda has a density proportional to lambda^-(shape + 1) on [1, B].
    shape : float, default 5
        How fast the tail falls; the paper's P_6 has shape 5.
    """

    direction_columns: int
    bound: float = PARETO_BOUND
    shape: float = PARETO_SHAPE

    def __post_init__(self) -> None:
        count(self.direction_columns, "direction_columns")
        number(self.bound, "bound", above=1, at_most=_LARGEST)
        number(self.shape, "shape", above=0, at_most=_LARGEST)

    @property
    def n_columns(self) -> int:
        """The dimension d."""
        return self.direction_columns

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        return _pareto(rng.random(n_rows), self.bound, self.shape)[:, None] * uniform_directions(
            n_rows, self.n_columns, rng
        )

    def second_moment(self) -> Matrix:
        """Return E[lambda^2] / d times the identity."""
        return np.eye(self.n_columns) * (pareto_moment(2, self.bound, self.shape) / self.n_columns)

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]."""
        return pareto_moment(4, self.bound, self.shape) * elliptical_fourth(np.eye(self.n_columns), weight)

    def largest_form(self, weight: Matrix) -> float:
        """Return the largest x^T K x."""
        return self.bound**2 * largest_on_ellipsoid(np.eye(self.n_columns), weight)

    def leverage_beyond(self, part: float) -> float:
        """Return the value of |y|^2 that this part of the rows exceeds."""
        length = float(_pareto(1 - share(part, "part"), self.bound, self.shape))
        return self.n_columns * length**2 / pareto_moment(2, self.bound, self.shape)


@dataclass(frozen=True)
class ParetoBesideDirection(Distribution):
    """Rows ``(lambda, v)``: a truncated Pareto coordinate beside a uniform direction of d coordinates.

    Appendix D.2. M1^2 = d + B^2 / s^2, M2 = d + max(1, E[lambda^4] / s^4) with ``s^2 = E[lambda^2]``.

    Attributes
    ----------
    direction_columns : int
        d; the rows have d + 1 columns.
    bound : float, default 10
        B: lambda has a density proportional to lambda^-(shape + 1) on [1, B].
    shape : float, default 5
        How fast the tail falls; the paper's P_6 has shape 5.
    """

    direction_columns: int
    bound: float = PARETO_BOUND
    shape: float = PARETO_SHAPE

    def __post_init__(self) -> None:
        count(self.direction_columns, "direction_columns")
        number(self.bound, "bound", above=1, at_most=_LARGEST)
        number(self.shape, "shape", above=0, at_most=_LARGEST)

    @property
    def n_columns(self) -> int:
        """The dimension, d + 1."""
        return self.direction_columns + 1

    def sample(self, n_rows: int, rng: np.random.Generator) -> Matrix:
        """Draw independent rows."""
        lengths = _pareto(rng.random(n_rows), self.bound, self.shape)
        return np.column_stack([lengths, uniform_directions(n_rows, self.direction_columns, rng)])

    def second_moment(self) -> Matrix:
        """Return the diagonal matrix of E[lambda^2] and 1 / d."""
        rest = np.full(self.direction_columns, 1 / self.direction_columns)
        return np.diag(np.concatenate([[pareto_moment(2, self.bound, self.shape)], rest]))

    def fourth_moment(self, weight: Matrix) -> Matrix:
        """Return E[(x^T K x) x x^T]; odd moments of the direction vanish."""
        d = self.direction_columns
        second, fourth = pareto_moment(2, self.bound, self.shape), pareto_moment(4, self.bound, self.shape)
        corner, side, rest = weight[0, 0], weight[0, 1:], weight[1:, 1:]
        result = np.empty((d + 1, d + 1))
        result[0, 0] = corner * fourth + second * np.trace(rest) / d
        result[0, 1:] = result[1:, 0] = 2 * second * side / d
        result[1:, 1:] = corner * second * np.eye(d) / d + elliptical_fourth(np.eye(d), rest)
        return result

    def largest_form(self, weight: Matrix) -> float:
        """Return a bound on x^T K x, the largest value if K has no mixed term."""
        side = float(np.linalg.norm(weight[0, 1:]))
        rest = largest_on_ellipsoid(np.eye(self.direction_columns), weight[1:, 1:])
        return float(weight[0, 0]) * self.bound**2 + 2 * self.bound * side + rest

    def leverage_beyond(self, part: float) -> float:
        """Return the value of |y|^2 that this part of the rows exceeds."""
        length = float(_pareto(1 - share(part, "part"), self.bound, self.shape))
        return self.direction_columns + length**2 / pareto_moment(2, self.bound, self.shape)


def pareto_moment(power: float, bound: float, shape: float = PARETO_SHAPE) -> float:
    """Return E[lambda^power] of a density proportional to lambda^-(shape + 1) on [1, bound].

    Parameters
    ----------
    power : float
        Any.
    bound : float
        B, greater than 1.
    shape : float, default 5
        Greater than 0; that of the paper is 5.

    Examples
    --------
    >>> from dpcov import theory
    >>> round(theory.pareto_moment(2, 1e9), 6)
    1.666667
    """
    rest = shape - power
    # The integral of lambda^(-rest - 1): its limit is a logarithm.
    integral = math.log(bound) if rest == 0 else -math.expm1(-rest * math.log(bound)) / rest
    return shape * integral / -math.expm1(-shape * math.log(bound))


def _pareto(uniform: Any, bound: float, shape: float) -> Matrix:
    """Return the lengths below which these parts of the rows lie."""
    return np.asarray((1 - (1 - bound**-shape) * uniform) ** (-1 / shape))
