"""The curator: holds the rows and the budget, and answers private queries only.

Every method does the same four things in the same order: check the arguments, charge the
budget, scan the rows to an exact integer statistic, add exact noise. Methods of estimation see
a curator and its answers, never a row.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.answers import NoisyCount, NoisyCounts, NoisyGram
from dpcov.core.budget import Budget, Number, PrivacyCost, Receipt, as_fraction
from dpcov.core.desk import whole_number
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.noise import discrete_gaussian
from dpcov.core.queries.gram import Clipping, GramTask, GroupGramTask, Shrinking, ShrinkingMemory
from dpcov.core.queries.histogram import LogNormGrid, LogNormTask
from dpcov.core.sampling import SampledTask, random_positions, sampled_rows
from dpcov.core.tasks import Report, RowTask, Source
from dpcov.paper.queries.aggregation import AggregationQueries
from dpcov.paper.queries.groups import random_groups
from dpcov.paper.queries.subsample import GroupQueries
from dpcov.rivals.queries.spectrum import SpectralQueries
from dpcov.rivals.queries.unvetted import UnvettedQueries

Progress = Callable[[str, int], AbstractContextManager[Report | None]]
"""Called before a scan with its purpose and the number of rows; gives what is told of rows read."""

_LARGEST_GROUP_STATISTIC = 1 << 27
_LARGEST_NOISE_VARIANCE = 1 << 114
_LARGEST_RADIUS = 1e140


class Curator(SpectralQueries, GroupQueries, AggregationQueries, UnvettedQueries):
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
        the diagonal and s2/2 off it, with ``s2 >= B^4 / rho`` (``core/queries/gram.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_clipping(clipping)
        every = whole_number(every, "every")
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
        ``1 / rho`` (``core/queries/histogram.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_map(lattice_map)
        every = whole_number(every, "every")
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
        discrete Gaussian noise of variance ``1 / (2 rho)`` (``core/queries/histogram.md``).
        """
        cost = _gaussian_cost(rho)
        self._check_map(lattice_map)
        first_bin = whole_number(first_bin, "first_bin", least=0)
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
        group_size = whole_number(group_size, "group_size")
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


def _silent(purpose: str, n_rows: int) -> AbstractContextManager[None]:
    del purpose, n_rows
    return nullcontext()


def _gaussian_cost(rho: Number) -> PrivacyCost:
    cost = PrivacyCost(as_fraction(rho, "rho"))
    if cost.rho <= 0:
        raise ArgumentError(f"rho must be greater than 0, got {float(cost.rho):g}.")
    return cost
