"""Coordinates in which a table is about to become white, and what unit rows tell about them.

Scaling every row to length 1 bounds its influence without any bound on the table, and the mean of ``u u^T``
over unit rows u still tells the *shape* of the second moment: it is the spatial sign covariance (Locantore et
al. 1999; Visuri, Koivunen and Oja 2000). For an elliptical table its eigenvectors are those of the second
moment, and its eigenvalues are a known function of theirs, which `shape_from_signs` inverts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Bools, Matrix, Vector
from dpcov.core import NoisyGram
from dpcov.laws import noise_norm
from dpcov.maps import largest_gain_ratio
from dpcov.methods.whitening import constants as c

LEAST_SPREAD = 2.0**-12
"""The scale of a column is at least this part of its centre, so that a gain counts from there on.

With a gain of up to 2^21 beyond (`largest_gain_ratio`) a spread of ``2^-33`` of the mean comes into reach;
a second moment in float64 shows ``2^-26`` at best. Inverting the coordinates then rounds by ``2^-19``. A
column with one value has no spread at all: without this, it would be amplified without end, and leave the
others no room in the integers.
"""


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates: one linear form of the table's columns a row, and which of them have been seen.

    Attributes
    ----------
    rows : ndarray, shape (d, d)
        The forms.
    seen : ndarray of bool, shape (d,)
        Which of them stood above the noise, and have about unit variance relative to each other.
    """

    rows: Matrix
    seen: Bools

    @property
    def rank(self) -> int:
        """Number of directions that were seen."""
        return int(self.seen.sum())

    def amplified(self, gain: float) -> Frame:
        """Return the frame with the unseen directions so many times as long."""
        return Frame(self.rows * np.where(self.seen, 1.0, gain)[:, None], self.seen)


def in_frame(answer: NoisyGram, forms: Matrix) -> tuple[Matrix, Matrix]:
    """Return the forms that an answer is really about, and its second moment in them.

    The answer's map is triangular: it is `forms` up to a rotation and rounding. The rotation is undone.
    """
    asked = answer.lattice_map.matrix()
    left, _, right = np.linalg.svd(asked @ np.linalg.inv(forms))
    rotation = left @ right
    return rotation.T @ asked, rotation.T @ answer.mean() @ rotation


def are_visible(values: Vector, sigma: float) -> Bools:
    """Return which of the eigenvalues of a noisy second moment stand above its noise.

    Those that do have room for noise of their own. The k others see noise of k directions, so the k-th from
    below is held against that alone, once all larger ones have passed: an eigenvalue that all others outshine
    is visible from `VISIBLE` times the noise of few directions on, not of all.

    Parameters
    ----------
    values : ndarray, shape (d,)
        Ascending.
    sigma : float
        Standard deviation of the noise of a variance.
    """
    # The norm of one number varies more than that of a matrix.
    norms = np.array([noise_norm(float(max(k, 2)), sigma) for k in range(1, len(values) + 1)])
    visible: Bools = np.logical_and.accumulate((values > c.VISIBLE * norms)[::-1])[::-1]
    return visible


def resolve_more(frame: Frame, forms: Matrix, signs: Matrix, noise: float) -> Frame:
    """Fold one round of unit rows into the frame.

    Directions that were seen before are left alone. What the others share with them is subtracted, and the
    rest is seen now, or amplified.

    Parameters
    ----------
    frame : Frame
        Before this round.
    forms : ndarray, shape (d, d)
        The forms that were asked about: those of `frame` up to rounding.
    signs : ndarray, shape (d, d)
        Noisy mean of ``u u^T`` in these forms.
    noise : float
        Spectral norm that the noise has about.
    """
    known, open_ = np.flatnonzero(frame.seen), np.flatnonzero(~frame.seen)
    remainder, rest, sigma = signs, forms, noise / noise_norm(len(signs), 1.0)
    if len(known):
        share = np.linalg.solve(signs[np.ix_(known, known)], signs[np.ix_(known, open_)]).T
        remainder = signs[np.ix_(open_, open_)] - share @ signs[np.ix_(known, open_)]
        rest = forms[open_] - share @ forms[known]
        # A difference has the noise of all that is subtracted, too.
        sigma *= 1 + float(np.linalg.norm(share, 2)) ** 2
    values, vectors = np.linalg.eigh((remainder + remainder.T) / 2)
    found = are_visible(values, sigma)
    if not found.all():
        level = max(c.UNSEEN_LEVEL * noise_norm(float((~found).sum()), sigma), float(values[~found].mean()))
        values = np.where(found, values, level)
    even = max(np.trace(signs[np.ix_(known, known)]) / max(len(known), 1), noise)
    shape = shape_from_signs(np.concatenate([np.full(len(known), even), values]))
    relative = shape[len(known) :] / (shape[0] if len(known) else 1.0)
    updated, seen = forms.copy(), frame.seen.copy()
    updated[open_] = (vectors.T @ rest) / np.sqrt(relative)[:, None]
    seen[open_] = found
    return Frame(updated, seen)


def least_known(frame: Frame, signs: Matrix) -> float:
    """Return by how much unit rows show the least of the directions seen before; infinite if none was."""
    known = np.flatnonzero(frame.seen)
    return float(np.linalg.eigvalsh(signs[np.ix_(known, known)])[0]) if len(known) else np.inf


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


def centres_and_scales(rows: Matrix, *, constant: bool) -> tuple[Vector, Vector]:
    """Return the centre and the scale of each column of a table that the forms `rows` make white.

    Parameters
    ----------
    rows : ndarray, shape (d, d)
        The forms.
    constant : bool
        Whether the last column is the constant one: columns then have the mean as their centre, else 0.
    """
    norms = np.linalg.norm(rows, axis=0)
    # Column j is ``inverse[j] @ y`` of white y, so columns have the products of these vectors as moments.
    inverse = np.linalg.inv(rows / norms) / norms[:, None]
    centres = np.zeros(len(rows))
    if constant:
        one = inverse[-1]
        centres[:-1] = inverse[:-1] @ one / (one @ one)
        inverse = inverse - np.outer(centres, one)
    scales: Vector = np.linalg.norm(inverse, axis=1)
    return centres, np.maximum(scales, LEAST_SPREAD * np.abs(centres))


def beyond_reach(rows: Matrix, *, constant: bool) -> bool:
    """Whether amplifying a direction any further is pointless, columns brought to one centre and scale."""
    centres, scales = centres_and_scales(rows, constant=constant)
    return float(np.linalg.cond(_about(rows, centres) * scales)) > largest_gain_ratio(len(rows))


def limit_gains(rows: Matrix, *, constant: bool) -> Matrix:
    """Keep the largest gain below `largest_gain_ratio` times the least.

    Beyond, what is amplified would be the rounding of rows.
    """
    centres, scales = centres_and_scales(rows, constant=constant)
    left, gains, right = np.linalg.svd(_about(rows, centres) * scales)
    most = gains.min() * largest_gain_ratio(len(rows))
    if gains.max() <= most:
        return rows
    limited = np.minimum(gains, most)
    return _about((left * limited) @ right / scales, -centres)


def _about(rows: Matrix, centres: Vector) -> Matrix:
    """Return the forms for columns from which `centres` were subtracted."""
    moved = rows.copy()
    moved[:, -1] += rows @ centres
    return moved
