"""How far a ball should reach: noise grows with the square of its radius, and what it clips shrinks.

The optimum clips about as many rows as the noise is worth, ``sqrt(2 d / rho)``: fewer than a noisy histogram
of norms can count. But the histogram counts the rows a little further in well, and the law of the tail that
it leaves likely (``tail.py``) tells how many lie beyond any radius, and what clipping them takes.
"""

from __future__ import annotations

import math

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.losses import LossLaw
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.norms import FineNorms
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.tail import fit_tail, survival

_STEPS = 120
# How far a ball that may clip reaches at least and at most, in units of the furthest rows that are seen.
_SHORTEST, _LONGEST = 0.5, 1.5


def even_count(run: Run, rank: int) -> float:
    """Return how many rows, clipped in one direction, cost what the noise does among `rank` directions.

    The noise of a wider region grows by ``sqrt(2 rank / rho)`` rows times what its squared radius grows by;
    clipping k rows that agree in direction takes k times as much.
    """
    return math.sqrt(2 * rank / (run.left * run.rho))


def cheapest_radius(
    histogram: FineNorms, told: float, noise: float, agreeing: float, *, without_law: float = 0.0
) -> float:
    """Return the radius at which noise and what clipping likely takes are least together.

    The ball may clip rows that the histogram shows. Of rows that it does not show, the likely loss counts.

    Parameters
    ----------
    histogram : FineNorms
        Of the norms.
    told : float
        Up to where it shows rows.
    noise : float
        How many rows of length R, along one direction, the noise of a ball of radius R is worth.
    agreeing : float
        Which part of the rows beyond lies along one direction.
    without_law : float, default 0
        What to return at least if the far rows follow no law.
    """
    law = fit_tail(histogram, told)
    if law is None:
        return max(told, without_law)
    inside, beyond = told * np.geomspace(_SHORTEST, 1, _STEPS), told * np.geomspace(1, _LONGEST, _STEPS)
    # Within what the histogram tells, its own counts are better than any law.
    clipped = histogram.lost_inside(inside, told)[:, None] + law.rows * (told**2 - inside**2)[:, None]
    far = lost_beyond(law, told, beyond)
    places, lost = np.concatenate([inside, beyond]), np.concatenate([clipped + far[0], far])
    likely = np.quantile(lost, c.LIKELY_LOSS, axis=1)
    return float(places[int(np.argmin(places**2 * noise + agreeing * likely))])


def lost_by_reach(histogram: FineNorms, seen: float, factors: Vector) -> Vector:
    """Return what clipping takes at several multiples of a radius: the median over likely laws.

    Nothing if the far rows follow no law: then all that are seen lie within the radius.
    """
    law = fit_tail(histogram, seen)
    if law is None:
        return np.zeros(len(factors))
    result: Vector = np.median(lost_beyond(law, seen, seen * factors), axis=1)
    return result


def lost_beyond(law: LossLaw, radius: float, places: Vector) -> Matrix:
    """Return what clipping at each of several radii takes from the sum of squares, for each of the laws.

    Parameters
    ----------
    law : LossLaw
        Of the rows beyond `radius`.
    radius : float
        In the units of `places`.
    places : ndarray, shape (k,)
        The radii, none of them shorter.
    """
    excess = (places / radius - 1)[:, None]
    rows = law.rows * survival(excess / law.spread, law.shape)
    # Beyond a threshold, a generalised Pareto law is one again, with another scale. Its first two moments:
    spread = np.maximum(law.spread + law.shape * excess, 0.0) * radius
    first = spread / (1 - law.shape)
    second = 2 * spread**2 / ((1 - law.shape) * (1 - 2 * law.shape))
    result: Matrix = rows * (2 * places[:, None] * first + second)
    return result
