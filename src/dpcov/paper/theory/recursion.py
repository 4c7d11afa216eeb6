"""The paper's recursive algorithm: its constants, its rounds, and how many rows it needs.

Mahpud and Sheffet (2025), Algorithms 1 and 2 and Theorem 3.3, with the constant that the theorem hides.
The proof for the repaired constants is in `recursion.md` beside this file. Pure formulas of public
numbers.

The noise is the library's: symmetric Gaussian with variance ``s^2`` on the diagonal and ``s^2 / 2`` off it,
``s = R^2 / (n sqrt(rho))``, which is rho-zCDP for replacing one row of a table in the ball of radius R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcov.checks import count, number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.bounds import Bound, least_rows
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, check_constants

SHRINKING = 3 / 7
"""One round multiplies the squared radius by this."""

GROWTH = 8 / 7
"""One round multiplies the second moment by this, after halving its large directions."""

_GREATEST_LOG_RATIO = 250 * math.log(10)


@dataclass(frozen=True)
class RecursionConstants:
    """The constants of Algorithm 1 in units of m: ``psi / m``, ``noise / m``, ``stopping * m``.

    Attributes
    ----------
    eta : float
        By how much large directions are shrunk.
    psi : float
        Directions above ``psi kappa / m`` are large.
    noise : float
        c: the analysis needs a noise norm of at most ``noise kappa / m`` in every round. The algorithm
        does not use it.
    stopping : float
        C: the rounds end when kappa is at most ``stopping m``.
    """

    eta: float
    psi: float
    noise: float
    stopping: float

    def shrinks_tail_only(self, alpha: float) -> bool:
        """Whether only rows of the tail are shrunk: `recursion.md`, step 1.

        Parameters
        ----------
        alpha : float
            Of subsamplability.
        """
        reach = (SHRINKING / GROWTH - self.eta**2) / (1 - self.eta**2)
        return (1 + alpha) / (1 - alpha) * (self.psi + self.noise) <= reach

    def keeps_least_eigenvalue(self, alpha: float) -> bool:
        """Whether the second moment of the rows outside the tail stays above 1: `recursion.md`, step 2.

        Parameters
        ----------
        alpha : float
            Of subsamplability.
        """
        lost = 1 - self.eta**2
        turn = (1 - 1 / GROWTH) / lost
        large = (self.psi - self.noise) * self.stopping - 1
        if large <= 0:
            return False
        cross = self.noise * self.stopping * math.sqrt((1 - turn) / turn / large)
        gain = self.eta * math.sqrt(large) - cross
        return gain > math.sqrt(lost) and (1 - alpha) * (1 + turn * (gain**2 - lost)) >= 1 / GROWTH


PAPER = RecursionConstants(eta=0.5, psi=1 / 10, noise=1 / 80, stopping=640)
"""As printed. `recursion.md` says which steps of the proof they break."""

REPAIRED = RecursionConstants(eta=0.5, psi=1 / 20, noise=1 / 1000, stopping=550)
"""For which the theorem is proved, for every alpha up to 1/2."""


def recursion_constants(constants: str = "repaired") -> RecursionConstants:
    """Return the constants called "paper" or "repaired".

    Parameters
    ----------
    constants : {"repaired", "paper"}
        Which.
    """
    return PAPER if check_constants(constants) == "paper" else REPAIRED


@dataclass(frozen=True)
class Schedule:
    """The rounds of Algorithm 2, in units of the least eigenvalue outside the tail.

    Attributes
    ----------
    shrinking_rounds : int
        How many rounds shrink the large directions; one release follows.
    first, last : float
        The squared radius kappa in the first round and in the last release.
    """

    shrinking_rounds: int
    first: float
    last: float

    @property
    def releases(self) -> int:
        """How many noisy matrices share the budget."""
        return self.shrinking_rounds + 1


def recursion_schedule(
    m: float, alpha: float, radius: float, least_eigenvalue: float = 1.0, *, constants: str = "repaired"
) -> Schedule:
    """Return the rounds that Algorithms 1 and 2 make.

    Parameters
    ----------
    m, alpha : float
        Of subsamplability; alpha at most 1/2.
    radius : float
        A bound on the length of a row.
    least_eigenvalue : float, default 1
        A lower bound on the least eigenvalue of the second moment.
    constants : {"repaired", "paper"}
        Which constants.

    Notes
    -----
    Corollary 3.6: the squared radius begins at ``kappa = R^2 / ((1 - alpha) lambda)`` and is multiplied
    by 3/7 until it is at most C. That is ``ceil(T)`` shrinking rounds with ``T = log_{7/3}(kappa / C)``,
    none if T <= 0, and one release after them: ``ceil(T) + 1`` noisy matrices, where the paper counts T.
    """
    size = number(m, "m", at_least=1)
    a = number(alpha, "alpha", above=0, at_most=LARGEST_ALPHA)
    length = number(radius, "radius", above=0)
    least = number(least_eigenvalue, "least_eigenvalue", above=0)
    if abs(2 * math.log(length) - math.log(least)) > _GREATEST_LOG_RATIO:
        raise ArgumentError(
            "radius and least_eigenvalue do not fit together: the one's square over the other must lie "
            "between 1e-250 and 1e250."
        )
    stopping = recursion_constants(constants).stopping * size
    first = last = (length / math.sqrt(least)) ** 2 / (1 - a)
    rounds = 0
    while last > stopping:
        last *= SHRINKING
        rounds += 1
    return Schedule(rounds, first, last)


def noise_norm_at_most(n_columns: int, failure: float) -> float:
    """Return a bound on the norm of a noise matrix with unit diagonal variance.

    Parameters
    ----------
    n_columns : int
        Its size d.
    failure : float
        The probability with which the bound may fail.

    Notes
    -----
    ``sqrt(2 d) + sqrt(2 ln(2 / failure))``, for the paper's Fact 2.1. The largest eigenvalue has mean at most
    ``sqrt(2 d)`` (Slepian and Gordon) and is 1-Lipschitz in the Frobenius norm, in which this noise is a
    standard Gaussian, or less where a trace helps; twice, for both signs.
    """
    return math.sqrt(2 * count(n_columns, "n_columns")) + math.sqrt(
        2 * math.log(2 / share(failure, "failure"))
    )


def recursive_error(
    n_rows: int,
    n_columns: int,
    rho: float,
    *,
    m: float,
    alpha: float,
    radius: float,
    least_eigenvalue: float = 1.0,
    failure: float = 0.05,
    constants: str = "repaired",
) -> float:
    """Return the gamma that Theorem 3.3 guarantees; infinite if the rows are too few for its rounds.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table.
    rho : float
        The budget, shared evenly by all releases.
    m, alpha, radius, least_eigenvalue, constants
        As for `recursion_schedule`.
    failure : float, default 0.05
        The probability with which the guarantee may fail; half for the rounds, half for the release. The
        paper's is 2 xi.

    Notes
    -----
    With probability 1 - failure, ``(1 - gamma) S_eff <= S~ <= (1 + gamma) S``, S_eff the second moment
    without the tail. With the paper's constants this is what its theorem claims; its proof does not reach
    them.
    """
    n, budget = count(n_rows, "n_rows"), number(rho, "rho", above=0)
    chance = share(failure, "failure") / 2
    plan = recursion_schedule(m, alpha, radius, least_eigenvalue, constants=constants)
    if n < m:
        return math.inf
    unit = math.sqrt(plan.releases / budget) / n
    if plan.shrinking_rounds:
        allowed = recursion_constants(constants).noise / m
        if noise_norm_at_most(n_columns, chance / plan.shrinking_rounds) * unit > allowed:
            return math.inf
    return plan.last * noise_norm_at_most(n_columns, chance) * unit


def recursive_rows(
    error: float,
    n_columns: int,
    rho: float,
    *,
    m: float,
    alpha: float,
    radius: float,
    least_eigenvalue: float = 1.0,
    failure: float = 0.05,
    constants: str = "repaired",
) -> Bound:
    """Return how many rows Theorem 3.3 needs for an error gamma, with its constant.

    Parameters
    ----------
    error : float
        The gamma.
    n_columns, rho, m, alpha, radius, least_eigenvalue, failure, constants
        As for `recursive_error`.
    """
    target = number(error, "error", above=0)

    def error_at(rows: int) -> float:
        return recursive_error(
            rows,
            n_columns,
            rho,
            m=m,
            alpha=alpha,
            radius=radius,
            least_eigenvalue=least_eigenvalue,
            failure=failure,
            constants=constants,
        )

    return Bound(
        rows=least_rows(error_at, target),
        exact=True,
        place=f"Theorem 3.3, constants of {'the paper' if constants == 'paper' else 'recursion.md'}",
        formula="max(m, (K m / c) s, (kappa K / gamma) s), K = sqrt(2 d) + sqrt(2 ln(2 / xi)), "
        "s = sqrt((ceil(T) + 1) / rho)",
    )
