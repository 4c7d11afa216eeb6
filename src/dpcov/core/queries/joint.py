"""Several row tasks in one scan of the rows.

The proof note is ``../order.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core.lattice import MappedRows
from dpcov.core.passes import Block
from dpcov.core.tasks import RowTask, RowWorker
from dpcov.core.units import Units


class MappedWorker:
    """Base of workers that need a block's rows after a map only: in one scan, several share these."""

    overwrites = False  # whether it leaves other numbers in place of the mapped rows

    def __init__(self, mapped: MappedRows, *, constant: bool) -> None:
        self.mapped, self.constant = mapped, constant
        self.frame = (mapped.lattice_map.integers, constant)

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        """Map the rows of a block, and add them."""
        del first_row
        _add_mapped([self], block, units)

    def add_mapped(self, units: Units | None) -> None:
        """Add what `mapped` holds."""
        raise NotImplementedError


def _add_mapped(workers: list[MappedWorker], block: Block, units: Units | None) -> None:
    # Warnings would tell about rows.
    with np.errstate(all="ignore"):
        # Numpy copies as many factors of rows as fit into a larger buffer. The context restores its size.
        np.setbufsize(256)
        mapped = workers[0].mapped
        mapped.load(block, constant=workers[0].constant)
        values = mapped.values
        for worker in workers:
            mapped.values = values.copy() if worker.overwrites and worker is not workers[-1] else values
            worker.add_mapped(units)


@dataclass(frozen=True, eq=False)
class JointTask:
    """Runs every block of rows through a worker of each task; the total is theirs, one after another."""

    tasks: tuple[RowTask, ...]

    @property
    def block_rows(self) -> int:
        """The longest block that a worker of every task takes."""
        return min(task.block_rows for task in self.tasks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the total."""
        return (sum(math.prod(task.shape) for task in self.tasks),)

    def worker(self) -> RowWorker:
        """Return a new worker with a total of zero."""
        return _JointWorker(self)

    def notes(self, first_row: int, n_rows: int) -> NDArray[np.int64]:
        """Return what each task knows about these positions, the lengths first; empty if none does."""
        parts = [task.notes(first_row, n_rows) for task in self.tasks]
        if not any(map(len, parts)):
            return parts[0]
        return np.concatenate([np.array([len(part) for part in parts], dtype=np.int64), *parts])

    def with_notes(self, notes: NDArray[np.int64]) -> JointTask:
        """Return the joint task of the tasks for some rows alone."""
        count = len(self.tasks)
        ends = np.cumsum(notes[:count]) if len(notes) else np.zeros(count, dtype=np.int64)
        parts = np.split(notes[count:], ends[:-1])
        return JointTask(tuple(task.with_notes(part) for task, part in zip(self.tasks, parts, strict=True)))

    def split(self, total: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return each task's own total."""
        ends = np.cumsum([math.prod(task.shape) for task in self.tasks])
        parts = np.split(total, ends[:-1])
        return [part.reshape(task.shape) for task, part in zip(self.tasks, parts, strict=True)]


class _JointWorker:
    def __init__(self, task: JointTask) -> None:
        self._workers = [part.worker() for part in task.tasks]
        self._others = [worker for worker in self._workers if not isinstance(worker, MappedWorker)]
        mapped = [worker for worker in self._workers if isinstance(worker, MappedWorker)]
        shared: dict[object, list[MappedWorker]] = {}
        # Of those that overwrite rows, the last one needs no copy of them.
        for worker in sorted(mapped, key=lambda worker: worker.overwrites):
            group = shared.setdefault(worker.frame, [])
            group.append(worker)
            worker.mapped = group[0].mapped
        self._shared = list(shared.values())

    def add(self, block: Block, first_row: int, units: Units | None = None) -> None:
        for group in self._shared:
            _add_mapped(group, block, units)
        for worker in self._others:
            worker.add(block, first_row, units)

    def total(self) -> NDArray[np.int64]:
        return np.concatenate([worker.total().ravel() for worker in self._workers])
