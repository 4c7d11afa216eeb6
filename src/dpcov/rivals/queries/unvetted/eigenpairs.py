"""Eigenvalues with Laplace noise, eigenvectors by the exponential mechanism: idealised arithmetic.

The proof note is ``unvetted.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Clipping, RowTask
from dpcov.core.budget import Number, as_fraction
from dpcov.core.queries.gram import GramTask
from dpcov.core.query import Table
from dpcov.paper.queries.approximate import approximate_cost
from dpcov.paper.queries.laplace import discrete_laplace
from dpcov.rivals.queries.unvetted.bingham import sample_eigenvectors
from dpcov.rivals.queries.unvetted.consent import check_consent

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
class Eigenpairs:
    """Ask for eigenvalues and eigenvectors of the second moment of the mapped and clipped rows.

    The answer is a `NoisyEigenpairs`.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    epsilon : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.
    allow_unvetted : bool
        Must be True.

    Notes
    -----
    *Formal guarantee.* `epsilon`-DP for replacing one row, charged as (epsilon^2 / 2)-zCDP, in idealised
    arithmetic. Half goes to the eigenvalues, whose l1 sensitivity is ``2 B^2``, half to the directions, one
    after another (``unvetted.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.rivals.queries import Eigenpairs
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[1.0, 0.0], [0.0, 2.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> clipping = Clipping(identity_map(2), radius=3.0)
    >>> answer = curator.ask(Eigenpairs(clipping, epsilon=1, purpose="eigenpairs", allow_unvetted=True))
    >>> np.allclose(answer.values, [2.0, 0.5], atol=0.5)
    True
    """

    clipping: Clipping
    epsilon: Number
    purpose: str
    allow_unvetted: bool = False

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What an epsilon-DP query costs."""
        cost = approximate_cost(as_fraction(self.epsilon, "epsilon"), Fraction(0))
        return (Charge(f"{self.purpose} (idealised arithmetic)", cost),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` without consent, or for a clipping that does not fit."""
        check_consent(allow_unvetted=self.allow_unvetted)
        spent = as_fraction(self.epsilon, "epsilon")
        if spent <= 0:
            raise ArgumentError(f"epsilon must be greater than 0, got {float(spent):g}.")
        self.clipping.check(table)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix."""
        del bits
        return GramTask(self.clipping, table.lattice, table.constant)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyEigenpairs:
        """Add noise to the eigenvalues, then draw directions with what they say each is worth."""
        lattice, d = table.lattice, table.n_columns
        spent = as_fraction(self.epsilon, "epsilon")
        gram = exact.astype(np.float64)
        half = spent / 2 if d > 1 else spent
        found = np.rint(np.linalg.eigvalsh(gram)[::-1]).astype(np.int64)
        scale = Fraction(2 * lattice.bound**2) / half
        noisy = np.array([int(value) + discrete_laplace(bits, scale) for value in found.tolist()])
        # From here on in units of the squared radius, so that every row has a length of at most 1.
        square = float(lattice.bound) ** 2
        values = np.clip(noisy / square, 0.0, table.n_rows)
        # Larger eigenvalues get more of the budget (the paper's Theorem 1 and what follows).
        parts = np.sqrt(values[: d - 1] + 2 / float(half) * math.log(2 * d / _FAILURE))
        vectors = (
            sample_eigenvectors(bits, gram / square, (float(half) * parts / parts.sum()).tolist())
            if d > 1
            else np.eye(1)
        )
        unit = (self.clipping.radius * lattice.bound / lattice.clip) ** 2 / table.n_rows
        return NoisyEigenpairs(values * unit, vectors)
