"""What one learns from all private answers of a run together, who knows every row but one.

The adversary knows the two neighbours, hence what each query would add up over either, and the law of its
noise. All answers together are then a shift of Gaussian noise, whatever earlier answers made the method ask:
the sum of their log-likelihood ratios is the best statistic there is to tell the neighbours apart, and the
sum of ``shift^2 / (2 variance)`` is exactly what was lost, to be compared with what was charged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.query_classes import QUERY_MODULES
from numpy.typing import NDArray

from dpcov.core import Curator, Gram, NormHistogram, OSEntropy, Query, RowsBeyond
from dpcov.core.query import Table
from dpcov.methods.whitening.queries.clipped import ClippedGram
from dpcov.methods.whitening.queries.columns import PerColumn
from dpcov.sources import ArraySource

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Heard:
    """One answer.

    Attributes
    ----------
    purpose, query : str
        What it was asked for, and the class of the query.
    loss : Fraction
        What it tells about which neighbour it is, in rho, by the variance that its noise was drawn with.
    log_ratio : float
        Logarithm of how much likelier it is for the first neighbour.
    """

    purpose: str
    query: str
    loss: Fraction
    log_ratio: float


@dataclass(frozen=True)
class Asked:
    """What was asked together, and the rho that the budget was charged for it."""

    charged: Fraction
    heard: tuple[Heard, ...]

    @property
    def loss(self) -> Fraction:
        """What the answers tell together."""
        return sum((one.loss for one in self.heard), Fraction(0))


@contextmanager
def overheard(one: Array, other: Array) -> Iterator[list[Asked]]:
    """Run what asks one of two neighbours, and hear every answer."""
    transcript: list[Asked] = []
    ask = Curator.ask

    def tapped(self: Curator, *queries: Query[Any]) -> Any:
        before = self.receipt().spent.rho
        with _drawn() as variances:
            told = ask(self, *queries)
        charged = self.receipt().spent.rho - before
        answers = told if len(queries) > 1 else (told,)
        heard = tuple(
            _hear(query, answer, self._table, (one, other), variances)
            for query, answer in zip(queries, answers, strict=True)
        )
        assert not variances, "noise was drawn that belongs to no answer"
        transcript.append(Asked(charged, heard))
        return told

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "ask", tapped)
        yield transcript


@contextmanager
def _drawn() -> Iterator[list[Fraction]]:
    """Note the variance of all Gaussian noise that queries draw, one for each call of the sampler."""
    variances: list[Fraction] = []

    def noting(sampler: Any) -> Any:
        def sample(bits: Any, variance: Any, count: int) -> Integers:
            variances.append(Fraction(variance))
            return np.asarray(sampler(bits, variance, count))

        return sample

    with pytest.MonkeyPatch.context() as patch:
        for module in QUERY_MODULES:
            if hasattr(module, "rounded_gaussian"):
                patch.setattr(module, "rounded_gaussian", noting(module.rounded_gaussian))
        yield variances


def _hear(
    query: Any, answer: Any, table: Table, neighbours: tuple[Array, Array], variances: list[Fraction]
) -> Heard:
    assert getattr(query, "every", 1) == 1, "the rows of a sample are secret: take a shorter table"
    task = query.task(table, OSEntropy())
    first, second = (
        _statistics(query, table, ArraySource(rows, threads=1).scan(task, None)) for rows in neighbours
    )
    loss, log_ratio = Fraction(0), 0.0
    for noisy, a, b in zip(_observed(query, answer), first, second, strict=True):
        variance, shift = variances.pop(0), (a - b).astype(object)
        loss += Fraction(int((shift * shift).sum())) / (2 * variance)
        log_ratio += float(Fraction(int((shift * (2 * noisy - a - b)).sum())) / (2 * variance))
    return Heard(query.purpose, type(query).__name__, loss, log_ratio)


def _statistics(query: Any, table: Table, exact: Integers) -> list[Integers]:
    """Return what noise is added to, one array for each call of the sampler."""
    if isinstance(query, Gram):
        return [exact.diagonal(), exact[np.triu_indices(len(exact), 1)], np.array([exact.trace()])]
    if isinstance(query, ClippedGram):
        d = table.n_columns
        matrix, counts, losses = np.split(exact, [d * d, d * d + 2])
        gram = _statistics(query._gram, table, matrix.reshape(d, d))
        weighted = [*gram, counts * np.array(query.pull.weights(table.lattice))]
        return weighted if query.pull.kept_losing is None else [*weighted, losses]
    if isinstance(query, NormHistogram):
        return [exact]
    if isinstance(query, RowsBeyond):
        return [exact[query.first_bin :].sum(keepdims=True)]
    if isinstance(query, PerColumn):
        part = query._part(table)
        shapes = [one.task(part, OSEntropy()).shape for one in query.queries]
        totals = np.split(exact, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        found = zip(query.queries, totals, shapes, strict=True)
        return [array for one, total, shape in found
                for array in _statistics(one, part, total.reshape(shape))]  # fmt: skip
    raise AssertionError(f"say here what {type(query).__name__} adds noise to")


def _observed(query: Any, answer: Any) -> list[Integers]:
    """Return the noisy numbers of an answer, in the same order."""
    if isinstance(query, Gram):
        upper = answer.integers[np.triu_indices(len(answer.integers), 1)]
        return [answer.integers.diagonal(), upper, np.array([answer.trace])]
    if isinstance(query, ClippedGram):
        counted = [*_observed(query._gram, answer.gram), answer.counts]
        return counted if answer.losses is None else [*counted, answer.losses]
    if isinstance(query, NormHistogram):
        return [answer.counts]
    if isinstance(query, RowsBeyond):
        return [np.array([answer.count])]
    pairs = zip(query.queries, answer, strict=True)
    return [array for one, part in pairs for array in _observed(one, part)]
