"""The curator: holds the rows and the budget, and answers private queries only.

`Curator.ask` is the one door to the rows, and the one place that charges. Methods of estimation see a curator
and its answers, never a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dpcov.core.budget import Budget, PrivacyCost, Receipt
from dpcov.core.entropy import BitSource
from dpcov.core.errors import ArgumentError, SourceError
from dpcov.core.queries.joint import JointTask
from dpcov.core.queries.sample import SampledTask, random_order, random_positions, sampled_rows
from dpcov.core.query import Query, Table, check_query, whole_number
from dpcov.core.tasks import HeldRows, Report, RowTask, Source

Progress = Callable[[str, int | None], AbstractContextManager[Report | None]]
"""Called before a scan with its purpose, and its number of rows if they are reported; gives what is told."""

A = TypeVar("A")
B = TypeVar("B")

# Larger totals, such as those of groups, are not worth their memory.
_LARGEST_KEPT_TOTAL = 1 << 17


class Curator:
    """Answers private queries about one table, within one budget.

    Neighbours are tables of the same public size that differ in one row, or in one unit if rows are grouped.

    Parameters
    ----------
    source : Source
        Where the rows are.
    budget : Budget
        What may be spent. Every query is charged before its noise is drawn.
    bits : BitSource
        Where noise comes from.
    constant : bool, default False
        Whether a constant column of ones joins the table as its last.
    progress : callable, optional
        Shows that a scan runs. It learns its purpose and, of a table in memory, the rows read so far.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.core import Budget, Clipping, Curator, Gram, SeededBits, resolve_budget
    >>> from dpcov.maps import identity_map
    >>> from dpcov.sources import ArraySource
    >>> rows = np.random.default_rng(0).normal(size=(1000, 2))
    >>> seeded = SeededBits(np.random.default_rng(1))  # for examples: not private
    >>> curator = Curator(ArraySource(rows), Budget(resolve_budget(rho=1)), seeded)
    >>> gram = curator.ask(Gram(Clipping(identity_map(2), radius=4.0), rho=0.5, purpose="second moment"))
    >>> gram.mean().shape
    (2, 2)
    >>> print(curator.receipt())
    spent rho=0.5 of rho=1
      rho=0.5  second moment
      NOT PRIVATE: the noise came from a seeded generator
    """

    def __init__(
        self,
        source: Source,
        budget: Budget,
        bits: BitSource,
        *,
        constant: bool = False,
        progress: Progress | None = None,
    ) -> None:
        if source.n_rows < 1 or len(source.columns) < 1:
            raise ArgumentError("the table has no rows or no columns.")
        self._source = source
        self._budget = budget
        self._bits = bits
        self._progress = progress or (lambda _purpose, _n_rows: nullcontext())
        self._table = Table.of_size(
            source.n_rows,
            len(source.columns) + constant,
            constant=constant,
            in_memory=source.in_memory,
            grouped=source.grouped,
        )
        self._sample_order, self._whole = np.empty(0, dtype=np.int64), False
        self._sample: HeldRows | None = None
        self._last: tuple[tuple[RowTask, int], NDArray[np.int64]] | None = None

    @property
    def n_rows(self) -> int:
        """The public number of rows; if they are grouped, that of units: what neighbours differ in one of."""
        return self._table.n_rows

    @property
    def grouped(self) -> bool:
        """Whether rows come in units of several, such as those of a person."""
        return self._table.grouped

    @property
    def n_columns(self) -> int:
        """The number of columns, the constant one included."""
        return self._table.n_columns

    @property
    def columns(self) -> tuple[str, ...]:
        """The public column names, without the constant one."""
        return self._source.columns

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The public lower and upper ends of `columns`, shape (columns, 2); infinite where none is known."""
        return self._source.bounds

    @property
    def has_constant(self) -> bool:
        """Whether the last column is a constant one."""
        return self._table.constant

    @property
    def remaining(self) -> PrivacyCost:
        """What may still be spent."""
        return self._budget.remaining

    def receipt(self) -> Receipt:
        """Return everything that was charged so far."""
        return self._budget.receipt(private=self._bits.private)

    def hold(self, n_rows: int, *, whole: bool = False) -> None:
        """Let queries that look at a sample of at most so many rows share one, read for the first of them.

        It stays where the rows are, in random order. Each query reads as many of its first rows as it looks
        at. With `whole`, all other rows are kept behind it, unless they lie in memory anyhow, and no query
        reads the table again that does not look at positions. Units of several rows, whose lengths are not
        public, are not held. Once a sample was read, it stays the one that is held.

        Notes
        -----
        *Formal guarantee.* Nothing is answered, and nothing is charged. What queries cost does not change
        (``order.md``).
        """
        count = min(whole_number(n_rows, "n_rows", 0), self.n_rows)
        if self._sample is None and not self.grouped:
            # Drawn now: where rows lie does not decide which bits noise is drawn from.
            self._sample_order = random_order(self._bits, self.n_rows, count)
            self._whole = whole and not self._source.in_memory

    @overload
    def ask(self, query: Query[A], /) -> A: ...
    @overload
    def ask(self, query: Query[A], second: Query[B], /) -> tuple[A, B]: ...
    @overload
    def ask(self, *queries: Query[Any]) -> Any: ...
    def ask(self, *queries: Query[Any]) -> Any:
        """Check, charge, scan, add noise.

        Parameters
        ----------
        *queries : Query
            One or more, none of which needs the answer of another. They are checked first, charged
            together or not at all, and share one scan of the rows.

        Returns
        -------
        The answer; of several queries, a tuple of their answers.

        Raises
        ------
        ArgumentError
            If a query cannot be asked about this table. Nothing was spent.
        BudgetError
            If the budget does not cover all of them. Nothing was spent.

        Notes
        -----
        *Formal guarantee.* The answers together satisfy the sum of the queries' costs, given all earlier
        answers (``budget.md``, ``order.md``).
        """
        if not queries:
            raise ArgumentError("ask needs at least one query.")
        for query in queries:
            check_query(query, self._table)
        self._budget.charge(*(charge for query in queries for charge in query.charges))
        tasks = [query.task(self._table, self._bits) for query in queries]
        counts = [sampled_rows(self.n_rows, getattr(query, "every", 1)) for query in queries]
        purpose = " and ".join(dict.fromkeys(query.purpose for query in queries))
        answers = tuple(
            query.answer(exact, self._table, self._bits)
            for query, exact in zip(queries, self._scan(tasks, counts, purpose), strict=True)
        )
        return answers[0] if len(answers) == 1 else answers

    def _scan(self, tasks: Sequence[RowTask], counts: Sequence[int], purpose: str) -> list[NDArray[np.int64]]:
        """Return the exact total of every task over so many rows each, from one scan of the rows.

        Tasks that read as many rows of the sample that is held share a scan of these instead. One that equals
        the last and reads the same rows has the same total, bit for bit, and is not scanned again.
        """
        asked = list(zip(tasks, counts, strict=True))
        if self._last is not None and asked == [self._last[0]]:
            return [self._last[1]]
        found: dict[tuple[RowTask, int], NDArray[np.int64]] = {}
        # Equal tasks, such as two counts in one grid, have one total.
        for held in dict.fromkeys(self._held_of(*pair) for pair in asked):
            some = [pair for pair in dict.fromkeys(asked) if self._held_of(*pair) == held]
            joint = JointTask(tuple(task if held else self._sampled(task, count) for task, count in some))
            total = self._total_of(joint if len(some) > 1 else joint.tasks[0], held, purpose)
            found |= zip(some, joint.split(total), strict=True)
        again = counts[-1] == self.n_rows or self._held_of(*asked[-1])
        if again and found[asked[-1]].size <= _LARGEST_KEPT_TOTAL:
            self._last = asked[-1], found[asked[-1]]
        return [found[pair] for pair in asked]

    def _total_of(self, task: RowTask, held: int, purpose: str) -> NDArray[np.int64]:
        """Return the total over so many rows that are held; over all rows if that is 0."""
        if not held:
            with self._progress(purpose, self._reported(self.n_rows)) as report:
                return self._source.scan(task, report)
        try:
            return self._total_of_held(task, held, purpose)
        except SourceError:
            # A machine may be gone with its rows: another sample serves as well.
            self._sample_order = random_order(self._bits, self.n_rows, len(self._sample_order))
            self._sample = None
            return self._total_of_held(task, held, purpose)

    def _total_of_held(self, task: RowTask, held: int, purpose: str) -> NDArray[np.int64]:
        if self._sample is None:
            order = self._sample_order
            if self._whole:
                order = np.append(order, np.delete(np.arange(self.n_rows), order))
            read = "the rows" if self._whole else "a sample of the rows"
            with self._progress(read, self._reported(self.n_rows)) as report:
                self._sample = self._source.hold(order, report)
        with self._progress(purpose, self._reported(held)) as report:
            return self._sample.scan(task, held, report)

    def _held_of(self, task: RowTask, count: int) -> int:
        """Return how many rows that are held a task over so many reads: all of them, or none."""
        if count < self.n_rows:
            return count if count <= len(self._sample_order) else 0
        # What looks at positions, such as groups, has notes about them.
        return count if self._whole and not len(task.notes(0, count)) else 0

    def _sampled(self, task: RowTask, count: int) -> RowTask:
        """Return a task for a new sample of so many rows; for all of them, the task itself."""
        if count == self.n_rows:
            return task
        return SampledTask(task, random_positions(self._bits, self.n_rows, count))

    def _reported(self, n_rows: int) -> int | None:
        """Return so many rows if they are reported: elsewhere the cut may depend on them (``order.md``)."""
        return n_rows if self._source.in_memory else None
