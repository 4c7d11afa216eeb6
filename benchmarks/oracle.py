"""What accuracy is measured against: the exact second moment, and an oracle.

The oracle whitens the rows with their true second moment, knows the best radius and which rows
are outliers, and spends the whole budget on one Gram matrix. No method can know as much.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from accuracy_cases import Case, Matrix, Table
from numpy.typing import NDArray

CACHE = Path(__file__).parent / "results" / "oracle.json"
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)
FINE_QUANTILES = (*(1 - np.geomspace(0.5, 1e-6, 60)).tolist(), 1.0)

# Of singular values of the rows with unit columns: far above rounding, which leaves about 1e-15 where
# columns are collinear, and far below 1e-6, where a condition number of 1e12 ends.
_LEAST_SINGULAR_VALUE = 1e-10
_BLOCK_ROWS = 1 << 16
_SEED = 1_000_000


@dataclass(frozen=True, eq=False)
class Reference:
    """The exact second moment of a table's inliers, as the map that whitens it.

    Attributes
    ----------
    whitener : ndarray, shape (d, rank)
        W with W^T S W = I on the range of S.
    n_rows, n_inliers : int
        How many rows there are, and how many S is the mean over.
    largest_norm : float
        The length of the longest row, outliers included.
    """

    whitener: Matrix
    n_rows: int
    n_inliers: int
    largest_norm: float

    @property
    def rank(self) -> int:
        """The rank of S."""
        return int(self.whitener.shape[1])

    def fingerprint(self) -> str:
        """Return a summary that changes with the table, but not with rounding."""
        size = math.log(float(np.linalg.norm(self.whitener)))
        d = len(self.whitener)
        return f"{self.n_rows}/{self.n_inliers}x{d}/{self.rank}:{size:.4f}:{math.log(self.largest_norm):.4f}"

    def relative_error(self, estimate: Matrix) -> float:
        """Return |S^-1/2 S~ S^-1/2 - I| in spectral norm, on the range of S; infinite if not finite.

        Parameters
        ----------
        estimate : ndarray, shape (d, d)
            The matrix S~ to judge.
        """
        if not np.isfinite(estimate).all():
            return math.inf
        # In double precision the products alone would add 1e-4 at a condition number of 1e12.
        wide = self.whitener.astype(np.longdouble)
        error = (wide.T @ estimate.astype(np.longdouble) @ wide - np.eye(self.rank)).astype(np.float64)
        return float(np.abs(np.linalg.eigvalsh((error + error.T) / 2)).max())


def make_reference(table: Table) -> Reference:
    """Compute the exact second moment of a table's inliers.

    Parameters
    ----------
    table : Table
        Rows that are not finite count as zero rows.
    """
    rows = table.clean_rows()
    inliers = rows if table.inliers is None else rows[table.inliers]
    scale = np.sqrt(np.mean(np.square(inliers), axis=0))
    scale[scale == 0] = 1.0
    _, singular, basis = np.linalg.svd(_triangular_factor(inliers, scale))
    kept = singular > _LEAST_SINGULAR_VALUE * singular[0]
    whitener = math.sqrt(len(inliers)) * basis[kept].T / singular[kept] / scale[:, None]
    return Reference(whitener, len(rows), len(inliers), float(np.linalg.norm(rows, axis=1).max()))


def _triangular_factor(rows: Matrix, scale: NDArray[np.float64]) -> Matrix:
    """Return R with R^T R the Gram matrix of the scaled rows, which squares no condition number."""
    factor = np.zeros((0, rows.shape[1]))
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = rows[first : first + _BLOCK_ROWS] / scale
        factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
    return factor


@dataclass(frozen=True)
class OracleError:
    """The oracle's best median error, and how it got there."""

    error: float
    quantile: float
    dropped: bool


def find_oracle_errors(
    table: Table,
    reference: Reference,
    rhos: Sequence[float],
    runs: int,
    *,
    seed: int = 0,
    quantiles: Sequence[float] = QUANTILES,
) -> list[OracleError]:
    """Return the oracle's error for each budget: the best over radii of the median over runs.

    Parameters
    ----------
    table : Table
        Where rows are marked as outliers, dropping rows beyond the radius is tried besides shrinking.
    reference : Reference
        Its second moment.
    rhos : sequence of float
        Budgets in zCDP.
    runs : int
        How many draws of noise; the same ones for every radius and budget.
    seed : int, default 0
        Seeds the noise.
    quantiles : sequence of float, optional
        Of the inliers' whitened norms: the radii to try.
    """
    noise = _symmetric_noise(np.random.default_rng(seed), runs, reference.rank)
    best = [OracleError(math.inf, math.nan, dropped=False)] * len(rhos)
    for quantile, dropped, radius, moment in _clipped_moments(table, reference, quantiles):
        bias = moment - np.eye(reference.rank)
        for i, rho in enumerate(rhos):
            sigma = radius**2 / (reference.n_inliers * math.sqrt(rho))
            norms = np.abs(np.linalg.eigvalsh(bias + sigma * noise)).max(axis=1)
            found = OracleError(float(np.median(norms)), quantile, dropped)
            best[i] = min(best[i], found, key=lambda result: result.error)
    return best


def _clipped_moments(
    table: Table, reference: Reference, quantiles: Sequence[float]
) -> Iterator[tuple[float, bool, float, Matrix]]:
    white = table.clean_rows() @ reference.whitener
    norms = np.linalg.norm(white, axis=1)
    inlier_norms = norms if table.inliers is None else norms[table.inliers]
    for quantile in quantiles:
        radius = float(np.quantile(inlier_norms, quantile))
        if radius == 0:
            continue
        for dropped in (False,) if table.inliers is None else (False, True):
            weights = (norms <= radius) if dropped else radius / np.maximum(norms, radius)
            clipped = white * weights[:, None]
            yield quantile, dropped, radius, clipped.T @ clipped / reference.n_inliers


def _symmetric_noise(rng: np.random.Generator, runs: int, d: int) -> NDArray[np.float64]:
    """Draw symmetric matrices with variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((runs, d, d))
    return np.asarray((square + square.transpose(0, 2, 1)) / 2)


def load_oracle_errors(
    case: Case,
    table: Table,
    reference: Reference,
    rhos: Sequence[float],
    runs: int,
    *,
    fine: bool = False,
    cache: Path = CACHE,
) -> list[OracleError]:
    """Return the oracle's errors from the cache on disk, after computing those it lacks.

    Parameters
    ----------
    case : Case
        Whose table it is.
    table : Table
        The case's table.
    reference : Reference
        Its second moment; another one than before makes the cached errors void.
    rhos : sequence of float
        Budgets in zCDP.
    runs : int
        How many draws of noise.
    fine : bool, default False
        Whether to try many more radii, which matters for heavy tails.
    cache : path, optional
        A JSON file.
    """
    stored = json.loads(cache.read_text()) if cache.exists() else {}
    quantiles = FINE_QUANTILES if fine else QUANTILES
    setting = f"runs={runs} radii={len(quantiles)} {reference.fingerprint()}"
    keys = [f"{case.name} rho={rho:g} {setting}" for rho in rhos]
    missing = [rho for rho, key in zip(rhos, keys, strict=True) if key not in stored]
    if missing:
        errors = find_oracle_errors(
            table, reference, missing, runs, seed=case.noise_seed(_SEED), quantiles=quantiles
        )
        found = dict(zip(missing, errors, strict=True))
        stored |= {key: asdict(found[rho]) for rho, key in zip(rhos, keys, strict=True) if rho in found}
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    return [OracleError(**stored[key]) for key in keys]
