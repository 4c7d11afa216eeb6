"""A Gram matrix after a chain of shrinkings: the rounds of the paper's Algorithm 2.

The proof note is ``shrinking.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcov.core import BitSource, Block, Charge, Clipping, Gram, LatticeMap, NoisyGram, RowTask, RowWorker
from dpcov.core.budget import Number
from dpcov.core.lattice import Lattice, MappedRows, times_power
from dpcov.core.queries.gram import GramSum, LatticeRows
from dpcov.core.query import Table
from dpcov.core.tasks import block_length
from dpcov.core.units import Units


@dataclass(frozen=True, eq=False)
class Shrinking:
    """One step of the paper's chain: rows longer than `radius` after `lattice_map` shrink to it."""

    lattice_map: LatticeMap
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", float(self.radius))


@dataclass(frozen=True, eq=False)
class ShrunkGram:
    """Ask for the Gram matrix of rows that earlier steps have shrunk; the answer is a `NoisyGram`.

    Parameters
    ----------
    clipping : Clipping
        The public map, the radius, and the rule that keeps rows within it.
    earlier : tuple of Shrinking
        Steps that came before (Algorithm 2, line 10). A row's scalar after all of them is the least of their
        ratios ``radius / |map x|``, and at most 1, so a chain costs one number a row.
    rho : number
        What to spend.
    purpose : str
        What it pays for, for the receipt.

    Notes
    -----
    *Formal guarantee.* `rho`-zCDP for replacing one row, as for `Gram`: the scalar is a function of the row
    alone, and the bound on the clipped row does not rest on it (``shrinking.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.paper.queries import Shrinking, ShrunkGram
    >>> from dpcov.sources import ArraySource
    >>> rows = np.tile([[4.0, 0.0], [0.0, 1.0]], (500, 1))
    >>> seeded = SeededBits(np.random.default_rng(0))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> clipping, to_two = Clipping(identity_map(2), radius=5.0), Shrinking(identity_map(2), 2.0)
    >>> answer = curator.ask(ShrunkGram(clipping, (to_two,), rho=1, purpose="a round"))
    >>> np.allclose(answer.mean(), [[2.0, 0.0], [0.0, 0.5]], atol=0.2)
    True
    """

    clipping: Clipping
    earlier: tuple[Shrinking, ...]
    rho: Number
    purpose: str

    @property
    def _gram(self) -> Gram:
        return Gram(self.clipping, self.rho, self.purpose)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs: what `Gram` does."""
        return self._gram.charges

    def check(self, table: Table) -> None:
        """Raise an `ArgumentError` for a step that does not fit the table."""
        self._gram.check(table)
        for step in self.earlier:
            Clipping(step.lattice_map, step.radius).check(table)

    def task(self, table: Table, bits: BitSource) -> RowTask:
        """Return the exact Gram matrix, from what is known of the scalars if rows keep their places."""
        del bits
        memory = _known(table, self.earlier) if self.earlier and table.in_memory else None
        return ShrunkGramTask(self.clipping, self.earlier, table.lattice, table.constant, memory)

    def answer(self, exact: NDArray[np.int64], table: Table, bits: BitSource) -> NoisyGram:
        """Add the noise of `Gram`, and keep the scalars for the next round, inside the curator."""
        d = table.n_columns
        factors = exact[d * d :].view(np.float64)
        if len(factors):
            own = Shrinking(self.clipping.lattice_map, self.clipping.radius)
            table.memory[ShrunkGram] = ShrinkingMemory((*self.earlier, own), factors)
        return self._gram.answer(exact[: d * d].reshape(d, d), table, bits)


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
    factors: NDArray[np.float64] = field(repr=False)

    def covers(self, steps: tuple[Shrinking, ...]) -> bool:
        """Whether `steps` begin with the steps of this memory."""
        return len(self.steps) <= len(steps) and all(
            mine.lattice_map is theirs.lattice_map and mine.radius == theirs.radius
            for mine, theirs in zip(self.steps, steps, strict=False)
        )


def _known(table: Table, steps: tuple[Shrinking, ...]) -> ShrinkingMemory:
    """Return what the table's memory knows of a chain: nothing, if it is about another."""
    memory = table.memory.get(ShrunkGram)
    if isinstance(memory, ShrinkingMemory) and memory.covers(steps):
        return memory
    return ShrinkingMemory((), np.ones(table.n_rows))


@dataclass(frozen=True, eq=False)
class ShrunkGramTask(RowTask):
    """The exact Gram matrix of shrunk and clipped rows, in lattice units.

    With a `memory` only the steps that it does not cover are computed, and the total goes on with the bits of
    every row's scalar after all steps, this one's included: each row has a place of its own, so that adding
    up the totals of several workers puts them together.
    """

    clipping: Clipping
    earlier: tuple[Shrinking, ...]
    lattice: Lattice
    constant: bool
    memory: ShrinkingMemory | None = None

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.clipping.lattice_map.n_columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (self.clipping.lattice_map.n_columns**2 + self.kept_rows,)

    @property
    def kept_rows(self) -> int:
        """How many scalars follow the matrix."""
        return 0 if self.memory is None else len(self.memory.factors)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _ShrunkGramWorker(self)


class _ShrunkGramWorker:
    def __init__(self, task: ShrunkGramTask) -> None:
        self._task = task
        self._mapped = MappedRows(task.clipping.lattice_map, task.block_rows)
        self._rows = LatticeRows(task.clipping, task.lattice)
        known = 0 if task.memory is None else len(task.memory.steps)
        self._steps = [
            (MappedRows(step.lattice_map, task.block_rows), step.radius) for step in task.earlier[known:]
        ]
        self._sum = GramSum(task.clipping.lattice_map.n_columns, task.lattice.bound**2)
        self._learnt = np.zeros(task.kept_rows)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        Units.refuse(units)
        places = slice(first_row, first_row + len(block[0]))
        # Warnings would tell about rows.
        with np.errstate(all="ignore"):
            shrinking = self._shrinking(block, places)
            self._mapped.load(block, constant=self._task.constant)
            self._sum.add(*self._rows.clip(self._mapped, shrinking))
            if self._task.memory is not None:
                ratios = _ratios(self._mapped, self._task.clipping.radius)
                self._learnt[places] = np.minimum(shrinking, ratios)

    def _shrinking(self, block: Block, places: slice) -> NDArray[np.float64] | float:
        memory = self._task.memory
        factors: NDArray[np.float64] | float = 1.0 if memory is None else memory.factors[places]
        for rows, radius in self._steps:
            rows.load(block, constant=self._task.constant)
            factors = np.minimum(factors, _ratios(rows, radius))
        return factors

    def total(self) -> NDArray[np.int64]:
        return np.concatenate([self._sum.total().ravel(), self._learnt.view(np.int64)])


def _ratios(rows: MappedRows, radius: float) -> NDArray[np.float64]:
    """Return `radius` over the norm of every row, as it was mapped."""
    unit = times_power(1.0 / rows.lattice_map.scale, rows.shift)
    ratios: NDArray[np.float64] = radius / (np.sqrt(np.maximum(rows.squares, 1.0)) * unit)
    return ratios
