"""The first of many sums over the rows that reaches its threshold, by the sparse vector technique.

The proof note is ``spectrum.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, LatticeMap, LogNormGrid, RowTask
from dpcov.core.budget import Number, as_fraction
from dpcov.core.queries.histogram import LogNormTask
from dpcov.core.query import Table
from dpcov.paper.queries.approximate import approximate_cost
from dpcov.paper.queries.threshold import first_above


@dataclass(frozen=True, eq=False)
class FirstAbove:
    """Ask for the first k whose weighted count of rows, with noise, reaches its noisy threshold.

    The answer is that k, or None if no k passes.

    Parameters
    ----------
    lattice_map : LatticeMap
        The public map.
    grid : LogNormGrid
        Public bins of the norms.
    weights : sequence of sequences of int
        For each k, what a row in each bin counts.
    thresholds : sequence of int
        For each k, what the sum over all rows is compared with.
    epsilon : number
        What to spend, however many k are passed.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `epsilon`-DP for replacing one row, charged as (epsilon^2 / 2)-zCDP: the sparse vector
    technique (Dwork and Roth 2014, Algorithm 1) in integers, with discrete Laplace noise of scale
    ``2 D / epsilon`` on the threshold and ``4 D / epsilon`` on every sum. D is the greatest spread of the
    weights of one k (``spectrum.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, LogNormGrid, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import FirstAbove
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 5.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> grid = LogNormGrid(lowest=-1, highest=3, halves=1)
    >>> shorter = [[int(place <= last) for place in range(grid.n_bins)] for last in range(grid.n_bins)]
    >>> half = [250] * grid.n_bins
    >>> curator.ask(FirstAbove(identity_map(2), grid, shorter, half, epsilon=1, purpose="median norm"))
    3
    """

    lattice_map: LatticeMap
    grid: LogNormGrid
    weights: Sequence[Sequence[int]]
    thresholds: Sequence[int]
    epsilon: Number
    purpose: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What an epsilon-DP query costs."""
        return (Charge(self.purpose, approximate_cost(as_fraction(self.epsilon, "epsilon"), Fraction(0))),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit each other or the table."""
        epsilon = as_fraction(self.epsilon, "epsilon")
        if epsilon <= 0:
            raise ArgumentError(f"epsilon must be greater than 0, got {float(epsilon):g}.")
        table.check_map(self.lattice_map)
        n_bins = self.grid.n_bins
        if len(self.weights) != len(self.thresholds) or any(len(line) != n_bins for line in self.weights):
            raise ArgumentError("weights must have a line for each threshold and a weight for each bin.")
        if not self.weights:
            raise ArgumentError("weights must have at least one line.")

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact counts of rows by their norm."""
        del bits
        return LogNormTask(self.lattice_map, self.grid, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> int | None:
        """Compare noisy sums with a noisy threshold, one after another, until one passes."""
        del table
        epsilon, counts = as_fraction(self.epsilon, "epsilon"), exact.tolist()
        lines = [[int(weight) for weight in line] for line in self.weights]
        spread = max(1, *(max(line) - min(line) for line in lines))
        sums = (sum(w * count for w, count in zip(line, counts, strict=True)) for line in lines)
        thresholds = [int(threshold) for threshold in self.thresholds]
        return first_above(bits, sums, thresholds, spread=spread, epsilon=epsilon)
