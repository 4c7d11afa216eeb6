"""The paper's method: Algorithms 1 and 2, with their mistakes repaired.

Mahpud and Sheffet, "A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable Input"
(NeurIPS 2025). Each round adds noise to the second moment, halves the directions of large
eigenvalues, and shrinks the rows that still stick out; only rows of the tail do, if the constants
are right. ``docs/paper.md`` maps it line by line and lists what was repaired.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcov.arrays import Matrix
from dpcov.checks import positive, share
from dpcov.core import ArgumentError, Clipping, Curator, NoAnswerError, NoisyGram
from dpcov.laws import noise_norm
from dpcov.maps import integer_map
from dpcov.methods.estimate import Estimate, mapped_back, whole_radius
from dpcov.paper.eigenvalue import check_bucket_groups, find_least_eigenvalue
from dpcov.paper.queries import Shrinking, ShrunkGram, approximate_arguments, check_group_size
from dpcov.paper.radius import find_covering_radius
from dpcov.paper.search import FAILURE as SEARCH_FAILURE
from dpcov.paper.search import Searched, check_search, search_m
from dpcov.paper.theory.recursion import (
    GROWTH,
    SHRINKING,
    RecursionConstants,
    Schedule,
    recursion_constants,
    recursion_schedule,
    recursive_error,
    recursive_rows,
)
from dpcov.paper.theory.subsamplability import check_parameters, largest_beta

_RADIUS_SHARE = Fraction(1, 20)
_EIGENVALUE_SHARE = Fraction(1, 20)
_FAILURE = 0.05


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
    m : float, optional
        Random subsamples of this many rows keep the second moment up to 1 +- alpha. Without it the least size
        of groups that nearly all agree is searched for privately, and an m that is sure to do follows from it
        (``theory/recursion.md``, "Without m").
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
    theorem: ``(1 - gamma) S_eff <= S~ <= (1 + gamma) S`` with probability 0.95, S_eff the second moment
    without the tail. ``diagnostics["guaranteed_error"]`` is gamma; ``diagnostics["guarantee"]`` says in
    words what it takes for granted, or why there is none.
    """
    chosen = recursion_constants(constants)
    check_parameters(1.0 if m is None else m, alpha, n_rows=curator.n_rows, constants=constants)
    own_radius = None if radius is None else positive(radius, "radius")
    least = None if least_eigenvalue is None else positive(least_eigenvalue, "least_eigenvalue")
    if m is None:
        if beta is not None:
            raise ArgumentError("beta needs m as well.")
        after_radius = curator.remaining.rho * (1 - (_RADIUS_SHARE if own_radius is None else 0))
        check_search(curator, after_radius)
        if least is None:
            approximate_arguments(_eigenvalue_epsilon(after_radius), curator.remaining.delta)
    elif least is None:
        check_group_size(math.ceil(m), n_rows=curator.n_rows, n_columns=curator.n_columns)
        after_radius = curator.remaining.rho * (1 - (_RADIUS_SHARE if own_radius is None else 0))
        spent = approximate_arguments(_eigenvalue_epsilon(after_radius), curator.remaining.delta)
        check_bucket_groups(math.ceil(m), curator.n_rows, *spent)
    if beta is not None:
        share(beta, "beta")
    whole = _whole_radius(curator, own_radius)
    searched, size = None, m
    if size is None:
        searched = search_m(curator, whole)
        size = searched.m(alpha)
    if least is None:
        least = _private_least_eigenvalue(curator, size, alpha, whole, searched)
    if beta is not None:
        check_parameters(
            size,
            alpha,
            n_rows=curator.n_rows,
            beta=beta,
            radius=whole,
            least_eigenvalue=least,
            constants=constants,
        )
    try:
        course = recursion_schedule(size, alpha, whole, least, constants=constants)
    except ArgumentError as error:
        if own_radius is not None:
            raise
        raise NoAnswerError(
            "least_eigenvalue does not fit the length of the rows at all; what finding that cost is spent."
        ) from error
    scale = math.sqrt(1 / ((1 - alpha) * least))
    told: dict[str, Any] = {"m": size, "alpha": alpha, "radius": whole, "least_eigenvalue": least}
    promise = _promise(curator, float(curator.remaining.rho), told, constants, searched)
    estimate = _run(curator, course, chosen, chosen.psi / size, scale)
    facts = {**estimate.diagnostics, **promise, "least_eigenvalue": least, "m": size}
    return replace(estimate, diagnostics=facts)


