"""Tables to check the paper's claims on: drawn from the theory's distributions, or built to be hard."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from paper_checks.reference import Matrix, second_moment_of

from dpcov.paper.theory import (
    Distribution,
    EllipsoidSurface,
    LinearImage,
    ParetoBesideDirection,
    ParetoTimesDirection,
    WithOutliers,
    leverage_scores,
    log_spaced_gaussian,
)

ALPHA = 0.5
"""Of subsamplability, in all tables."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A synthetic table and what the algorithms are told about it.

    Attributes
    ----------
    name : str
        For the results.
    rows : ndarray, shape (n, d)
        The table.
    m : float
        The subsample size told.
    radius, least_eigenvalue : float
        The longest row, and the least eigenvalue of the rows' second moment.
    """

    name: str
    rows: Matrix
    m: float
    radius: float
    least_eigenvalue: float


def distributions(
    n_columns: int = 5, carried: float = 0.3, outliers: float = 2e-4
) -> dict[str, Distribution]:
    """Return the distributions of Section 4 and Appendix D, all of condition 1e6 or so, by name.

    Parameters
    ----------
    n_columns : int, default 5
        The dimension d.
    carried : float, default 0.3
        How much outliers carry in the least direction, next to 1 for the inliers.
    outliers : float, default 2e-4
        Their share of the rows.
    """
    d = n_columns
    stretch = np.diag(np.logspace(0, -3, d))
    gaussian = log_spaced_gaussian(d, 1e6)
    return {
        "ellipsoid": EllipsoidSurface(np.diag(np.logspace(0, -6, d))),
        "Pareto times": LinearImage(ParetoTimesDirection(d), stretch),
        "Pareto beside": LinearImage(ParetoBesideDirection(d - 1), stretch),
        "Gaussian": gaussian,
        "outliers on a sphere": WithOutliers(gaussian, outliers, math.sqrt(carried * d * 1e-6 / outliers)),
        "outliers along the least": WithOutliers(
            gaussian, outliers, math.sqrt(carried * 1e-6 / outliers), "least"
        ),
    }


def draw_table(name: str, law: Distribution, n_rows: int, rng: np.random.Generator) -> PublicTable:
    """Draw a table and the least m for which no inlier is in the tail."""
    if isinstance(law, WithOutliers):
        rows, inliers = law.sample_labelled(n_rows, rng)
    else:
        rows, inliers = law.sample(n_rows, rng), np.ones(n_rows, dtype=bool)
    # A hair more, so that rounding puts no inlier into the tail.
    m = float(leverage_scores(rows)[inliers].max()) / (1 + ALPHA) * (1 + 1e-9)
    return describe(name, rows, m)


def table_with_a_constant(n_rows: int, rng: np.random.Generator) -> PublicTable:
    """Return a table with a constant column: nearly all of every row lies in one direction."""
    rows = np.column_stack([np.ones(n_rows), 1e-3 * EllipsoidSurface(np.eye(4)).sample(n_rows, rng)])
    return describe("constant column", rows, float(leverage_scores(rows).max()) / (1 + ALPHA) * (1 + 1e-9))


def describe(name: str, rows: Matrix, m: float) -> PublicTable:
    """Return a table with its longest row and least eigenvalue."""
    radius = float(np.linalg.norm(rows, axis=1).max())
    return PublicTable(name, rows, max(m, 1.0), radius, float(np.linalg.eigvalsh(second_moment_of(rows))[0]))


def table_with_a_large_tail(m: int, beta: float, n_rows: int) -> Matrix:
    """Return an (m, 1/2, beta)-subsamplable table with a quarter of the tail that Claim 3.7 allows.

    Rows are ``(+-1, +-1)``, and a few are longer in the second direction, just beyond the tail's limit.
    Subsamples are off if they hold one of them and less than about 1.95 m rows in all.
    """
    outliers = round(-0.3 * math.log1p(-beta) / m * n_rows)
    carried = outliers / n_rows * 1.51 * m
    signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    rows = np.tile(signs, (n_rows // 2, 1))
    rows[:outliers, 1] *= math.sqrt(1.51 * m / (1 - carried))
    return rows


def table_with_random_tail(rng: np.random.Generator) -> PublicTable:
    """Return a small table with some rows of any leverage, and an m that puts some of them into the tail.

    Without the tail at least half is left in every direction, as the theorem asks.
    """
    while True:
        d = int(rng.integers(2, 5))
        rows = rng.standard_normal((400, d))
        few = int(rng.integers(1, 8))
        rows[:few] *= np.exp(rng.uniform(0, 6, (few, d)) * rng.integers(0, 2, (few, d)))
        rows *= np.exp(rng.uniform(-8, 0, d))
        leverage = leverage_scores(rows)
        m = float(np.quantile(leverage, 1 - rng.uniform(0, 1.5 * few) / len(rows))) / (1 + ALPHA)
        table = describe("random", rows, m)
        kept = rows[leverage <= table.m * (1 + ALPHA)]
        if np.linalg.eigvalsh(kept.T @ kept - (1 - ALPHA) * rows.T @ rows)[0] >= 0:
            return table


def table_that_breaks_lemma_3_9(m: int = 200, n_rows: int = 200_000) -> tuple[PublicTable, Matrix]:
    """Return a table with one row outside the tail that the paper's constants shrink, and the noise for it.

    Returns
    -------
    table : PublicTable
        All rows but the last are ``(+-a, +-b, +-1)``, in equal numbers: their leverage is about 3, so small
        subsamples agree. The last row has the length of the radius, and a little more than a sixth of its
        square in the second direction. The table is subsamplable for this m, as only subsamples with the
        last row in them can be off.
    noise : ndarray, shape (3, 3)
        For ``kappa = 1``: it makes the second direction look smaller by c, as the event of the proof
        allows, so that it stays below the threshold psi.

    Notes
    -----
    Lemma 3.9 with psi = 1/(10 m), c = 1/(80 m). The second direction holds 0.9999 (psi + c) kappa. The
    last row is shrunk, as 1/6 and not 3/7 of its squared length outside V is enough. Its leverage is
    about (1/6) / (0.1125 / m) = 1.48 m, below the 1.5 m of the tail.
    """
    squared_radius = 400.0 * m
    outside = 1.002 / 6 * squared_radius
    second = 0.9999 * (1 / 10 + 1 / 80) / m * squared_radius
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    rows = np.tile(signs * np.sqrt([squared_radius / 2, second - outside / n_rows, 1.0]), (n_rows // 8, 1))
    rows[-1] = np.sqrt([squared_radius - outside, outside, 0.0])
    noise = np.diag([0.0, -1 / (80 * m), 0.0])
    return describe("built", rows, float(m)), noise
