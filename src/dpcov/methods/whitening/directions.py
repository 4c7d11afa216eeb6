"""Which directions a table has, from the directions of its rows alone.

Scaling every row to length 1 bounds its influence without any bound on the table, and the mean
of ``u u^T`` over unit rows u still tells the *shape* of the second moment. Rounds of such
answers whiten a table whose eigenvalues lie many orders of magnitude apart: what one round
cannot tell from noise is amplified for the next.

The mean of ``u u^T`` is the spatial sign covariance (Locantore et al. 1999; Visuri, Koivunen
and Oja 2000). For an elliptical table its eigenvectors are those of the second moment, and
its eigenvalues are a known function of theirs, which `shape_from_signs` inverts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

RESOLVED = 1.5
"""A direction is resolved when its answer exceeds the noise norm by this factor."""

UNRESOLVED_LEVEL = 0.5
"""What is not resolved is taken to be this many times the noise norm."""

LARGEST_GAIN_RATIO = 2.0**20
"""No direction is amplified more than this beyond another: float64 rows cannot tell."""

_ELLIPTICAL_SPREAD = 10.0
_ENOUGH_KNOWN = 0.55


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which a table is about to become white.

    Attributes
    ----------
    rows : ndarray, shape (d, d)
        One linear form of the table's columns a row.
    resolved : ndarray of bool, shape (d,)
        Which of them have been told from noise and have about unit variance relative to each other.
    plain : ndarray, shape (d,), optional
        Factors that would undo the inversion for elliptical tables (see `without_inversion`).
    """

    rows: Matrix
    resolved: NDArray[np.bool_]
    plain: Vector | None = None

    @property
    def rank(self) -> int:
        """Number of resolved directions."""
        return int(self.resolved.sum())


def initial_frame(n_columns: int) -> Frame:
    """Return the table's own coordinates, nothing resolved."""
    return Frame(np.eye(n_columns), np.zeros(n_columns, dtype=np.bool_))


def resolved_frame(n_columns: int) -> Frame:
    """Return the table's own coordinates, taken as they are."""
    return Frame(np.eye(n_columns), np.ones(n_columns, dtype=np.bool_))


def resolve_more(frame: Frame, rows: Matrix, signs: Matrix, noise_norm: float) -> Frame:
    """Fold one round's answer into the frame.

    Directions that were resolved before are left alone: rows that are rare but long make their
    sign eigenvalue small for good, and amplifying them again and again would ruin the frame. What
    the unresolved ones share with them is subtracted, and the rest is resolved or amplified.

    Parameters
    ----------
    frame : Frame
        Before this round.
    rows : ndarray, shape (d, d)
        The forms that were asked about: those of `frame` up to rounding.
    signs : ndarray, shape (d, d)
        Noisy mean of ``u u^T`` in these forms.
    noise_norm : float
        Spectral norm that the noise has about.

    Returns
    -------
    Frame
    """
    known, open_ = np.flatnonzero(frame.resolved), np.flatnonzero(~frame.resolved)
    remainder, forms = signs, rows
    if len(known):
        share = np.linalg.solve(signs[np.ix_(known, known)], signs[np.ix_(known, open_)]).T
        remainder = signs[np.ix_(open_, open_)] - share @ signs[np.ix_(known, open_)]
        forms = rows[open_] - share @ rows[known]
    values, vectors = np.linalg.eigh((remainder + remainder.T) / 2)
    found = values > RESOLVED * noise_norm
    level = UNRESOLVED_LEVEL * noise_norm
    if not found.all():
        level = max(level, float(values[~found].mean()))
    values = np.where(found, values, level)
    known_level = np.full(
        len(known), max(np.trace(signs[np.ix_(known, known)]) / max(len(known), 1), noise_norm)
    )
    shape = shape_from_signs(np.concatenate([known_level, values]))
    relative = shape[len(known) :] / (shape[0] if len(known) else 1.0)
    updated, resolved = rows.copy(), frame.resolved.copy()
    updated[open_] = (vectors.T @ forms) / np.sqrt(relative)[:, None]
    resolved[open_] = found
    plain = np.ones(len(rows)) if frame.plain is None else frame.plain.copy()
    linear = values / (known_level[0] if len(known) else values.max())
    plain[open_] = np.sqrt(relative / linear)
    return Frame(updated, resolved, plain)


