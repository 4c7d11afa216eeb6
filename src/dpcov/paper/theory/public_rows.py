"""Subsamplability of a public or synthetic table: leverage, the tail, and an empirical m.

Everything here looks at rows and returns functions of them. It is for public and synthetic data: on a
sensitive table each result would leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dpcov.arrays import Matrix
from dpcov.checks import number, share
from dpcov.core import ArgumentError
from dpcov.paper.theory.subsamplability import bernstein_size

_SIZE_RATIO = 0.75


def leverage_scores(rows: ArrayLike) -> Matrix:
    """Return ``x^T S^+ x`` of every row of a public table, S its second moment; their mean is the rank.

    Parameters
    ----------
    rows : array, shape (n, d)
        Public or synthetic.

    Notes
    -----
    The leverage is the largest ``<x, u>^2 / u^T S u`` over directions u, by Cauchy and Schwarz. (For a
    point outside the span of the rows it would be infinite.)
    """
    return np.asarray(np.square(_white(rows)).sum(axis=1))


def tail(rows: ArrayLike, m: float, alpha: float) -> NDArray[np.bool_]:
    """Return which rows of a public table are in the paper's tail: leverage above ``m (1 + alpha)``.

    Parameters
    ----------
    rows : array, shape (n, d)
        Public or synthetic.
    m, alpha : float
        Of subsamplability.

    Notes
    -----
    Definition 3.2. If the table is (m, alpha, beta)-subsamplable, its share is at most ``tail_share(m,
    beta)``.
    """
    limit = number(m, "m", at_least=1) * (1 + number(alpha, "alpha", above=0))
    return np.asarray(leverage_scores(rows) > limit)


def table_moments(rows: ArrayLike) -> tuple[float, float]:
    """Return M1 and M2 of a public table: exactly what `bernstein_size` takes for subsamples drawn from it.

    Parameters
    ----------
    rows : array, shape (n, d)
        Public or synthetic.
    """
    white = _white(rows)
    leverage = np.square(white).sum(axis=1)
    fourth = (white * leverage[:, None]).T @ white / len(white)
    return math.sqrt(float(leverage.max())), float(np.linalg.eigvalsh(fourth)[-1])


@dataclass(frozen=True)
class SizeTrial:
    """What was seen at one subsample size.

    Attributes
    ----------
    size : int
        Rows in a subsample.
    failures, trials : int
        How many subsamples were off by more than alpha, of how many.
    failure_at_most : float
        An upper confidence limit on the probability of that.
    """

    size: int
    failures: int
    trials: int
    failure_at_most: float


@dataclass(frozen=True)
class EmpiricalSize:
    """A subsample size for which subsamplability was seen to hold.

    Attributes
    ----------
    m : int or None
        The least size tried such that it and every larger one tried passed; None if the largest failed.
    alpha, beta : float
        What was asked.
    confidence : float
        With this probability every `failure_at_most` is right, all together.
    proved_from : int
        From this size on the property is certain, by the matrix Bernstein inequality for this table.
    trials : tuple of SizeTrial
        From the largest size to the least. Sizes between them were not tried, nor any between the largest
        and `proved_from`.
    """

    m: int | None
    alpha: float
    beta: float
    confidence: float
    proved_from: int
    trials: tuple[SizeTrial, ...]


def empirical_size(
    rows: ArrayLike,
    alpha: float,
    beta: float,
    *,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> EmpiricalSize:
    """Estimate the least m for which a public table is (m, alpha, beta)-subsamplable.

    Parameters
    ----------
    rows : array, shape (n, d)
        Public or synthetic.
    alpha, beta : float
        The accuracy and the probability of failure of subsamples.
    confidence : float, default 0.95
        Of the statement about all sizes tried together.
    rng : numpy.random.Generator, optional
        Draws the subsamples, with replacement, as Definition 1.1 asks.

    Notes
    -----
    Sizes go down from n (or from where Bernstein's inequality proves the property, if that is less) by
    factors of 3/4. At each, enough subsamples are drawn that a true failure probability of beta / 4
    usually passes. A size passes if the Clopper and Pearson upper limit on its failure probability is at
    most beta, at a level that the sizes share (Bonferroni). The search ends at the first size that does
    not pass.
    """
    a, b, level = number(alpha, "alpha", above=0), share(beta, "beta"), share(confidence, "confidence")
    generator = np.random.default_rng() if rng is None else rng
    white = _white(rows)
    n, rank = white.shape
    if not rank:
        raise ArgumentError("rows must not all be zero.")
    m1, m2 = table_moments(rows)
    proved = bernstein_size(m1, m2, rank, a, b)
    sizes = [min(n, proved)]
    while (smaller := math.floor(sizes[-1] * _SIZE_RATIO)) >= 1 and smaller < sizes[-1]:
        sizes.append(smaller)
    miss = (1 - level) / len(sizes)
    repeats = math.ceil(2.5 * math.log(1 / miss) / b)
    trials: list[SizeTrial] = []
    best: int | None = None
    for size in sizes:
        failures = sum(_is_off(white, size, a, generator) for _ in range(repeats))
        limit = _upper_limit(failures, repeats, miss)
        trials.append(SizeTrial(size, failures, repeats, limit))
        if limit > b:
            break
        best = size
    return EmpiricalSize(best, a, b, level, proved, tuple(trials))


def _is_off(white: Matrix, size: int, alpha: float, rng: np.random.Generator) -> bool:
    if size < white.shape[1] and alpha < 1:
        return True
    drawn = white[rng.integers(len(white), size=size)]
    values = np.linalg.eigvalsh(drawn.T @ drawn / size)
    return bool(values[0] < 1 - alpha or values[-1] > 1 + alpha)


def _upper_limit(failures: int, trials: int, miss: float) -> float:
    """Return the Clopper and Pearson upper limit, too low with probability at most `miss`."""
    if failures == trials:
        return 1.0
    return float(betaincinv(failures + 1, trials - failures, 1 - miss))


def _white(rows: ArrayLike) -> Matrix:
    """Return the rows in coordinates of their span in which their second moment is the identity."""
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ArgumentError(f"rows must be a table with rows and columns, got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise ArgumentError("rows must be finite.")
    lengths = np.abs(table).max(axis=0)
    left, values, _ = np.linalg.svd(table / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    kept = values > values[0] * max(table.shape) * np.finfo(np.float64).eps
    return np.asarray(left[:, kept & (values > 0)] * math.sqrt(len(table)))
