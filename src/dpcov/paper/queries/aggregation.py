"""The paper's queries about random groups of rows: its Algorithms 3 and 4.

Their proof notes are ``groups.md`` and ``multiplicative.md``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.answers import NoisyAggregate, NoisyAgreement, NoisyBucket
from dpcov.core.budget import Number, approximate_arguments, approximate_cost
from dpcov.core.desk import Desk, whole_number
from dpcov.core.errors import ArgumentError
from dpcov.core.laplace import truncated_laplace, truncation_bound
from dpcov.core.queries.gram import Clipping
from dpcov.paper.queries.groups import agreeing_pairs, group_eigenvalues
from dpcov.paper.queries.multiplicative import (
    LEAST_AGREEMENT,
    groups_needed,
    multiplicative_noise_scale,
    noisy_weighted_mean,
)
from dpcov.paper.queries.subsample import bucket_numbers, stable_histogram, to_buckets

_MOST_COMPARED_GROUPS = 1 << 15
_LARGEST_DISTANCE = 1e6


class AggregationQueries(Desk):
    """Subsample and aggregate, as the paper does it."""

    def least_eigenvalue_buckets(
        self,
        clipping: Clipping,
        group_size: int,
        ratio: float,
        *,
        epsilon: Number,
        delta: Number,
        purpose: str,
    ) -> tuple[NoisyBucket, ...]:
        """Return buckets of the groups' least eigenvalues whose noisy count is large enough.

        Algorithm 4 up to line 7: random groups of `group_size` rows, the least eigenvalue of each
        group's second moment, and a stability-based histogram over the buckets
        ``[ratio^(k+1), ratio^k)`` and {0}.

        Notes
        -----
        *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as
        delta-approximate (epsilon^2 / 2)-zCDP. The counts move by 2 in l1 norm; non-empty buckets get
        discrete Laplace noise of scale 2/epsilon; a bucket that one table lacks has count 1 in
        the other and passes with probability at most delta/2, and there are at most two
        (``groups.md``).
        """
        budget_epsilon, budget_delta = approximate_arguments(epsilon, delta)
        self._check_clipping(clipping)
        if not 0 < ratio < 1:
            raise ArgumentError(f"ratio must lie strictly between 0 and 1, got {ratio:g}.")
        group_size = self.check_group_size(group_size)
        self._budget.charge(approximate_cost(budget_epsilon, budget_delta), purpose)
        grams = self._group_grams(clipping, group_size, purpose)
        unit = (clipping.radius / self._lattice.clip) ** 2 / group_size
        least = group_eigenvalues(grams, unit)[:, 0]
        shared = stable_histogram(self._bits, bucket_numbers(least, ratio), budget_epsilon, budget_delta)
        return to_buckets(shared, ratio)

    def agreement(
        self,
        clipping: Clipping,
        group_size: int,
        distance: float,
        *,
        epsilon: Number,
        delta: Number,
        purpose: str,
    ) -> NoisyAgreement:
        """Return how many pairs of groups have second moments within `distance`.

        Algorithm 3, lines 1 to 10: a private test of subsamplability.

        Notes
        -----
        *Formal guarantee.* (`epsilon`, `delta`)-DP for replacing one row, charged as
        delta-approximate (epsilon^2 / 2)-zCDP. One row touches one group, hence at most T - 1 pairs
        of T groups; the count gets truncated discrete Laplace noise (``groups.md``).
        """
        budget_epsilon, budget_delta = approximate_arguments(epsilon, delta)
        self._check_clipping(clipping)
        if not 0 < distance <= _LARGEST_DISTANCE:
            raise ArgumentError(f"distance must be greater than 0 and at most 1e6, got {distance:g}.")
        group_size = self._compared_group_size(group_size)
        n_groups = self.n_rows // group_size
        bound = truncation_bound(n_groups - 1, budget_epsilon, budget_delta)
        self._budget.charge(approximate_cost(budget_epsilon, budget_delta), purpose)
        grams = self._group_grams(clipping, group_size, purpose)
        noise = truncated_laplace(self._bits, (n_groups - 1) / budget_epsilon, bound)
        return _score(agreeing_pairs(grams, distance), noise, bound)

    def aggregate(
        self,
        clipping: Clipping,
        group_size: int,
        distance: float,
        *,
        epsilon: Number,
        delta: Number,
        purpose: str,
    ) -> NoisyAggregate | None:
        """Return a weighted mean of the groups' second moments with multiplicative noise, or None.

        Algorithm 3 as a whole. Half of delta, and `epsilon` each, pay for the test of lines 8 to 13 and
        for the release of lines 14 to 20.

        Returns
        -------
        NoisyAggregate or None
            None if the test said that the groups do not agree.

        Notes
        -----
        *Formal guarantee.* Two (`epsilon`, `delta` / 2)-DP steps for replacing one row, each charged as
        approximate (epsilon^2 / 2)-zCDP. The noise follows from the number of groups; with too few
        of them the query is refused before anything is spent (``multiplicative.md``).
        """
        self._check_clipping(clipping)
        noise_scale = self.check_groups(group_size, distance, epsilon=epsilon, delta=delta)
        budget_epsilon, budget_delta = approximate_arguments(epsilon, delta)
        group_size = self._compared_group_size(group_size)
        n_groups, half = self.n_rows // group_size, budget_delta / 2
        bound = truncation_bound(n_groups - 1, budget_epsilon, half)
        step = approximate_cost(budget_epsilon, half)
        # In one, so that a budget that covers the test alone is left as it was.
        self._budget.charge(step + step, purpose)
        grams = self._group_grams(clipping, group_size, purpose)
        agree = agreeing_pairs(grams, distance)
        noise = truncated_laplace(self._bits, (n_groups - 1) / budget_epsilon, bound)
        agreement = _score(agree, noise, bound)
        if agreement.at_least < LEAST_AGREEMENT:
            return None
        matrix = noisy_weighted_mean(self._bits, grams, agree, group_size, noise_scale)
        unit = (clipping.radius / self._lattice.clip) ** 2
        return NoisyAggregate(matrix * unit, float(noise_scale), agreement)

    def check_groups(self, group_size: int, distance: float, *, epsilon: Number, delta: Number) -> Fraction:
        """Return the noise that `aggregate` would need, or raise if there are too few rows. Costs nothing."""
        budget_epsilon, budget_delta = approximate_arguments(epsilon, delta)
        if not 0 < distance <= _LARGEST_DISTANCE:
            raise ArgumentError(f"distance must be greater than 0 and at most 1e6, got {distance:g}.")
        group_size = whole_number(group_size, "group_size")
        given = self.n_columns, distance, budget_epsilon, budget_delta / 2
        scale = multiplicative_noise_scale(self.n_rows // group_size, *given)
        if scale is None:
            needed = groups_needed(*given)
            if needed is None:
                raise ArgumentError(
                    f"subsample and aggregate cannot meet delta={float(budget_delta):g} with any number of "
                    "rows; ask for a larger delta or a smaller epsilon. Nothing was spent on it."
                )
            raise ArgumentError(
                f"subsample and aggregate needs at least {needed * group_size} rows ({needed} groups of "
                f"{group_size}) at this budget; the table has {self.n_rows}. Nothing was spent on it."
            )
        self._compared_group_size(group_size)
        return scale

    def _compared_group_size(self, group_size: int) -> int:
        group_size = self.check_group_size(group_size)
        if self.n_rows // group_size > _MOST_COMPARED_GROUPS:
            raise ArgumentError(
                f"{self.n_rows // group_size} groups have too many pairs to compare; "
                f"use groups of at least {self.n_rows // _MOST_COMPARED_GROUPS + 1} rows."
            )
        return group_size


def _score(agree: NDArray[np.bool_], noise: int, bound: int) -> NoisyAgreement:
    """Add `noise` to the number of agreeing pairs, and give the share of ordered pairs."""
    n_groups = len(agree)
    noisy = int(np.count_nonzero(agree)) + 2 * noise
    return NoisyAgreement(
        score=noisy / n_groups**2,
        largest_noise=2 * bound / n_groups**2,
        at_least=Fraction(noisy - 2 * bound, n_groups**2),
        n_groups=n_groups,
    )
