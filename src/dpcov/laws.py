"""What is public about the noise of a released matrix: shared by methods and by linear questions.

A release is ``S~ = S - D + E``. E is the noise for privacy (`NoiseLaw`), D is what shrinking long rows took
away (``losses.py``). Where noise is larger than the signal, a direction is not resolved: `least_resolved` is
the one test of that, for reports, refusals and diagnostics alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix

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
