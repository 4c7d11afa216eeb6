"""The least size of random groups whose second moments nearly all agree: a private search for m.

The proof note is ``groups.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Charge, Clipping, RowTask
from dpcov.core.budget import Number, as_fraction
from dpcov.core.query import Table
from dpcov.paper.queries.agreement import check_distance
from dpcov.paper.queries.approximate import approximate_cost
from dpcov.paper.queries.group_grams import GroupGramTask, check_group_size
from dpcov.paper.queries.groups import agreeing_groups, random_groups
from dpcov.paper.queries.threshold import first_above, off_by_at_most

FAILURE = Fraction(1, 100)
"""The probability with which `FoundSize.at_least` may be too large."""

_LEAST_SHARE = Fraction(4, 5)
MOST_GROUPS = 1 << 13
"""Each is compared with each."""


@dataclass(frozen=True)
class FoundSize:
    """Groups of this size nearly all agree.

    Attributes
    ----------
    group_size, n_groups : int
        How many rows a group has, and how many groups there are.
    at_least : Fraction
        The share of ordered pairs of groups that agree, each with itself included, is at least this, with
        probability 0.99.
    """

    group_size: int
    n_groups: int
    at_least: Fraction


@dataclass(frozen=True, eq=False)
class FirstAgreement:
    """Ask for the least size, doubling from `group_size` on, at which nearly all pairs of groups agree.

    The answer is a `FoundSize`, or None if no size passes. Groups of twice the size are two groups put
    together. All pairs are compared, so that there may be no more than 8,192 groups.

    Parameters
    ----------
    clipping : Clipping
        How rows are mapped and brought into a ball.
    group_size : int
        The first size.
    distance : float
        How close two groups must be to agree, in the paper's semimetric (Appendix A).
    epsilon : number
        What to spend, however many sizes are tried.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `epsilon`-DP for replacing one row, charged as (epsilon^2 / 2)-zCDP: the sparse vector
    technique on ``floor(pairs that agree / (T - 1))``, which a row moves by at most 1 (``groups.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.paper.queries import FirstAgreement
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=8)), seeded)
    >>> clipping = Clipping(identity_map(2), radius=20.0)
    >>> found = curator.ask(FirstAgreement(clipping, 10, 2.0, epsilon=4, purpose="size of groups"))
    >>> found.group_size, found.n_groups, found.at_least > 0.9
    (40, 500, True)
    """

    clipping: Clipping
    group_size: int
    distance: float
    epsilon: Number
    purpose: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What an epsilon-DP query costs."""
        return (Charge(self.purpose, approximate_cost(as_fraction(self.epsilon, "epsilon"), Fraction(0))),)

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for arguments that do not fit the table, or for too few groups."""
        epsilon = as_fraction(self.epsilon, "epsilon")
        if epsilon <= 0:
            raise ArgumentError(f"epsilon must be greater than 0, got {float(epsilon):g}.")
        self.clipping.check(table)
        check_distance(self.distance)
        check_group_size(self.group_size, n_rows=table.n_rows, n_columns=table.n_columns)
        n_groups = table.n_rows // self.group_size
        if n_groups > MOST_GROUPS:
            raise ArgumentError(
                f"{n_groups} groups are too many to compare each with each; use groups of at least "
                f"{first_size(table.n_rows, 1)} rows."
            )
        if not searched_groups(n_groups, epsilon):
            needed = fewest_groups(epsilon)
            raise ArgumentError(
                f"{n_groups} groups of {self.group_size} rows are too few to search for m at this budget, "
                f"which needs {needed} groups. Nothing was spent on it."
            )

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Draw the groups of the first size without a look at the rows, and return their Gram matrices."""
        groups, n_groups = random_groups(bits, table.n_rows, self.group_size)
        return GroupGramTask(self.clipping, table.lattice, table.constant, groups, n_groups)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> FoundSize | None:
        """Try one size after the other, with the noise of the sparse vector technique."""
        del table
        epsilon = as_fraction(self.epsilon, "epsilon")
        searched = searched_groups(len(exact), epsilon)
        off = _off_by(len(exact), epsilon)
        found = first_above(
            bits,
            self._sums(exact, len(searched)),
            [n_groups // 2 - off for n_groups in searched],
            spread=1,
            epsilon=epsilon,
        )
        if found is None:
            return None
        return FoundSize(self.group_size << found, searched[found], _share(searched[found], off))

    def _sums(self, grams: NDArray[np.int64], sizes: int) -> Iterator[int]:
        for _ in range(sizes):
            n_groups = len(grams)
            agreeing = int(agreeing_groups(grams, self.distance, n_groups).sum())
            yield (agreeing - n_groups) // 2 // (n_groups - 1)
            grams = grams[: n_groups // 2 * 2 : 2] + grams[1 : n_groups // 2 * 2 : 2]


def first_size(n_rows: int, n_columns: int) -> int:
    """Return the least size from which on sizes can be searched: no fewer rows than columns."""
    return max(-(-n_rows // MOST_GROUPS), n_columns)


def searched_groups(n_groups: int, epsilon: Fraction) -> list[int]:
    """Return how many groups there are of every size that is tried."""
    off = _off_by(n_groups, epsilon)
    halves = (n_groups >> k for k in range(n_groups.bit_length()))
    return [number for number in halves if number >= 2 and _share(number, off) >= _LEAST_SHARE]


def fewest_groups(epsilon: Fraction) -> int:
    """Return how many groups are enough for one size to be tried, up to a power of two."""
    n_groups = 2
    while not searched_groups(n_groups, epsilon):
        n_groups *= 2
    return n_groups


def _off_by(n_groups: int, epsilon: Fraction) -> int:
    return off_by_at_most(n_groups.bit_length(), 1, epsilon, FAILURE)


def _share(n_groups: int, off: int) -> Fraction:
    """Return what share of ordered pairs agrees if a size passes: its sum is at least T/2 - 2 off."""
    pairs = (n_groups - 1) * max(0, n_groups // 2 - 2 * off)
    return Fraction(n_groups + 2 * pairs, n_groups**2)
