"""What every kind of query shares: the rows, the budget, the noise, and the checks of a clipping.

The `Curator` is one class for those who ask. Its queries live in files of one subject each, as
bases of that class; this is what they may rely on.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Budget
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.queries.gram import Clipping
from dpcov.core.tasks import RowTask, Source


class Desk(ABC):
    """Base of the classes that answer queries."""

    _source: Source
    _budget: Budget
    _bits: BitSource
    _constant: bool
    _lattice: Lattice

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The public number of rows."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of columns, the constant one included."""

    @abstractmethod
    def _check_clipping(self, clipping: Clipping) -> None:
        """Raise an `ArgumentError` for a clipping that does not fit the table."""

    @abstractmethod
    def _check_map(self, lattice_map: LatticeMap) -> None:
        """Raise an `ArgumentError` for a map that does not fit the table."""

    @abstractmethod
    def check_group_size(self, group_size: int) -> int:
        """Return a group size that leaves at least two groups, or raise an `ArgumentError`."""

    @abstractmethod
    def _group_grams(self, clipping: Clipping, group_size: int, purpose: str) -> NDArray[np.int64]:
        """Return the exact Gram matrix of each of the random groups of rows."""

    @abstractmethod
    def _scan(self, task: RowTask, purpose: str, every: int = 1) -> NDArray[np.int64]:
        """Run a task over the rows, and show progress under the query's purpose."""


def whole_number(value: int, name: str, least: int = 1) -> int:
    """Return an argument that is a whole number and at least `least`, or raise an `ArgumentError`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, got {value!r}.") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}.")
    return number
