"""A weighted mean of groups' second moments with multiplicative noise: the paper's Algorithm 3 as a whole.

The proof note is ``multiplicative.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Clipping
from dpcov.core.budget import Number
from dpcov.core.query import Table, whole_number
from dpcov.paper.queries.agreement import NoisyAgreement, check_distance, noisy_agreement
from dpcov.paper.queries.approximate import approximate_arguments, approximate_cost
from dpcov.paper.queries.group_grams import GroupQuery, check_group_size, most_groups
from dpcov.paper.queries.groups import agreeing_groups, compared_groups
from dpcov.paper.queries.laplace import truncation_bound
from dpcov.paper.queries.multiplicative import (
    LEAST_AGREEMENT,
    groups_needed,
    multiplicative_noise_scale,
    noisy_weighted_mean,
)


@dataclass(frozen=True, eq=False)
class NoisyAggregate:
    """A weighted mean of groups' second moments with multiplicative noise (Algorithm 3).

    Attributes
    ----------
    second_moment : ndarray of float64, shape (d, d)
        Symmetric, positive semidefinite up to its rounding to a public grid.
    noise_scale : float
        eta: the matrix is ``S^1/2 (I + eta N) (I + eta N)^T S^1/2``.
    agreement : NoisyAgreement
        The test that it passed.
    """

    second_moment: NDArray[np.float64]
    noise_scale: float
    agreement: NoisyAgreement


@dataclass(frozen=True, eq=False)
class Aggregate(GroupQuery):
    """Ask for a weighted mean of the second moments of random groups, if these agree.

    The answer is a `NoisyAggregate`, or None if the test said that the groups do not agree. Half of delta,
    and `epsilon` each, pay for the test of lines 8 to 13 and for the release of lines 14 to 20.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        Rows of a group.
    distance : float
        How close two groups must be to agree, in the paper's semimetric (Appendix A).
    epsilon, delta : number
        What to spend: `epsilon` twice, `delta` once.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* Two (`epsilon`, `delta` / 2)-DP steps for replacing one row, each charged as
    approximate (epsilon^2 / 2)-zCDP. The noise follows from the number of groups; with too few of them the
    query is refused before anything is spent (``multiplicative.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.paper.queries import Aggregate
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=400, delta=1e-6)), seeded)
    >>> clipping = Clipping(identity_map(1), radius=10.0)
    >>> answer = curator.ask(Aggregate(clipping, 200, 0.5, epsilon=20, delta=1e-6, purpose="aggregate"))
    >>> answer.agreement.n_groups, np.allclose(answer.second_moment, [[1.0]], atol=0.5)
    (500, True)
    """

    clipping: Clipping
    group_size: int
    distance: float
    epsilon: Number
    delta: Number
    purpose: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What both steps cost."""
        epsilon, half = self._each_step()
        step = approximate_cost(epsilon, half)
        return (Charge(self.purpose, step + step),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table, or for too few rows."""
        self.clipping.check(table)
        self._noise_scale(table)
        super().check(table)
        epsilon, delta = self._each_step()
        compared = compared_groups(table.n_rows // self.group_size, delta)
        truncation_bound(compared - 1, epsilon, delta)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyAggregate | None:
        """Test whether the groups agree; if so, release their weighted mean with multiplicative noise."""
        epsilon, delta = self._each_step()
        compared = compared_groups(len(exact), delta)
        agreeing = agreeing_groups(exact, self.distance, compared)
        agreement = noisy_agreement(agreeing, compared, epsilon, delta, bits)
        if agreement.at_least < LEAST_AGREEMENT:
            return None
        noise_scale = self._noise_scale(table)
        matrix = noisy_weighted_mean(
            bits, exact, agreeing, compared, group_size=self.group_size, scale=noise_scale
        )
        return NoisyAggregate(matrix * self.clipping.unit(table.lattice), float(noise_scale), agreement)

    def _each_step(self) -> tuple[Fraction, Fraction]:
        epsilon, delta = approximate_arguments(self.epsilon, self.delta)
        return epsilon, delta / 2

    def _noise_scale(self, table: Table) -> Fraction:
        return aggregate_noise_scale(
            self.group_size,
            self.distance,
            n_rows=table.n_rows,
            n_columns=table.n_columns,
            epsilon=self.epsilon,
            delta=self.delta,
        )


def aggregate_noise_scale(
    group_size: int, distance: float, *, n_rows: int, n_columns: int, epsilon: Number, delta: Number
) -> Fraction:
    """Return the noise that `Aggregate` needs, or raise an `ArgumentError` if there are too few rows."""
    budget_epsilon, budget_delta = approximate_arguments(epsilon, delta)
    check_distance(distance)
    group_size = whole_number(group_size, "group_size")
    given = n_columns, distance, budget_epsilon, budget_delta / 2
    scale = multiplicative_noise_scale(n_rows // group_size, *given)
    if scale is None:
        needed = groups_needed(*given)
        if needed is None:
            raise ArgumentError(
                f"subsample and aggregate cannot meet delta={float(budget_delta):g} with any number of "
                "rows; ask for a larger delta or a smaller epsilon. Nothing was spent on it."
            )
        raise ArgumentError(_too_few(needed, group_size, n_rows, n_columns))
    check_group_size(group_size, n_rows=n_rows, n_columns=n_columns)
    return scale


def _too_few(needed: int, group_size: int, n_rows: int, n_columns: int) -> str:
    """Say what would do: one setting that works, if there is one."""
    head = f"subsample and aggregate needs at least {needed} groups at this budget"
    if needed > most_groups(n_columns):
        return (
            f"{head}, whose matrices of {n_columns} columns take more than 1 GB; ask for a larger budget or "
            "fewer columns. Nothing was spent on it."
        )
    fitting = n_rows // needed
    # Fewer rows than columns have a singular second moment, and agree with no others.
    advice = (
        f"with these rows, m={fitting} or less makes enough of them"
        if fitting >= n_columns
        else f"no m will do for fewer than {needed * n_columns} rows"
    )
    return (
        f"{head}, that is {needed * group_size} rows for groups of m={group_size}; the table has {n_rows}. "
        f"{advice[0].upper()}{advice[1:]}. Nothing was spent on it."
    )
