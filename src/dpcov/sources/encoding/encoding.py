"""An encoding: which columns of a table are read, and how a row of their cells becomes a row of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.core import Block
from dpcov.sources.encoding.cells import Cells
from dpcov.sources.encoding.kinds import Kind, NumberKind


@dataclass(frozen=True)
class Encoding:
    """From some rows of cells to as many rows of numbers, each a function of its own row alone.

    Attributes
    ----------
    raw : tuple of str
        The columns that are read.
    kinds : tuple of Kind
        What each of them holds.
    """

    raw: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(name for raw, kind in zip(self.raw, self.kinds, strict=True) for name in kind.names(raw))

    @cached_property
    def bounds(self) -> Array:
        """The public lower and upper ends of `columns`, shape (columns, 2); infinite where none is known."""
        ends = np.array([ends for kind in self.kinds for ends in kind.bounds()], dtype=np.float64)
        ends = ends.reshape(len(self.columns), 2)
        ends.setflags(write=False)
        return ends

    @cached_property
    def _is_plain(self) -> bool:
        return all(kind == NumberKind() for kind in self.kinds)

    def encode(self, cells: Sequence[Cells]) -> Block:
        """Return the numbers that rows of cells become, one column after another; missing ones are NaN."""
        if isinstance(cells, np.ndarray) and self._is_plain:
            return cells
        # Warnings would tell about rows.
        with np.errstate(all="ignore"):
            return [
                numbers
                for kind, column in zip(self.kinds, cells, strict=True)
                for numbers in kind.encode(column)
            ]
