"""Coefficients together: the covariance of their errors, and tests of several at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, ndtri

from dpcov.arrays import Array
from dpcov.linear.answers import Answer
from dpcov.linear.geometry import Geometry
from dpcov.linear.responses import Response
from dpcov.linear.uncertainty import ErrorLaw
from dpcov.tables import number

_LEAST_P, _BISECTIONS = 1e-9, 24
"""The least p value that is told apart, and how many halvings find one to three digits."""


@dataclass(frozen=True, eq=False)
class JointErrors:
    """How the errors of coefficients go together.

    Noise and sampling are normal with a known covariance V. What clipping took is no normal law, so that it
    enters by the intervals that contain it: a 95% interval that reaches from l to u is as wide as that of a
    normal law with deviation ``(u - l) / (2 * 1.96)``, and what this exceeds the deviation in V by is put
    down to clipping. Rows that were clipped lie in even directions, so that what they take from two answers
    correlates as the white gradients Q of both, ``<Q_i, Q_j>``.

    Attributes
    ----------
    geometry : Geometry
        The released matrix.
    law : ErrorLaw
        The law of its errors.
    gradients : ndarray, shape (number of coefficients, size, size)
        Of each coefficient, by a block of the matrix.
    index : tuple of int
        The block's columns.
    moved : ndarray, shape (number of coefficients, number of draws), optional
        What located losses move each by, where it is known without derivatives (`Response.moved`).
    """

    geometry: Geometry
    law: ErrorLaw
    gradients: Array
    index: tuple[int, ...]
    moved: Array | None = None

    def centre_and_covariance(self, coefficients: Answer, level: float = 0.95) -> tuple[Array, Array]:
        """Return where the coefficients are expected, and the covariance of their errors.

        It is that of a normal law whose intervals at this level are as wide as theirs.
        """
        noise, own, cross = self._products
        normal = self.law.normal_covariance(noise, own, cross, sampling=coefficients.sampling)
        lower, upper = coefficients.interval(level)
        widths = 2 * float(ndtri((1 + level) / 2))
        excess = np.maximum(((upper - lower) / widths) ** 2 - np.diag(normal), 0.0)
        clipped = own + 2 * cross
        size = np.sqrt(np.maximum(np.diag(clipped), np.finfo(np.float64).tiny))
        widened = np.sqrt(excess) / size
        covariance = normal + clipped * np.outer(widened, widened)
        return (lower + upper) / 2, np.asarray((covariance + covariance.T) / 2)

    @cached_property
    def _products(self) -> tuple[Array, Array, Array]:
        return self.geometry.products_of_gradients(self.gradients, self.index)

    def response_along(self, forms: Array) -> Response:
        """Respond for combinations of the coefficients, one a line."""
        response = self.geometry.of_gradients(np.tensordot(forms, self.gradients, 1), self.index)
        return response if self.moved is None else replace(response, moved=forms @ self.moved)


@dataclass(frozen=True)
class WaldTest:
    """A test that several coefficients are all zero.

    Attributes
    ----------
    columns : tuple of str
        The columns whose coefficients are tested.
    statistic : float
        About chi-squared if they are all zero.
    degrees : int
        Its degrees of freedom: how many coefficients are tested.
    p_value : float
        How likely a statistic as large is if they are all zero in the raw rows; if the regression was asked
        with ``sampling=True``, in the population.
    sampling : bool
        Whether the test covers that the rows are a sample.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> made.regress("weight ~ height").wald(["height"]).p_value < 0.001
    True
    """

    columns: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float
    sampling: bool

    def __repr__(self) -> str:
        zero = "coefficient is zero" if self.degrees == 1 else "coefficients are all zero"
        where = "in the population" if self.sampling else "in the raw rows"
        return (
            f"Wald test of {', '.join(self.columns)}\n"
            f"null hypothesis: the {zero} {where}\n"
            f"chi-squared {number(self.statistic)}, {self.degrees} "
            f"degree{'' if self.degrees == 1 else 's'} of freedom, p {p_text(self.p_value)}"
        )


def wald_test(
    errors: JointErrors, coefficients: Answer, columns: Sequence[str], places: list[int]
) -> WaldTest:
    """Test that the coefficients in these places are all zero.

    Clipping has longer tails than a normal law. So the covariance is matched to the intervals at the level at
    which the test decides: p is the least value for which the test with intervals of level ``1 - p`` rejects.
    For one coefficient this is its own p value.
    """

    def statistic_at(p: float) -> float:
        centre, covariance = errors.centre_and_covariance(coefficients, 1 - p)
        part, block = centre[places], covariance[np.ix_(places, places)]
        scale = np.sqrt(np.diag(block))
        return float(part / scale @ np.linalg.solve(block / np.outer(scale, scale), part / scale))

    size, low, high = len(places), _LEAST_P, 1 - _LEAST_P
    statistic = statistic_at(0.05)
    if errors.law.normal:
        high = float(chdtrc(size, statistic))
        return WaldTest(tuple(columns), statistic, size, high, coefficients.sampling)
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        statistic = statistic_at(middle)
        low, high = (low, middle) if chdtrc(size, statistic) <= middle else (middle, high)
    return WaldTest(tuple(columns), statistic, size, high, coefficients.sampling)


def p_text(value: float) -> str:
    """Return a p value as summaries print it.

    Examples
    --------
    >>> from dpcov.linear.inference import p_text
    >>> p_text(0.04321), p_text(1e-12)
    ('= 0.043', '< 0.001')
    """
    if np.isnan(value):
        return "unknown"
    return f"= {value:.3f}" if value >= 0.001 else "< 0.001"
