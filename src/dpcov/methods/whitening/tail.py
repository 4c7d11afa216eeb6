"""What clipping took away: the law of the rows beyond the radius, from the noisy histogram of norms.

Few rows lie beyond the last radius, too few to count under noise. But the histogram counts the rows
just inside well, and the norms beyond a high threshold follow a generalised Pareto law (Pickands 1975;
Balkema and de Haan 1974). `fit_tail` fits it to the noisy counts by Bayes' rule on a grid, with flat
priors, and returns laws that are equally likely: how many rows lie beyond the radius, and how far.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import chdtri, gammaincinv, ndtr, ndtri

from dpcov.arrays import Vector
from dpcov.losses import LossLaw, given_back, kept_square, lost_to_means
from dpcov.methods.whitening.norms import FineNorms

VAGUE = 0.25
"""Which quantile of the likely losses to restore where they are vague."""

_LAWS = 128
_SHAPES = np.linspace(-0.5, 0.45, 20)
_LOG_PRIOR = 2 * np.log(0.5 - _SHAPES) + 3.5 * np.log(0.501 + _SHAPES)
_SCALES = np.geomspace(0.02, 1.5, 40)
# The less noise, the fewer rows beyond the threshold serve, and the better a tail they are.
_ROWS_FOR_NOISE = 175.0
_LARGEST_SHARE = 0.1
_HALVINGS = 5
_FEWEST_ROWS = 100
_LIGHT = 1e-9
_MOST = 1e100
_REJECTED = 0.01
_QUANTILES = (np.arange(64) + 0.5) / 64
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
_SILVER_RATIO = math.sqrt(2) - 1
_LEAST_ROWS = 0.5
_DRAWS = 8
_FURTHEST = 64


def fit_tail(histogram: FineNorms, radius: float) -> LossLaw | None:
    """Return the laws that the histogram leaves likely; None if its far counts follow no such law.

    Parameters
    ----------
    histogram : FineNorms
        In the coordinates that were clipped.
    radius : float
        Where.
    """
    share = min(_wanted_share(histogram), _LARGEST_SHARE)
    for halving in range(_HALVINGS + 1):
        law = _fit_beyond(histogram, radius, share / 2**halving)
        if law is not None or share / 2 ** (halving + 1) * histogram.n_rows < _FEWEST_ROWS:
            return law
    return None


def law_of_counts(near: float, far: float, spreads: tuple[float, float], reach: float) -> LossLaw:
    """Return laws under which so many rows lie between the radius and `reach` times it, and so many beyond.

    Parameters
    ----------
    near, far : float
        Noisy counts.
    spreads : tuple of float
        Standard deviations of their noise.
    reach : float
        Above 1.
    """
    place = (np.arange(_LAWS) + 0.5) / _LAWS
    weights = np.exp(_LOG_PRIOR)
    shape = _SHAPES[np.searchsorted(np.cumsum(weights / weights.sum()), place).clip(0, len(_SHAPES) - 1)]
    # Sequences of two irrational steps stand for independent draws, and the posterior of a count that is not
    # negative, given its noise, for each number of rows.
    within = _at_least_zero(near, spreads[0], (place * _LAWS * _GOLDEN_RATIO) % 1.0)
    beyond = _at_least_zero(far, spreads[1], (place * _LAWS * _SILVER_RATIO) % 1.0)
    total = within + beyond
    # If no row were near, the far ones would follow no law that begins at the radius.
    share = np.maximum(np.minimum(beyond, 0.9 * total), _LEAST_ROWS) / np.maximum(total, 2 * _LEAST_ROWS)
    light = np.abs(shape) < _LIGHT
    excess = np.where(light, -np.log(share), (share**-shape - 1) / np.where(light, 1.0, shape))
    return LossLaw(total, shape, (reach - 1) / excess, 1.0)


def _at_least_zero(count: float, spread: float, place: Vector) -> Vector:
    """Return quantiles of a normal law around a noisy count, cut off at zero."""
    below = ndtr(-count / spread)
    result: Vector = np.maximum(count + spread * ndtri(below + (1 - below) * place.clip(1e-6, 1 - 1e-6)), 0.0)
    return result


def restored_quantile(histogram: FineNorms) -> float:
    """Return which quantile of the likely losses to restore: the median, or a low one where they are vague.

    Where noise drowns the far counts, the prior decides, and it allows for tails heavier than most have:
    a low quantile errs less on the benchmark's tables.
    """
    return 0.5 if _wanted_share(histogram) <= _LARGEST_SHARE else VAGUE


def expected_loss(law: LossLaw, n_rows: int, rank: int, quantile: float, *, has_constant: bool) -> LossLaw:
    """Return the law with the loss to restore: a quantile, over the laws, of what each expects.

    It is that of a direction in the middle: where the loss is uneven, most have less than the mean.
    """
    own = max(rank - 1 if has_constant else rank, 1)
    constant = _lost_shares(law).mean(axis=1) * law.rows / n_rows if has_constant else np.zeros(1)
    law = replace(law, directions=own)
    middle = float(gammaincinv(law.evenness, 0.5)) / law.evenness if own > 1 else 1.0
    return replace(
        law,
        restored=middle * loss_quantile(law, n_rows, quantile, has_constant=has_constant),
        restored_constant=float(np.quantile(constant, quantile)),
    )


def loss_quantile(law: LossLaw, n_rows: int, quantile: float, *, has_constant: bool) -> float:
    """Return a quantile, over the laws, of the share that clipping takes from a variance."""
    norms = law.all_norms(np.tile(_QUANTILES, (len(law.rows), 1)))
    squares = np.maximum((law.radius * norms) ** 2 - (1.0 if has_constant else 0.0), 0.0)
    lost = law.rows * (_lost_shares(law) * squares).mean(axis=1) / (n_rows * law.directions)
    return float(np.quantile(lost, quantile))


def largest_loss(law: LossLaw, n_rows: int, quantile: float) -> float:
    """Return a quantile of what clipping takes from a variance if all rows beyond lie along its direction.

    Unlike `loss_quantile` it draws the rows as well as their law: of a long tail the furthest few may take
    more than all others together.
    """
    draws = _DRAWS * len(law.rows)
    rows = np.tile(law.rows, _DRAWS)[:, None]
    # The furthest one by one, each at any place of its share of the law; the others in expectation.
    place = ((np.arange(draws)[:, None] + 0.5) * _GOLDEN_RATIO) % 1.0 + np.arange(_FURTHEST)
    rest = np.maximum(rows - _FURTHEST, 0.0)
    upper = np.hstack([place, _FURTHEST + rest * _QUANTILES]) / np.maximum(rows, _LEAST_ROWS)
    weights = np.hstack([place < rows, np.broadcast_to(rest / len(_QUANTILES), (draws, len(_QUANTILES)))])
    norms = law.all_norms(np.minimum(upper, 1.0))
    lost = (
        law.radius**2
        * (weights * (norms**2 - kept_square(norms, measured=law.measured))).sum(axis=1)
        / n_rows
    )
    return float(np.quantile(lost, quantile))


def lost_length(law: LossLaw) -> float:
    """Return what clipping takes from a sum over rows that all lie along one direction and on one side.

    It is the median over the laws, in units of the radius, beyond what is given back.
    """
    norms = law.all_norms(np.tile(_QUANTILES, (len(law.rows), 1)))
    return float(np.median(law.rows * lost_to_means(norms, measured=law.measured).mean(axis=1)))


def given_lengths(law: LossLaw) -> Vector:
    """Return what is given back of such a sum, for each of the laws."""
    norms = law.all_norms(np.tile(_QUANTILES, (len(law.rows), 1)))
    lengths: Vector = law.rows * given_back(norms).mean(axis=1)
    return lengths


def lost_squares(law: LossLaw) -> Vector:
    """Return what clipping takes from a sum of squares along which all rows lie, in squares of the radius."""
    norms = law.all_norms(np.tile(_QUANTILES, (len(law.rows), 1)))
    squares: Vector = law.rows * (norms**2 - kept_square(norms, measured=law.measured)).mean(axis=1)
    return squares


def _lost_shares(law: LossLaw) -> Vector:
    """Return the share of its square that a row beyond loses, for each law and quantile of its length."""
    norms = law.all_norms(np.tile(_QUANTILES, (len(law.rows), 1)))
    shares: Vector = 1 - kept_square(norms, measured=law.measured) * norms**-2.0
    return shares


def _wanted_share(histogram: FineNorms) -> float:
    """Return which share of the rows should lie beyond the threshold, so that noise does not drown them."""
    return max(_ROWS_FOR_NOISE * histogram.sigma, _FEWEST_ROWS) / histogram.n_rows


def _fit_beyond(histogram: FineNorms, radius: float, share: float) -> LossLaw | None:
    low, high, counts = histogram.beyond(share, radius)
    if len(counts) < 3:
        return None
    threshold = low[0]
    shapes, scales = _SHAPES[:, None, None], threshold * _SCALES[None, :, None]
    shares = survival((low - threshold) / scales, shapes) - survival((high - threshold) / scales, shapes)
    rows = np.full(shares.shape[:2], share * histogram.n_rows)
    for _ in range(3):
        # Weighted least squares for the number of rows beyond the threshold, given the law.
        variance = histogram.sigma**2 + rows[..., None] * shares
        precision = (shares**2 / variance).sum(axis=-1)
        rows = np.maximum((shares * counts / variance).sum(axis=-1) / precision, 1.0)
    misfit = (counts - rows[..., None] * shares) ** 2 / variance
    if misfit.sum(axis=-1).min() > chdtri(len(counts) - 3, _REJECTED):
        return None
    log_likelihood = -0.5 * (misfit + np.log(variance)).sum(axis=-1) + _LOG_PRIOR[:, None]
    weights = np.exp(log_likelihood - log_likelihood.max()).ravel()
    place = (np.arange(_LAWS) + 0.5) / _LAWS
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), place).clip(0, weights.size - 1)
    shape = np.repeat(_SHAPES, len(_SCALES))[chosen]
    scale = threshold * np.tile(_SCALES, len(_SHAPES))[chosen]
    # A golden-ratio sequence stands for independent normal draws: methods make no random numbers.
    normal = ndtri((place * _LAWS * _GOLDEN_RATIO) % 1.0)
    total = np.maximum(rows.ravel()[chosen] + normal / np.sqrt(precision.ravel()[chosen]), 1.0)
    beyond = survival((radius - threshold) / scale, shape)
    spread = np.maximum(scale + shape * (radius - threshold), 1e-9 * radius) / radius
    return LossLaw(total * beyond / histogram.part, shape, spread, radius)


def survival(excess: Vector, shape: Vector) -> Vector:
    """P(e > excess) of the generalised Pareto law."""
    light = np.abs(shape) < _LIGHT
    base = np.maximum(1 + shape * excess, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        result: Vector = np.where(light, np.exp(-excess), base ** (-1 / np.where(light, 1.0, shape)))
    # Far inside the threshold some laws have no limit, and no rows times infinity would be NaN.
    return np.minimum(result, _MOST)
