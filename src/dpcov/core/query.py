"""What a query is: an object that says what it costs, what it adds up over the rows, and how noise joins it.

A query lives in a file of a folder called ``queries``, with its proof note beside it. Nothing but
`Curator.ask` runs one.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Charge, Number, PrivacyCost, gaussian_cost
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError
from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.tasks import RowTask
from dpcov.core.units import MOST_ROWS

Answer_co = TypeVar("Answer_co", covariant=True)

# Beyond this, noise would not fit into 64 bits with room to spare.
_LARGEST_VARIANCE = 1 << 114


@dataclass(frozen=True, eq=False)
class Table:
    """What a query knows of the table it is asked about. All but `memory` is public.

    Attributes
    ----------
    n_rows : int
        The number of rows; if they are grouped, that of units.
    n_columns : int
        The number of columns, the constant one included.
    constant : bool
        Whether a constant column of ones joins the rows as their last.
    in_memory : bool
        Whether rows keep their places between scans, which run in threads of this process.
    lattice : Lattice
        The grid of integers for a table of this size.
    grouped : bool
        Whether rows come in units of several, which are protected as a whole (``units.md``).
    memory : dict
        What queries of a class keep from one scan to the next, by that class. It is as private as the rows:
        only row tasks may read it. What is kept is never changed, so scans at the same time may share it.
    """

    n_rows: int
    n_columns: int
    constant: bool
    in_memory: bool
    lattice: Lattice
    grouped: bool = False
    memory: dict[type, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of_size(
        cls, n_rows: int, n_columns: int, *, constant: bool, in_memory: bool = False, grouped: bool = False
    ) -> Table:
        """Return what is known of a table of this public size."""
        lattice = Lattice.for_table(n_rows, n_columns, MOST_ROWS if grouped else 1)
        return cls(n_rows, n_columns, constant, in_memory, lattice, grouped)

    def part(self, n_rows: int, n_columns: int, *, constant: bool) -> Table:
        """Return what is known of some of its rows and columns."""
        return Table.of_size(
            n_rows, n_columns, constant=constant, in_memory=self.in_memory, grouped=self.grouped
        )

    def check_map(self, lattice_map: LatticeMap) -> None:
        """Raise an `ArgumentError` for a map that takes other columns."""
        if lattice_map.n_columns != self.n_columns:
            raise ArgumentError(f"map takes {lattice_map.n_columns} columns, not {self.n_columns}.")
        if lattice_map.centres.any() and not self.constant:
            raise ArgumentError("map has centres, but the table has no constant column.")


class Query(Protocol[Answer_co]):
    """A private question about a table.

    Notes
    -----
    *Formal guarantee.* Let all parameters be public or follow from earlier private answers. For neighbours,
    tables of the same public number of rows that differ in one row (or of units that differ in one unit, if
    the class has ``takes_units = True``: ``units.md``), and a source that keeps its promise (``order.md``),
    the law of ``answer(exact, table, bits)``, where `exact` is what a scan of ``task(table, bits)`` adds up,
    is delta-approximate rho-zCDP for the sum of `charges`. Each class states its own sensitivity
    and noise, and names the note that proves it.

    `check`, `charges` and every error are functions of public numbers: what the rows are decides nothing that
    can be seen but the answer.

    With a public ``every = k`` of its own, it is asked about a random sample of one row in k, whose task then
    sees those rows alone.
    """

    @property
    def purpose(self) -> str:
        """What it is for, as progress shows it."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs, in exact numbers: one line of the receipt for each step of the mechanism."""

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` if it cannot be asked about a table of this public shape."""

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return what to add up over the rows; groups are drawn here, without a look at them."""

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> Answer_co:
        """Add noise to the exact integers."""


class GaussianQuery:
    """What the queries have in common that are paid for in rho alone: a base of dataclasses."""

    rho: Number
    purpose: str
    takes_units: ClassVar[bool] = False

    @cached_property
    def cost(self) -> PrivacyCost:
        """What it costs: rho-zCDP."""
        return gaussian_cost(self.rho)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs, as one line of the receipt."""
        return (Charge(self.purpose, self.cost),)


def check_query(query: Query[Any], table: Table) -> None:
    """Raise an `ArgumentError` if a query cannot be asked about this table."""
    if table.grouped and not getattr(query, "takes_units", False):
        raise ArgumentError(f"{type(query).__name__} protects single rows only, not units of several.")
    query.check(table)


def whole_number(value: int, name: str, least: int = 1) -> int:
    """Return an argument that is a whole number and at least `least`, or raise an `ArgumentError`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, got {value!r}.") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}.")
    return number


def check_variance(variance: int | Fraction, cost: PrivacyCost, asked: str) -> None:
    """Raise an `ArgumentError` for noise so large that it may not fit into 64 bits."""
    if variance > _LARGEST_VARIANCE:
        raise ArgumentError(f"rho={float(cost.rho):g} is too small for {asked}; ask for more.")
