"""Persons of several rows: tables with an id before each row, how they are grouped, and mutants of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.harness import Array, Program
from numpy.typing import NDArray

from dpcov.core import Budget, Clipping, Curator, PrivacyCost
from dpcov.core.queries.gram import LatticeRows
from dpcov.sources import grouped
from dpcov.sources.arrays import ArraySource

FAR = 1e9
_PERSONS = 2


def persons(first: list[list[float]], second: list[list[float]]) -> Array:
    """Return a table of two persons whose rows take turns."""
    rows = [[0.0, *row] for row in first] + [[1.0, *row] for row in second]
    turns = [*range(len(first)), *range(len(second))]
    return np.array([rows[i] for i in np.argsort(turns, kind="stable")], dtype=np.float64).reshape(-1, 3)


OTHERS = [[0.1, 0.1]] * 10
ONE_EAST, ONE_NORTH = persons([[FAR, 0]], OTHERS), persons([[0, FAR]], OTHERS)
TEN_EAST, TEN_NORTH = persons([[1, 0]] * 10, OTHERS), persons([[0, 1]] * 10, OTHERS)
NOBODY = persons([], OTHERS)


def curator_of(rows: Array, bits: Any) -> Curator:
    """Return a curator of both persons, one of whom may have no rows."""
    order, ends = grouped.sort_by_unit(rows[:, 0])
    missing = _PERSONS - len(set(rows[:, 0]))
    ends = np.append(ends, np.full(missing, ends[-1]))
    source = grouped.GroupedTable(ArraySource(rows[order, 1:], threads=1), ends, even=False)
    return Curator(source, Budget(PrivacyCost(Fraction(100))), bits)


def rows_clipped_alone(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Each row of a person may reach the radius."""
    clip = LatticeRows.clip

    def alone(self: LatticeRows, rows: Any, shrinking: Any = 1.0, units: Any = None) -> Any:
        values, squares = clip(self, rows, shrinking)
        return values, units.add_up(squares.astype(np.int64)).astype(np.float64)

    patch.setattr(LatticeRows, "clip", alone)
    return program


def joint_bound_doubled(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """A person's rows may be twice as long together as noise allows for."""
    make = LatticeRows.__init__

    def wide(self: LatticeRows, clipping: Clipping, lattice: Any, **options: Any) -> None:
        wider = replace(lattice, bound=2 * lattice.bound, clip=2 * lattice.clip)
        make(self, replace(clipping, radius=2 * clipping.radius), wider, **options)

    patch.setattr(LatticeRows, "__init__", wide)
    return program


def sort_left_out(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """A table that claims to be sorted is believed: a person begins anew with every change of the id."""

    def believed(ids: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
        return np.arange(len(ids)), np.append(changes, len(ids))

    patch.setattr(grouped, "sort_by_unit", believed)
    return program


UNIT_MUTANTS = {
    "rows clipped alone": rows_clipped_alone,
    "joint bound doubled": joint_bound_doubled,
    "sort left out": sort_left_out,
}
