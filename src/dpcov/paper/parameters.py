"""Private facts about a table besides its second moment: its radius, a ball, its least eigenvalue.

The paper's initial parameters (Appendix B) and its test of subsamplability (Algorithm 3, lines 1 to
10). Each call has a budget of its own and a receipt; `Access` says what else they all take, such as columns
and a ledger that pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

from dpcov.arrays import Vector
from dpcov.checks import count, number, positive
from dpcov.core import ArgumentError, Clipping, Number, PrivacyCost, Receipt, resolve_budget
from dpcov.core.budget import as_fraction
from dpcov.maps import identity_map
from dpcov.opening import Access, opened
from dpcov.paper.agreement import check_agreement_groups
from dpcov.paper.eigenvalue import find_least_eigenvalue
from dpcov.paper.queries import LEAST_AGREEMENT, Agreement, approximate_arguments, check_group_size
from dpcov.paper.radius import Ball, find_covering_radius, find_enclosing_ball


@dataclass(frozen=True)
class Radius:
    """A radius around the origin; at most `outside_at_most` rows are longer, with probability 0.99."""

    radius: float
    outside_at_most: int
    receipt: Receipt


@dataclass(frozen=True)
class EnclosingBall:
    """A ball; at most `outside_at_most` rows lie outside, with probability 0.99."""

    centre: Vector
    radius: float
    outside_at_most: int
    receipt: Receipt


@dataclass(frozen=True)
class LeastEigenvalue:
    """A lower estimate of the least eigenvalue of the second moment."""

    value: float
    receipt: Receipt


@dataclass(frozen=True)
class Subsamplability:
    """A private test of subsamplability.

    Attributes
    ----------
    score : float
        The share of pairs of groups that agree, with noise.
    at_least : float
        The true share is never below this, up to its rounding to a float.
    groups : int
        How many groups there were.
    passed : bool
        Whether `at_least` reaches 0.8, as Algorithm 3 asks.
    """

    score: float
    at_least: float
    groups: int
    passed: bool
    receipt: Receipt


def covering_radius(
    data: Any,
    *,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    **access: Unpack[Access],
) -> Radius:
    """Find a radius around the origin that covers nearly all rows.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for replacing one row. With
    probability 0.99 at most ``outside_at_most`` rows are longer, and the radius is at most 1.1 times the
    length of the longest row. Rows with a missing or infinite value count as rows of zeros. With
    `privacy_unit` it is about persons and the joint length of their rows, ``sqrt(sum |x|^2)``.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> found = dpcov.covering_radius(people, rho=1)
    >>> bool(np.quantile(np.linalg.norm(people, axis=1), 0.99) < found.radius < 300)
    True
    """
    limit = resolve_budget(rho=rho, mu=mu, epsilon=epsilon, delta=delta, gaussian=True)
    with opened(data, limit, "covering radius", **access) as curator:
        ball = find_covering_radius(curator, curator.remaining.rho)
    return Radius(ball.radius, ball.outside_at_most, curator.receipt())


def enclosing_ball(
    data: Any,
    *,
    t: int | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    **access: Unpack[Access],
) -> EnclosingBall:
    """Find a ball with a free centre that covers nearly all rows.

    For a table far from the origin its radius is much smaller than `covering_radius`.

    Parameters
    ----------
    data : array or dataframe
        The table.
    t : int, optional
        How many rows it must hold, more than half of them: the 1-cluster problem. All by default.
    rho, mu, epsilon, delta : number, optional
        The budget.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP, `mu`-GDP or (`epsilon`, `delta`)-DP, for replacing one row. With
    probability 0.99 at most ``outside_at_most`` rows lie outside: n - t, and as many as noise hides. With
    `privacy_unit` it is about persons and the joint distance of their rows, ``sqrt(sum |x - c|^2)``.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> found = dpcov.enclosing_ball(people, rho=1)
    >>> bool(found.radius < dpcov.covering_radius(people, rho=1).radius)
    True
    """
    limit = resolve_budget(rho=rho, mu=mu, epsilon=epsilon, delta=delta, gaussian=True)
    with opened(data, limit, "enclosing ball", constant=True, **access) as curator:
        rows = curator.n_rows
        held = rows if t is None else count(t, "t")
        if not rows < 2 * held <= 2 * rows:
            raise ArgumentError(
                f"t must be more than half of the {rows} rows and at most all of them, got {held}."
            )
        ball: Ball = find_enclosing_ball(curator, rows - held)
    return EnclosingBall(ball.centre, ball.radius, ball.outside_at_most, curator.receipt())


def least_eigenvalue(
    data: Any,
    *,
    m: int,
    epsilon: Number,
    delta: Number,
    radius: float,
    alpha: float = 0.5,
    **access: Unpack[Access],
) -> LeastEigenvalue:
    """Find a lower estimate of the least eigenvalue of the second moment: the paper's Algorithm 4.

    Parameters
    ----------
    data : array or dataframe
        The table.
    m : int
        Rows of a random group; there should be dozens of groups.
    epsilon, delta : number
        What to spend.
    radius : float
        Rows longer than this are shrunk to it. It must not come from the rows; see `covering_radius`.
    alpha : float, default 1/2
        The precision, at most 1/2.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row. *Utility.* If the least eigenvalue of
    every group is within 1 +- alpha of the table's, the result is between (1 - alpha)^2 and 1 + alpha of it.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> rows = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[1, 0.5], [0, 1]]
    >>> found = dpcov.least_eigenvalue(rows, m=500, epsilon=1, delta=1e-6, radius=10.0)
    >>> 0.25 * 0.6 < found.value < 1.5 * 0.6
    True
    """
    limit, spent = _approximate_limit(epsilon, delta)
    with opened(data, limit, "least eigenvalue", **access) as curator:
        value = find_least_eigenvalue(
            curator,
            group_size=math.ceil(positive(m, "m")),
            alpha=_alpha(alpha),
            radius=positive(radius, "radius"),
            epsilon=spent[0],
            delta=spent[1],
        )
    return LeastEigenvalue(value, curator.receipt())


def subsamplability(
    data: Any,
    *,
    m: int,
    epsilon: Number,
    delta: Number,
    radius: float,
    alpha: float = 0.5,
    **access: Unpack[Access],
) -> Subsamplability:
    """Test privately whether random groups of m rows have second moments that agree.

    In an (m, alpha, beta)-subsamplable table two groups are within ``2 alpha / (1 - alpha)`` of each other
    with probability at least ``1 - 2 beta``. Algorithm 3 asks for 0.8 of all pairs.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> rows = np.random.default_rng(0).normal(size=(100_000, 2))
    >>> dpcov.subsamplability(rows, m=500, epsilon=1, delta=1e-6, radius=10.0).passed
    True
    """
    limit, spent = _approximate_limit(epsilon, delta)
    share, size = _alpha(alpha), math.ceil(positive(m, "m"))
    with opened(data, limit, "subsamplability", **access) as curator:
        check_group_size(size, n_rows=curator.n_rows, n_columns=curator.n_columns)
        check_agreement_groups(curator.n_rows, size, *approximate_arguments(*spent))
        answer = curator.ask(
            Agreement(
                Clipping(identity_map(curator.n_columns), positive(radius, "radius")),
                size,
                2 * share / (1 - share),
                epsilon=spent[0],
                delta=spent[1],
                purpose="test of subsamplability",
            )
        )
    return Subsamplability(
        score=answer.score,
        at_least=float(answer.at_least),
        groups=answer.n_groups,
        passed=answer.at_least >= LEAST_AGREEMENT,
        receipt=curator.receipt(),
    )


def _approximate_limit(epsilon: Number, delta: Number) -> tuple[PrivacyCost, tuple[Fraction, Fraction]]:
    """Return a limit that one (epsilon, delta)-DP query just meets."""
    spent = as_fraction(epsilon, "epsilon"), as_fraction(delta, "delta")
    return PrivacyCost(spent[0] ** 2 / 2, spent[1]), spent


def _alpha(alpha: float) -> float:
    return number(alpha, "alpha", above=0, at_most=0.5)