def is_elliptical(frame: Frame, signs: Matrix, noise_norm: float) -> bool:
    """Whether the directions resolved before have become white, as those of an elliptical table do.

    They do not where few long rows make up a direction, such as a column that is seldom not zero:
    there, the number of such rows alone decides the sign eigenvalue, whatever the scale.
    """
    known = np.flatnonzero(frame.resolved)
    if len(known) < max(2, _ENOUGH_KNOWN * len(signs)):
        return True
    values = np.linalg.eigvalsh(signs[np.ix_(known, known)])
    return bool(values[-1] < _ELLIPTICAL_SPREAD * max(values[0], 2 * noise_norm))


def without_inversion(frame: Frame, rows: Matrix) -> Frame:
    """Scale by the sign eigenvalues as they are: right where few long rows make up a direction."""
    factor = np.ones(len(rows)) if frame.plain is None else frame.plain
    return Frame(rows * factor[:, None], frame.resolved)


def refine(rows: Matrix, signs: Matrix, noise_norm: float) -> Frame:
    """Whiten once more a frame whose directions are all resolved."""
    values, vectors = np.linalg.eigh((signs + signs.T) / 2)
    shape = shape_from_signs(np.maximum(values, UNRESOLVED_LEVEL * noise_norm))
    updated = (vectors.T @ rows) / np.sqrt(shape)[:, None]
    return Frame(updated, np.ones(len(rows), dtype=np.bool_))


def shape_from_signs(signs: Vector) -> Vector:
    """Return the eigenvalues, up to scale, of an elliptical table with these sign eigenvalues.

    An elliptical table with second-moment eigenvalues l has sign eigenvalues
    ``l_i / 2 * integral over s > 0 of prod_j (1 + l_j s)^(-1/2) / (1 + l_i s)``
    (Dürre, Tyler and Vogel 2016). A fixed-point iteration in l inverts it.
    """
    target = signs / signs.sum()
    if len(target) == 1:
        return np.ones(1)
    shape = target**1.5 / (target**1.5).max()
    # The integrand is smooth in log s, so equal steps there converge fast.
    log_s = np.arange(-12.0, 80.0, 0.25)
    s = np.exp(log_s)
    for _ in range(200):
        logs = np.log1p(s[:, None] * shape)
        weights = s * np.exp(-logs.sum(axis=1) / 2)
        implied = shape * (weights[:, None] / np.exp(logs)).sum(axis=0)
        ratio = target / (implied / implied.sum())
        shape = shape * ratio
        shape /= shape.max()
        if np.abs(ratio - 1).max() < 1e-3:
            break
    result: Vector = shape
    return result


def column_scales(rows: Matrix) -> Vector:
    """Return the scale of each column of a table that the forms `rows` make white."""
    norms = np.linalg.norm(rows, axis=0)
    scales: Vector = np.linalg.norm(np.linalg.inv(rows / norms), axis=1) / norms
    return scales


def gain_ratio(rows: Matrix) -> float:
    """Return the ratio of the largest to the least gain, columns brought to one scale."""
    return float(np.linalg.cond(rows * column_scales(rows)))


def limit_gains(frame: Frame) -> Frame:
    """Keep the largest gain below 2^20 times the least.

    Beyond, rounding the map to integers would disturb the resolved directions. A direction that
    is unresolved at this gain has less than 10^-12 of the variance of the others.
    """
    scales = column_scales(frame.rows)
    left, gains, right = np.linalg.svd(frame.rows * scales)
    if gains.max() <= gains.min() * LARGEST_GAIN_RATIO:
        return frame
    limited = np.minimum(gains, gains.min() * LARGEST_GAIN_RATIO)
    return Frame((left * limited) @ right / scales, frame.resolved)


def beyond_reach(frame: Frame) -> bool:
    """Whether amplifying unresolved directions any further is pointless."""
    return gain_ratio(frame.rows) > LARGEST_GAIN_RATIO
