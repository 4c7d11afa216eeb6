"""Queries with idealised arithmetic: private for real numbers, computed in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Number, PrivacyCost, approximate_cost, as_fraction
from dpcov.core.desk import Desk
from dpcov.core.errors import ArgumentError
from dpcov.core.laplace import discrete_laplace, truncated_laplace
from dpcov.core.queries.gram import Clipping, GramTask
from dpcov.rivals.queries.unvetted.bingham import sample_eigenvectors
from dpcov.rivals.queries.unvetted.leverage import (
    SCORE_SENSITIVITY,
    CollectTask,
    FilterPlan,
    filter_rows,
    plan_filter,
    sampled_moment,
    weighted_factor,
)

_FAILURE = 0.1


@dataclass(frozen=True, eq=False)
class NoisyEigenpairs:
    """Eigenvalues with Laplace noise, and directions from the exponential mechanism.

    Attributes
    ----------
    values : ndarray, shape (d,)
        Of the mean of ``y y^T``, between 0 and the squared radius.
    vectors : ndarray, shape (d, d)
        One direction a column, orthonormal.
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StableMoment:
    """The mean of ``g g^T`` over `samples` Gaussian vectors g whose covariance is a stable second moment."""

    second_moment: NDArray[np.float64]
    samples: int


class UnvettedQueries(Desk):
    """Queries that need ``allow_unvetted=True``."""

    def eigenpairs(
        self, clipping: Clipping, *, epsilon: Number, purpose: str, allow_unvetted: bool = False
    ) -> NoisyEigenpairs:
        """Return noisy eigenvalues and eigenvectors of the second moment of the mapped and clipped rows.

        Notes
        -----
        *Formal guarantee.* `epsilon`-DP for replacing one row, charged as (epsilon^2 / 2)-zCDP, in idealised
        arithmetic. Half goes to the eigenvalues, whose l1 sensitivity is ``2 B^2``, half to the
        directions, one after another (``unvetted.md``).
        """
        _check_consent(allow_unvetted)
        spent = as_fraction(epsilon, "epsilon")
        if spent <= 0:
            raise ArgumentError(f"epsilon must be greater than 0, got {float(spent):g}.")
        self._check_clipping(clipping)
        lattice, d = self._lattice, self.n_columns
        self._budget.charge(approximate_cost(spent, Fraction(0)), f"{purpose} (idealised arithmetic)")
        gram = self._scan(GramTask(clipping, lattice, self._constant), purpose).astype(np.float64)
        half = spent / 2 if d > 1 else spent
        exact = np.rint(np.linalg.eigvalsh(gram)[::-1]).astype(np.int64)
        scale = Fraction(2 * lattice.bound**2) / half
        noisy = np.array([int(value) + discrete_laplace(self._bits, scale) for value in exact.tolist()])
        # From here on in units of the squared radius, so that every row has a length of at most 1.
        square = float(lattice.bound) ** 2
        values = np.clip(noisy / square, 0.0, self.n_rows)
        # Larger eigenvalues get more of the budget (the paper's Theorem 1 and what follows).
        parts = np.sqrt(values[: d - 1] + 2 / float(half) * math.log(2 * d / _FAILURE))
        vectors = (
            sample_eigenvectors(self._bits, gram / square, (float(half) * parts / parts.sum()).tolist())
            if d > 1
            else np.eye(1)
        )
        unit = (clipping.radius * lattice.bound / lattice.clip) ** 2 / self.n_rows
        return NoisyEigenpairs(values * unit, vectors)

    def check_stable_moment(
        self, leverage: float, *, epsilon: Number, rho: Number, delta: Number
    ) -> FilterPlan:
        """Return what `stable_moment` would do, or raise if there are too few rows. Costs nothing."""
        spent = {
            "epsilon": as_fraction(epsilon, "epsilon"),
            "rho": as_fraction(rho, "rho"),
            "delta": as_fraction(delta, "delta"),
        }
        if min(spent.values()) <= 0 or spent["delta"] >= 1:
            raise ArgumentError("epsilon and rho must be greater than 0, and delta between 0 and 1.")
        if not 0 < leverage < math.inf:
            raise ArgumentError(f"leverage must be a finite number greater than 0, got {leverage:g}.")
        d = self.n_columns
        plan = plan_filter(self.n_rows, d, leverage, **spent)
        if plan is not None:
            return plan
        needed = self.n_rows
        while plan_filter(needed, d, leverage, **spent) is None:
            needed = needed * 5 // 4 + 1
        raise ArgumentError(
            f"filtering by leverage needs about {needed} rows at this budget and a leverage of "
            f"{leverage:.3g}; the table has {self.n_rows}. Nothing was spent on it."
        )

    def stable_moment(
        self,
        leverage: float,
        *,
        epsilon: Number,
        rho: Number,
        delta: Number,
        purpose: str,
        allow_unvetted: bool = False,
    ) -> StableMoment | None:
        """Return samples' second moment after filtering rows of high leverage, or None.

        `epsilon` and `delta` pay for the test of the score, `rho` and `delta` once more for the samples.

        Returns
        -------
        StableMoment or None
            None if the test said that too many rows have a high leverage.

        Notes
        -----
        *Formal guarantee.* For replacing one row, in idealised arithmetic: an (`epsilon`, `delta`)-DP
        test, then a `delta`-approximate `rho`-zCDP release (``unvetted.md``).
        """
        _check_consent(allow_unvetted)
        plan = self.check_stable_moment(leverage, epsilon=epsilon, rho=rho, delta=delta)
        if not self._source.in_memory:
            raise ArgumentError("filtering by leverage needs a table in memory.")
        spent, once = as_fraction(epsilon, "epsilon"), as_fraction(delta, "delta")
        release = PrivacyCost(as_fraction(rho, "rho"), once)
        note = "(idealised arithmetic)"
        self._budget.charge(approximate_cost(spent, once), f"{purpose}: test {note}")
        self._budget.charge(release, f"{purpose}: the released matrix {note}")
        rows = np.zeros((self.n_rows, self.n_columns))
        self._scan(CollectTask(rows, self._constant), purpose)
        with np.errstate(all="ignore"):
            largest = np.abs(rows).max(axis=0)
            scale = np.where(largest > 0, largest, 1.0)
            rows /= scale
            weights, score = filter_rows(rows, leverage, plan.steps)
            noise = truncated_laplace(self._bits, SCORE_SENSITIVITY / spent, plan.largest_noise)
            if score + noise > plan.largest_noise:
                return None
            matrix = sampled_moment(self._bits, weighted_factor(rows, weights), plan.samples)
        return StableMoment(matrix * scale[:, None] * scale, plan.samples)


def _check_consent(allow_unvetted: bool) -> None:  # noqa: FBT001
    if allow_unvetted is not True:
        raise ArgumentError("this query computes with floating point; it needs allow_unvetted=True.")
