"""An m for a table of which nothing is known: the least size of random groups that nearly all agree.

What agreement proves about a table stands in ``theory/recursion.md``, "Without m".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpcov.core import ArgumentError, Clipping, Curator, NoAnswerError
from dpcov.maps import identity_map
from dpcov.paper.queries import (
    MOST_GROUPS,
    SLACK,
    FirstAgreement,
    fewest_groups,
    first_size,
    searched_groups,
)

SEARCH_SHARE = Fraction(1, 20)
"""Of the budget: for the search."""

FAILURE = 0.01
"""The probability with which what the search tells is wrong."""

_DISTANCE = 2.0
_CLOSE = SLACK * (1 + _DISTANCE)


@dataclass(frozen=True)
class Searched:
    """What a search tells.

    Attributes
    ----------
    group_size : int
        Of the groups that agree.
    good : float
        At least this share of all rows is in groups within a factor of one matrix.
    """

    group_size: int
    good: float

    def m(self, alpha: float) -> float:
        """Return m: rows of good groups have a leverage of at most ``m (1 + alpha)``."""
        return self.group_size * _CLOSE**2 / (self.good * (1 + alpha))

    @property
    def below(self) -> float:
        """What a good group's least eigenvalue must be divided by to be a lower bound of the table's."""
        return _CLOSE**2 / self.good


def search_m(curator: Curator, radius: float) -> Searched:
    """Search with a share of the budget, or raise a `NoAnswerError` if no size of groups agrees.

    *Formal guarantee.* epsilon-DP with ``epsilon^2 / 2 = SEARCH_SHARE rho`` for replacing one row.
    """
    found = curator.ask(
        FirstAgreement(
            Clipping(identity_map(curator.n_columns), radius),
            first_size(curator.n_rows, curator.n_columns),
            _DISTANCE,
            epsilon=_epsilon(curator.remaining.rho),
            purpose="search for m",
        )
    )
    if found is None:
        raise NoAnswerError(
            "random groups of rows do not agree at any size that this budget can tell: a few rows "
            "carry much of a direction, or there are too few rows. Give m; what the search cost is spent."
        )
    covered = found.n_groups * found.group_size / curator.n_rows
    return Searched(found.group_size, float(found.at_least) * covered)


def check_search(curator: Curator, rho: Fraction) -> None:
    """Raise an `ArgumentError` if there are too few rows to search for m with a share of `rho`."""
    epsilon, size = _epsilon(rho), first_size(curator.n_rows, curator.n_columns)
    if searched_groups(curator.n_rows // size, epsilon):
        return
    needed = fewest_groups(epsilon)
    advice = (
        f"which takes {needed * curator.n_columns} rows; the table has {curator.n_rows}. Give m"
        if needed <= MOST_GROUPS
        else f"and compares {MOST_GROUPS} at most, however many rows there are. Give m or a larger budget"
    )
    raise ArgumentError(f"a search for m needs {needed} groups at this budget, {advice}. Nothing was spent.")


def _epsilon(rho: Fraction) -> Fraction:
    return Fraction(math.sqrt(2 * float(rho * SEARCH_SHARE)))
