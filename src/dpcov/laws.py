"""What is public about the error of a released matrix: shared by methods and by linear questions.

A release is ``S~ = S - D + E``. E is the noise for privacy (`NoiseLaw`), D is what shrinking long rows took
away (`LossLaw`). Where noise is larger than the signal, a direction is not resolved: `least_resolved` is the
one test of that, for reports, refusals and diagnostics alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector

RESOLVED = 3.0
"""A direction is resolved when its variance exceeds this many times the norm of the noise.

How often noise alone passes. Let N be symmetric and Gaussian of size d, with standard deviation s on its
diagonal and ``s / sqrt(2)`` off it. Its largest eigenvalue has a mean of at most ``sqrt(2 d) s``, by Sudakov
and Fernique's comparison with ``sqrt(2) s <g, v>``, and is s-Lipschitz in independent standard normal
variables. So it exceeds ``3 sqrt(2 d) s`` with probability at most ``exp(-(2 sqrt(2 d))^2 / 2) = exp(-4 d)``;
exactly, with probability 1.1e-5 for d = 1, where it is normal, and 1.1e-8 for d = 2. By Weyl's inequality no
more directions pass than carry any signal unless that happens: less than once in 90,000 releases, whatever
the table.

In 19 of 20 releases noise moves a resolved variance by at most 58% of it (1.73 noise norms of 3), in tables
of many columns by at most 40%.
"""

_TRACY_WIDOM = 0.73
"""19 of 20 noise matrices have a norm of at most ``1 + 0.73 d^(-2/3)`` times `noise_norm`.

