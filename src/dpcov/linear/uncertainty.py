"""How far an answer may be from the one that the raw rows give.

The released matrix is ``S~ = S - D + E``, all of it relative to known laws:

- E, the privacy noise, is Gaussian with a law that is public;
- D, what shrinking long rows took away beyond what the method has restored, is a sum over few rows. How
  many and how long follows from private histograms (`LossLaw`): of lengths along directions in which many of
  them agree, and of the norms of the others, whose directions are taken to be spread evenly.

An answer f(S) with gradient G moves by ``<G, E - D>``. A `Response` holds the few numbers about G that its
law depends on, an `ErrorLaw` turns them into standard errors and intervals. ``docs/release.md`` derives both.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpcov.arrays import Array
from dpcov.checks import share
from dpcov.linear.loss_draws import ANGLES, LossDraws, mixture_below, mixture_quantile
from dpcov.linear.responses import Response

_CHUNK = 4096
_LEVEL = 0.95
# Where the law of what lies beyond was in doubt (7 of `real_tables.py`, seeds 6000 to 6099 of `world.py`),
# clipping moved 1% of the means below this part by more than half of their half interval, and 5 to 14% of
# those above.
_COUNTS_BESIDE = 0.5
ONE_SIGMA = 0.6826894921370859
_TINY = float(np.finfo(np.float64).tiny)


class ErrorLaw:
    """The law of the error of answers, given their responses.

    Parameters
    ----------
    sigma : float
        Of the noise law; NaN if there is none.
    complete_rows : float
        How many complete rows there are, for sampling error.
    losses : LossDraws, optional
        Draws of what clipping took away.
    perhaps_unmoved : bool, default False
        Whether clipping may have moved nothing, so that intervals hold what noise alone allows as well.
    """

    def __init__(
        self,
        sigma: float,
        complete_rows: float,
        losses: LossDraws | None,
        *,
        perhaps_unmoved: bool = False,
    ) -> None:
        self._sigma = sigma
        self._complete_rows = complete_rows
        self._losses = losses
        self._perhaps_unmoved = perhaps_unmoved

    @property
    def losses(self) -> LossDraws | None:
        """Draws of what clipping took away."""
        return self._losses

    @property
    def normal(self) -> bool:
        """Whether errors are normal: nothing was lost to clipping as far as is known."""
        return self._losses is None

    def after_fitting(self, coefficients: int) -> ErrorLaw:
        """Return the law for so many coefficients of one regression: each takes a degree of freedom."""
        return self._with(max(self._complete_rows - coefficients, 1.0), self._losses)

    def without_sampling(self) -> ErrorLaw:
        """Return the law for answers that bring their own sampling error."""
        return self._with(math.inf, self._losses)

    def perhaps_unmoved(self) -> ErrorLaw:
        """Return the law for answers that clipping may have left as they are: rows may lie on one line."""
        return ErrorLaw(self._sigma, self._complete_rows, self._losses, perhaps_unmoved=True)

    def _with(self, complete_rows: float, losses: LossDraws | None) -> ErrorLaw:
        return ErrorLaw(self._sigma, complete_rows, losses, perhaps_unmoved=self._perhaps_unmoved)

    def standard_error(self, response: Response, *, sampling: bool) -> Array:
        """Return half the width of the central 68.3% of the error, which is its sd where it is normal."""
        if self._losses is None:
            return self._normal_deviation(response, sampling=sampling)
        lower, upper = self.interval(np.zeros_like(response.noise), response, ONE_SIGMA, sampling=sampling)
        width = (upper - lower) / 2
        # What is certain has an interval of a few of the smallest numbers.
        return np.asarray(np.where(width < _TINY * 100, 0.0, width))

    def interval(
        self, values: Array, response: Response, level: float, *, sampling: bool
    ) -> tuple[Array, Array]:
        """Return bounds that hold the answer of the raw rows with probability `level`.

        With `sampling`, the answer of the population that the rows are a sample of.
        """
        probabilities = _ends(level)
        deviation = self._normal_deviation(response, sampling=sampling)
        if self._losses is None:
            width = deviation * ndtri(probabilities[1])
            return values - width, values + width
        bounds = np.empty((2, values.size))
        flat, deviations = response.flat(), deviation.ravel()
        rest = np.arange(values.size)
        plain = (flat.trace == 0) & (flat.constant == 0) & (flat.cross == 0)
        if plain.sum() > ANGLES:
            bounds[:, plain] = self._losses.plain_quantiles(
                flat.select(plain), deviations[plain], probabilities
            )
            rest = np.flatnonzero(~plain)
        for first in range(0, rest.size, _CHUNK):
            part = rest[first : first + _CHUNK]
            shifts = self._losses.missing(flat.select(part))
            for bound, probability in zip(bounds, probabilities, strict=True):
                bound[part] = mixture_quantile(shifts, deviations[part], probability)
        if self._perhaps_unmoved:
            width = deviations * ndtri(probabilities[1])
            bounds = np.array([np.minimum(bounds[0], -width), np.maximum(bounds[1], width)])
        return values + bounds[0].reshape(values.shape), values + bounds[1].reshape(values.shape)

    def p_values(self, values: Array, response: Response, *, sampling: bool) -> Array:
        """Return how likely errors are that reach as far as from zero to an answer, on either side.

        `interval` leaves zero out where this is below one minus its level. NaN where there is no law.
        """
        deviation = self._normal_deviation(response, sampling=sampling).ravel()
        below = np.empty(values.size)
        flat, points = response.flat(), -values.ravel()
        for first in range(0, values.size, _CHUNK):
            part = slice(first, first + _CHUNK)
            shifts = np.zeros((len(points[part]), 1))
            if self._losses is not None:
                shifts = self._losses.missing(flat.select(part))
            below[part] = mixture_below(points[part], shifts, deviation[part])
        likely = 2 * np.minimum(below, 1 - below)
        if self._perhaps_unmoved:
            unmoved = mixture_below(points, np.zeros((len(points), 1)), deviation)
            likely = np.maximum(likely, 2 * np.minimum(unmoved, 1 - unmoved))
        return np.asarray(likely).reshape(values.shape)

    def ruled_by_clipping(self, response: Response, *, sampling: bool) -> NDArray[np.bool_]:
        """Return for which answers clipping counts beside noise: its 95% are half as far apart or further.

        All, if nothing is known of what it took. Others have about the interval that noise alone gives.
        """
        deviation = self._normal_deviation(response, sampling=sampling)
        if self._losses is None:
            return np.ones(deviation.shape, dtype=np.bool_)
        flat, apart = response.flat(), np.empty(deviation.size)
        probabilities = _ends(_LEVEL)
        for first in range(0, apart.size, _CHUNK):
            part = slice(first, first + _CHUNK)
            ends = np.quantile(self._losses.missing(flat.select(part)), probabilities, axis=1)
            apart[part] = ends[1] - ends[0]
        of_noise = 2 * ndtri(probabilities[1]) * deviation
        # What has no law is not a number.
        return np.asarray(~(apart.reshape(deviation.shape) <= _COUNTS_BESIDE * of_noise))

    def normal_covariance(self, noise: Array, own: Array, cross: Array, *, sampling: bool) -> Array:
        """Return the covariance of errors without what clipping took, from products of responses."""
        covariance = self._sigma**2 * noise
        if sampling:
            covariance = covariance + (2 * own + 4 * cross) / self._complete_rows
        return np.asarray(covariance)

    def _normal_deviation(self, response: Response, *, sampling: bool) -> Array:
        return np.sqrt(
            self.normal_covariance(response.noise, response.own, response.cross, sampling=sampling)
        )


def _ends(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of a central interval."""
    inside = share(level, "level")
    return (1 - inside) / 2, (1 + inside) / 2
