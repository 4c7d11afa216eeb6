"""The paper's method: Algorithms 1 and 2, with their mistakes repaired.

Mahpud and Sheffet, "A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable Input"
(NeurIPS 2025). Each round adds noise to the second moment, halves the directions of large
eigenvalues, and shrinks the rows that still stick out; only rows of the tail do, if the constants
are right. ``docs/paper.md`` maps it line by line and lists what was repaired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, Clipping, Curator, LatticeMap, NoisyGram, Shrinking
from dpcov.methods.eigenvalue import find_least_eigenvalue
from dpcov.methods.estimate import Estimate, NoiseLaw, nearest_positive_semidefinite
from dpcov.methods.options import positive
from dpcov.methods.radius import find_covering_radius
from dpcov.theory.shrinking import (
    GROWTH,
    ROUND_FACTOR,
    SHRINK,
    Schedule,
    find_constants,
    schedule,
)

Matrix = NDArray[np.float64]

_RADIUS_SHARE = Fraction(1, 20)
_EIGENVALUE_SHARE = Fraction(1, 20)


def estimate_recursive(
    curator: Curator,
    *,
    m: float | None = None,
    alpha: float = 0.5,
    beta: float | None = None,
    radius: float | None = None,
    least_eigenvalue: float | None = None,
    constants: str = "repaired",
) -> Estimate:
    """Release the second moment of an (m, alpha, beta)-subsamplable table.

    Parameters
    ----------
    curator : Curator
        All of its remaining budget is spent.
    m : float
        Random subsamples of this many rows keep the second moment up to 1 +- alpha.
    alpha : float, default 1/2
        At most 1/2.
    beta : float, optional
        How often a subsample may fail. Checked against what the theorem allows; not used otherwise.
    radius : float, optional
        A bound on the length of a row that does not come from the rows; found privately if not given.
    least_eigenvalue : float, optional
        A lower bound on the least eigenvalue of the released matrix; found privately (Algorithm 4) if
        not given, which needs a delta in the budget.
    constants : {"repaired", "paper"}
        With the paper's own constants, rows outside the tail may shrink.

    Notes
    -----
    *Formal guarantee.* zCDP with the remaining rho (and delta, if the least eigenvalue is found
    privately), for replacing one row, whatever the rows and options are. *Utility.* The paper's main
    theorem: ``(1 - gamma) S_eff <= S~ <= (1 + gamma) S``.
    """
    chosen = find_constants(constants)
    if m is None:
        raise ArgumentError(
            "method 'recursive' needs m: how many random rows keep the second moment up to 1 +- alpha. "
            "See dpcov.theory, or use method 'whitening', which needs nothing."
        )
    size, alpha = positive(m, "m"), positive(alpha, "alpha")
    own_radius = None if radius is None else positive(radius, "radius")
    least = None if least_eigenvalue is None else positive(least_eigenvalue, "least_eigenvalue")
    _check(curator, size, alpha, beta, least)
    whole = _whole_radius(curator, own_radius)
    if least is None:
        least = _private_least_eigenvalue(curator, size, alpha, whole)
    course = schedule(chosen, m=size, alpha=alpha, radius=whole, least_eigenvalue=least)
    threshold = chosen.threshold / size
    return _run(curator, course, threshold, math.sqrt(1 / ((1 - alpha) * least)), least)


def _run(
    curator: Curator,
    course: Schedule,
    threshold: float,
    scale: float,
    least: float,
) -> Estimate:
    """Algorithm 2, unrolled.

    The paper's symbols: X is the table times ``forms``, R is ``radius``, kappa is R^2, psi is
    ``threshold``, V is spanned by the ``large`` directions, whose factors make Pi. ``earlier`` is
    the chain of S(Y) of line 10.
    """
    share = curator.remaining.rho / course.releases
    forms: Matrix = np.eye(curator.n_columns) * scale
    kappa = course.kappa
    earlier: tuple[Shrinking, ...] = ()
    history: list[dict[str, float]] = []
    for _ in range(course.shrinkings):
        lattice_map = LatticeMap.from_matrix(forms)
        radius = math.sqrt(kappa)
        answer = curator.gram(
            Clipping(lattice_map, radius, earlier=earlier), share, purpose="round of the recursion"
        )
        values, vectors = np.linalg.eigh(answer.mean())
        large = values >= threshold * kappa
        factors = math.sqrt(GROWTH) * np.where(large, SHRINK, 1.0)
        forms = (vectors.T * factors[:, None]) @ lattice_map.matrix()
        earlier = (*earlier, Shrinking(lattice_map, radius))
        history.append({"kappa": kappa, "rho": float(share), "large": float(large.sum())})
        kappa *= ROUND_FACTOR
    lattice_map = LatticeMap.from_matrix(forms)
    answer = curator.gram(
        Clipping(lattice_map, math.sqrt(kappa), earlier=earlier),
        curator.remaining.rho,
        purpose="the released matrix",
    )
    history.append({"kappa": kappa, "rho": float(share), "large": 0.0})
    return _estimate(lattice_map, answer, _diagnostics(course, least, answer, history))


def _estimate(lattice_map: LatticeMap, answer: NoisyGram, diagnostics: Mapping[str, Any]) -> Estimate:
    inverse = np.asarray(np.linalg.inv(lattice_map.matrix()), dtype=np.float64)
    matrix = inverse @ nearest_positive_semidefinite(answer.mean()) @ inverse.T
    return Estimate((matrix + matrix.T) / 2, diagnostics, NoiseLaw(inverse, answer.sigma))


def _diagnostics(
    course: Schedule, least: float, answer: NoisyGram, history: list[dict[str, float]]
) -> dict[str, Any]:
    """Facts from public numbers and private answers."""
    noise = math.sqrt(2 * len(answer.integers)) * answer.sigma
    lowest = float(np.linalg.eigvalsh(answer.mean())[0])
    return {
        "rounds": course.releases,
        "iterations": course.rounds,
        "history": history,
        "least_eigenvalue": least,
        # The theorem keeps the least eigenvalue of the scaled table above 1: its gamma.
        "guaranteed_error": noise,
        "predicted_error": noise / lowest if lowest > noise else math.inf,
    }


def _check(curator: Curator, m: float, alpha: float, beta: float | None, least: float | None) -> None:
    if alpha > 0.5:
        raise ArgumentError(f"alpha must be at most 1/2 (Theorem 3.2), got {alpha:g}.")
    if not 1 <= m <= curator.n_rows:
        raise ArgumentError(f"m must lie between 1 and the {curator.n_rows} rows, got {m:g}.")
    if beta is not None and not 0 < positive(beta, "beta") < 1:
        raise ArgumentError(f"beta must lie strictly between 0 and 1, got {beta}.")
    if least is None and curator.remaining.delta == 0:
        raise ArgumentError(
            "method 'recursive' needs least_eigenvalue, or a budget with a delta to find it: "
            "give delta beside rho, or epsilon with delta."
        )


def _whole_radius(curator: Curator, radius: float | None) -> float:
    """Return a radius for the rows with their constant column."""
    if radius is not None:
        return math.hypot(radius, 1.0) if curator.has_constant else radius
    return find_covering_radius(curator, curator.remaining.rho * _RADIUS_SHARE).radius


def _private_least_eigenvalue(curator: Curator, m: float, alpha: float, radius: float) -> float:
    epsilon = Fraction(math.sqrt(2 * float(curator.remaining.rho * _EIGENVALUE_SHARE)))
    return find_least_eigenvalue(
        curator,
        group_size=math.ceil(m),
        alpha=alpha,
        radius=radius,
        epsilon=epsilon,
        delta=curator.remaining.delta,
    )