def _promise(
    curator: Curator, rho: float, told: dict[str, Any], constants: str, searched: Searched | None
) -> dict[str, Any]:
    """Return what the theorem promises, and in words what it rests on: a function of public numbers."""
    n, d = curator.n_rows, curator.n_columns
    failure = _FAILURE if searched is None else _FAILURE + SEARCH_FAILURE
    given = {**told, "failure": _FAILURE, "constants": constants}
    error = math.inf if constants == "paper" else recursive_error(n, d, rho, **given)
    if constants == "paper":
        words = "None: the proof of the main theorem does not reach the paper's constants."
    elif error == math.inf:
        needed = recursive_rows(1.0, d, rho, **given).rows
        words = f"None: the main theorem promises nothing below {needed:,.0f} rows at this budget."
    else:
        words = (
            f"With probability {1 - failure:g} the result is at least {max(1 - error, 0):.4g} times the "
            f"second moment without the tail, in every direction, and at most {1 + error:.4g} times that of "
            f"all rows: if {_condition(told, searched)}no row is longer than {told['radius']:.4g}, and the "
            f"least eigenvalue is at least {told['least_eigenvalue']:.4g}."
        )
    return {"guaranteed_error": error, "guarantee_fails": failure, "guarantee": words}


def _condition(told: dict[str, Any], searched: Searched | None) -> str:
    """Return what has to be true of the tail, in words; nothing if the search has shown it."""
    if searched is None:
        most = largest_beta(told["alpha"], told["m"], told["radius"], told["least_eigenvalue"])
        return f"the table is ({told['m']:g}, {told['alpha']:g}, {most:.3g})-subsamplable, "
    others = 1 - searched.good
    if others * told["radius"] ** 2 <= told["alpha"] * told["least_eigenvalue"]:
        return ""
    return (
        f"the {others:.2%} of rows whose groups may not agree with the others carry at most "
        f"{told['alpha']:g} of any direction, "
    )


def _run(
    curator: Curator,
    course: Schedule,
    constants: RecursionConstants,
    threshold: float,
    scale: float,
) -> Estimate:
    """Algorithm 2, unrolled.

    The paper's symbols: X is the table times ``forms``, R is ``radius``, kappa is R^2, psi is
    ``threshold``, V is spanned by the ``large`` directions, whose factors make Pi. ``earlier`` is
    the chain of S(Y) of line 10.
    """
    each = curator.remaining.rho / course.releases
    forms: Matrix = np.eye(curator.n_columns) * scale
    kappa = course.first
    earlier: tuple[Shrinking, ...] = ()
    history: list[dict[str, float]] = []
    for _ in range(course.shrinking_rounds):
        lattice_map = integer_map(forms)
        radius = math.sqrt(kappa)
        answer = curator.ask(
            ShrunkGram(Clipping(lattice_map, radius), earlier, each, "round of the recursion")
        )
        values, vectors = np.linalg.eigh(answer.mean())
        large = values >= threshold * kappa
        factors = math.sqrt(GROWTH) * np.where(large, constants.eta, 1.0)
        forms = (vectors.T * factors[:, None]) @ lattice_map.matrix()
        earlier = (*earlier, Shrinking(lattice_map, radius))
        history.append({"kappa": kappa, "rho": float(each), "large": float(large.sum())})
        kappa *= SHRINKING
    lattice_map = integer_map(forms)
    clipping = Clipping(lattice_map, math.sqrt(kappa))
    answer = curator.ask(ShrunkGram(clipping, earlier, curator.remaining.rho, "the released matrix"))
    history.append({"kappa": kappa, "rho": float(each), "large": 0.0})
    return mapped_back(lattice_map, answer, _diagnostics(course, answer, history))


def _diagnostics(course: Schedule, answer: NoisyGram, history: list[dict[str, float]]) -> dict[str, Any]:
    """Facts from public numbers and private answers."""
    noise = noise_norm(len(answer.integers), answer.sigma)
    lowest = float(np.linalg.eigvalsh(answer.mean())[0])
    return {
        "rounds": course.releases,
        "history": history,
        "predicted_error": noise / lowest if lowest > noise else math.inf,
    }


def _whole_radius(curator: Curator, radius: float | None) -> float:
    """Return a radius for the rows with their constant column."""
    if radius is not None:
        return whole_radius(curator, radius)
    return find_covering_radius(curator, curator.remaining.rho * _RADIUS_SHARE).radius


def _private_least_eigenvalue(
    curator: Curator, m: float, alpha: float, radius: float, searched: Searched | None
) -> float:
    epsilon = _eigenvalue_epsilon(curator.remaining.rho)
    found = find_least_eigenvalue(
        curator,
        group_size=math.ceil(m) if searched is None else searched.group_size,
        # Good groups of a search fill at most five buckets of this width.
        alpha=alpha if searched is None else 0.5,
        radius=radius,
        epsilon=epsilon,
        delta=curator.remaining.delta,
    )
    if searched is not None:
        return found / searched.below
    # A group's least eigenvalue may exceed the table's by that factor.
    return found / (1 + alpha)


def _eigenvalue_epsilon(rho: Fraction) -> Fraction:
    return Fraction(math.sqrt(2 * float(rho * _EIGENVALUE_SHARE)))
