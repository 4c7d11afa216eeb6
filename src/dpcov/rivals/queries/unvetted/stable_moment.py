"""A second moment that hardly depends on any row, from samples of a Gaussian: idealised arithmetic.

The proof note is ``unvetted.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Block, Charge, PrivacyCost, RowTask, RowWorker
from dpcov.core.budget import Number, as_fraction
from dpcov.core.query import Table
from dpcov.core.tasks import block_length
from dpcov.core.units import Units
from dpcov.paper.queries.approximate import approximate_cost
from dpcov.paper.queries.laplace import truncated_laplace
from dpcov.rivals.queries.unvetted.consent import check_consent
from dpcov.rivals.queries.unvetted.leverage import (
    SCORE_SENSITIVITY,
    FilterPlan,
    filter_rows,
    plan_filter,
    sampled_moment,
    weighted_factor,
)


@dataclass(frozen=True, eq=False)
class SampledMoment:
    """The mean of ``g g^T`` over `samples` Gaussian vectors g whose covariance is a stable second moment."""

    second_moment: NDArray[np.float64]
    samples: int


@dataclass(frozen=True, eq=False)
class StableMoment:
    """Ask for the second moment after filtering rows of high leverage, by samples of a Gaussian.

    `epsilon` and `delta` pay for the test of the score, `rho` and `delta` once more for the samples. The
    answer is a `SampledMoment`, or None if the test said that too many rows have a high leverage.

    Parameters
    ----------
    leverage : float
        A bound on ``x^T S^-1 x`` over the rows, S being their second moment.
    epsilon, rho, delta : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.
    allow_unvetted : bool
        Must be True.

    Notes
    -----
    *Formal guarantee.* For replacing one row, in idealised arithmetic: an (`epsilon`, `delta`)-DP test, then
    a `delta`-approximate `rho`-zCDP release (``unvetted.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Curator, SeededBits, resolve_budget
    >>> from dpcov.rivals.queries import StableMoment
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(4000, 1))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=300, delta=0.1)), seeded)
    >>> answer = curator.ask(
    ...     StableMoment(20.0, epsilon=10, rho=100, delta=0.01, purpose="moment", allow_unvetted=True)
    ... )
    >>> np.allclose(answer.second_moment, [[1.0]], atol=0.5)
    True
    """

    leverage: float
    epsilon: Number
    rho: Number
    delta: Number
    purpose: str
    allow_unvetted: bool = False

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the test costs, and what the samples do."""
        spent, note = self._spent(), "(idealised arithmetic)"
        test, release = (
            approximate_cost(spent["epsilon"], spent["delta"]),
            PrivacyCost(spent["rho"], spent["delta"]),
        )
        return (
            Charge(f"{self.purpose}: test {note}", test),
            Charge(f"{self.purpose}: the released matrix {note}", release),
        )

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` without consent, for too few rows, or for a table not in memory."""
        check_consent(allow_unvetted=self.allow_unvetted)
        self.plan(table)
        if not table.in_memory:
            raise ArgumentError("filtering by leverage needs a table in memory.")

    def plan(self, table: Table) -> FilterPlan:
        """Return the numbers of a run, or raise an `ArgumentError` if there are too few rows."""
        spent = self._spent()
        if min(spent.values()) <= 0 or spent["delta"] >= 1:
            raise ArgumentError("epsilon and rho must be greater than 0, and delta between 0 and 1.")
        if not 0 < self.leverage < math.inf:
            raise ArgumentError(f"leverage must be a finite number greater than 0, got {self.leverage:g}.")
        d = table.n_columns
        plan = plan_filter(table.n_rows, d, self.leverage, **spent)
        if plan is not None:
            return plan
        needed = table.n_rows
        while plan_filter(needed, d, self.leverage, **spent) is None:
            needed = needed * 5 // 4 + 1
        raise ArgumentError(
            f"filtering by leverage needs about {needed} rows at this budget and a leverage of "
            f"{self.leverage:.3g}; the table has {table.n_rows}. Nothing was spent on it."
        )

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the rows themselves."""
        del bits
        return CollectTask(table.n_rows, table.n_columns, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> SampledMoment | None:
        """Test the score; if it passes, draw samples of the stable second moment."""
        plan, rows = self.plan(table), exact.view(np.float64)
        with np.errstate(all="ignore"):
            largest = np.abs(rows).max(axis=0)
            scale = np.where(largest > 0, largest, 1.0)
            scaled = rows / scale
            weights, score = filter_rows(scaled, self.leverage, plan.steps)
            noise = truncated_laplace(bits, SCORE_SENSITIVITY / self._spent()["epsilon"], plan.largest_noise)
            if score + noise > plan.largest_noise:
                return None
            matrix = sampled_moment(bits, weighted_factor(scaled, weights), plan.samples)
        return SampledMoment(matrix * scale[:, None] * scale, plan.samples)

    def _spent(self) -> dict[str, Fraction]:
        return {
            "epsilon": as_fraction(self.epsilon, "epsilon"),
            "rho": as_fraction(self.rho, "rho"),
            "delta": as_fraction(self.delta, "delta"),
        }


@dataclass(frozen=True, eq=False)
class CollectTask(RowTask):
    """The bits of the rows as they are, those that are not finite as zeros.

    For tables in memory only: every row has a place of its own, so that adding up the totals of several
    workers puts the table together.
    """

    n_rows: int
    n_columns: int
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.n_columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (self.n_rows, self.n_columns)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _CollectWorker(self)


class _CollectWorker:
    def __init__(self, task: CollectTask) -> None:
        self._constant = task.constant
        self._rows = np.zeros(task.shape)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        Units.refuse(units)
        target = self._rows[first_row : first_row + len(block[0])]
        # A warning would tell of a number beyond float64.
        with np.errstate(all="ignore"):
            for place, column in enumerate(block):
                np.copyto(target[:, place], column, casting="unsafe")
        if self._constant:
            target[:, -1] = 1.0
        target[~np.isfinite(target).all(axis=1)] = 0.0

    def total(self) -> NDArray[np.int64]:
        return self._rows.view(np.int64)