The largest eigenvalue of N above is about ``s (sqrt(2 d) + d^(-1/6) W / sqrt(2))``, which is ``noise_norm
(1 + d^(-2/3) W / 2)``, with W of the Tracy-Widom law for beta = 1 (Tracy and Widom, "On orthogonal and
symplectic matrix ensembles", 1996). The norm also has the least eigenvalue to beat, about independent, so
W is taken at probability ``sqrt(0.95)``: W = 1.45.
"""

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
class NoiseLaw:
    """The law of the noise in a second-moment matrix, which is public.

    The estimate is ``inverse @ (A + N) @ inverse.T``: A is the second moment of the mapped rows, N
    is symmetric with independent entries of mean zero (Gaussian, rounded to a fine grid). No answer has more
    noise than that. Where a Gram matrix came with its trace (``core/queries/gram.md``), an answer ``<Q, N>``
    has a variance that is ``sigma^2 (tr Q)^2 / (d + 1)`` less. Where a method has shrunk its estimate, the
    mean square of the error, over the entries in the mapped rows, is below that of N as well.

    Attributes
    ----------
    inverse : ndarray, shape (d, d)
        The public map back to the table's columns.
    sigma : float
        Standard deviation of N on its diagonal; off the diagonal it is ``sigma / sqrt(2)``.
    hidden : float, default 0
        What rows that were clipped to the region have at most of any variance of the mapped rows. A variance
        of that size may consist of clipped rows alone, and be much larger in the table.
    overstated : float, default 1
        By what factor the law overstates the standard deviation of the constant's own entry. Where losses
        are given back to means, these have more noise than N, and the map that says so widens the constant's
        entry as well, which has none of it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import NoiseLaw
    >>> law = NoiseLaw(np.diag([1.0, 10.0]), sigma=0.01)
    >>> float(law.sigma * np.square(law.inverse[1]).sum())  # of the second column's mean square
    1.0
    """

    inverse: Matrix
    sigma: float
    hidden: float = 0.0
    overstated: float = 1.0


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
    >>> from dpcov.laws import LossLaw
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
    >>> from dpcov.laws import loss_strength
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
    >>> from dpcov.laws import kept_square
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
    >>> from dpcov.laws import given_back
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
    >>> from dpcov.laws import lost_to_means
    >>> lost_to_means(np.array([1.0, 1.2, 4.0]), measured=False).round(3)
    array([0.01 , 0.375, 3.768])
    >>> lost_to_means(np.array([1.0, 1.2, 4.0]), measured=True).round(3)
    array([0.   , 0.   , 2.951])
    """
    lost = norms - kept_square(norms, measured=measured) / norms
    return np.asarray(lost - given_back(norms) if measured else lost)


def noise_norm(n_directions: float, sigma: float) -> float:
    """Return the spectral norm that symmetric noise has about.

    Parameters
    ----------
    n_directions : float
        The size of the noise matrix.
    sigma : float
        Its standard deviation on the diagonal; off the diagonal it is ``sigma / sqrt(2)``.

    Examples
    --------
    >>> from dpcov.laws import noise_norm
    >>> noise_norm(8, 0.5)
    2.0
    """
    return math.sqrt(2 * n_directions) * sigma


def rarely_exceeded(n_directions: float) -> float:
    """Return how many times `noise_norm` the norm of 19 of 20 noise matrices is at most.

    Examples
    --------
    >>> from dpcov.laws import rarely_exceeded
    >>> round(rarely_exceeded(8), 4)
    1.1825
    """
    return 1 + _TRACY_WIDOM * math.pow(n_directions, -2 / 3)


def least_resolved(n_directions: int, sigma: float, hidden: float = 0.0) -> float:
    """Return what a variance must exceed to be resolved: the one test of it.

    It must stand above the noise, and clipped rows with noise on top must not be able to make up all of it.

    Parameters
    ----------
    n_directions : int
        Among how many directions the variance was looked for.
    sigma : float
        Standard deviation of the noise of a single variance, in coordinates in which it is the same in all
        directions.
    hidden : float, default 0
        What clipped rows may have of a variance in these coordinates (`NoiseLaw.hidden`).

    Examples
    --------
    >>> from dpcov.laws import least_resolved
    >>> least_resolved(8, 0.5)
    6.0
    >>> round(least_resolved(8, 0.5, hidden=4.0), 2)
    6.37
    """
    noise = noise_norm(n_directions, sigma)
    return max(RESOLVED * noise, hidden + rarely_exceeded(n_directions) * noise)


def least_size(n_directions: int) -> float:
    """Return what ``n sqrt(rho)`` must exceed for any table of n rows to show any direction at all.

    Rows of length R at most have a variance of R^2 at most in any direction, and reach it if all lie along
    one. A Gram matrix that spends all of rho has noise of standard deviation ``R^2 / (n sqrt(rho))`` on its
    diagonal (``core/queries/gram.md``). So with ``n sqrt(rho)`` at most `least_resolved` of noise of size 1,
    no direction of any table passes, in a ball of any radius.

    Examples
    --------
    >>> from dpcov.laws import least_size
    >>> round(least_size(101), 1)  # 30 rows and 100 columns with a constant need rho = 2 to show anything
    42.6
    """
    return least_resolved(n_directions, 1.0)


def nearest_positive_semidefinite(matrix: Matrix) -> Matrix:
    """Return the positive semidefinite matrix that is closest in Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import nearest_positive_semidefinite
    >>> nearest_positive_semidefinite(np.diag([2.0, -1.0]))
    array([[2., 0.],
           [0., 0.]])
    """
    symmetric = (matrix + matrix.T) / 2
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    positive = np.maximum(eigenvalues, 0.0)
    projected: Matrix = (vectors * positive) @ vectors.T
    return (projected + projected.T) / 2


def square_root(matrix: Matrix, least: float = 0.0) -> Matrix:
    """Return F with ``F F^T`` the positive semidefinite matrix, whatever the units of its columns.

    Columns are brought to one scale first: beside one that is 10^8 times as long, rounding would be all that
    is left of a short one.

    Parameters
    ----------
    matrix : ndarray, shape (d, d)
        Negative eigenvalues, which rounding or noise may leave, count as zero.
    least : float, default 0
        Directions are given at least this part of the largest, so that F can be inverted.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.laws import square_root
    >>> factor = square_root(np.array([[1e24, 5e11], [5e11, 1.0]]))
    >>> (factor @ factor.T)[1]
    array([5.e+11, 1.e+00])
    """
    sizes = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scales = np.where(sizes > 0, sizes, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(scales, scales))
    root: Matrix = scales[:, None] * vectors * np.sqrt(np.maximum(values, least * float(values[-1])))
    return root
