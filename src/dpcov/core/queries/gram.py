"""Row tasks for exact Gram matrices of mapped and clipped rows: of all rows, or group by group.

The proof note is ``gram.md``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpcov.core.errors import ArgumentError, ExactnessError
from dpcov.core.exact_blas import add_gram, check_blas
from dpcov.core.lattice import Block, Lattice, LatticeMap, MappedRows
from dpcov.core.tasks import RowWorker, block_length


@dataclass(frozen=True, eq=False)
class Shrinking:
    """One step of the paper's chain: rows longer than `radius` after `lattice_map` shrink to it."""

    lattice_map: LatticeMap
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", float(self.radius))


class Rule(enum.Enum):
    """What becomes of a row after the map."""

    SHRINK = "shrink"
    """Rows longer than the radius shrink to it."""
    DROP = "drop"
    """Rows longer than the radius count as zero."""
    DIRECTION = "direction"
    """Every row takes the length of the radius: its direction alone counts."""
    TAIL = "tail"
    """Rows longer than the radius shrink to it, all others count as zero."""


@dataclass(frozen=True, eq=False)
class Clipping:
    """How rows are mapped and brought into the ball of a Gram matrix.

    Attributes
    ----------
    lattice_map : LatticeMap
        The public map.
    radius : float
        No row is longer than this in the end.
    rule : Rule
        How that is brought about.
    earlier : tuple of Shrinking
        Steps that came before (the paper's Algorithm 2, line 10). A row's scalar after all of them is
        the least of their ratios, so a chain costs one number a row.
    """

    lattice_map: LatticeMap
    radius: float
    rule: Rule = Rule.SHRINK
    earlier: tuple[Shrinking, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise ArgumentError(f"rule must be a Rule, got {self.rule!r}.")
        object.__setattr__(self, "radius", float(self.radius))


@dataclass(frozen=True, eq=False)
class ShrinkingMemory:
    """The scalar of every row after some steps of a chain: one number a row, not a copy of the table.

    For a table in memory only, whose rows keep their places between scans. What a row's place
    holds is what the steps would give again, bit for bit.

    Attributes
    ----------
    steps : tuple of Shrinking
        The steps whose scalars `factors` holds.
    factors : ndarray of float64, shape (n_rows,)
        The least of the steps' ratios.
    """

    steps: tuple[Shrinking, ...]
    factors: NDArray[np.float64]

    def covers(self, steps: tuple[Shrinking, ...]) -> bool:
        """Whether `steps` begin with the steps of this memory."""
        return len(self.steps) <= len(steps) and all(
            mine.lattice_map is theirs.lattice_map and mine.radius == theirs.radius
            for mine, theirs in zip(self.steps, steps, strict=False)
        )


class _LatticeRows:
    """Maps, clips and rounds blocks of rows to the lattice."""

    def __init__(
        self,
        clipping: Clipping,
        lattice: Lattice,
        *,
        constant: bool,
        capacity: int,
        memory: ShrinkingMemory | None = None,
    ) -> None:
        check_blas()
        self._clipping = clipping
        self._lattice = lattice
        self._constant = constant
        self._memory = memory
        self._rows = MappedRows(clipping.lattice_map, capacity)
        known = 0 if memory is None else len(memory.steps)
        self._steps = [
            (MappedRows(step.lattice_map, capacity), step.radius) for step in clipping.earlier[known:]
        ]

    def load(self, block: Block, first_row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the integer rows, shape (d, rows), and their exact squared norms."""
        with np.errstate(all="ignore"):
            shrinking = self._shrinking(block, first_row)
            rows, clipping, lattice = self._rows, self._clipping, self._lattice
            rows.load(block, constant=self._constant)
            if self._memory is not None:
                places = slice(first_row, first_row + len(rows.squares))
                self._memory.factors[places] = np.minimum(shrinking, _ratios(rows, clipping.radius))
            norms = np.sqrt(np.maximum(rows.squares, 1.0))
            unclipped = rows.scaled(lattice.clip / clipping.radius) * shrinking
            whole = lattice.clip / norms
            if clipping.rule is Rule.SHRINK:
                factor = np.minimum(unclipped, whole)
            elif clipping.rule is Rule.DROP:
                factor = np.where(unclipped <= whole, unclipped, 0.0)
            elif clipping.rule is Rule.DIRECTION:
                factor = whole
            else:
                factor = np.where(unclipped > whole, whole, 0.0)
            squares = rows.round_to_lattice(factor, lattice.bound)
            return rows.values, squares

    def _shrinking(self, block: Block, first_row: int) -> NDArray[np.float64] | float:
        places = slice(first_row, first_row + len(block[0]))
        known = self._memory
        factors: NDArray[np.float64] | float = 1.0 if known is None else known.factors[places].copy()
        for rows, radius in self._steps:
            rows.load(block, constant=self._constant)
            factors = np.minimum(factors, _ratios(rows, radius))
        return factors


def _ratios(rows: MappedRows, radius: float) -> NDArray[np.float64]:
    """Return `radius` over the norm of every row."""
    ratios: NDArray[np.float64] = radius / (np.sqrt(np.maximum(rows.squares, 1.0)) * rows.scaled(1.0))
    return ratios


@dataclass(frozen=True, eq=False)
class GramTask:
    """The exact Gram matrix of mapped and clipped rows, in lattice units.

    With a `memory` that covers a part of the chain, only the other steps are computed, and a
    scan of the whole table leaves the scalars of all of them in it, this one's included.
    """

    clipping: Clipping
    lattice: Lattice
    constant: bool
    memory: ShrinkingMemory | None = None

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return min(block_length(self.clipping.lattice_map.n_columns), self.lattice.exact_rows)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _GramWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return nothing: the task does not look at positions."""
        del first_row, n_rows
        return np.empty(0, dtype=np.int64)

    def with_notes(self, notes: NDArray[np.int64]) -> GramTask:
        """Return the task itself."""
        del notes
        return self


class _GramWorker:
    def __init__(self, task: GramTask) -> None:
        d = task.clipping.lattice_map.n_columns
        self._rows = _LatticeRows(
            task.clipping,
            task.lattice,
            constant=task.constant,
            capacity=task.block_rows,
            memory=task.memory,
        )
        self._exact_rows = task.lattice.exact_rows
        self._total = np.zeros((d, d), dtype=np.int64)
        self._partial = _ExactSum(d)

    def add(self, block: Block, first_row: int) -> None:
        rows = len(block[0])
        if self._partial.rows + rows > self._exact_rows:
            self._partial.move_to(self._total)
        values, squares = self._rows.load(block, first_row)
        self._partial.add(values, squares)

    def total(self) -> NDArray[np.int64]:
        self._partial.move_to(self._total)
        return np.triu(self._total) + np.triu(self._total, 1).T


class _ExactSum:
    """A Gram matrix in float64, moved to int64 before it could round."""

    def __init__(self, n_columns: int) -> None:
        self.rows = 0
        self._gram = np.zeros((n_columns, n_columns))
        self._trace = 0.0

    def add(self, values: NDArray[np.float64], squares: NDArray[np.float64]) -> None:
        add_gram(self._gram, values)
        self._trace += float(squares.sum())
        self.rows += len(squares)

    def move_to(self, total: NDArray[np.int64]) -> None:
        if float(np.trace(self._gram)) != self._trace:
            raise ExactnessError(
                "A matrix product was not exact. The BLAS that SciPy uses here does not compute in IEEE "
                "float64, which the privacy guarantee rests on; nothing was released."
            )
        total += self._gram.astype(np.int64)
        self._gram[:] = 0.0
        self._trace = 0.0
        self.rows = 0


@dataclass(frozen=True, eq=False)
class GroupGramTask:
    """The exact Gram matrix of each group of rows, in lattice units.

    Attributes
    ----------
    groups : ndarray of int64, shape (n_rows,)
        The group of each position of the table, or -1 for none: drawn without a look at the rows.
    """

    clipping: Clipping
    lattice: Lattice
    constant: bool
    groups: NDArray[np.int64]
    n_groups: int

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return min(block_length(self.clipping.lattice_map.n_columns), self.lattice.exact_rows)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _GroupGramWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return the groups of these rows."""
        return self.groups[first_row : first_row + n_rows]

    def with_notes(self, notes: NDArray[np.int64]) -> GroupGramTask:
        """Return the task for rows of these groups."""
        return replace(self, groups=notes)


class _GroupGramWorker:
    def __init__(self, task: GroupGramTask) -> None:
        d = task.clipping.lattice_map.n_columns
        self._rows = _LatticeRows(
            task.clipping, task.lattice, constant=task.constant, capacity=task.block_rows
        )
        self._groups = task.groups
        self._total = np.zeros((task.n_groups, d, d), dtype=np.int64)
        self._partial = _ExactSum(d)

    def add(self, block: Block, first_row: int) -> None:
        values, squares = self._rows.load(block, first_row)
        group = self._groups[first_row : first_row + len(squares)]
        order = np.argsort(group, kind="stable")
        present, starts = np.unique(group[order], return_index=True)
        for index, members in zip(present, np.split(order, starts[1:]), strict=True):
            if index >= 0:
                self._partial.add(np.ascontiguousarray(values[:, members]), squares[members])
                self._partial.move_to(self._total[index])

    def total(self) -> NDArray[np.int64]:
        upper = np.triu(self._total)
        return upper + np.triu(self._total, 1).transpose(0, 2, 1)
