"""Whether the second moments of random groups of rows agree: the paper's Algorithm 3, lines 1 to 10.

The proof note is ``groups.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Clipping
from dpcov.core.budget import Number
from dpcov.core.query import Table
from dpcov.paper.queries.approximate import approximate_arguments
from dpcov.paper.queries.group_grams import GroupQuery
from dpcov.paper.queries.groups import agreeing_groups, compared_groups
from dpcov.paper.queries.laplace import truncated_laplace, truncation_bound

_LARGEST_DISTANCE = 1e6


@dataclass(frozen=True)
class NoisyAgreement:
    """How often the second moments of two groups of rows are close (Algorithm 3, lines 4 to 10).

    Attributes
    ----------
    score : float
        The share of compared pairs of groups, each with itself included, within the distance, with noise.
    largest_noise : float
        The noise is never larger than this.
    at_least : Fraction
        The true share is never below this: the score less the largest noise, without rounding.
    n_groups : int
        The number of groups.
    compared : int
        With how many of them each was compared, itself included.
    """

    score: float
    largest_noise: float
    at_least: Fraction
    n_groups: int
    compared: int


@dataclass(frozen=True, eq=False)
class Agreement(GroupQuery):
    """Ask how many pairs of random groups have second moments within `distance`: a test of subsamplability.

    The answer is a `NoisyAgreement`.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        Rows of a group.
    distance : float
        In the paper's semimetric (Appendix A).
    epsilon, delta : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as delta-approximate
    (epsilon^2 / 2)-zCDP. One row touches one group, hence the pairs that this one is compared in; their
    count gets truncated discrete Laplace noise (``groups.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.paper.queries import Agreement
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1, delta=1e-6)), seeded)
    >>> clipping = Clipping(identity_map(2), radius=20.0)
    >>> answer = curator.ask(Agreement(clipping, 200, 1.0, epsilon=1, delta=1e-6, purpose="agreement"))
    >>> answer.n_groups, abs(answer.score - 1) <= answer.largest_noise
    (100, True)
    """

    clipping: Clipping
    group_size: int
    distance: float
    epsilon: Number
    delta: Number
    purpose: str

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table."""
        super().check(table)
        check_distance(self.distance)
        epsilon, delta = approximate_arguments(self.epsilon, self.delta)
        truncation_bound(compared_groups(table.n_rows // self.group_size, delta) - 1, epsilon, delta)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyAgreement:
        """Add noise to the number of agreeing pairs."""
        del table
        epsilon, delta = approximate_arguments(self.epsilon, self.delta)
        compared = compared_groups(len(exact), delta)
        return noisy_agreement(
            agreeing_groups(exact, self.distance, compared), compared, epsilon, delta, bits
        )


def check_distance(distance: float) -> None:
    """Raise an `ArgumentError` for a distance that is none."""
    if not 0 < distance <= _LARGEST_DISTANCE:
        raise ArgumentError(f"distance must be greater than 0 and at most 1e6, got {distance:g}.")


def agreement_noise(n_groups: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest noise that `Agreement` can have: a function of public numbers."""
    compared = compared_groups(n_groups, delta)
    return Fraction(2 * truncation_bound(compared - 1, epsilon, delta), n_groups * compared)


def noisy_agreement(
    agreeing: NDArray[np.int64], compared: int, epsilon: Fraction, delta: Fraction, bits: BitSource
) -> NoisyAgreement:
    """Add noise to the number of agreeing pairs, and give the share of ordered pairs.

    *Formal guarantee.* (`epsilon`, `delta`)-DP if a row changes the pairs of one group.
    """
    n_groups = len(agreeing)
    bound = truncation_bound(compared - 1, epsilon, delta)
    noise = truncated_laplace(bits, (compared - 1) / epsilon, bound)
    # Every pair is counted from both of its ends.
    noisy, ordered = int(agreeing.sum()) + 2 * noise, n_groups * compared
    return NoisyAgreement(
        score=noisy / ordered,
        largest_noise=2 * bound / ordered,
        at_least=Fraction(noisy - 2 * bound, ordered),
        n_groups=n_groups,
        compared=compared,
    )
