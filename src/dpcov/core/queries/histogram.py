"""Row task for a histogram of the rows' norms after a public map.

The proof note is ``histogram.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core.errors import ArgumentError
from dpcov.core.exact_blas import check_blas
from dpcov.core.lattice import Block, LatticeMap, MappedRows
from dpcov.core.tasks import RowWorker, block_length


@dataclass(frozen=True)
class LogNormGrid:
    """Public bins for the norm of a row: half-open, of equal width in its logarithm.

    Bin 0 holds what is below ``2^lowest``, zero rows among it, and the last bin what is not
    below ``2^highest``. Between them each doubling has ``2 * halves`` bins.
    """

    lowest: int
    highest: int
    halves: int

    def __post_init__(self) -> None:
        if not all(isinstance(number, int) for number in (self.lowest, self.highest, self.halves)):
            raise ArgumentError("grid must be made of whole numbers.")
        if self.highest <= self.lowest or self.halves < 1:
            raise ArgumentError("grid must have a highest exponent above its lowest, and halves >= 1.")

    @property
    def n_bins(self) -> int:
        """Number of bins, the two open ones included."""
        return 2 * self.halves * (self.highest - self.lowest) + 2

    def edges(self) -> NDArray[np.float64]:
        """Return the ``n_bins - 1`` finite edges, as norms."""
        steps = np.arange(self.n_bins - 1) / (2 * self.halves)
        with np.errstate(over="ignore", under="ignore"):
            edges: NDArray[np.float64] = np.exp2(self.lowest + steps)
        return edges

    def locate(self, squares: NDArray[np.float64], exponent: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the bin of the norm ``sqrt(squares * 4^exponent)``, from comparisons alone."""
        mantissa, own = np.frexp(squares)
        # frexp gives [1/2, 1): position within the doubling of the square, then the doubling.
        within = np.searchsorted(self._mantissas(), mantissa, side="right") - 1
        doubling = own.astype(np.int64) - 1 + 2 * exponent.astype(np.int64) - 2 * self.lowest
        index = self.halves * doubling + within + 1
        return np.where(squares > 0, np.clip(index, 0, self.n_bins - 1), 0)

    def _mantissas(self) -> NDArray[np.float64]:
        return np.exp2(np.arange(self.halves) / self.halves - 1)


@dataclass(frozen=True, eq=False)
class LogNormTask:
    """Counts of rows by the logarithm of their norm after a map."""

    lattice_map: LatticeMap
    grid: LogNormGrid
    constant: bool

    @property
    def block_rows(self) -> int:
        """The longest block that a worker takes."""
        return block_length(self.lattice_map.n_columns)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _LogNormWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return nothing: the task does not look at positions."""
        del first_row, n_rows
        return np.empty(0, dtype=np.int64)

    def with_notes(self, notes: NDArray[np.int64]) -> LogNormTask:
        """Return the task itself."""
        del notes
        return self


class _LogNormWorker:
    def __init__(self, task: LogNormTask) -> None:
        check_blas()
        self._task = task
        self._rows = MappedRows(task.lattice_map, task.block_rows)
        mantissa, self._exponent = np.frexp(1.0 / task.lattice_map.scale)
        self._unit_square = float(mantissa * mantissa)
        self._counts = np.zeros(task.grid.n_bins, dtype=np.int64)

    def add(self, block: Block, first_row: int) -> None:
        del first_row
        with np.errstate(all="ignore"):
            rows, grid = self._rows, self._task.grid
            rows.load(block, constant=self._task.constant)
            bins = grid.locate(rows.squares * self._unit_square, rows.shift + self._exponent)
        self._counts += np.bincount(bins, minlength=grid.n_bins)

    def total(self) -> NDArray[np.int64]:
        return self._counts
