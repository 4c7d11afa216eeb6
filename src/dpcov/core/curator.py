"""The curator: holds the rows and the budget, and answers private queries only.

Every method does the same four things in the same order: check the arguments, charge the
budget, scan the rows to an exact integer statistic, add exact noise. Methods of estimation see
a curator and its answers, never a row.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.answers import (
    NoisyAggregate,
    NoisyAgreement,
    NoisyBucket,
    NoisyCount,
    NoisyCounts,
    NoisyGram,
)
from dpcov.core.budget import Budget, Number, PrivacyCost, Receipt, approximate_cost, as_fraction
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.gram import Clipping, GramTask, GroupGramTask, Shrinking, ShrinkingMemory
from dpcov.core.groups import agreeing_pairs, group_eigenvalues, random_groups
from dpcov.core.laplace import truncated_laplace, truncation_bound
from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.log_norms import LogNormGrid, LogNormTask
from dpcov.core.multiplicative import (
    LEAST_AGREEMENT,
    groups_needed,
    multiplicative_noise_scale,
    noisy_weighted_mean,
)
from dpcov.core.noise import discrete_gaussian
from dpcov.core.sampling import SampledTask, random_positions, sampled_rows
from dpcov.core.spectrum import SpectralQueries
from dpcov.core.subsample import GroupQueries, bucket_numbers, stable_histogram, to_buckets
from dpcov.core.tasks import Report, RowTask, Source
from dpcov.core.unvetted import UnvettedQueries

Progress = Callable[[str, int], AbstractContextManager[Report | None]]
"""Called before a scan with its purpose and the number of rows; gives what is told of rows read."""

_LARGEST_GROUP_STATISTIC = 1 << 27
_MOST_COMPARED_GROUPS = 1 << 15
_LARGEST_NOISE_VARIANCE = 1 << 114
_LARGEST_RADIUS = 1e140
_LARGEST_DISTANCE = 1e6


class Curator(SpectralQueries, GroupQueries, UnvettedQueries):
    """Answers private queries about one table, within one budget.

    Neighbours are tables of the same public size that differ in one row.

    Parameters
    ----------
    source : Source
        Where the rows are.
    budget : Budget
        What may be spent. Every query is charged before its noise is drawn.
    bits : BitSource
        Where noise comes from.
    constant : bool, default False
        Whether a constant column of ones joins the table as its last.
    progress : callable, optional
        Shows how far a scan is. It learns public figures only: the purpose, the rows read so far.
    """

    def __init__(
        self,
        source: Source,
        budget: Budget,
        bits: BitSource,
        *,
        constant: bool = False,
        progress: Progress | None = None,
    ) -> None:
        if source.n_rows < 1:
            raise ArgumentError("the table has no rows.")
        if len(source.columns) < 1:
            raise ArgumentError("the table has no columns.")
        self._source = source
        self._budget = budget
        self._bits = bits
        self._constant = constant
        self._progress = progress or _silent
        self._lattice = Lattice.for_table(source.n_rows, self.n_columns)
        self._memory: ShrinkingMemory | None = None
        self._memory_lock = threading.Lock()
        self._norms: tuple[LatticeMap, LogNormGrid, NDArray[np.int64]] | None = None

    @property
    def n_rows(self) -> int:
        """The public number of rows."""
        return self._source.n_rows

    @property
    def n_columns(self) -> int:
        """The number of columns, the constant one included."""
        return len(self._source.columns) + self._constant

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names, without the constant one."""
        return self._source.columns

    @property
    def has_constant(self) -> bool:
        """Whether the last column is a constant one."""
        return self._constant

    @property
    def remaining(self) -> PrivacyCost:
        """What may still be spent."""
        return self._budget.remaining

    def receipt(self) -> Receipt:
        """Return everything that was charged so far."""
        return self._budget.receipt(private=self._bits.private)

    def gram(self, clipping: Clipping, rho: Number, *, purpose: str, every: int = 1) -> NoisyGram:
        """Return the noisy Gram matrix of the mapped and clipped rows.

        Parameters
        ----------
        clipping : Clipping
            The public map, the radius, and the rule that keeps rows within it.
        rho : number
            What to spend.
        purpose : str
            What it pays for, for the receipt.
        every : int, default 1
            Look at one row in so many only, chosen at random without a look at them.

        Notes
        -----
        *Formal guarantee.* `rho`-zCDP for replacing one row: the integer Gram matrix moves by at
        most ``sqrt(2) B^2`` in Frobenius norm, and gets discrete Gaussian noise of variance s2 on
        the diagonal and s2/2 off it, with ``s2 >= B^4 / rho`` (``gram.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_clipping(clipping)
        every = _whole(every, "every")
        lattice, d = self._lattice, self.n_columns
        variance = 2 * math.ceil(Fraction(lattice.bound**4, 2) / cost.rho)
        if variance > _LARGEST_NOISE_VARIANCE:
            raise ArgumentError(f"rho={float(cost.rho):g} is too small for one Gram matrix; ask for more.")
        self._budget.charge(cost, purpose)
        memory = self._take_memory(clipping) if every == 1 else None
        exact = self._scan(GramTask(clipping, lattice, self._constant, memory), purpose, every)
        if memory is not None:
            steps = (*clipping.earlier, Shrinking(clipping.lattice_map, clipping.radius))
            self._memory = replace(memory, steps=steps)
        diagonal = discrete_gaussian(self._bits, variance, d)
        upper = discrete_gaussian(self._bits, variance // 2, d * (d - 1) // 2)
        noise = np.zeros((d, d), dtype=np.int64)
        noise[np.triu_indices(d, 1)] = upper
        noise += noise.T
        noise[np.diag_indices(d)] = diagonal
        unit = (clipping.radius / lattice.clip) ** 2
        rows = sampled_rows(self.n_rows, every)
        return NoisyGram(exact + noise, unit, variance, clipping.radius, rows, clipping.lattice_map)

    def log_norms(
        self, lattice_map: LatticeMap, grid: LogNormGrid, rho: Number, *, purpose: str, every: int = 1
    ) -> NoisyCounts:
        """Return noisy counts of the rows by the norm of their image.

        Notes
        -----
        *Formal guarantee.* `rho`-zCDP for replacing one row: it moves one count from a bin to
        another, sqrt 2 in l2 norm, and every bin gets discrete Gaussian noise of variance
        ``1 / rho`` (``log_norms.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_map(lattice_map)
        every = _whole(every, "every")
        variance = 1 / cost.rho
        if variance > _LARGEST_NOISE_VARIANCE:
            raise ArgumentError(f"rho={float(cost.rho):g} is too small for a histogram; ask for more.")
        self._budget.charge(cost, purpose)
        exact = self._scan(LogNormTask(lattice_map, grid, self._constant), purpose, every)
        noise = discrete_gaussian(self._bits, variance, grid.n_bins)
        return NoisyCounts(exact + noise, variance, grid, sampled_rows(self.n_rows, every))

    def rows_beyond(
        self, lattice_map: LatticeMap, grid: LogNormGrid, first_bin: int, rho: Number, *, purpose: str
    ) -> NoisyCount:
        """Return the noisy number of rows whose image falls into bin `first_bin` or a later one.

        Questions about the same map and grid, one after another, share one scan: the exact counts
        stay inside the curator.

        Notes
        -----
        *Formal guarantee.* `rho`-zCDP for replacing one row: the count moves by at most 1 and gets
        discrete Gaussian noise of variance ``1 / (2 rho)`` (``log_norms.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_map(lattice_map)
        first_bin = _whole(first_bin, "first_bin", least=0)
        if first_bin > grid.n_bins:
            raise ArgumentError(f"first_bin must be at most {grid.n_bins}, got {first_bin}.")
        variance = 1 / (2 * cost.rho)
        if variance > _LARGEST_NOISE_VARIANCE:
            raise ArgumentError(f"rho={float(cost.rho):g} is too small for a count; ask for more.")
        self._budget.charge(cost, purpose)
        known = self._norms
        if known is None or known[0] is not lattice_map or known[1] != grid:
            counts = self._scan(LogNormTask(lattice_map, grid, self._constant), purpose)
            self._norms = known = (lattice_map, grid, counts)
        exact = int(known[2][first_bin:].sum())
        noise = int(discrete_gaussian(self._bits, variance, 1)[0])
        return NoisyCount(exact + noise, variance)

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
        budget_epsilon, budget_delta = _approximate_arguments(epsilon, delta)
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
        budget_epsilon, budget_delta = _approximate_arguments(epsilon, delta)
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
        budget_epsilon, budget_delta = _approximate_arguments(epsilon, delta)
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
        budget_epsilon, budget_delta = _approximate_arguments(epsilon, delta)
        if not 0 < distance <= _LARGEST_DISTANCE:
            raise ArgumentError(f"distance must be greater than 0 and at most 1e6, got {distance:g}.")
        group_size = _whole(group_size, "group_size")
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

    def _take_memory(self, clipping: Clipping) -> ShrinkingMemory | None:
        """Take what is known of the chain's scalars, so that a round need not compute all steps.

        It is given back when the scan has succeeded, so no two scans ever write to the same memory.
        """
        with self._memory_lock:
            memory, self._memory = self._memory, None
        if not (clipping.earlier and self._source.in_memory):
            return None
        if memory is not None and memory.covers(clipping.earlier):
            return memory
        return ShrinkingMemory((), np.ones(self.n_rows))

    def _group_grams(self, clipping: Clipping, group_size: int, purpose: str) -> NDArray[np.int64]:
        groups, n_groups = random_groups(self._bits, self.n_rows, group_size)
        task = GroupGramTask(clipping, self._lattice, self._constant, groups, n_groups)
        return self._scan(task, purpose)

    def _scan(self, task: RowTask, purpose: str, every: int = 1) -> NDArray[np.int64]:
        if every > 1:
            # A new sample for every scan: ``order.md`` says why.
            rows = sampled_rows(self.n_rows, every)
            task = SampledTask(task, random_positions(self._bits, self.n_rows, rows))
        with self._progress(purpose, self.n_rows) as report:
            return self._source.scan(task, report)

    def _check_map(self, lattice_map: LatticeMap) -> None:
        if lattice_map.n_columns != self.n_columns:
            raise ArgumentError(
                f"map takes {lattice_map.n_columns} columns, but the table has {self.n_columns}."
            )

    def _check_clipping(self, clipping: Clipping) -> None:
        maps = [clipping.lattice_map, *(step.lattice_map for step in clipping.earlier)]
        radii = [clipping.radius, *(step.radius for step in clipping.earlier)]
        for lattice_map, radius in zip(maps, radii, strict=True):
            self._check_map(lattice_map)
            if not 1 / _LARGEST_RADIUS <= radius <= _LARGEST_RADIUS:
                raise ArgumentError(f"radius must lie between 1e-140 and 1e140, got {radius:g}.")

    def check_group_size(self, group_size: int) -> int:
        """Return `group_size`, or raise if the table cannot be split into such groups. Costs nothing."""
        group_size = _whole(group_size, "group_size")
        n_groups = self.n_rows // group_size
        if n_groups < 2:
            raise ArgumentError(
                f"group_size must leave at least two groups of {self.n_rows} rows, got {group_size}."
            )
        if n_groups * self.n_columns**2 > _LARGEST_GROUP_STATISTIC:
            raise ArgumentError(
                f"{n_groups} groups of {self.n_columns} columns need more than 1 GB; use larger groups."
            )
        return group_size

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


def _silent(purpose: str, n_rows: int) -> AbstractContextManager[None]:
    del purpose, n_rows
    return nullcontext()


def _whole(value: int, name: str, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, got {value!r}.") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}.")
    return number


def _gaussian_cost(rho: Number) -> PrivacyCost:
    cost = PrivacyCost(as_fraction(rho, "rho"))
    if cost.rho <= 0:
        raise ArgumentError(f"rho must be greater than 0, got {float(cost.rho):g}.")
    return cost


def _approximate_arguments(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    parameters = as_fraction(epsilon, "epsilon"), as_fraction(delta, "delta")
    if parameters[0] <= 0:
        raise ArgumentError(f"epsilon must be greater than 0, got {float(parameters[0]):g}.")
    if not 0 < parameters[1] < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(parameters[1]):g}.")
    return parameters
