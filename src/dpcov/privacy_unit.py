"""Whom a release protects: one row, or all rows of a person together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcov.core import ArgumentError
from dpcov.sources import Grouping

WEIGHTINGS = ("row", "unit")
ROW = "row"
"""What is protected where nothing else is said."""

UNNAMED = "person"
"""The name of a unit whose ids were given beside the table."""


@dataclass(frozen=True)
class PrivacyUnit:
    """Whose rows are protected together, and how they count.

    Attributes
    ----------
    name : str
        The column that tells whose a row is; "person" if ids were given beside the table.
    weighting : str
        "row" if every row counts the same, "unit" if every person does: each of k rows then weighs 1 / k.

    Examples
    --------
    >>> from dpcov.privacy_unit import PrivacyUnit
    >>> PrivacyUnit("patient").population
    'the rows of all, each row counted once'
    """

    name: str
    weighting: str = "row"

    @property
    def even(self) -> bool:
        """Whether every unit counts the same."""
        return self.weighting == "unit"

    @property
    def population(self) -> str:
        """What means, covariances and regressions are about, in words."""
        if self.even:
            return f"the rows of all, each {self.name} counted once and its rows in equal parts"
        return "the rows of all, each row counted once"


def read_unit(privacy_unit: Any, weighting: str) -> tuple[PrivacyUnit | None, Grouping | None]:
    """Return what `privacy_unit` and `weighting` stand for, or raise an `ArgumentError`.

    Examples
    --------
    >>> from dpcov.privacy_unit import read_unit
    >>> read_unit("patient", "unit")[0]
    PrivacyUnit(name='patient', weighting='unit')
    """
    if weighting not in WEIGHTINGS:
        raise ArgumentError(f'weighting must be "row" or "unit", got {weighting!r}.')
    if privacy_unit is None:
        if weighting != "row":
            raise ArgumentError(
                'weighting="unit" needs privacy_unit: the column that says to whom a row belongs.'
            )
        return None, None
    if isinstance(privacy_unit, str) and not privacy_unit:
        raise ArgumentError("privacy_unit must be the name of a column, or one id for each row.")
    if isinstance(privacy_unit, str) and privacy_unit == ROW:
        raise ArgumentError(
            'a privacy_unit called "row" could be taken for single rows. Rename the column, or give its '
            "values, one id for each row."
        )
    name = privacy_unit if isinstance(privacy_unit, str) else UNNAMED
    return PrivacyUnit(name, weighting), Grouping(privacy_unit, even=weighting == "unit")
