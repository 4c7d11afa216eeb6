"""What clipping takes from a released matrix, by how long the rows are: shared by methods and questions.

Rows beyond the region are shrunk to a part of its squared radius. How many there are and how far out
follows one of the laws that private answers leave likely (`LossLaw`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector

FAR = math.sqrt(2)
"""Rows that are so many times as long as the region reaches lie far beyond it: they kept less than half of
their squares."""

KEPT_NEAR, KEPT_FAR = 0.99, 0.93
"""Which part of the squared radius is left of a row beyond it, and of one far beyond. With less than all of
it, rows can be counted at no cost: a part k leaves a count noise of ``1 / sqrt(2 k (1 - k) rho)`` rows, here
7.1 and 2.8 over sqrt(rho) (``methods/whitening/queries/clipped.md``). Near rows are many, and a hundredth of
them is hardly missed; with 0.99 their count is about as precise as one for 1% of the budget. What is claimed
rests on the far ones, which have lost more than half of their squares already. Room for rounding takes a
little more: 1e-4 at most for rows, and up to 0.01 for 10^9 units of 100 columns."""

KEPT_LOSING = 0.8
"""Which part is left of rows far beyond where the losses of rows are added up and given back to the means.
What is given back has noise of ``R / (b sqrt(rho))``, with b of `loss_strength`: 1.9 R, and a mean without it
some 3 R. With 0.65, for which b is largest, it would be 1.6 R, and the noise of both together 4% less; the
matrix keeps more of these rows with 0.8."""

_LIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class LossLaw:
    """Equally likely laws of the rows that were shrunk to the radius, hence of what was lost.

    A row beyond has norm ``radius * (1 + spread * e)``, with e of a generalised Pareto law:
    ``P(e > t) = (1 + shape t)^(-1 / shape)``.

    Attributes
    ----------
    rows : ndarray, shape (m,)
        How many rows of the table lie beyond, on average.
    shape, spread : ndarray, shape (m,)
        Of the generalised Pareto law.
    radius : float
        Where rows were clipped, relative to the root mean square of a white coordinate.
    directions : int
        Among how many directions of the table the loss is spread. 0 if it comes on top of what other laws say
        of the same directions.
    evenness : float
        How evenly: the share of a direction is a gamma variable of this shape, and of mean 1.
    restored, restored_constant : float
        By what share the method has raised the second moment in these directions, and of the constant,
        to make up for the loss.
    along : ndarray, shape (number of columns,), optional
        The only direction, if it is one, in the table's columns: as long as a white unit vector is there, or
        as a row of length 1 where `radius` is measured if `directions` is 0.
        None if the rows lie in all directions that no other law is for.
    tilt : float
        How far `along` is off: the sine of an angle.
    measured : bool
        Whether what clipping took from means was measured and given back: in full of rows that do not lie far
        beyond (`FAR`), and of others as much as of one at the edge to these.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.losses import LossLaw
    >>> law = LossLaw(rows=np.array([12.0]), shape=np.zeros(1), spread=np.array([0.1]), radius=4.0)
    >>> law.norms(np.array([1.0, 0.5]), 0).round(3)  # the nearest, and the median
    array([1.   , 1.069])
    """

    rows: Vector
    shape: Vector
    spread: Vector
    radius: float
    directions: int = 1
    evenness: float = 8.0
    restored: float = 0.0
    restored_constant: float = 0.0
    along: Vector | None = None
    tilt: float = 0.0
    measured: bool = False

    def beyond(self, reach: float) -> Vector:
        """Return which part of these rows lies beyond `reach` times the radius, under each of the laws."""
        excess = (reach - 1) / self.spread
        light = np.abs(self.shape) < _LIGHT
        base = np.maximum(1 + self.shape * excess, 0.0)
        with np.errstate(divide="ignore"):
            power = base ** (-1 / np.where(light, 1.0, self.shape))
        result: Vector = np.where(light, np.exp(-excess), power)
        return result

    def norms(self, upper: Vector, law: int) -> Vector:
        """Return norms relative to the radius, by their upper probabilities under one of the laws."""
        shape, spread = float(self.shape[law]), float(self.spread[law])
        excess = -np.log(upper) if abs(shape) < _LIGHT else (upper**-shape - 1) / shape
        result: Vector = 1 + spread * excess
        return result

    def all_norms(self, upper: Matrix) -> Matrix:
        """Return what `norms` does, each row of probabilities under the next of the laws, over and over."""
        shape = np.resize(self.shape, len(upper))[:, None]
        light = np.abs(shape) < _LIGHT
        power = (upper**-shape - 1) / np.where(light, 1.0, shape)
        excess = np.where(light, -np.log(upper), power)
        result: Matrix = 1 + np.resize(self.spread, len(upper))[:, None] * excess
        return result


def loss_strength() -> float:
    """Return b: the loss of a row that was shrunk by s is measured with noise of ``1 / b`` times that of rho.

    Examples
    --------
    >>> from dpcov.losses import loss_strength
    >>> round(1 / loss_strength(), 2)
    1.86
    """
    shrunk = KEPT_LOSING / FAR**2
    return math.sqrt(2 * (KEPT_FAR - KEPT_LOSING) / (1 / shrunk - 2 + shrunk))


def kept_square(norms: Matrix, *, measured: bool = False) -> Matrix:
    """Return what is left of the squares of rows beyond the radius, in its units, by how long they are.

    Parameters
    ----------
    norms : ndarray
        At least 1: in units of the radius.
    measured : bool
        Whether losses are given back to the means (`LossLaw.measured`); what they are measured with is taken
        from the rows (``methods/whitening/queries/clipped.py`` has the equation).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.losses import kept_square
    >>> kept_square(np.array([1.2, 3.0]))
    array([0.99, 0.93])
    >>> kept_square(np.array([1.2, 3.0]), measured=True).round(3)
    array([0.967, 0.8  ])
    """
    counted = np.where(norms > FAR, KEPT_FAR, KEPT_NEAR)
    if not measured:
        return np.asarray(counted)
    squares, strength = np.minimum(norms, FAR) ** 2, loss_strength() ** 2
    linear, leading = counted + strength, squares + strength / 2
    shrunk = (linear + np.sqrt(linear**2 - 2 * strength * leading)) / (2 * leading)
    result: Matrix = shrunk * squares
    return result


def given_back(norms: Matrix) -> Matrix:
    """Return what is given back to the mean of a row's product with its constant, in units of the radius.

    Both are shrunk, so of v radii ``v - k / v`` is lost, where k is what is left of its square.

    Parameters
    ----------
    norms : ndarray
        At least 1: in units of the radius.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.losses import given_back
    >>> given_back(np.array([1.0, 1.2, 4.0])).round(3)
    array([0.01 , 0.394, 0.849])
    """
    near = np.minimum(norms, FAR)
    kept = np.where(norms > FAR, KEPT_LOSING, kept_square(near, measured=True))
    result: Matrix = near - kept / near
    return result


def lost_to_means(norms: Matrix, *, measured: bool) -> Matrix:
    """Return what clipping takes from that product beyond what is given back, in units of the radius.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.losses import lost_to_means
    >>> lost_to_means(np.array([1.0, 1.2, 4.0]), measured=False).round(3)
    array([0.01 , 0.375, 3.768])
    >>> lost_to_means(np.array([1.0, 1.2, 4.0]), measured=True).round(3)
    array([0.   , 0.   , 2.951])
    """
    lost = norms - kept_square(norms, measured=measured) / norms
    return np.asarray(lost - given_back(norms) if measured else lost)
