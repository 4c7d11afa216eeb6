"""An encoding: which columns of a table are read, and how a row of their cells becomes a row of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.core import ArgumentError, Block
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.gaps import Gap, fill_gaps, find_gaps
from dpcov.sources.encoding.kinds import UNBOUNDED, Kind, NumberKind
from dpcov.sources.encoding.terms import Term

COMPLETE, PAIRWISE = "complete", "pairwise"
MODES = (COMPLETE, PAIRWISE)
"""What answers rest on: complete rows alone, or for each pair of columns the rows that have both."""

_MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Encoding:
    """From some rows of cells to as many rows of numbers, each a function of its own row alone.

    Attributes
    ----------
    raw : tuple of str
        The columns that are read.
    kinds : tuple of Kind
        What each of them holds.
    terms : tuple of Term
        What joins them.
    missing : str
        "complete" if a row with a missing value is left out; "pairwise" if the value is filled in, and one
        more column tells where.
    """

    raw: tuple[str, ...]
    kinds: tuple[Kind, ...]
    terms: tuple[Term, ...] = ()
    missing: str = COMPLETE

    def __post_init__(self) -> None:
        lengths = {raw: len(names) for raw, names in self.parts.items()}
        crossed = (math.prod(lengths[factor.column] for factor in term.factors) for term in self.terms)
        if sum(lengths.values()) + sum(crossed) > _MOST_COLUMNS:
            raise ArgumentError(f"columns and terms together become more than {_MOST_COLUMNS:,} columns.")
        if len(set(self.columns)) != len(self.columns):
            twice = next(name for i, name in enumerate(self.columns) if name in self.columns[:i])
            raise ArgumentError(f"two columns would be called {twice}; rename one first.")

    @cached_property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The names of the columns of numbers that each column becomes."""
        return {raw: kind.names(raw) for raw, kind in zip(self.raw, self.kinds, strict=True)}

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names of the columns of numbers that hold values: those that can be asked about."""
        own = [name for names in self.parts.values() for name in names]
        return (*own, *(name for term in self.terms for name in term.names(self.parts)))

    @cached_property
    def shares(self) -> tuple[int, ...]:
        """The places of columns that hold 0 and 1 alone."""
        kinds = dict(zip(self.raw, self.kinds, strict=True))
        own = [(raw, name) for raw, names in self.parts.items() for name in names]
        return tuple(i for i, (raw, name) in enumerate(own) if kinds[raw].is_share(name))

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """For each category, and each part of a date that is one, the names of all levels."""
        found: dict[str, tuple[str, ...]] = {}
        for raw, kind in zip(self.raw, self.kinds, strict=True):
            found |= kind.levels_by_name(raw)
        return found

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """What tells where values are missing; nothing if a row with a missing value is left out."""
        if self.missing == COMPLETE:
            return ()
        return find_gaps(dict(zip(self.raw, self.kinds, strict=True)), self.terms, self._value_bounds)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns of numbers: values first, then what tells where they are missing."""
        return (*self.values, *(gap.name for gap in self.gaps))

    @cached_property
    def bounds(self) -> Array:
        """The public lower and upper ends of `columns`, shape (columns, 2); infinite where none is known."""
        bounds = np.vstack([self._value_bounds, np.tile([0.0, 1.0], (len(self.gaps), 1))])
        bounds.setflags(write=False)
        return bounds

    @cached_property
    def _value_bounds(self) -> Array:
        own = {raw: kind.bounds() for raw, kind in zip(self.raw, self.kinds, strict=True)}
        found = [ends for kind in own.values() for ends in kind]
        found += [ends for term in self.terms for ends in term.bounds(own)]
        return np.array(found, dtype=np.float64).reshape(len(self.values), 2)

    @cached_property
    def _is_plain(self) -> bool:
        plain = all(isinstance(kind, NumberKind) and kind.ends == UNBOUNDED for kind in self.kinds)
        return plain and not self.terms and not self.gaps

    def encode(self, cells: Sequence[Cells]) -> Block:
        """Return the numbers that rows of cells become, one column after another; missing ones are NaN."""
        if isinstance(cells, np.ndarray) and self._is_plain:
            return cells
        # Warnings would tell about rows.
        with np.errstate(all="ignore"):
            own = {
                raw: kind.encode(column)
                for raw, kind, column in zip(self.raw, self.kinds, cells, strict=True)
            }
            found = [numbers for columns in own.values() for numbers in columns]
            for term in self.terms:
                found += term.encode(own)
            return fill_gaps(found, self.gaps)
